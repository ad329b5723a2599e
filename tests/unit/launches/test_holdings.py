"""What a stage holds: each WARC once, with one word, from its markers alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from launches.chain import assembled, upto, zip_name
from launches.engine import LAUNCH, Engine, line_of
from msgspec.structs import replace
from records.warcs import http, record, sha1, warc_gz, warcinfo

from warcmill import layout
from warcmill.errors import BadInput, NotReady
from warcmill.launches import holdings
from warcmill.launches.holdings import Hit, HoldingKind, StageHoldings
from warcmill.markers.claim import Claim
from warcmill.model import FINAL, FileRef, Item, Outcome

RECORDS = [warcinfo()] + [record("response", http(body), payload=sha1(body)) for body in (b"one", b"two" * 2000)]
WHOLE, TWO = warc_gz(*RECORDS), warc_gz(*RECORDS[:2])
CUT = WHOLE[:-30]


def held(tmp_path: Path, warcs: dict[str, bytes], viral: dict[str, bytes] | None = None) -> StageHoldings:
    """The holdings of a stage with these WARCs, after the steps up to files.Verify."""
    engine = Engine(tmp_path)
    engine.logs(*(line_of("http://a/", layout.final_name(name)) for name in warcs if name.isascii()))
    for name, data in warcs.items():
        engine.warc(name, data)
    for name, data in (viral or {}).items():
        engine.warc(name, data, "viral")
    engine.finish()
    assembled(engine)
    upto(engine, "Verify")
    found = holdings.of_stage(engine.state, LAUNCH, FINAL)
    for one in found.holdings:
        assert (engine.folders["store"] / one.stored.path).stat().st_size == one.stored.size
    return found


def words(found: StageHoldings) -> list[tuple[str, str, str]]:
    """Name, word, and the last part of the stored path."""
    return [(one.name, str(one.word), one.stored.name) for one in found.holdings]


def test_each_warc_is_held_once(tmp_path: Path) -> None:
    found = held(tmp_path, {"b.warc.gz": WHOLE, "a.warc.gz.open": WHOLE, "c.warc.gz.open": CUT, "d.warc.gz": CUT})
    assert words(found) == [
        ("a.warc.gz", "whole", "a.warc.gz"),
        ("b.warc.gz", "whole", "b.warc.gz"),
        ("c.warc.gz", "salvaged", "c.warc.gz"),
        ("c.warc.gz.open", "cut", "c.warc.gz.open"),
        ("d.warc.gz", "cut", "d.warc.gz"),
    ]
    assert [one.name for one in found.holdings if one.is_indexed] == [
        "a.warc.gz",
        "b.warc.gz",
        "c.warc.gz",
        "d.warc.gz",
    ]
    assert [one.name for one in found.holdings if one.by_record] == ["d.warc.gz"]
    assert [one.stored.size for one in found.holdings] == [len(WHOLE), len(WHOLE), len(TWO), len(CUT), len(CUT)]
    assert (found.launch, found.stage, found.unstored) == (LAUNCH, FINAL, ())


def test_a_cut_one_reports_where_and_why_and_what_was_salvaged(tmp_path: Path) -> None:
    salvaged, cut = held(tmp_path, {"a.warc.gz.open": CUT}).holdings
    assert (cut.offset, salvaged.offset) == (len(TWO), None)
    assert "cut" in cut.why
    assert salvaged.why.startswith(f"salvaged: the first {len(TWO)} of {len(CUT)} bytes")
    assert salvaged.source == cut.source
    assert salvaged.source.name == "a.warc.gz.open"


def test_an_open_one_without_a_whole_record_is_cut_alone(tmp_path: Path) -> None:
    assert words(held(tmp_path, {"a.warc.gz.open": b""})) == [("a.warc.gz.open", "cut", "a.warc.gz.open")]


def test_an_open_one_beside_a_closed_one_of_its_name_keeps_its_own(tmp_path: Path) -> None:
    found = held(tmp_path, {"a.warc.gz.open": WHOLE, "a.warc.gz": TWO})
    assert words(found) == [("a.warc.gz", "whole", "a.warc.gz"), ("a.warc.gz.open", "whole", "a.warc.gz.open")]


def test_the_viral_writers_are_viral_unless_they_are_cut(tmp_path: Path) -> None:
    viral = {"a.warc.gz": WHOLE, "b.warc.gz.open": WHOLE, "c.warc.gz.open": CUT}
    found = held(tmp_path, {"a.warc.gz": TWO}, viral)
    assert [(*one, held.folder) for one, held in zip(words(found), found.holdings, strict=True)] == [
        ("a.warc.gz", "viral", "a.warc.gz", "viral"),
        ("a.warc.gz", "whole", "a.warc.gz", "warcs"),
        ("b.warc.gz", "viral", "b.warc.gz", "viral"),
        ("c.warc.gz", "viral", "c.warc.gz", "viral"),
        ("c.warc.gz.open", "cut", "c.warc.gz.open", "viral"),
    ]


def test_names_are_the_warcs_own_and_those_refused_by_name_have_no_bytes(tmp_path: Path) -> None:
    long = f"{'é' * 90}.warc.gz"
    found = held(tmp_path, {"50% b\n.warc.gz": WHOLE, "é.warc.gz": WHOLE, "e\u0301.warc.gz": WHOLE, long: WHOLE})
    assert words(found) == [
        ("50% b\n.warc.gz", "whole", "50%25%20b%0A.warc.gz"),
        ("e\u0301.warc.gz", "whole", "e%CC%81.warc.gz"),
        ("é.warc.gz", "whole", "%C3%A9.warc.gz"),
    ]
    (refused,) = found.unstored
    assert (refused.name, refused.size) == (long, len(WHOLE))
    assert "255 is the limit" in refused.why


def test_the_zip_of_logs_is_there_once_and_an_empty_stage_holds_nothing_else(tmp_path: Path) -> None:
    found = held(tmp_path, {})
    assert found.holdings == ()
    (logs,) = found.logs
    assert logs.path == f"logs/{LAUNCH.job}/{LAUNCH.id}/{zip_name(Engine(tmp_path / 'other'))}"
    assert logs.sha512 is not None


def test_a_marker_that_is_missing_is_named(tmp_path: Path) -> None:
    engine = Engine(tmp_path)
    with pytest.raises(NotReady, match=r"03\.outputs.*run output\.AssembleOutput"):
        holdings.of_stage(engine.state, LAUNCH, FINAL)
    engine.logs()
    engine.finish()
    assembled(engine)
    upto(engine, "Copy")
    with pytest.raises(NotReady, match=r"files\.verified.*run files\.Verify"):
        holdings.of_stage(engine.state, LAUNCH, FINAL)


def claims(*names: str) -> tuple[Claim, Claim]:
    """03 and files.verified of a stage with these WARCs."""
    items = tuple(Item(FileRef("output", f"warcs/{name}", 9), Outcome.OK) for name in names)
    made = tuple(item._replace(made=FileRef("store", item.file.path, 9, "ab" * 64)) for item in items)
    keys = (layout.key(task, LAUNCH, stage=FINAL) for task in ("output.AssembleOutput", "files.Verify"))
    first, second = keys
    return Claim(first, items=items), Claim(second, items=made)


def scanned(verified: Claim, *hits: Hit) -> Claim:
    """The files.scanned of it: every hit in each WARC."""
    found = [one._asdict() for one in hits]
    facts = {"clean": 3, "hits": found, "not_scanned": {}}
    return replace(verified, items=tuple(item._replace(facts=facts) for item in verified.items))


def test_hits_are_unknown_until_the_stage_is_scanned() -> None:
    listed, verified = claims("a.warc")
    assert [one.hits for one in holdings.of_claims(listed, verified).holdings] == [None]
    assert [one.hits for one in holdings.of_claims(listed, verified, scanned(verified)).holdings] == [()]
    hit = Hit(7, "http://a/", "Eicar")
    (one,) = holdings.of_claims(listed, verified, scanned(verified, hit)).holdings
    assert (one.hits, one.word) == ((hit,), HoldingKind.WHOLE)


def test_markers_that_do_not_fit_each_other_are_refused_by_name() -> None:
    listed, verified = claims("a.warc", "b.warc")
    short = replace(verified, items=verified.items[:1])
    with pytest.raises(BadInput, match=r"files\.verified.*missing: warcs/b\.warc, .*these: none; 'warcmill redo'"):
        holdings.of_claims(listed, short)
    with pytest.raises(BadInput, match=r"missing: none, more than these: warcs/b\.warc"):
        holdings.of_claims(replace(listed, items=listed.items[:1]), verified)
    with pytest.raises(BadInput, match=r"missing: warcs/b\.warc"):
        holdings.of_claims(listed, verified, scanned(short))


@pytest.mark.parametrize("made", [None, FileRef("store", "warcs/a.warc", 9)])
def test_a_stored_file_without_a_digest_is_refused(made: FileRef | None) -> None:
    listed, verified = claims("a.warc")
    bad = replace(verified, items=(verified.items[0]._replace(made=made),))
    with pytest.raises(BadInput, match=r"files\.verified.*names no file in the store.*warcs/a\.warc"):
        holdings.of_claims(listed, bad)
