"""The originals of a WACZ's revisits: found in its own WARCs or in the archive, and copied byte for byte.

A revisit has no payload. Players look for it at the URL and time of WARC-Refers-To-Target-URI and -Date, or else at the
revisit's own URL. So only a capture of that URL, with that payload, makes a revisit replay.

Players show a "not modified" answer, or a revisit that names no original, as an empty page. Such a one gets no line in
the index when its original is there: then they show the original, as the newest capture up to that time.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from itertools import chain, groupby
from json.encoder import encode_basestring_ascii as quoted
from pathlib import Path
from typing import BinaryIO, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from warcmill.base.line_sort import SortedLines
from warcmill.errors import Mismatch, NotReady
from warcmill.extracts.revisits import digest_of, is_revisit
from warcmill.formats.index.cdxj import CdxLines, date_of
from warcmill.formats.index.urlkey import same_page, urlkey
from warcmill.formats.text.titles import Titles
from warcmill.formats.wacz import Wacz, Write
from warcmill.formats.warc import gate, hearers
from warcmill.formats.warc.header import DATE, END_OF_RECORD
from warcmill.formats.warc.hearers import Hearer, RecordHead, WholeRecord
from warcmill.stores import Store
from warcmill.versions.hidden_list import is_hidden
from warcmill.versions.index_inputs import WARCS
from warcmill.versions.revisits import Originals, PayloadSource, Revisit, Searched

_URI, _DATE = b"WARC-Refers-To-Target-URI", b"WARC-Refers-To-Date"
_NOT_MODIFIED = b"server-not-modified"
_PROFILE = b"WARC-Profile"
_PENDING = 1_000  # revisits whose line is still to come
HIDDEN, MISSING, AN_ARC = "hidden", "missing from the store", "an ARC: replay reads WARCs only"
NOWHERE = "in no WARC of the archive"
_VIRAL, _REFUSED, _HIT = "from the engine's viral writer", "refused: it is cut or damaged", "the virus scan had a hit"
_OTHER_URL = "of another URL or time: players do not look there"
_NAMED = 3  # URLs


class Refers(NamedTuple):
    """Where the original of a revisit is: its URL ('': the revisit's own) and time, as the record has them."""

    url: str
    time: str
    is_empty: bool  # players show nothing of the revisit itself


class RefersTo(Hearer):
    """Hears where the revisits of a WARC have their originals: `of` gives it for a line's offset, once."""

    def __init__(self) -> None:
        self._heard: dict[int, Refers] = {}

    def whole(self, record: WholeRecord, /) -> None:
        """Take revisits alone."""
        if record.header[hearers.TYPE] == b"revisit":
            self.begin(record.head())

    def begin(self, head: RecordHead, /) -> None:
        """Note a revisit; one without a URL or date gets no line, and is forgotten after a while."""
        if head.type == "revisit":
            url = head.fields.get(_URI, b"").strip().strip(b"<>").decode("utf-8", "replace")
            time = date_of({DATE: head.fields.get(_DATE, b"")})
            is_empty = not url or head.fields.get(_PROFILE, b"").strip().endswith(_NOT_MODIFIED)
            self._heard[head.offset] = Refers(url, time, is_empty)
            if len(self._heard) > _PENDING:
                del self._heard[next(iter(self._heard))]

    def of(self, offset: int) -> Refers | None:
        """The original to which the revisit at an offset refers; None for other records."""
        return self._heard.pop(offset, None)


class Fate(NamedTuple):
    """The fate of a revisit with an original. `warc`, `offset`: the original; it has this status, or is a page.

    `left_out`: the revisit gets no line.
    """

    warc: str
    offset: int
    status: str
    is_html: bool
    left_out: bool


class Lost(NamedTuple):
    """Captures that will not replay: how many, why, and where their originals are, or some of their URLs."""

    captures: int
    why: str
    where: tuple[str, ...]


class Archived:
    """Where originals may be found: the published index and the store. `why_not`: why there is no index."""

    def __init__(
        self, store: Store, prefixes: Mapping[bytes, str], originals: Originals | None = None, why_not: str = ""
    ) -> None:
        self.store, self.prefixes, self.originals, self.why_not = store, prefixes, originals, why_not
        self._there: dict[str, str] = {}

    def of_key(self, key: str) -> list[bytes]:
        """The captures of a key that the index shows."""
        return list(self.originals.shown(f"{key} ".encode())) if self.originals else []

    def why_unusable(self, line: bytes) -> str:
        """Why a capture that the index shows may not be copied; '' if it may."""
        if self.prefixes and is_hidden(line, tuple(self.prefixes)):
            return HIDDEN
        warc = str(json.loads(line.split(b" ", 2)[2])["filename"])
        if warc not in self._there:
            plain_or_gzip = warc.lower().endswith((".warc", ".warc.gz"))
            self._there[warc] = AN_ARC if not plain_or_gzip else "" if self.store.stat(WARCS + warc) else MISSING
        return self._there[warc]


class Revisits:
    """The revisits of a WACZ: `add` each, `resolve` them, `copy` their originals, and read the index `with_fates`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._asked, self._fates, self._wanted, self._lost = (SortedLines(folder) for _ in range(4))
        self.any = False
        self._why = Counter[tuple[str, str]]()
        self.elsewhere: Counter[str] = Counter()  # revisits by the WARC of another launch, or stage, with the original

    def add(self, line: bytes, refers: Refers) -> None:
        """Take a revisit: its line, named."""
        key, _, rest = line.partition(b" ")
        own = json.loads(rest.split(b" ", 1)[1])["url"]
        target = urlkey(refers.url).encode() if refers.url and refers.url != own else key
        page = _page(refers.url or own)
        about = [target, refers.time.encode(), b"1" if refers.is_empty else b"0", page, line]
        self._asked.add(b"\0".join(about))
        self.any = True

    def resolve(self, lines: Iterable[bytes], archived: Archived) -> None:
        """Find the original of each, among these sorted lines of the WACZ, or in the archive."""
        own = iter(lines)
        at = next(own, None)
        for key, group in groupby(self._asked, lambda entry: entry.partition(b"\0")[0]):
            found, there = list[bytes](), None
            while at is not None and at.partition(b" ")[0] <= key:
                if at.startswith(key + b" ") and not is_revisit(at):
                    found.append(at)
                at = next(own, None)
            here = _by_page(found)
            for entry in group:
                _, time, empty, page, line = entry.split(b"\0", 4)
                asked = _Asked(digest_of(line), time, line.split(b" ", 2)[1], line, is_empty=empty == b"1")
                if original := asked.best(here[page]):
                    self._settle(asked, original, is_elsewhere=False)
                    continue
                if there is None:
                    there = _by_page(one for one in archived.of_key(key.decode()) if not is_revisit(one))
                self._look(asked, key, there[page], archived)

    def _look(self, asked: _Asked, key: bytes, there: list[bytes], archived: Archived) -> None:
        fitting = {line: archived.why_unusable(line) for line in asked.fitting(there)}
        if usable := asked.best([line for line, why in fitting.items() if not why]):
            self._settle(asked, usable, is_elsewhere=True)
            return
        line, why = next(iter(fitting.items()), (b"", ""))
        warc = str(json.loads(line.split(b" ", 2)[2])["filename"]) if line else ""
        self._lost.add(b"\0".join([key, why.encode(), warc.encode(), asked.line]))

    def _settle(self, asked: _Asked, original: bytes, *, is_elsewhere: bool) -> None:
        fields = json.loads(original.split(b" ", 2)[2])
        warc, offset = fields["filename"], int(fields["offset"])
        is_html = fields.get("mime", "").lower() in ("text/html", "application/xhtml+xml")
        fate = Fate(warc, offset, fields.get("status", "200"), is_html, asked.is_empty)
        self._fates.add(asked.line.rstrip(b"\n") + b"\0" + json.dumps([is_elsewhere, *fate]).encode() + b"\n")
        if is_elsewhere:
            self.elsewhere[warc] += 1
            self._wanted.add(b"\0".join([quoted(warc).encode(), b"%016d" % offset, original]))

    def with_fates(self, lines: Iterable[bytes], *, with_originals: bool) -> Iterator[tuple[bytes, Fate | None]]:
        """Yield the lines of the WACZ, each with what becomes of it if it is a revisit with an original."""
        fates = (entry.rstrip(b"\n").partition(b"\0") for entry in self._fates)
        line, _, about = next(fates, (b"", b"", b""))
        for one in lines:
            while line and line < one.rstrip(b"\n"):
                line, _, about = next(fates, (b"", b"", b""))
            if line != one.rstrip(b"\n"):
                yield one, None
                continue
            is_elsewhere, *fate = json.loads(about)
            known = Fate(*fate)
            yield one, known._replace(left_out=known.left_out and (with_originals or not is_elsewhere))

    def copy(self, archive: Wacz, store: Store, titled: Callable[[str, int, str], object]) -> Iterator[bytes]:
        """Write the originals that are elsewhere, a small WARC for each WARC that has some; yield their index lines."""
        for name, group in groupby(self._wanted, lambda entry: entry.partition(b"\0")[0]):
            warc = str(json.loads(name))
            copied = f"originals.{warc.replace('/', '.')}"
            with archive.warc(copied, None) as write:
                begin = 0
                for entry, _ in groupby(group):
                    line = entry.split(b"\0", 2)[2]
                    moved, length = _copied(store, warc, line, copied, begin, write, titled)
                    begin += length
                    yield moved

    def lost(self, archived: Archived) -> list[Lost]:
        """The captures whose original is not found, by reason; the most first."""
        searched = self._searched(archived)
        found, urls = Counter[tuple[str, str]](), dict[tuple[str, str], list[str]]()
        for revisit, why, warc in self._unsettled():
            reason = (why, warc) if why else _explained(archived, searched, revisit)
            found[reason] += 1
            named = urls.setdefault(reason, [])
            if len(named) < _NAMED:
                named.append(revisit.url)
        return [
            Lost(number, why, (warc,) if warc else tuple(urls[why, warc]))
            for (why, warc), number in found.most_common()
        ]

    def _unsettled(self) -> Iterator[tuple[Revisit, str, str]]:
        for entry in self._lost:
            key, why, warc, line = entry.split(b"\0", 3)
            yield replace(Revisit.parse(line), key=key.decode()), why.decode(), warc.decode()

    def _searched(self, archived: Archived) -> Searched | None:
        """Where the payloads of those are that the index does not show: this reads all of its lines."""
        unknown = (revisit for revisit, why, _ in self._unsettled() if not why)
        first = next(unknown, None)
        if archived.originals is None or first is None:
            return None
        return archived.originals.search(chain([first], unknown), refused=True)

    def close(self) -> None:
        """Free what it holds."""
        for one in (self._asked, self._fates, self._wanted, self._lost):
            one.close()


class _Asked(Struct, frozen=True):
    """A revisit whose original is looked for: by payload digest, or without one by the time that it names."""

    digest: bytes
    refers_time: bytes
    time: bytes
    line: bytes
    is_empty: bool

    def fitting(self, lines: Iterable[bytes]) -> list[bytes]:
        """The captures that may be its original; none of them is a revisit."""
        if self.digest:
            return [line for line in lines if digest_of(line) == self.digest]
        return [line for line in lines if _time(line) == self.refers_time or not self.refers_time]

    def best(self, lines: Iterable[bytes]) -> bytes | None:
        """The one of the time that it names, or else the last one before it, or else the first."""
        found = sorted(self.fitting(lines), key=_time)
        exact = [line for line in found if _time(line) == self.refers_time]
        before = [line for line in found if _time(line) <= self.time]
        return next(iter(exact or before[-1:] or found), None)


def _by_page(lines: Iterable[bytes]) -> Mapping[bytes, list[bytes]]:
    """The captures of a key by their URLs."""
    found = defaultdict[bytes, list[bytes]](list)
    for line in lines:
        found[_page(json.loads(line.split(b" ", 2)[2])["url"])].append(line)
    return found


def _page(url: str) -> bytes:
    return same_page(url).encode("utf-8", "surrogatepass").replace(b"\0", b"")


def _time(line: bytes) -> bytes:
    return line.split(b" ", 2)[1]


def _explained(archived: Archived, searched: Searched | None, revisit: Revisit) -> tuple[str, str]:
    """The reason why the original of a revisit is missing, and the WARC that has it; '' if it is in none."""
    if searched is None:
        return archived.why_not, ""
    found = searched.originals.get(revisit.wanted)
    if found is None:
        return searched.unknown() or NOWHERE, ""
    return _why_not(found), found.warc


def _why_not(found: PayloadSource) -> str:
    if found.is_viral:
        return _VIRAL
    if found.is_refused:
        return _REFUSED
    if found.has_hit:
        return _HIT
    return _OTHER_URL if found.is_shown else HIDDEN


def _copied(
    store: Store, warc: str, line: bytes, name: str, begin: int, write: Write, titled: Callable[[str, int, str], object]
) -> tuple[bytes, int]:
    """Copy one record, which the gate examines meanwhile; return its line there, and its length."""
    key, time, text = line.split(b" ", 2)
    fields = json.loads(text)
    length = int(fields["length"]) + (0 if warc.lower().endswith(".gz") else len(END_OF_RECORD))
    lines = list[bytes]()
    heard = CdxLines(lines.append)
    titles = Titles(lambda _, title: titled(warc, int(fields["offset"]), title))
    try:
        with closing(store.open(WARCS + warc, int(fields["offset"]))) as stream:
            verdict = gate.examine(_Part(stream, length, write), name, hearers=[heard, titles])
    except NotReady as error:
        raise Mismatch(f"store:{WARCS}{warc} changed since it was indexed", "a file", "none") from error
    heard.close()
    found = [json.loads(one.split(b" ", 2)[2])["url"] for one in lines]
    if not verdict.ok or found != [fields["url"]]:
        what = f"store:{WARCS}{warc} changed since it was indexed; the record at offset {fields['offset']}"
        raise Mismatch(what, fields["url"], verdict.why or found)
    moved = json.dumps({**fields, "offset": str(begin), "filename": name})
    return b" ".join([key, time, moved.encode()]) + b"\n", length


class _Part:
    """Reads some bytes of a stream; what is read is written."""

    def __init__(self, stream: BinaryIO, length: int, write: Write) -> None:
        self._stream, self._left, self._write = stream, length, write

    def read(self, size: int, /) -> bytes:
        piece = self._stream.read(min(size, self._left))
        self._left -= len(piece)
        self._write(piece)
        return piece
