"""The ARKs of a SIP: derived, or given by a minter and kept before they are used."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from launches import chain as steps
from launches.engine import LAUNCH, Engine, line_of
from packing.minters import Minter, serving
from records.warcs import warc_gz, warcinfo

from warcmill import layout
from warcmill.backup import backup
from warcmill.errors import BadInput, Mismatch, Unavailable
from warcmill.formats.sip import ark
from warcmill.markers.facts.package import GivenArks
from warcmill.model import FINAL, FileRef
from warcmill.output import process
from warcmill.package import identifiers
from warcmill.package.identifiers import ArkFile
from warcmill.package.sips import Terms

FILES = [
    ArkFile("b c.warc.gz", FileRef("store", "warcs/daily/1/b%20c.warc.gz", 1, "bb" * 64)),
    ArkFile("a.warc.gz", FileRef("store", "warcs/daily/1/a.warc.gz", 1, "aa" * 64)),
]
KEY = layout.key("package.GiveArks", LAUNCH, stage=FINAL)
DERIVED = Terms("NL", naan="12345", shoulder="x5")


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return Engine(tmp_path)


@pytest.fixture
def minter() -> Iterator[Minter]:
    with serving() as made:
        yield made


def named(engine: Engine, terms: Terms, files: list[ArkFile] = FILES) -> tuple[dict[str, str], str]:
    """The ARKs of files by name, and that of the SIP."""
    arks = identifiers.of_files(engine.state, LAUNCH, FINAL, files, terms)
    sip = identifiers.of_sip(engine.state, LAUNCH, FINAL, "daily.1.final", files, terms)
    return {file.name: arks[file.stored.path] for file in files}, sip


def test_without_naan_and_minter_there_are_none(engine: Engine) -> None:
    assert named(engine, Terms("NL")) == ({"b c.warc.gz": "", "a.warc.gz": ""}, "")


def test_derived_ones_follow_from_name_and_bytes_and_leave_no_file(engine: Engine) -> None:
    files, sip = named(engine, DERIVED)
    assert files["a.warc.gz"] == ark.derived("12345", "x5", LAUNCH.job, LAUNCH.id, "a.warc.gz", "aa" * 64)
    assert len({*files.values(), sip}) == 3
    assert named(engine, DERIVED, FILES[::-1]) == (files, sip)
    assert named(engine, DERIVED, FILES[:1])[1] != sip
    assert engine.state.read(KEY) is None


def test_those_of_a_minter_are_published_before_they_are_used_and_used_for_ever(engine: Engine, minter: Minter) -> None:
    terms = Terms("NL", minter=minter.url)
    first = named(engine, terms)
    assert first == ({"a.warc.gz": "ark:12345/x50000001", "b c.warc.gz": "ark:12345/x50000002"}, "ark:12345/x50000000")
    kept = engine.state.require(KEY)
    assert GivenArks.from_claim(kept.claim).sip == first[1]
    assert kept.claim.inputs == ()
    assert "s3cret" not in str(kept)
    assert named(engine, terms) == first
    assert len(minter.asked) == 1
    assert named(engine, DERIVED) == first, "they stay, whatever the configuration is now"


def test_who_comes_second_uses_the_first_s(engine: Engine, minter: Minter) -> None:
    other: list[tuple[dict[str, str], str]] = []
    answer = minter.count

    def after_another(number: int) -> bytes:
        minter.answer = answer
        other.append(named(engine, Terms("NL", minter=minter.url)))
        return answer(number)

    minter.answer = after_another
    assert named(engine, Terms("NL", minter=minter.url)) == other[0]
    assert len(minter.asked) == 2


def test_a_file_without_one_is_named_with_the_command_that_has_new_ones_given(engine: Engine, minter: Minter) -> None:
    named(engine, Terms("NL", minter=minter.url), FILES[:1])
    with pytest.raises(BadInput, match=r"a\.warc\.gz: .* 'warcmill redo daily \d+ arks\.daily\.\d+\.final'"):
        named(engine, DERIVED)


@pytest.mark.parametrize(("answer", "error"), [(b"ark:12345/x1", Mismatch), (b"<html>", BadInput)])
def test_garbage_is_not_published(engine: Engine, minter: Minter, answer: bytes, error: type[Exception]) -> None:
    minter.answer = lambda _: answer
    with pytest.raises(error):
        named(engine, Terms("NL", minter=minter.url))
    minter.answer, minter.status = minter.count, 500
    with pytest.raises(Unavailable):
        named(engine, Terms("NL", minter=minter.url))
    assert engine.state.read(KEY) is None


def test_they_are_backed_up_with_the_launch(tmp_path: Path, minter: Minter) -> None:
    made = Engine(tmp_path)
    made.logs(line_of("http://a.example/", "a.warc.gz"))
    made.warc("a.warc.gz", warc_gz(warcinfo()))
    made.finish()
    steps.assembled(made)
    claim = process.process(made.state, made.roots, LAUNCH)
    made.state.publish(claim.key, claim)
    steps.upto(made, "Verify")
    named(made, Terms("NL", minter=minter.url))
    with made.state.scratch() as folder:
        path = backup.back_up(made.state, made.store, LAUNCH, folder)
    assert layout.marker_name(KEY).encode() in made.store.real(path).read_bytes()
