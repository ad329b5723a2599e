"""Bad input, and what is merely odd, all the way from 05 to 08: built, submitted, verified, and in the catalogue."""

from __future__ import annotations

import dataclasses
import gzip
import tarfile
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import brotli
import pytest
from launches import chain as steps
from launches.engine import LAUNCH, Engine, line_of
from msgspec.structs import replace
from packing.packages import HOSTILE
from records.warcs import http, record, warc_gz, warcinfo

from warcmill import layout
from warcmill.errors import BadInput
from warcmill.launches import holdings
from warcmill.markers.claim import Claim
from warcmill.markers.facts.package import Packaged
from warcmill.model import FINAL, Launch, Stage
from warcmill.package import build, contents, index_sip, sips, submit, verify
from warcmill.package.catalogue import Catalogue
from warcmill.package.catalogue_query import Question, ask
from warcmill.package.sips import Form, Terms
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore

CP1, CP2 = Stage.parse("cp00001-20161020010000"), Stage.parse("cp00002-20161021010000")
SECOND = Launch(LAUNCH.job, "20161021000000")
NAMES = [f"BL-20161019234430000-0000{serial}-1~crawler~8443.warc.gz" for serial in range(4)]
PAGE = warc_gz(warcinfo(), record(block=http(b"<p>Hello.</p>")))
FORMS = pytest.mark.parametrize("form", ["value", "reference"])
LARGE = 64 << 20


def verified(made: Engine, *which: Stage) -> Engine:
    for stage in which:
        steps.assembled(made, stage)
        steps.upto(made, "Verify", stage)
    return made


class Archive:
    """The steps of SIPs over an engine's launches."""

    def __init__(self, made: Engine, form: Form = "value") -> None:
        self.made, self.terms = made, Terms("National Library", form, "https://a.example/store", "12345")
        sentinel.adopt({"destination": made.base / "destination"})
        (made.base / "index").mkdir()
        self.to = FileStore("destination", made.base / "destination")
        self.catalogue = Catalogue(made.base / "index")

    def carry(self, launch: Launch = LAUNCH, stage: Stage = FINAL) -> list[Claim]:
        """The claims of 05 to 08 of a stage, published."""
        return list(self._steps(launch, stage))

    def _steps(self, launch: Launch, stage: Stage) -> Iterator[Claim]:
        state, store = self.made.state, self.made.store
        yield self._published(build.build(state, store, None, launch, stage, self.terms))
        yield self._published(submit.submit(state, store, self.to, launch, stage))
        yield self._published(verify.verify(state, store, self.to, f"{layout.INGEST}/", launch, stage))
        yield self._published(index_sip.index_sip(state, self.catalogue, launch, stage, verify.VERIFY))

    def _published(self, claim: Claim) -> Claim:
        self.made.state.publish(claim.key, claim)
        return claim

    def names(self, launch: Launch = LAUNCH) -> set[str]:
        """The WARCs of a launch that the catalogue has."""
        return {str(warc["name"]) for sip in ask(self.catalogue, Question(launch=launch)) for warc in sip.warcs}


@FORMS
def test_hostile_names_are_the_same_in_the_sip_and_in_the_catalogue(tmp_path: Path, form: Form) -> None:
    """Newline, %, blanks, controls, NFC beside NFD, 255 bytes."""
    names = [*(name for name in HOSTILE if name.endswith(".warc.gz")), f"{'n' * 247}.warc.gz"]
    too_long = [name for name in names if len(quote(name)) > 255]  # for a file of the store
    made = Engine(tmp_path)
    made.logs(*(line_of("http://a.example/", name) for name in names))
    for number, name in enumerate(names):
        made.warc(name, PAGE * (number + 1))
    made.finish()
    archive = Archive(verified(made, FINAL), form)
    _, _, checked, _ = archive.carry()
    assert checked.counts["warcs" if form == "value" else "referred"] == len(names) - len(too_long)
    assert archive.names() == set(names)
    for name in names:
        (found,) = ask(archive.catalogue, Question(warc=name))
        word = "not stored" if name in too_long else "whole"
        assert [(warc["name"], warc["word"]) for warc in found.warcs] == [(name, word)]


@FORMS
def test_an_empty_stage_and_one_without_a_page(tmp_path: Path, form: Form) -> None:
    made = Engine(tmp_path)
    made.logs(stage=str(CP1))
    made.logs(line_of("http://a.example/", None, status=404))
    made.finish()
    archive = Archive(verified(made, CP1, FINAL), form)
    for stage in (CP1, FINAL):
        assert archive.carry(stage=stage)[2].counts["warcs"] == 0
    assert [sip.sip["covers"] for sip in ask(archive.catalogue, Question())] == [str(CP1), "final"]


