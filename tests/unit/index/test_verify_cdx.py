"""index.cdx-verified: what the published CDX has of each WARC, and revisits whose original is elsewhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from indexing.indexed import Archive
from records.captures import response, revisit
from records.warcs import sha1, warc_gz, warcinfo

from warcmill import layout
from warcmill.errors import Conflict, NotReady, Unsettled
from warcmill.extracts import revisits
from warcmill.extracts.extracts import Extracts
from warcmill.extracts.revisits import REVISITS
from warcmill.formats.index import zipnum
from warcmill.index import verify_cdx
from warcmill.markers.claim import Claim
from warcmill.markers.facts import readers
from warcmill.markers.facts.index import CdxVerified
from warcmill.model import FINAL, Launch
from warcmill.versions import hidden_list

ONE, TWO = "20161019234428", "20161020234428"
LAUNCH, NEXT = Launch("daily", ONE), Launch("daily", TWO)
URLS = tuple(f"http://e{number % 4}.example/{number:03}" for number in range(90))
DIGEST = sha1(b"x")


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    made = Archive(tmp_path)
    made.add(ONE, {"a.warc.gz": warc_gz(warcinfo(), *map(response, URLS)), "b.warc.gz": warc_gz(warcinfo())})
    return made


def verify(archive: Archive, launch: Launch = LAUNCH) -> Claim:
    return verify_cdx.verify(archive.state, archive.index, launch, FINAL)


def republish(archive: Archive, change: dict[bytes, bytes], *, drop: bytes = b"", double: bytes = b"") -> None:
    """Put other lines into the current version's only segment, as an old fault or a stranger would."""
    published = archive.payloads.current()
    assert published
    (segment,) = published.segments
    lines = [f"{line}\n".encode() for line in archive.lines()]
    lines = [line for line in lines if not (drop and drop in line)]
    lines += [line for line in lines if double and double in line]
    for old, new in change.items():
        lines = [line.replace(old, new) for line in lines]
    packed = list(zipnum.pack(sorted(lines)))
    contents = {
        ".cdx.gz": b"".join(one.data for one in packed),
        ".idx": b"".join(one.block.line(segment.name) for one in packed),
    }
    for end, data in contents.items():
        path = archive.base / "index" / segment.files[end].path
        path.chmod(0o644)
        path.write_bytes(data)


def test_every_capture_of_a_stage_is_found_and_the_claim_follows_from_the_stage(archive: Archive) -> None:
    archive.fold()
    claim = verify(archive)
    assert claim.counts == {"warcs": 2, "captures": 90, "elsewhere": 0}
    assert {item.made.name: item.facts for item in claim.items if item.made} == {
        "a.warc.gz": {"captures": 90}, "b.warc.gz": {"captures": 0},
    }  # fmt: skip
    assert [one.marker for one in claim.inputs] == [layout.marker_path(layout.step("cdx", LAUNCH, FINAL))]
    assert readers.of(claim) == CdxVerified.from_claim(claim)
    archive.add(TWO, {"a.warc.gz": warc_gz(warcinfo(), response("http://e1.example/new"))})
    archive.fold()
    hidden_list.decide(archive.state.store, lambda: archive.store, "example,e2", "order of a court", hides=True)
    archive.fold()
    assert verify(archive) == claim


def test_until_a_version_lists_the_stage_it_is_too_early(archive: Archive) -> None:
    with pytest.raises(NotReady, match=r"run 'warcmill scan'"):
        verify(archive)
    archive.fold()
    archive.add(TWO, {"a.warc.gz": warc_gz(warcinfo(), response("http://e1.example/new"))})
    with pytest.raises(NotReady, match=r"version 1 does not list it; run 'warcmill scan'"):
        verify(archive, NEXT)
    archive.fold()
    assert verify(archive, NEXT).counts["captures"] == 1


@pytest.mark.parametrize(
    ("harm", "why"),
    [
        ({"drop": b"/000"}, "example,e0)/000 20161019234428 at "),
        ({"double": b"/087"}, "expected found once, found found 2 times"),
        ({"change": {b"/087 ": b"/087x "}}, "example,e3)/087 20161019234428 at "),
        ({"change": {b'"status": "200"': b'"status": "404"'}}, '"status": "404"'),
        ({"change": {b"a.warc.gz": b"x.warc.gz"}}, "found 0 times"),
    ],
    ids=["missing", "doubled", "other key", "other field", "other file"],
)
def test_what_is_not_as_it_should_be_is_named(archive: Archive, harm: dict[str, dict[bytes, bytes]], why: str) -> None:
    archive.fold()
    republish(archive, **{"change": {}, **harm})  # type: ignore[arg-type]
    with pytest.raises(Unsettled) as error:
        verify(archive)
    assert why in str(error.value)


