"""The catalogue: the rows of a SIP, several writers, damage, questions; rebuilt, it is the same row by row."""

from __future__ import annotations

import re
import sqlite3
import tarfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count, islice
from pathlib import Path

import pytest
from launches import chain
from launches.engine import LAUNCH, Engine, line_of
from packing import minters, sips
from records.warcs import warc_gz, warcinfo

from warcmill import layout
from warcmill.clients import minter
from warcmill.errors import BadInput, Busy, NotReady, Unavailable
from warcmill.launches import holdings
from warcmill.markers.claim import Claim, claim_digest
from warcmill.model import FINAL, Launch, Stage
from warcmill.package import build, identifiers, index_sip, submit
from warcmill.package import catalogue as module
from warcmill.package.catalogue import Catalogue, RowSet, row_set
from warcmill.package.catalogue_query import CatalogueMatch, Question, ask
from warcmill.package.sips import Terms
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore

OPEN = "BL-20161019234430000-00001-1~crawler~8443.warc.gz"
NAME = "BL-20161019234430000-00000-1~crawler~8443.warc.gz"


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    """A finished launch, verified in the store, one WARC of it cut; and its SIP."""
    made = Engine(tmp_path)
    made.logs(line_of("http://a.example/", NAME), line_of("http://b.example/", OPEN))
    made.warc(NAME, warc_gz(warcinfo()))
    made.warc(f"{OPEN}.open", warc_gz(warcinfo()) * 2 + warc_gz(warcinfo())[:-9])
    made.finish()
    chain.assembled(made)
    chain.upto(made, "Verify")
    sips.built(made, LAUNCH)
    return made


@pytest.fixture
def catalogue(tmp_path: Path) -> Catalogue:
    (tmp_path / "index").mkdir()
    return Catalogue(tmp_path / "index")


def index(engine: Engine, catalogue: Catalogue, proof: str = "package.BuildSip") -> None:
    claim = index_sip.index_sip(engine.state, catalogue, LAUNCH, FINAL, proof)
    engine.state.publish(claim.key, claim)


def hand_over(engine: Engine, base: Path) -> None:
    sentinel.adopt({"destination": base})
    to = FileStore("destination", base)
    claim = submit.submit(engine.state, engine.store, to, LAUNCH, FINAL)
    engine.state.publish(claim.key, claim)


def asked(catalogue: Catalogue, **words: object) -> list[CatalogueMatch]:
    return list(ask(catalogue, Question(**words)))  # type: ignore[arg-type]


def row(number: int) -> RowSet:
    """A SIP of another launch, without a marker."""
    launch = Launch("weekly", f"201610200000{number:02}")
    of_sip = (launch.job, launch.id, "final")
    sip = (*of_sip, "name", "path", 1, "a" * 128, "value", "final", "", "packaged", "b" * 128)
    warcs = tuple((*of_sip, "final", f"{one}.warc", "whole", f"p{one}", 1, "c" * 128) for one in range(50))
    return RowSet(launch, FINAL, (sip,), warcs, (), ())


def test_a_sip_is_entered_with_its_warcs_and_one_event_a_marker(engine: Engine, catalogue: Catalogue) -> None:
    index(engine, catalogue)
    (found,) = asked(catalogue)
    assert (found.sip["name"], found.sip["state"], found.sip["covers"]) == (
        f"daily.{LAUNCH.id}.final.tar",
        "packaged",
        "final",
    )
    assert [(one["name"], one["word"]) for one in found.warcs] == [
        (NAME, "whole"),
        (OPEN, "salvaged"),
        (f"{OPEN}.open", "cut"),
    ]
    assert [one["task"] for one in sorted(found.events, key=lambda one: str(one["task"]))] == [
        "files.Checksum",
        "files.Copy",
        "files.Verify",
        "output.AssembleOutput",
        "output.CheckJobStopped",
        "output.PackageLogs",
        "package.BuildSip",
    ]
    assert all(one["started"] and one["host"] for one in found.events), "also that of the zip, from the run beside it"


def test_its_marker_rests_on_the_proof_alone_and_says_the_same_each_time(engine: Engine, catalogue: Catalogue) -> None:
    claims = {claim_digest(index_sip.index_sip(engine.state, catalogue, LAUNCH, FINAL, "package.BuildSip"))}
    claims |= {claim_digest(index_sip.index_sip(engine.state, catalogue, LAUNCH, FINAL, "package.BuildSip"))}
    assert len(claims) == 1
    with pytest.raises(NotReady, match=r"06\.submitted"):
        index_sip.index_sip(engine.state, catalogue, LAUNCH, FINAL, submit.SUBMIT)


def test_deleted_and_rebuilt_it_is_equal_row_by_row(engine: Engine, catalogue: Catalogue, tmp_path: Path) -> None:
    hand_over(engine, tmp_path / "destination")
    index(engine, catalogue, submit.SUBMIT)
    before = list(catalogue.rows())
    assert {table for table, _ in before} == {"sips", "warcs", "events"}
    catalogue.path.unlink()
    stages = index_sip.entered(engine.state, LAUNCH)
    assert catalogue.rebuild(row_set(engine.state, LAUNCH, stage) for stage in stages) == 1
    assert list(catalogue.rows()) == before
    index_sip.enter(engine.state, catalogue, LAUNCH, FINAL)
    assert list(catalogue.rows()) == before, "and entered again"


