"""What is whole of a WARC that was never closed is kept under its closed name, beside the file as it was."""

from __future__ import annotations

from pathlib import Path

import pytest
from launches.chain import assembled, items, step, upto
from launches.engine import LAUNCH, Engine, line_of
from records.warcs import http, record, sha1, warc_gz, warcinfo

from warcmill.errors import Unsettled
from warcmill.launches.view import LaunchView
from warcmill.markers.claim import Claim
from warcmill.model import Outcome

RECORDS = [warcinfo()] + [record("response", http(body), payload=sha1(body)) for body in (b"one", b"two" * 2000)]
WHOLE = warc_gz(*RECORDS)
TWO = warc_gz(*RECORDS[:2])


def dead(tmp_path: Path, **warcs: bytes) -> Engine:
    """A launch that its engine never closed; `a="..."` is a.warc.gz.open."""
    engine = Engine(tmp_path)
    engine.logs(*(line_of("http://a/", f"{name}.warc.gz", 0) for name in warcs))
    for name, data in warcs.items():
        engine.warc(f"{name}.warc.gz.open", data)
    engine.finish()
    return engine


def copied(engine: Engine) -> Claim:
    assembled(engine)
    return upto(engine, "Copy")


def folder(engine: Engine) -> Path:
    return engine.folders["store"] / "warcs" / LAUNCH.job / LAUNCH.id


def test_a_cut_file_is_stored_as_it_is_and_its_whole_records_beside_it(tmp_path: Path) -> None:
    engine = dead(tmp_path, a=WHOLE[:-30])
    claim = copied(engine)
    raw, saved = items(claim)["a.warc.gz.open"], items(claim)["a.warc.gz"]
    assert (raw.outcome, raw.offset) == (Outcome.REFUSED, len(TWO))
    assert (saved.outcome, saved.file) == (Outcome.OK, raw.file)
    assert saved.facts == {"salvaged": True, "bytes": len(TWO)}
    assert saved.why.startswith("salvaged: ")
    assert (folder(engine) / "a.warc.gz.open").read_bytes() == WHOLE[:-30]
    assert (folder(engine) / "a.warc.gz").read_bytes() == TWO
    assert claim.counts == {"files": 2, "bytes": claim.counts["bytes"], "ok": 1, "refused": 1, "salvaged": 1}
    read = upto(engine, "ReadBack")
    assert {name: item.outcome for name, item in items(read).items()}["a.warc.gz"] is Outcome.OK


def test_a_whole_one_is_kept_under_both_names(tmp_path: Path) -> None:
    engine = dead(tmp_path, a=WHOLE)
    assert items(copied(engine))["a.warc.gz.open"].outcome is Outcome.OK
    assert (folder(engine) / "a.warc.gz").read_bytes() == WHOLE == (folder(engine) / "a.warc.gz.open").read_bytes()
    upto(engine, "ReadBack")


@pytest.mark.parametrize("data", [b"", WHOLE[:20], b"no gzip at all"])
def test_nothing_is_salvaged_when_nothing_is_whole(tmp_path: Path, data: bytes) -> None:
    engine = dead(tmp_path, a=data)
    item = items(copied(engine))["a.warc.gz.open"]
    assert (item.outcome, item.facts["not_salvaged"]) == (Outcome.REFUSED, "no record in it is whole")
    assert [path.name for path in folder(engine).iterdir()] == ["a.warc.gz.open"]


def test_nothing_is_salvaged_over_a_file_the_launch_has(tmp_path: Path) -> None:
    engine = dead(tmp_path, a=WHOLE[:-30])
    engine.warc("a.warc.gz", WHOLE)
    found = items(copied(engine))
    assert found["a.warc.gz.open"].facts["not_salvaged"] == "the launch has a file of its closed name"
    assert (folder(engine) / "a.warc.gz").read_bytes() == WHOLE
    assert "salvaged" not in found["a.warc.gz"].facts


def test_another_file_under_the_closed_name_is_a_conflict(tmp_path: Path) -> None:
    engine = dead(tmp_path, a=WHOLE[:-30], b=WHOLE)
    folder(engine).mkdir(parents=True)
    (folder(engine) / "a.warc.gz").write_bytes(b"not ours")
    assembled(engine)
    upto(engine, "Checksum")
    with pytest.raises(Unsettled, match=r"a\.warc\.gz: another file is there"):
        step(engine, "Copy")
    assert (folder(engine) / "a.warc.gz").read_bytes() == b"not ours"
    assert (folder(engine) / "b.warc.gz").read_bytes() == WHOLE
    (folder(engine) / "a.warc.gz").unlink()
    upto(engine, "ReadBack")


def test_an_uncompressed_one_is_salvaged_too(tmp_path: Path) -> None:
    engine = Engine(tmp_path)
    engine.logs()
    engine.warc("a.warc.open", b"".join(RECORDS)[:-30])
    engine.finish()
    copied(engine)
    assert (folder(engine) / "a.warc").read_bytes() == b"".join(RECORDS[:2])
    upto(engine, "ReadBack")


def test_how_it_ended_does_not_matter(tmp_path: Path) -> None:
    engine = dead(tmp_path, a=WHOLE)
    assert LaunchView.of(engine.state, engine.roots, LAUNCH).ended == "finished"