def test_other_decisions_than_the_version_s_are_named(archive: Archive) -> None:
    hidden_list.decide(archive.state.store, lambda: archive.store, "example,e2)/022", "order of a court", hides=True)
    archive.fold()
    verify(archive)
    (archive.base / "line/state/decisions/access/000001.json").unlink()
    archive.store.real("state/_archive/decisions/access/000001.json").unlink()
    hidden_list.decide(archive.state.store, lambda: archive.store, "example,e3)/023", "another", hides=True)
    with pytest.raises(Conflict, match="the first 1 decisions hide something else than a version of the index names"):
        verify(archive)


def test_a_record_with_a_virus_must_not_be_shown_from_its_scan_on(archive: Archive) -> None:
    archive.fold()
    line = archive.lines()[0]
    offset = int(json.loads(line.split(" ", 2)[2])["offset"])
    archive.scan(LAUNCH, {"a.warc.gz": offset})
    with pytest.raises(Unsettled, match="which must not be shown"):
        verify(archive)
    archive.fold()
    assert verify(archive).counts["captures"] == 90


@pytest.mark.parametrize("damage", ["cut", "emptied", "removed"])
def test_a_damaged_extract_refuses_nothing_for_good_and_names_the_redo(archive: Archive, damage: str) -> None:
    archive.fold()
    for extract in (archive.base / "index/extracts").rglob("*.gz"):
        extract.chmod(0o644)
        extract.write_bytes(extract.read_bytes()[: -6 if damage == "cut" else 0])
        if damage == "removed":
            extract.unlink()
    redo = f"warcmill redo {LAUNCH.job} {LAUNCH.id} cdx final --downstream --reason TEXT, then a scan"
    with pytest.raises(Unsettled, match=redo):
        verify(archive)


def test_revisits_whose_original_is_not_in_the_launch_are_counted_and_kept(archive: Archive) -> None:
    other = "sha1:" + "B" * 32
    quoting = 'http://r.example/"mime": "warc/revisit"'
    records = [
        response("http://r.example/1", WARC_Payload_Digest=DIGEST),
        revisit("http://r.example/1", DIGEST, WARC_Date="2016-10-20T00:00:00Z"),
        revisit("http://r.example/2", DIGEST),
        revisit("http://r.example/3", other),
        response(quoting, body=b"another", WARC_Payload_Digest=sha1(b"another")),
        revisit("http://r.example/4", other[:-1] + "D"),
        revisit("http://r.example/5", sha1(b"another")),
    ]
    archive.add(TWO, {"a.warc.gz": warc_gz(warcinfo(), *records[:4]), "b.warc.gz": warc_gz(warcinfo(), *records[4:])})
    archive.fold()
    claim = verify(archive, NEXT)
    assert claim.counts == {"warcs": 2, "captures": 7, "elsewhere": 2}
    cdx = archive.state.require(layout.step("cdx", NEXT, FINAL))
    lines = list(Extracts(archive.index).lines(REVISITS, revisits.key([cdx.digest])))
    assert [line.split(b" ")[0] for line in lines] == [b"example,r)/3", b"example,r)/4"]
    assert b'"filename": "daily/20161020234428/a.warc.gz"' in lines[0]


def test_a_stage_without_a_warc_asks_for_no_version(tmp_path: Path) -> None:
    """No scan would ever publish one, so its remedy would be itself."""
    made = Archive(tmp_path)
    made.add(ONE, {})
    assert verify(made).counts == {"warcs": 0, "captures": 0, "elsewhere": 0}


def test_the_sample_has_the_first_the_last_and_some_between() -> None:
    for number in (1, 2, 5, 31, 32, 33, 1000, 10**7):
        sample = verify_cdx._sample(number)
        assert {0, number - 1} <= sample
        assert max(sample) == number - 1
        assert len(sample) == min(number, len(sample))
    assert len(verify_cdx._sample(10**7)) == 32