def test_a_sip_that_is_submitted_after_it_was_entered_changes_its_state(
    engine: Engine, catalogue: Catalogue, tmp_path: Path
) -> None:
    index_sip.enter_again(engine.state, catalogue, LAUNCH, FINAL)
    assert not catalogue.path.exists(), "it was not entered yet"
    index(engine, catalogue)
    hand_over(engine, tmp_path / "destination")
    assert [one.sip["state"] for one in asked(catalogue)] == ["packaged"]
    index_sip.enter_again(engine.state, catalogue, LAUNCH, FINAL)
    assert [one.sip["state"] for one in asked(catalogue)] == ["submitted"]
    assert asked(catalogue, state="packaged") == []


def test_it_is_asked_by_warc_digest_launch_and_state(engine: Engine, catalogue: Catalogue) -> None:
    index(engine, catalogue)
    catalogue.write(row(1))
    (found,) = asked(catalogue, warc=NAME)
    digest = str(found.warcs[0]["sha512"])
    assert [one["name"] for one in found.warcs] == [NAME]
    assert [one["name"] for one in asked(catalogue, digest=digest[:8])[0].warcs] == [NAME]
    assert [one["name"] for one in asked(catalogue, digest=digest)[0].warcs] == [NAME]
    assert asked(catalogue, digest=digest, warc=OPEN) == []
    own = asked(catalogue, digest=str(found.sip["sha512"])[:12])
    assert [(one.sip["job"], one.warcs) for one in own] == [("daily", ())], "the SIP's own digest"
    assert [len(one.warcs) for one in asked(catalogue, launch=LAUNCH)] == [3]
    assert [one.sip["job"] for one in asked(catalogue, state="packaged")] == ["daily", "weekly"]
    assert asked(catalogue, warc="none.warc") == asked(catalogue, ark="ark:12345/x") == []


def test_a_question_is_no_statement(engine: Engine, catalogue: Catalogue) -> None:
    index(engine, catalogue)
    assert asked(catalogue, warc="' OR 1=1 --") == []


def test_several_writers_at_once_lose_nothing(catalogue: Catalogue) -> None:
    barrier = threading.Barrier(8)

    def write(number: int) -> None:
        barrier.wait()
        Catalogue(catalogue.path.parent).write(row(number))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(write, range(8)))
    assert catalogue.check() == 8
    assert len(list(catalogue.rows())) == 8 * 51


