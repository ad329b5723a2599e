"""The archive as pages show it. Reads only: each request reads the current versions, and what is hidden then."""

from __future__ import annotations

import json
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

from msgspec import Struct

from warcmill.base import clock
from warcmill.errors import BadInput, NotReady, Unavailable
from warcmill.formats import hosts
from warcmill.formats.index.request_body import Posted
from warcmill.formats.index.urlkey import urlkey
from warcmill.formats.pypi.data_sets import DISTRIBUTIONS
from warcmill.stores import LocalStore, Store
from warcmill.versions import cdx, hidden_list, search, text
from warcmill.versions.hidden_list import AccessDecision
from warcmill.versions.inputs import Lists
from warcmill.versions.publication import CdxLookup, Payloads, hidden_now, open_version
from warcmill.versions.search import Query, SearchAnswer

WARCS = "warcs"
MISSING = {
    cdx.NAME: "Nothing can be replayed yet: no index of captures is published. 'warcmill scan' publishes it, where"
    " luigi.cfg has [index] since",
    text.NAME: "No words can be searched yet: no index of text is published. 'warcmill scan' publishes it, where"
    " luigi.cfg has [text] since",
}
_HEAD_BYTES = 1 << 18
_GZIP_MAGIC = b"\x1f\x8b"
NO_INDEX = "There is no index, so nothing can be searched or replayed: 'warcmill init --adopt index' makes its folder"
LISTED = 1_000  # captures of a URL: the last ones


class ShownCapture(Struct, frozen=True):
    """A capture of a URL, as its CDX line has it."""

    time: str
    url: str
    status: str
    type: str


class ShownCaptures(Struct, frozen=True):
    """The number of captures of a URL, in which version of the CDX; and the last ones, the newest first."""

    version: int
    captures: int
    last: tuple[ShownCapture, ...]


class HeldCapture(Struct, frozen=True):
    """A capture with its record: the WARC's name, the offset and the length there, and the payload digest."""

    time: str
    url: str
    status: str
    type: str
    digest: str
    warc: str
    offset: str
    length: str


def _lines(lookup: CdxLookup, time: str, url: str) -> Iterator[tuple[bytes, str]]:
    """The captures of a URL in one second, each with what replay has to be asked for to show it.

    Those of a POST or PUT come last: their keys have the request's body, too.
    """
    spelled = {urlkey(one): one for one in (hosts.in_url(url), url)}  # as a person types it, and as it was captured
    for key, one in spelled.items():
        for line in lookup.captures(key, time, time):
            yield line, one.partition("#")[0]  # no key has a fragment
    for line in lookup.beginning_with(f"{urlkey(url).partition('?')[0]}?__wb_method=".encode()):
        _, second, text = line.split(b" ", 2)
        if second == time.encode() and (fields := json.loads(text)).get("url") == url and "method" in fields:
            yield line, Posted(fields["method"], fields.get("requestBody", "")).appended_to(url)


@contextmanager
def _as_outage() -> Iterator[None]:
    """Unavailable for a damaged file of the archive: a reader's request is not at fault."""
    try:
        yield
    except BadInput as error:
        raise Unavailable(error.path, error.why) from error


def _capture(line: bytes) -> ShownCapture:
    _, time, text = line.split(b" ", 2)
    fields = json.loads(text)
    return ShownCapture(time.decode(), fields["url"], fields.get("status", ""), fields.get("mime", ""))


def _held(line: bytes) -> HeldCapture:
    _, time, text = line.split(b" ", 2)
    fields = json.loads(text)
    names = ("status", "mime", "digest", "filename", "offset", "length")
    return HeldCapture(time.decode(), fields["url"], *(str(fields.get(name, "")) for name in names))