@FORMS
def test_a_resumed_launch_names_the_one_that_it_continues_and_has_none_of_its_files(tmp_path: Path, form: Form) -> None:
    made = Engine(tmp_path)
    made.logs(line_of("http://a.example/1", NAMES[0]), stage=str(CP1))
    made.logs(line_of("http://a.example/2", NAMES[1]))
    for name in NAMES[:2]:
        made.warc(name, PAGE)
    made.job_log(f"PREPARING {LAUNCH.id}", f"RUNNING {LAUNCH.id}", f"CHECKPOINTED {CP1}")
    second = dataclasses.replace(made, launch=SECOND)
    second.logs(line_of("http://a.example/2", NAMES[2]), stage=str(CP2))
    second.logs(line_of("http://a.example/3", NAMES[3]))
    for name in NAMES[2:]:
        second.warc(name, PAGE)
    words = (f"PREPARING {SECOND.id}", f"CHECKPOINTED {CP2}", f"FINISHED {SECOND.id}")
    second.job_log(*words, launch=SECOND)
    verified(made, CP1, FINAL)
    archive = Archive(verified(second, CP2, FINAL), form)
    for launch, names in ((LAUNCH, NAMES[:2]), (SECOND, NAMES[2:])):
        built, *_ = archive.carry(launch)
        assert archive.names(launch) == set(names)
        told = f"continues the launch {LAUNCH} from checkpoint {CP1}"
        with tarfile.open(made.store.real(built.outputs[0].path)) as tar:
            (described,) = (tar.extractfile(one) for one in tar if one.name.endswith("dc.xml"))
            assert described
            assert (told in described.read().decode()) == (launch == SECOND)
    assert set(holdings.of_stage(made.state, SECOND, CP2).holdings).isdisjoint(
        holdings.of_stage(made.state, LAUNCH, CP1).holdings
    )


def test_payloads_that_inflate_a_thousandfold_take_little_memory(tmp_path: Path) -> None:
    """In their coding, and as records of a WARC: read by PRONOM's tool, by the checker of bags, and by warcio."""
    coded = brotli.compress(bytes(LARGE), quality=5)
    zeros = http(bytes(LARGE))
    made = Engine(tmp_path)
    made.logs(line_of("http://a.example/", NAMES[0]))
    page = record(block=http(coded, b"Content-Encoding: br"))
    made.warc(NAMES[0], b"".join(gzip.compress(one) for one in (warcinfo(), page, record(block=zeros))))
    assert len(zeros) > 500 * made.roots.output.stat(f"warcs/{LAUNCH}/{NAMES[0]}").size  # type: ignore[union-attr]
    made.finish()
    archive = Archive(verified(made, FINAL))
    del zeros
    tracemalloc.start()
    try:
        assert archive.carry()[2].counts["warcs"] == 1
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < LARGE / 2, f"{peak >> 20} MiB"


@FORMS
def test_two_warcs_of_one_name_are_refused_and_the_same_one_of_two_stages_is_taken_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: Form
) -> None:
    """No step stores two files under one name: only a marker that is wrong can have it."""
    made = Engine(tmp_path)
    made.logs(line_of("http://a.example/", NAMES[0]), stage=str(CP1))
    made.logs(line_of("http://b.example/", NAMES[1]))
    for number, name in enumerate(NAMES[:2]):
        made.warc(name, PAGE * (number + 1))
    made.finish()
    archive = Archive(verified(made, CP1, FINAL), form)
    real = sips.read

    def read(*asked: object) -> sips.Proven:
        found = real(*asked)  # type: ignore[arg-type]
        return replace(found, holds=replace(found.holds, holdings=tuple(map(changed, found.holds.holdings))))

    def changed(one: holdings.Holding) -> holdings.Holding:
        return one._replace(name=NAMES[0])

    monkeypatch.setattr(contents.sips, "read", read)
    with pytest.raises(BadInput, match=f"{NAMES[1]}: another file of the same name is in this SIP too, stored as"):
        archive.carry()
    assert not list(made.store.list(f"sips/{LAUNCH}")), "nothing is half-published"
    first = holdings.of_stage(made.state, LAUNCH, CP1).holdings

    def twice(*asked: object) -> sips.Proven:
        found = real(*asked)  # type: ignore[arg-type]
        return replace(found, holds=replace(found.holds, holdings=first))

    monkeypatch.setattr(contents.sips, "read", twice)
    claim = build.build(made.state, made.store, None, LAUNCH, FINAL, archive.terms)
    assert claim.counts["files"] == 3, "the WARC once, and the logs of both stages"
    assert Packaged.from_claim(claim).covers == (CP1, FINAL)