def test_a_writer_that_waits_too_long_for_another_is_told(
    catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalogue.write(row(1))
    monkeypatch.setattr(module, "PATIENCE", 0.05)
    other = sqlite3.connect(catalogue.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Busy, match="catalogue"):
        catalogue.write(row(2))
    other.close()
    catalogue.write(row(2))


def test_a_rebuild_that_is_broken_off_changes_nothing(catalogue: Catalogue) -> None:
    catalogue.write(row(1))

    def rows() -> object:
        yield row(2)
        raise NotReady("a marker", "killed")

    with pytest.raises(NotReady):
        catalogue.rebuild(rows())  # type: ignore[arg-type]
    assert [one.sip["launch_id"] for one in asked(catalogue)] == [row(1).launch.id]


def empty(path: Path) -> None:
    path.write_bytes(b"not a database, but text" * 40)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[4096 : 4096 + 200] = bytes(200)
    path.write_bytes(data)


def another_version(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 7")
    database.close()


def no_table(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("DROP TABLE warcs")
    database.close()


@pytest.mark.parametrize("damage", [empty, cut, flip, another_version, no_table])
def test_damage_is_named_with_the_command_that_makes_it_good(
    catalogue: Catalogue, damage: Callable[[Path], None]
) -> None:
    for number in range(20):
        catalogue.write(row(number))
    before = list(catalogue.rows())
    damage(catalogue.path)
    with pytest.raises(BadInput, match="'warcmill catalogue rebuild' makes it anew"):
        catalogue.check()
    assert catalogue.rebuild(map(row, range(20))) == 20
    assert list(catalogue.rows()) == before


def test_without_a_catalogue_the_command_that_makes_it_is_named(catalogue: Catalogue) -> None:
    with pytest.raises(NotReady, match="'warcmill catalogue rebuild' makes it"):
        catalogue.check()
    assert not catalogue.path.exists()


def test_a_writer_whose_file_a_rebuild_removed_fails_and_then_writes_again(
    catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has opened the file, and not changed it yet: what it wrote from then on would be nowhere."""
    catalogue.write(row(1))
    remove = module._remove

    def removing(database: sqlite3.Connection, rows: RowSet) -> None:
        catalogue.path.unlink()
        Catalogue(catalogue.path.parent).rebuild([row(1)])
        remove(database, rows)

    with monkeypatch.context() as patch:
        patch.setattr(module, "_remove", removing)
        with pytest.raises(Unavailable, match="catalogue"):
            catalogue.write(row(2))
    catalogue.write(row(2))
    assert catalogue.check() == 2


def ark_of(found: CatalogueMatch, name: str) -> str:
    (ark,) = [str(one["ark"]) for one in found.arks if str(one["name"]) == name]
    return ark


@pytest.mark.parametrize("terms", [Terms("NL", naan="12345", shoulder="x5"), Terms("NL", minter="http://m.example/")])
def test_arks_are_those_of_the_sip_whatever_the_configuration_is_later(
    engine: Engine, catalogue: Catalogue, terms: Terms, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The catalogue is made from markers: 05 has the ARK of the SIP, below whose NAAN the others are."""
    given = (f"ark:99999/fk4{number}" for number in count(1))
    monkeypatch.setattr(minter, "arks", lambda _, number: tuple(islice(given, number)))
    marker = engine.folders["state"] / layout.marker_path(layout.key("package.BuildSip", LAUNCH, stage=FINAL))
    marker.unlink()
    claim = build.build(engine.state, engine.store, None, LAUNCH, FINAL, terms)
    engine.state.publish(claim.key, claim)
    index(engine, catalogue)
    path = claim.outputs[0].path
    with tarfile.open(engine.store.real(path)) as tar:
        mets = b"".join(file.read() for one in tar if (file := tar.extractfile(one)) and one.name.endswith(".xml"))
    (found,) = asked(catalogue, launch=LAUNCH)
    assert len(found.arks) == 5, "the SIP, three WARCs, the zip of logs"
    assert all(str(one["ark"]).encode() in mets for one in found.arks)
    ark = ark_of(found, NAME)
    (one,) = asked(catalogue, ark=ark)
    assert ([warc["name"] for warc in one.warcs], [a["ark"] for a in one.arks]) == ([NAME], [ark])
    assert asked(catalogue, ark=ark, warc=OPEN) == []
    (own,) = asked(catalogue, ark=ark_of(found, f"daily.{LAUNCH.id}.final.2.tar"))
    assert own.warcs == ()
    (log,) = asked(catalogue, ark=ark_of(found, f"02.logs.daily.{LAUNCH.id}.final.zip"))
    assert (log.warcs, len(log.arks)) == ((), 1)


CP = Stage.parse("cp00001-20161020000000")
NAAN = Terms("NL", naan="12345", shoulder="x5")


def two_stages(base: Path) -> Engine:
    made = Engine(base)
    made.logs(line_of("http://a.example/", NAME), stage=str(CP))
    made.logs(line_of("http://b.example/", OPEN))
    made.warc(NAME, warc_gz(warcinfo()))
    made.warc(OPEN, warc_gz(warcinfo()) * 2)
    made.finish()
    for stage in (CP, FINAL):
        chain.assembled(made, stage)
        chain.upto(made, "Verify", stage)
    return made


def arks_in(engine: Engine, claim: Claim) -> set[str]:
    """The ARKs that the PREMIS of a SIP has."""
    with tarfile.open(engine.store.real(claim.outputs[0].path)) as tar:
        (premis,) = (tar.extractfile(one) for one in tar if one.name.endswith("premis.xml"))
        assert premis
        return set(re.findall(r">(ark:[^<]+)<", premis.read().decode()))


@pytest.mark.parametrize(
    ("stage", "later"),
    [(CP, NAAN), (FINAL, NAAN), (CP, Terms("NL")), (FINAL, Terms("NL"))],
    ids=["minted, then derived", "derived, then minted", "minted, then none", "none, then minted"],
)
def test_every_ark_of_a_sip_that_mixes_minted_and_derived_stages(
    tmp_path: Path, catalogue: Catalogue, stage: Stage, later: Terms
) -> None:
    """A minter that is switched on or off between two stages: what it gave before a kill or a redo is kept."""
    made = two_stages(tmp_path / "line")
    held = holdings.of_stage(made.state, LAUNCH, stage)
    files = [identifiers.ArkFile(one.name, one.stored) for one in held.holdings]
    files += [identifiers.ArkFile(one.name, one) for one in held.logs]
    with minters.serving() as service:
        service.answer = lambda number: b"".join(b"ark:99999/fk%d\n" % one for one in range(number))
        identifiers.of_files(made.state, LAUNCH, stage, files, Terms("NL", minter=service.url))
    claim = build.build(made.state, made.store, None, LAUNCH, FINAL, later)
    made.state.publish(claim.key, claim)
    index(made, catalogue)
    (found,) = asked(catalogue)
    arks = {str(one["ark"]) for one in found.arks}
    assert arks == arks_in(made, claim)
    assert len([one for one in arks if one.startswith("ark:99999/")]) == (2 if stage is CP else 3), "and the SIP's"
    assert len(arks) == (5 if later is NAAN else 2 if stage is CP else 3)
    assert claim.facts.get("zone") == ("12345/x5" if (stage, later) == (FINAL, NAAN) else None)
    before = list(catalogue.rows())
    catalogue.rebuild([row_set(made.state, LAUNCH, FINAL)])
    assert list(catalogue.rows()) == before
