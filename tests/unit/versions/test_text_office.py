"""Office documents in the text index: counted always, extracted where that is configured, and no marker is redone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from indexing.office import WORD, PlainOffice
from indexing.text_archive import HTML, ONE, TWO, TextArchive
from msgspec.structs import replace
from records.captures import response
from records.warcs import warc_gz

from warcmill import layout
from warcmill.errors import Unsettled
from warcmill.extracts import text
from warcmill.extracts.extracts import Extracts
from warcmill.extracts.per_warc import LocalExtractor
from warcmill.extracts.text import GENERATION, NO_EXTRACTOR, OFFICE_TEXT, TEXT, WITH_OFFICE
from warcmill.extracts.text_workers import TextWorkers
from warcmill.index.verify_text import verify
from warcmill.markers.claim import Claim
from warcmill.markers.facts.index import TextFound
from warcmill.model import FINAL, Launch
from warcmill.versions import fold as folding

PAGE = response("http://a.example/page", HTML, body=b"<p>beer")
PAPER = response("http://a.example/paper", WORD, body=b"zymurgy")
WITH, WITHOUT = {"with.warc.gz": warc_gz(PAGE, PAPER)}, {"without.warc.gz": warc_gz(PAGE)}


class OfficeArchive(TextArchive):
    """A line on which the extraction of office documents is switched on and off."""

    office: PlainOffice | None = None

    @property
    def making(self) -> LocalExtractor:
        return replace(super().making, office=self.office)

    def switched_on(self) -> None:
        self.office = PlainOffice()

    def generations(self) -> list[int]:
        newest = self.lists.newest()
        assert newest
        return [one.generation for one in newest.inputs]

    def extracts_of(self, kind: text.ExtractKind) -> list[Path]:
        return sorted((self.base / "index" / "extracts" / f"{kind.name}-{kind.generation}").rglob("*.gz"))

    def claim(self, launch: Launch) -> Claim:
        return self.state.require(layout.step("text", launch, FINAL)).claim

    def verified(self, launch: Launch) -> int:
        claim = verify(self.state, self.index, None, launch, FINAL)
        return sum(TextFound.from_claim(claim).documents.values())


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[OfficeArchive]:
    made = OfficeArchive(tmp_path)
    with TextWorkers(1) as made.workers:
        yield made
        if made.office:
            made.office.__exit__(None, None, None)


def test_the_claim_is_the_same_with_and_without_an_extractor(archive: OfficeArchive) -> None:
    first = archive.claim(archive.add(ONE, WITH))
    archive.switched_on()
    second = archive.claim(archive.add(TWO, WITH, "weekly"))
    assert [item.facts for item in first.items] == [item.facts for item in second.items]
    assert first.counts == second.counts
    assert first.items[0].facts["documents"] == {"html": 1, "office": 1}


def test_switched_on_one_fold_finds_what_was_indexed_before_and_redoes_no_marker(archive: OfficeArchive) -> None:
    launch = archive.add(ONE, {**WITH, **WITHOUT})
    before = archive.claim(launch)
    archive.fold()
    (line,) = [one for one in map(json.loads, text.lines(Extracts(archive.index), _sha512(archive, "with")))
               if one["url"].endswith("paper")]  # fmt: skip
    assert (line["parse_error"], "tool" in line) == (NO_EXTRACTOR, False)
    assert (archive.urls("zymurgy"), archive.generations()) == ([], [GENERATION, GENERATION])
    assert archive.verified(launch) == 3

    archive.switched_on()
    untouched = {path: path.stat().st_mtime_ns for path in archive.extracts_of(TEXT)}
    assert archive.fold() == folding.Folded(2, new=True)
    assert archive.urls("zymurgy") == ["http://a.example/paper"]
    assert archive.generations() == [WITH_OFFICE, GENERATION], "a WARC without office documents is not read again"
    assert {path: path.stat().st_mtime_ns for path in archive.extracts_of(TEXT)} == untouched
    assert len(archive.extracts_of(OFFICE_TEXT)) == 1
    assert (archive.claim(launch), archive.verified(launch)) == (before, 3)
    assert archive.fold() == folding.Folded(2, new=False)


def test_the_same_warc_gives_the_same_bytes_whenever_it_was_switched_on(archive: OfficeArchive) -> None:
    archive.add(ONE, WITH)
    archive.fold()
    archive.switched_on()
    archive.fold()
    (path,) = archive.extracts_of(OFFICE_TEXT)
    late = path.read_bytes()
    for file in archive.extracts_of(TEXT) + archive.extracts_of(OFFICE_TEXT):
        file.unlink()
    archive.fold(base=True)
    assert path.read_bytes() == late
    assert archive.extracts_of(TEXT) == []


def test_switched_off_it_loses_nothing_that_is_there_and_says_what_is_lost(archive: OfficeArchive) -> None:
    archive.switched_on()
    archive.add(ONE, WITH)
    archive.fold()
    office, archive.office = archive.office, None
    archive.add(TWO, {"new.warc.gz": warc_gz(response("http://b.example/", HTML, body=b"<p>new"))})
    assert archive.fold() == folding.Folded(2, new=True)
    assert (archive.urls("zymurgy"), archive.urls("new")) == (["http://a.example/paper"], ["http://b.example/"])

    (path,) = archive.extracts_of(OFFICE_TEXT)
    path.unlink()
    folded = archive.fold(base=True)
    (trouble,) = folded.troubles
    assert trouble.startswith(f"daily/{ONE}/with.warc.gz: the text of its office documents is lost, and [text] tika")
    assert (archive.urls("zymurgy"), archive.urls("beer")) == ([], ["http://a.example/page"])
    archive.office = office
    assert archive.fold().troubles == ()
    assert archive.urls("zymurgy") == ["http://a.example/paper"]


def test_a_marker_of_before_still_verifies(archive: OfficeArchive) -> None:
    """Markers were made when office documents were captures of another type."""
    launch = archive.add(ONE, WITH)
    new = archive.claim(launch)
    _publish_as_before(archive, launch, {"documents": {"html": 1}, "left_out": {"other type": 1}, "hits": 0})
    archive.fold()
    assert archive.verified(launch) == 1, "as its index.text says"
    archive.switched_on()
    archive.fold()
    assert (archive.urls("zymurgy"), archive.verified(launch)) == (["http://a.example/paper"], 1)
    assert archive.claim(launch) != new


@pytest.mark.parametrize("wrong", [{"html": 1}, {"html": 1, "office": 2}, {"html": 2}])
def test_a_marker_that_counts_others_does_not_verify(wrong: dict[str, int], archive: OfficeArchive) -> None:
    launch = archive.add(ONE, WITH)
    _publish_as_before(archive, launch, {"documents": wrong, "left_out": {}, "hits": 0})
    archive.fold()
    with pytest.raises(Unsettled, match=r"its marker counts .*warcmill redo .* text final --downstream"):
        archive.verified(launch)


def _publish_as_before(archive: OfficeArchive, launch: Launch, facts: dict[str, object]) -> None:
    claim = archive.claim(launch)
    (archive.base / "line/state" / layout.marker_path(claim.key)).unlink()
    counts = {**claim.counts, "documents": sum(facts["documents"].values())}  # type: ignore[attr-defined]
    items = tuple(item._replace(facts=facts) for item in claim.items)  # type: ignore[arg-type]
    archive.state.publish(claim.key, replace(claim, items=items, counts=counts))


def _sha512(archive: OfficeArchive, name: str) -> str:
    newest = archive.lists.newest()
    assert newest
    return next(one.sha512 for one in newest.inputs if one.name.endswith(f"/{name}.warc.gz"))
