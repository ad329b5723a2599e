"""index.cdx: every whole and salvaged WARC is counted, from the extract that is there or from a new one."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from launches import chain as steps
from launches.engine import LAUNCH, Engine, line_of
from records.captures import capture, response
from records.warcs import warc_gz, warcinfo

from warcmill import layout
from warcmill.errors import BadInput, NotReady, Unavailable, Unsettled
from warcmill.extracts import cdx as cdx_extracts
from warcmill.extracts.cdx import CDXJ, CdxHearer
from warcmill.extracts.extracts import Extracts
from warcmill.extracts.per_warc import LocalExtractor
from warcmill.files import checksum
from warcmill.formats.index.cdxj import IMPOSSIBLE
from warcmill.formats.warc.hearers import Hearer
from warcmill.formats.warc.rest import FOUND_AGAIN
from warcmill.index.cdx import cdx
from warcmill.markers.claim import Claim
from warcmill.markers.facts import readers
from warcmill.markers.facts.files import DAMAGED, Checksums, Faults
from warcmill.markers.facts.index import Indexed, IndexedFile
from warcmill.markers.state import rests_on
from warcmill.model import FINAL, FileRef, Item, Json, Launch, Outcome
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore

GOOD = warc_gz(warcinfo(), response("http://e.x/1"), response("http://e.x/2", WARC_Date="bad"))
HIT = warc_gz(warcinfo(), response("http://e.x/bad")) + warc_gz(capture("resource", "http://e.x/r", b"1"))
OPEN = warc_gz(warcinfo(), response("http://e.x/open"))
CUT = warc_gz(warcinfo(), response("http://e.x/kept"), response("http://e.x/lost"))[:-5]
VIRAL = warc_gz(warcinfo(), response("http://e.x/viral"))
NAMES = {"good.warc.gz": GOOD, "hit.warc.gz": HIT, "whole.warc.gz.open": OPEN, "cut.warc.gz.open": CUT}
BAD_AT = len(warc_gz(warcinfo()))


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    """A finished launch with one WARC of each kind, assembled."""
    made = Engine(tmp_path)
    made.logs(
        *(line_of("http://e.x/", name.removesuffix(".open")) for name in NAMES), line_of("http://e.x/", "v.warc.gz")
    )
    for name, data in NAMES.items():
        made.warc(name, data)
    made.warc("v.warc.gz", VIRAL, "viral")
    made.finish()
    steps.assembled(made)
    return made


@pytest.fixture
def extracts(tmp_path: Path) -> Extracts:
    sentinel.adopt({"index": tmp_path / "index"})
    return Extracts(FileStore("index", tmp_path / "index"))


def listening(engine: Engine, extracts: Extracts) -> Claim:
    """files.checksums, with its listener, not published."""

    def listen(file: FileRef) -> tuple[Hearer, ...]:
        return () if engine.roots.kind_of(file) == "viral" else (CdxHearer(extracts),)

    return checksum.checksum(engine.state, engine.roots, LAUNCH, FINAL, steps.BLOCK_SIZE, listen)


def verified(engine: Engine) -> Claim:
    return steps.upto(engine, "Verify")


def index(engine: Engine, extracts: Extracts) -> Claim:
    return cdx(engine.state, LocalExtractor(engine.store, extracts), extracts, LAUNCH, FINAL)


def found(claim: Claim) -> dict[str, IndexedFile]:
    return {file.name: one for file, one in Indexed.from_claim(claim).files.items()}


def left(extracts: Extracts) -> set[str]:
    return {path.name for path in extracts.folder.rglob("*.cdxj.gz")}


def digests(claim: Claim) -> dict[str, str]:
    return {(item.made or item.file).name: str((item.made or item.file).sha512) for item in claim.items}


def ways(path: str) -> int:
    return sum(name.startswith(path) for name in os.listdir("/proc/self/fd"))


def test_it_counts_whole_and_salvaged_warcs_and_no_others(engine: Engine, extracts: Extracts) -> None:
    known = verified(engine)
    claim = index(engine, extracts)
    assert found(claim) == {
        "good.warc.gz": IndexedFile({"response": 1}, {"no date": 1}, 0, offset_dates=0),
        "hit.warc.gz": IndexedFile({"resource": 1, "response": 1}, {}, 0),
        "whole.warc.gz": IndexedFile({"response": 1}, {}, 0),
        "cut.warc.gz": IndexedFile({"response": 1}, {}, 0),
    }
    assert claim.counts == {"warcs": 4, "captures": 5, "unfit": 1, "hits": 0}
    assert [one.marker for one in claim.inputs] == [
        layout.marker_path(layout.step(word, LAUNCH, FINAL)) for word in ("assemble", "verify")
    ]
    assert left(extracts) == {f"{digests(known)[name]}.cdxj.gz" for name in found(claim)}
    assert readers.of(claim) == Indexed.from_claim(claim)


def test_checksum_leaves_the_same_extracts_and_claims_the_same(engine: Engine, extracts: Extracts) -> None:
    heard = listening(engine, extracts)
    made = {name: (extracts.folder / CDXJ.path(digest)).read_bytes() for name, digest in digests(heard).items()
            if (extracts.folder / CDXJ.path(digest)).exists()}  # fmt: skip
    assert made.keys() == {"good.warc.gz", "hit.warc.gz", "whole.warc.gz.open"}
    for path in engine.state.store.real(layout.state_folder(LAUNCH)).glob("attempts/*"):
        path.unlink()
    assert steps.step(engine, "Checksum") == heard
    known = verified(engine)
    (extracts.folder / CDXJ.path(digests(known)["good.warc.gz"])).unlink()
    index(engine, extracts)
    assert (extracts.folder / CDXJ.path(digests(known)["good.warc.gz"])).read_bytes() == made["good.warc.gz"]


def test_where_the_extracts_are_there_the_store_is_not_read(
    engine: Engine, extracts: Extracts, monkeypatch: pytest.MonkeyPatch
) -> None:
    listening(engine, extracts)
    verified(engine)
    opened, original = list[str](), FileStore.open

    def counted(store: FileStore, path: str, start: int = 0) -> object:
        if store.root == "store":
            opened.append(path.rpartition("/")[2])
        return original(store, path, start)

    monkeypatch.setattr(FileStore, "open", counted)
    first = index(engine, extracts)
    assert opened == ["cut.warc.gz"]  # what is salvaged is made by files.Copy, whose bytes nobody heard
    for path in extracts.folder.rglob("*.cdxj.gz"):
        path.unlink()
    for path in engine.state.store.real(layout.state_folder(LAUNCH)).glob("attempts/index*"):
        path.unlink()
    assert index(engine, extracts) == first
    assert sorted(opened[1:]) == ["cut.warc.gz", "good.warc.gz", "hit.warc.gz", "whole.warc.gz"]


def test_an_extract_with_a_flipped_byte_or_without_its_lines_is_made_again(engine: Engine, extracts: Extracts) -> None:
    known = digests(verified(engine))
    whole = index(engine, extracts)
    good, hit = (extracts.folder / CDXJ.path(known[name]) for name in ("good.warc.gz", "hit.warc.gz"))
    before = good.read_bytes(), hit.read_bytes()
    good.write_bytes(before[0][:-6] + bytes([before[0][-6] ^ 8]) + before[0][-5:])
    hit.unlink()
    extracts.leave(CDXJ, known["hit.warc.gz"], [b' {"captures": {"response": 9}, "left_out": {}}\n'])
    for path in engine.state.store.real(layout.state_folder(LAUNCH)).glob("attempts/index*"):
        path.unlink()
    assert index(engine, extracts) == whole
    assert (good.read_bytes(), hit.read_bytes()) == before


def scanned(engine: Engine, offset: int) -> None:
    """files.scanned, with a hit in hit.warc.gz."""
    known = engine.state.require(layout.step("verify", LAUNCH, FINAL))
    hit = [{"offset": offset, "uri": "http://e.x/bad", "signature": "Eicar"}]
    items = tuple(
        item._replace(
            facts={
                **{name: item.facts[name] for name in ("salvaged", "bytes") if name in item.facts},
                "clean": 1, "hits": hit if item.file.name == "hit.warc.gz" else [], "not_scanned": {},
            },
        )
        for item in known.claim.items if item.file.is_engines
    )  # fmt: skip
    key = layout.key("files.VirusScan", LAUNCH, stage=FINAL)
    engine.state.publish(key, Claim(key, rests_on(known), items=items))


def test_a_record_with_a_hit_is_counted_as_left_out(engine: Engine, extracts: Extracts) -> None:
    verified(engine)
    scanned(engine, BAD_AT)
    claim = index(engine, extracts)
    assert found(claim)["hit.warc.gz"] == IndexedFile({"resource": 1, "response": 1}, {}, 1)
    assert claim.counts["hits"] == 1
    assert claim.inputs[-1].marker.endswith("files.scanned.daily.20161019234428.final")


def test_a_hit_in_a_record_without_a_line_leaves_nothing_out(engine: Engine, extracts: Extracts) -> None:
    verified(engine)
    scanned(engine, 0)
    assert index(engine, extracts).counts["hits"] == 0


def test_it_is_too_early_before_verify(engine: Engine, extracts: Extracts) -> None:
    steps.upto(engine, "Copy")
    with pytest.raises(NotReady):
        index(engine, extracts)


def test_a_stored_warc_that_vanished_or_changed_fails_and_the_others_are_done(
    engine: Engine, extracts: Extracts
) -> None:
    verified(engine)
    good, hit = (engine.store.real(f"warcs/{LAUNCH}/{name}") for name in ("good.warc.gz", "hit.warc.gz"))
    data = good.read_bytes()
    good.unlink()
    hit.chmod(0o644)
    hit.write_bytes(warc_gz(warcinfo(), response("http://e.x/other")))
    with pytest.raises(Unsettled) as raised:
        index(engine, extracts)
    assert len(raised.value.failures) == 2
    assert any("no longer as it was verified" in why for why in raised.value.failures)
    assert len(left(extracts)) == 2
    good.write_bytes(data)
    hit.write_bytes(HIT)
    assert index(engine, extracts).counts["warcs"] == 4


def test_a_full_index_fails_and_leaves_no_half_extract(
    engine: Engine, extracts: Extracts, monkeypatch: pytest.MonkeyPatch
) -> None:
    verified(engine)
    link = os.link

    def full(source: str, target: str) -> None:
        if "extracts" in str(target):
            raise OSError(errno.ENOSPC, "No space left on device")
        link(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(os, "link", full)
        with pytest.raises(Unsettled, match="No space left"):
            index(engine, extracts)
    assert left(extracts) == set()
    assert index(engine, extracts).counts["warcs"] == 4


def test_the_index_that_fails_costs_checksum_nothing_but_the_extract(
    engine: Engine, extracts: Extracts, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    plain = steps.step(engine, "Checksum")
    for path in engine.state.store.real(layout.state_folder(LAUNCH)).glob("attempts/*"):
        path.unlink()

    def broken(*_: object) -> None:
        raise Unavailable("index:x", "No space left on device")

    monkeypatch.setattr(Extracts, "leave", broken)
    assert listening(engine, extracts) == plain
    assert caplog.text.count("not heard by CdxHearer: index:x is unavailable: No space left on device") == 3
    assert left(extracts) == set()


def test_a_listener_that_fails_while_it_listens_costs_its_extract_alone(
    engine: Engine, extracts: Extracts, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> str:
        raise RuntimeError("a fault")

    monkeypatch.setattr("warcmill.formats.index.cdxj.url_of", broken)
    listening(engine, extracts)
    assert "not heard by CdxHearer: unexpected RuntimeError: a fault" in caplog.text
    assert left(extracts) == set()


def test_nothing_is_left_open(engine: Engine, extracts: Extracts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warcmill.base.line_sort.IN_MEMORY", 0)
    before = len(os.listdir("/proc/self/fd"))
    listening(engine, extracts)
    verified(engine)
    index(engine, extracts)
    assert len(os.listdir("/proc/self/fd")) == before


def test_an_unfit_marker_is_named() -> None:
    key = layout.key("index.CdxIndex", LAUNCH, stage=FINAL)
    item = Item(FileRef("output", "x", 1), Outcome.OK, facts={"captures": {"response": "1"}, "unfit": {}, "hits": 0})
    with pytest.raises(BadInput, match=r"index.cdx.daily"):
        Indexed.from_claim(Claim(key, items=(item,)))
    assert cdx_extracts.CDXJ.generation == 1


def refusing(tmp_path: Path) -> Engine:
    """A finished launch with a closed WARC that has a bad record in the middle."""
    made = Engine(tmp_path)
    made.logs(line_of("http://e.x/", "bad.warc.gz"))
    made.warc("bad.warc.gz", SOUND + warc_gz(response("http://e.x/bad"))[:-8] + bytes(8) + BEHIND)
    made.finish()
    steps.assembled(made)
    return made


SOUND = warc_gz(warcinfo(), response("http://e.x/before"))
BEHIND = warc_gz(response("http://e.x/behind"))


def test_the_sound_records_of_a_refused_warc_are_indexed_and_the_bad_ones_claimed(
    tmp_path: Path, extracts: Extracts
) -> None:
    line = refusing(tmp_path / "line")
    claim = steps.upto(line, "Verify")
    (checked,) = (item for item in claim.items if item.file.name == "bad.warc.gz")
    assert (checked.outcome, checked.offset) == (Outcome.REFUSED, len(SOUND))
    facts = Checksums.from_claim(line.state.require(layout.step("checksum", LAUNCH, FINAL)).claim).files
    (known,) = (one for file, one in facts.items() if file.name == "bad.warc.gz")
    assert known.bad
    assert [offset for offset, _ in known.bad.listed] == [len(SOUND)]
    assert (known.bad.records, known.odd.records, known.sound) == (1, 0, 1)
    indexed = index(line, extracts)
    assert found(indexed) == {"bad.warc.gz": IndexedFile({"response": 2}, {}, 0, bad=1)}
    assert indexed.counts == {"warcs": 1, "captures": 2, "unfit": 0, "hits": 0, "bad": 1}
    lines = b"".join(cdx_extracts.lines(extracts, str(checked.file.sha512)))
    assert all(url in lines for url in (b"e.x/before", b"e.x/behind"))


def one_warc(tmp_path: Path, data: bytes, *lines: str) -> Engine:
    """A finished launch with one WARC, verified."""
    made = Engine(tmp_path)
    made.logs(*lines)
    made.warc("one.warc.gz", data)
    made.finish()
    steps.assembled(made)
    steps.upto(made, "Verify")
    return made


def test_impossible_dates_and_those_after_the_end_are_odd_and_have_lines(tmp_path: Path, extracts: Extracts) -> None:
    dates = ["2016-02-30T00:00:00Z", "2016-10-21T00:09:59Z", "2016-10-21T00:10:01Z", "2031-01-01T00:00:00Z"]
    parts = [warc_gz(warcinfo()), *(warc_gz(response(f"http://e.x/{date}", WARC_Date=date)) for date in dates)]
    line = one_warc(tmp_path / "line", b"".join(parts), line_of("http://e.x/", "one.warc.gz"))
    (known,) = found(index(line, extracts)).values()
    late = "dated after 2016-10-21T00:10:00Z, a day after the end of the stage"
    at = [sum(map(len, parts[:number])) for number in range(len(parts))]
    assert known.captures == {"response": 4}
    assert known.odd == Faults(((at[1], IMPOSSIBLE), (at[3], late), (at[4], late)), 3)


def test_a_date_that_is_impossible_and_late_is_one_odd_record(tmp_path: Path, extracts: Extracts) -> None:
    data = warc_gz(warcinfo(), response("http://e.x/", WARC_Date="2031-02-30T00:00:00Z"))
    (known,) = found(index(one_warc(tmp_path / "line", data, line_of("http://e.x/", "one.warc.gz")), extracts)).values()
    assert known.odd == Faults(((BAD_AT, IMPOSSIBLE),), 1)


def test_what_no_log_dates_has_no_late_record(tmp_path: Path, extracts: Extracts) -> None:
    made = Engine(tmp_path / "line")
    made.logs()
    made.warc("one.warc.gz", warc_gz(warcinfo(), response("http://e.x/", WARC_Date="2031-01-01T00:00:00Z")))
    made.job_log(f"PREPARING {LAUNCH.id}")
    made.job_log(f"PREPARING {'20320101000000'}", launch=Launch(LAUNCH.job, "20320101000000"))
    made.papers()
    steps.assembled(made)
    steps.upto(made, "Verify")
    (known,) = found(index(made, extracts)).values()
    assert known.odd == Faults()


@pytest.mark.parametrize("is_named", [True, False])
def test_a_record_that_a_search_found_is_sound_where_the_log_names_it(tmp_path: Path, is_named: bool) -> None:
    lost, behind = warc_gz(response("http://e.x/lost")), len(SOUND) + len(warc_gz(response("http://e.x/lost")))
    data = SOUND + lost[:30] + b"\xff" * 30 + lost[60:] + BEHIND
    logged = behind if is_named else 0
    line = one_warc(
        tmp_path, data, line_of("http://e.x/", "one.warc.gz", logged), line_of("http://e.x/", "o.warc.gz", behind)
    )
    facts = Checksums.from_claim(line.state.require(layout.step("checksum", LAUNCH, FINAL)).claim).files
    (known,) = (one for file, one in facts.items() if file.name == "one.warc.gz")
    assert known.bad
    assert [offset for offset, _ in known.bad.listed] == [len(SOUND)]
    assert known.odd == (Faults() if is_named else Faults(((behind, FOUND_AGAIN),), 1))
    assert known.sound == is_named


@pytest.mark.parametrize("logged", [7, len(SOUND + BEHIND), 10**12])
def test_a_log_that_names_a_wrong_offset_hides_no_record(tmp_path: Path, extracts: Extracts, logged: int) -> None:
    line = one_warc(tmp_path / "line", SOUND + BEHIND, line_of("http://e.x/", "one.warc.gz", logged))
    items = line.state.require(layout.step("checksum", LAUNCH, FINAL)).claim.items
    (checked,) = (item for item in items if item.file.name == "one.warc.gz")
    assert (checked.outcome, checked.offset) == (Outcome.REFUSED, logged)
    assert checked.why.startswith(f"its crawl log names a record at offset {logged}, but ")
    assert found(index(line, extracts)) == {"one.warc.gz": IndexedFile({"response": 2}, {}, 0)}


def test_what_an_older_scan_left_out_behind_a_fault_is_not_indexed(tmp_path: Path, extracts: Extracts) -> None:
    line = refusing(tmp_path / "line")
    known = line.state.require(layout.step("verify", LAUNCH, FINAL)) if steps.upto(line, "Verify") else None
    assert known
    key = layout.key("files.VirusScan", LAUNCH, stage=FINAL)
    facts: dict[str, Json] = {"clean": 1, "hits": [], "not_scanned": {DAMAGED: 1}}
    items = tuple(item._replace(facts=facts) for item in known.claim.items if item.file.is_engines)
    line.state.publish(key, Claim(key, rests_on(known), items=items))
    assert found(index(line, extracts)) == {}
