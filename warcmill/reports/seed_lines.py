"""The lines that crawl logs have of some URLs, and of the targets of their redirects. Reads only.

Memory grows with the URLs, not with the logs.

A URL may be spelled in another way than in the log: both are compared in one form (`formats.seeds.comparable`). A line
that is found for no URL itself counts for one with the same key: engines take http://www.example.org/ and
http://example.org/ for one page, and fetch it once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import BinaryIO, NamedTuple

from warcmill.formats.index.urlkey import urlkey
from warcmill.formats.logs.crawllog import END, CrawlRecord, blocks, host, parse
from warcmill.formats.seeds import comparable

MOST_HOPS = 20  # redirects that are followed from a seed
_PREREQUISITE, _PAGES_NOT = b"P", ("text/xml", "application/xml")
_REJECTED = re.compile(rb"[^ ]++ ++-?\d++ ++([!-~]++) ++REJECT ([!-~]++) (\{.*)")
_NO_URL = re.compile(rb'[^ ]++ - "([^"]*)" (.+)')  # uri-errors.log, of no page
_comparable = lru_cache(10_000)(comparable)


class SeedAnswer(NamedTuple):
    """The last line of a URL: its code, its annotations, and where its first record is."""

    uri: str
    code: int
    annotations: tuple[str, ...] = ()
    warc: str = ""
    offset: int | None = None


class SeedLines:
    """Add logs, in the order of their stages; then look up what is known."""

    def __init__(self, wanted: Iterable[str], *, with_pages: bool) -> None:
        self.answers: dict[str, SeedAnswer] = {}
        self.leads_to: dict[str, str] = {}  # of a URL that was redirected
        self.with_page: set[str] = set()  # the seeds from which a page was fetched, where they are wanted
        self.refused: dict[str, str] = {}  # what the crawl's rules have against a seed, or why it is not a URL
        self.failed_first: dict[str, tuple[str, int]] = {}  # by host: what a seed needed first and did not get
        self._with_pages = with_pages
        self._wanted = set(wanted)
        self._spelled = {url.encode("utf-8", "replace") for url in self._wanted}
        self._alike: dict[str, list[str]] = {}
        for url in self._wanted:
            self._alike.setdefault(urlkey(url), []).append(url)
        self._weak: dict[str, SeedAnswer] = {}

    def add(self, stream: BinaryIO) -> None:
        """Read a crawl log."""
        for lines in blocks(stream, END):
            for raw in lines:
                if self._is_of_interest(raw) and isinstance(record := parse(raw), CrawlRecord):
                    self._add(record)

    def add_scope(self, stream: BinaryIO) -> None:
        """Read a scope.log: a seed that it rejects has no line in the crawl log."""
        for lines in blocks(stream, END):
            for match in filter(None, map(_REJECTED.match, lines)):
                url = _comparable(match[2].decode("utf-8", "replace"))
                if url in self._wanted and not (about := _about(match[3])).get("hopPath"):
                    self.refused[url] = f"the rule {match[1].decode()} is against it: {about.get('why', '')}".rstrip(
                        ": "
                    )

    def add_errors(self, stream: BinaryIO) -> None:
        """Read an uri-errors.log: a seed that is not a URL has no line in the crawl log."""
        for lines in blocks(stream):
            for match in filter(None, map(_NO_URL.fullmatch, lines)):
                why, text = (part.decode("utf-8", "replace") for part in match.groups())
                if (url := _comparable(text)) in self._wanted:
                    self.refused[url] = f"it is no URL that can be fetched: {why}"

    def follow(self, url: str, leads_to: str) -> bool:
        """Note what a URL leads to; return whether the logs have to be read again for it."""
        place = _comparable(leads_to)
        self.leads_to[url] = place
        self._spelled.add(leads_to.encode("utf-8", "replace"))
        self._spelled.add(place.encode("utf-8", "replace"))
        if place in self._wanted:
            return False
        self._wanted.add(place)
        return True

    def of(self, url: str) -> SeedAnswer | None:
        """The last answer for a URL, under its own spelling, else under another of the same page."""
        found = self.answers.get(url) or self._weak.get(url)
        if found:
            return found
        others = (self.answers.get(other) for other in self._alike.get(urlkey(url), ()) if other != url)
        return next(filter(None, others), None)

    def _is_of_interest(self, raw: bytes) -> bool:
        columns = raw.split(None, 11)
        if len(columns) < 11 or columns[7][:1] != b"#":
            return True  # of another shape: look closer
        hops = columns[4]
        if self._with_pages and columns[10] != b"-" and hops[-1:] != _PREREQUISITE and self._is_page(columns):
            self._note_page(columns[10].decode("utf-8", "replace"))
        return hops in (b"-", _PREREQUISITE) or not hops.strip(b"R") or columns[3] in self._spelled

    @staticmethod
    def _is_page(columns: list[bytes]) -> bool:
        status, hops, mime = columns[1], columns[4], columns[6].decode("ascii", "replace").lower()
        is_got = (len(status) == 3 and status[:1] == b"2") or status == b"304"
        return is_got and not (hops[-1:] == b"M" and mime in _PAGES_NOT)

    def _note_page(self, source: str) -> None:
        url = _comparable(source)
        if url in self._wanted:
            self.with_page.add(url)

    def _add(self, record: CrawlRecord) -> None:
        hops, url = record.hops or "", _comparable(record.uri)
        if hops == "P":
            self._add_prerequisite(record)
            return
        found = SeedAnswer(
            record.uri, record.status or 0, record.annotations, record.warc_filename or "", record.warc_offset
        )
        led = bool(hops) and not hops.strip("R") and len(hops) <= MOST_HOPS
        via = _comparable(record.via) if led and record.via else ""
        if via and via in self._wanted:
            self.leads_to[via] = url
            self._wanted.add(url)
            self._spelled.add(record.uri.encode("utf-8", "replace"))
        if url in self._wanted:
            self.answers[url] = found
        elif not hops:
            for other in self._alike.get(urlkey(url), ()):
                self._weak[other] = found

    def _add_prerequisite(self, record: CrawlRecord) -> None:
        place, code = host(record.uri), record.status or 0
        if code < 0:
            self.failed_first[place] = ("address" if record.uri.startswith("dns:") else "robots.txt", code)
        elif not record.uri.startswith("dns:"):
            self.failed_first.pop(place, None)


def _about(text: bytes) -> dict[str, str]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return {name: str(value) for name, value in found.items()} if isinstance(found, dict) else {}