class Archive:
    """The published indexes, and what is hidden in them. `open_index`: None for a line without one.

    A root that is away at the start may be there later, so each is opened when it is needed. `_away` keeps why the
    store did not answer when it was last asked: a page does not wait for it.
    """

    def __init__(
        self, state: LocalStore, open_index: Callable[[], LocalStore] | None, open_store: Callable[[], Store]
    ) -> None:
        self.state, self.open_index, self.open_store = state, open_index, open_store
        self._away: dict[str, str] = {}

    def missing(self) -> list[str]:
        """The parts that cannot be searched or replayed, each with the command that brings it."""
        if self.open_index is None:
            return [NO_INDEX]
        try:
            lacks = [MISSING[name] for name, number in self.versions().items() if number is None]
        except Unavailable as error:
            lacks = [f"Nothing can be searched or replayed now: {error}"]
        return [*lacks, *self._away.values()]

    def search(self, query: Query, skipped: int, marks: tuple[str, str]) -> SearchAnswer:
        """The best documents after those that are skipped. NotReady if no version is published."""
        with _as_outage():
            return search.search(self.state, self._index(), query, skipped=skipped, marks=marks)

    def hidden_prefixes(self) -> tuple[bytes, ...]:
        """The beginnings of the lines that are hidden now, by the state alone."""
        lists = (Lists(self.state, name) for name in MISSING)
        newest = [one.hiding(one.numbers()[-1]) for one in lists if one.numbers()]
        known = max(newest, key=lambda hiding: hiding.decisions, default=None)
        found = hidden_list.now(self.state, known) if known else hidden_list.read(self.state)
        return tuple(found.prefixes())

    def replayed(self, time: str, url: str) -> str:
        """The URL by which replay finds a capture; '' if the current CDX does not have it, or it is hidden."""
        with _as_outage():
            prefixes = tuple(hidden_now(self.state, self._index(), cdx.NAME).prefixes())
        _, lookup = open_version(self._index(), cdx.NAME)
        with closing(lookup):
            shown = (asked for line, asked in _lines(lookup, time, url) if not hidden_list.is_hidden(line, prefixes))
            return next(shown, "")

    def time_of(self, url: str, warc: str, offset: int) -> str:
        """The time of the capture that begins at an offset of a WARC; '' if the current CDX does not have it."""
        _, lookup = open_version(self._index(), cdx.NAME)
        key = urlkey(hosts.in_url(url))
        with closing(lookup):
            for lines in (
                lookup.captures(key),
                lookup.beginning_with(f"{key.partition('?')[0]}?__wb_method=".encode()),
            ):
                for line in lines:
                    _, time, text = line.split(b" ", 2)
                    fields = json.loads(text) if f'"{offset}"'.encode() in text else {}
                    if (fields.get("filename", "").rpartition("/")[2], fields.get("offset")) == (warc, str(offset)):
                        return time.decode()
        return ""

    def captures_of(self, url: str, first: str, last: str, type_: str = "") -> ShownCaptures:
        """The captures of a URL between two times, of a type. NotReady if no version is published."""
        with _as_outage():
            prefixes = tuple(hidden_now(self.state, self._index(), cdx.NAME).prefixes())
        published, lookup = open_version(self._index(), cdx.NAME)
        number, newest = 0, deque[bytes](maxlen=LISTED)
        with closing(lookup):
            for line in lookup.captures(urlkey(hosts.in_url(url)), first, last or "9"):
                is_asked = not type_ or search.type_word(_capture(line).type) == type_
                if is_asked and not hidden_list.is_hidden(line, prefixes):
                    number += 1
                    newest.appendleft(line)
        return ShownCaptures(published.number, number, tuple(map(_capture, newest)))

    def history_of(self, url: str, most: int) -> tuple[list[HeldCapture], int]:
        """The captures of a URL that are not hidden, the oldest first, at most so many; and the number of all of them.
        NotReady if no version is published."""
        with _as_outage():
            prefixes = tuple(hidden_now(self.state, self._index(), cdx.NAME).prefixes())
        _, lookup = open_version(self._index(), cdx.NAME)
        found, number = list[HeldCapture](), 0
        with closing(lookup):
            for line in lookup.captures(urlkey(hosts.in_url(url))):
                if not hidden_list.is_hidden(line, prefixes):
                    number += 1
                    if number <= most:
                        found.append(_held(line))
        return found, number

    def hit_by(self, entry: str, most: int) -> tuple[list[ShownCapture], int]:
        """The captures that an entry would hide: the first ones, and the number of all of them."""
        prefixes = hidden_list.prefixes_of(entry)
        _, lookup = open_version(self._index(), cdx.NAME)
        found, number = list[ShownCapture](), 0
        with closing(lookup):
            for line in hidden_list.hidden_lines(lookup.beginning_with, prefixes):
                number += 1
                if number <= most:
                    found.append(_capture(line))
        return found, number

    def rules(self) -> dict[str, AccessDecision]:
        """The entries that are hidden now, each with the decision that hides it. Unavailable for a damaged one."""
        with _as_outage():
            return hidden_list.rules(self.state)

    def shown_without(self, entry: str, most: int) -> tuple[list[ShownCapture], int]:
        """The captures that are shown again once an entry is hidden no more: the first ones, and the number of all; by
        the newest version that has them: a version that was made since has none of what is hidden."""
        index, prefixes = self._index(), hidden_list.prefixes_of(entry)
        others = tuple(one for surt in self.rules() if surt != entry for one in hidden_list.prefixes_of(surt))
        found, number = list[ShownCapture](), 0
        for published in sorted(Payloads(index, cdx.NAME).all(), key=lambda one: -one.number):
            with closing(CdxLookup(index, published.segments)) as lookup:
                for line in hidden_list.hidden_lines(lookup.beginning_with, prefixes):
                    if not hidden_list.is_hidden(line, others):
                        number += 1
                        if number <= most:
                            found.append(_capture(line))
            if number:
                break
        return found, number

    def record_head(self, warc: str, offset: int) -> str:
        """The header of a record as the store has it, and that of HTTP below it. NotReady where there is none."""
        path = f"{WARCS}/{warc}"
        store = self.open_store()
        stat = store.stat(path)
        if stat is None or offset >= (stat.size or 0):
            raise NotReady(f"store:{path}", "it has no record at this offset")
        with closing(store.open(path, offset)) as stream:
            data = stream.read(_HEAD_BYTES)
        if data.startswith(_GZIP_MAGIC):
            try:
                data = zlib.decompressobj(16 + zlib.MAX_WBITS).decompress(data, _HEAD_BYTES)
            except zlib.error as error:
                raise Unavailable(f"store:{path}", f"its record at {offset} cannot be inflated: {error}") from error
        head, _, block = data.partition(b"\r\n\r\n")
        http = block.partition(b"\r\n\r\n")[0] if block.startswith((b"HTTP/", b"GET ", b"POST ")) else b""
        return b"\n\n".join(filter(None, (head, http))).decode("utf-8", "replace").replace("\r\n", "\n")

    def check_store(self) -> None:
        """Unavailable if the store is not there: pywb would answer as if nothing had been archived."""
        try:
            self.open_store().stat(WARCS)
        except Unavailable as error:
            why = f"Nothing can be replayed now: at {clock.now()} it was found that {error}"
            self._away["store"] = why
            raise
        self._away.pop("store", None)

    def versions(self) -> dict[str, int | None]:
        """The number of the current version of each data set; None if none is published."""
        if self.open_index is None:
            return dict.fromkeys(MISSING)
        index = self.open_index()
        current = {name: Payloads(index, name).current() for name in MISSING}
        return {name: one.number if one else None for name, one in current.items()}

    def lost(self) -> list[str]:
        """The data sets, those of packages too, that have versions while the index root has none."""
        index = self.open_index() if self.open_index else None
        listed = (name for name in (*MISSING, DISTRIBUTIONS) if Lists(self.state, name).numbers())
        return [name for name in listed if index is None or Payloads(index, name).current() is None]

    def _index(self) -> LocalStore:
        if self.open_index is None:
            raise NotReady("the index", NO_INDEX)
        return self.open_index()
