"""Launches whose text is indexed, and the text index that is folded of them; without Luigi."""

from __future__ import annotations

from collections.abc import Mapping

from indexing.indexed import Archive
from records.captures import response
from records.warcs import warc_gz, warcinfo

from warcmill.extracts.extracts import Extracts
from warcmill.extracts.per_warc import LocalExtractor
from warcmill.extracts.text_workers import TextWorkers
from warcmill.index.text import text as index_text
from warcmill.model import FINAL, Launch
from warcmill.versions.inputs import Lists
from warcmill.versions.publication import Payloads
from warcmill.versions.search import Query, SearchAnswer, search
from warcmill.versions.text import Text

ONE, TWO, THREE = "20161019234428", "20161020234428", "20161021234428"
HTML = b"Content-Type: text/html"


class TextArchive(Archive):
    """A line whose launches are indexed by their text."""

    workers: TextWorkers

    @property
    def making(self) -> LocalExtractor:
        return LocalExtractor(self.store, Extracts(self.index), self.workers)

    @property
    def data(self) -> Text:  # type: ignore[override]
        return Text(self.state, self.making, self.index)

    @property
    def lists(self) -> Lists:
        return Lists(self.state.store, "text")

    @property
    def payloads(self) -> Payloads:
        return Payloads(self.index, "text")

    def reindex(self, launch: Launch) -> None:
        claim = index_text(self.state, self.making, Extracts(self.index), launch, FINAL)
        self.state.publish(claim.key, claim)

    def search(self, *words: str, **more: str) -> SearchAnswer:
        return search(self.state.store, self.index, Query(words, **more))

    def urls(self, *words: str, **more: str) -> list[str]:
        """The URLs of what a search finds."""
        return sorted(one.url for one in self.search(*words, **more).best)

    def segments(self) -> list[str]:
        published = self.payloads.current()
        assert published
        return [segment.name for segment in published.segments]


def warc(pages: Mapping[str, str], time: str = "2016-10-19T23:44:28Z") -> bytes:
    """A WARC with a page of each URL, with this text."""
    records = (
        response(f"http://{url}", HTML, body=f"<meta charset=utf-8>{words}".encode(), WARC_Date=time)
        for url, words in pages.items()
    )
    return warc_gz(warcinfo(), *records)
