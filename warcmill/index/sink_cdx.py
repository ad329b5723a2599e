"""A CDX server as a sink of the CDX: captures are sent to it, deleted there, and asked of it. Writes to the server.

It makes its own keys, so it is asked by URL, and second, WARC and offset are compared. Its default index keeps one
capture of a key and second, the last one sent: to delete one deletes the other's too. So after each deletion the
captures that the current version has of that key and second are sent again.

`follow` sends the captures of a running launch, and `settle` deletes them once the index has the launch.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from functools import lru_cache
from hashlib import sha512
from itertools import islice
from urllib.parse import quote

from msgspec.structs import replace

from warcmill import layout
from warcmill.clients.cdx_server import CapturePlace, CdxServer
from warcmill.errors import BadInput, Busy, Mismatch, NotReady, Unavailable, WarcmillError
from warcmill.extracts import cdx as cdx_making
from warcmill.extracts.cdx import CDXJ
from warcmill.extracts.extracts import ExtractKind, Extracts
from warcmill.formats.index import cdxj
from warcmill.index import provisional_captures
from warcmill.index.provisional_captures import Followed, crawled
from warcmill.index.provisional_captures import name_of as name_of_provisional
from warcmill.index.sinks import SinkInput
from warcmill.launches.roots import JobRoots
from warcmill.markers import locks
from warcmill.markers.state import MarkerStore
from warcmill.model import FINAL, Launch
from warcmill.stores import LocalStore, Store
from warcmill.versions import cdx, hidden_list
from warcmill.versions.cdx import NAME
from warcmill.versions.index_inputs import WARCS
from warcmill.versions.inputs import Hiding, ListedWarc
from warcmill.versions.publication import CdxLookup, Payloads, hidden_now, open_version

LINES, BYTES = 10_000, 4 << 20  # of a POST: the server holds it in memory
ASKED = 100  # one of so many provisional captures is asked for, after all were deleted
MOST_REFUSED = 100  # lines of a WARC; with more, the server refuses all of them for a reason of its own
_SENT = ("url", "mime", "status", "digest", "length", "offset", "filename", "method", "requestBody")
_ASCII = "".join(map(chr, range(128)))
log = logging.getLogger(__name__)


def name_of(url: str) -> str:
    """The folder of a server's acknowledgements."""
    return f"{NAME}-{sha512(url.rstrip('/').encode()).hexdigest()[:12]}"


def sent(line: bytes) -> bytes:
    """A line as the server takes it: no field that it does not know, a digest without scheme, a URL in ASCII."""
    key, second, text = line.rstrip(b"\n").split(b" ", 2)
    known = json.loads(text)
    fields = {field: known[field] for field in _SENT if field in known} | {"url": _url(known)}
    if "digest" in fields:
        fields["digest"] = fields["digest"].rpartition(":")[2]
    return b"%s %s %s\n" % (key, second, json.dumps(fields).encode())


def captures(server: CdxServer, line: bytes) -> list[CapturePlace]:
    """The captures that the server has of the URL of a line, in its second."""
    _, second, text = line.rstrip(b"\n").split(b" ", 2)
    fields = json.loads(text)
    request = {field: fields[field] for field in ("method", "requestBody") if field in fields}
    return server.captures(_url(fields), second.decode(), request)


def _url(fields: dict[str, str]) -> str:
    return quote(fields["url"], safe=_ASCII, errors="surrogatepass")


class CdxSink:
    """A CDX server as a sink. Close it."""

    def __init__(self, state: LocalStore, store: Store, index: LocalStore, server: CdxServer) -> None:
        self._state, self._store, self._index = state, store, index
        self._extracts, self._server = Extracts(index), server
        self._prefixes = lru_cache(8)(self._read_prefixes)
        self.name, self.place = name_of(server.url), f"the CDX server {server.url}"

    def post(self, new: SinkInput, old: SinkInput | None) -> tuple[int, ...]:
        """Send the captures of an input, but those that it has by `old`. Returns the offsets of refused ones."""
        refused: list[int] = []
        for batch in batches(self._only(new, old)):
            for line in self._send(batch):
                log.warning("%s refuses %s", self.place, line.decode()[:500].rstrip())
                refused.append(cdxj.offset(line))
                if len(refused) > MOST_REFUSED:
                    raise BadInput(new.input.name, f"{self.place} refuses more than {MOST_REFUSED} of its captures")
        return tuple(refused)

    def withdraw(self, old: SinkInput, new: SinkInput | None) -> None:
        """Delete the captures of an input, but those that `new` has; then send their neighbours again."""
        self.delete(self._only(old, new))

    def delete(self, lines: Iterable[bytes]) -> None:
        """Delete captures by their lines, and send again what the current version has of their keys and seconds."""
        with closing(open_version(self._index, NAME)[1]) as lookup:
            for batch in batches(lines):
                self._delete(batch)
                for neighbours in batches(_neighbours(lookup, batch)):
                    self._send(neighbours)

    def post_provisional(self, lines: Sequence[bytes]) -> int:
        """Send captures that no WARC has yet, but those whose key and second the current version has."""
        new = [*lines]
        if Payloads(self._index, NAME).current():
            with closing(open_version(self._index, NAME)[1]) as lookup:
                new = [line for line in lines if next(_neighbours(lookup, [line]), None) is None]
        for batch in batches(new):
            self._send(batch)
        return len(new)

    def prove_none(self, lines: Iterable[bytes]) -> None:
        """Ask for the first of these captures, and for some of the others. Mismatch if one is there."""
        for line in islice(lines, 0, None, ASKED):
            what = f"{line[:200].decode()} at {self.place}, which is provisional"
            _compare(what, 0, captures(self._server, line).count(_place(line)))

    def check(self) -> None:
        """Unavailable unless the server answers."""
        self._server.collections()

    def ask(self, line: bytes, is_shown: bool) -> None:
        """Ask for one capture. Mismatch if it is missing, doubled, or there although it must not be shown.

        A capture of the same key and second may have its place.
        """
        mine, found = _place(line), captures(self._server, line)
        what = f"{line[:200].decode()} at {self.place}"
        launch = Launch.parse(*mine.filename.split("/")[:2])
        is_left = name_of_provisional(launch) in [one.filename for one in found]
        if is_left and Followed(self._index, self.name, launch).is_empty():
            raise Mismatch(what, "no provisional capture", "one that was left")
        if not is_shown:
            _compare(f"{what}, which must not be shown", 0, found.count(mine))
        elif not (mine not in found and self._neighbours_of(line) & {*found}):
            _compare(what, "found once", "found once" if found.count(mine) == 1 else f"found {found.count(mine)} times")

    def lines(self, part: SinkInput) -> Iterator[tuple[bytes, bool]]:
        """The captures of an input, and of each whether it is shown. NotReady if its extract is gone for good."""
        kind, shown = self._sound_extract(part.input), self._shown(part)
        for line in islice(self._extracts.lines(kind, part.input.sha512), 1, None):
            yield cdxj.named(line, part.input.name), shown.has(line)

    def _neighbours_of(self, line: bytes) -> set[CapturePlace]:
        with closing(open_version(self._index, NAME)[1]) as lookup:
            return {_place(one) for one in _neighbours(lookup, [line])}

    def _delete(self, lines: Sequence[bytes]) -> None:
        """A line that the server refuses is not there."""
        try:
            self._server.delete([sent(line) for line in lines])
        except BadInput:
            for half in _halves(lines):
                self._delete(half)

    def _send(self, lines: Sequence[bytes]) -> list[bytes]:
        """Returns the lines that the server refuses: it keeps nothing of a POST with one of them."""
        try:
            self._server.post([sent(line) for line in lines])
        except BadInput:
            if len(lines) == 1:
                return [*lines]
            return [line for half in _halves(lines) for line in self._send(half)]
        return []

    def _only(self, one: SinkInput, other: SinkInput | None) -> Iterator[bytes]:
        """The lines that one part shows, and the other one does not."""
        kind = self._sound_extract(one.input)
        here, there = self._shown(one), self._shown(other) if other and _same_bytes(one, other) else None
        for line in islice(self._extracts.lines(kind, one.input.sha512), 1, None):
            if here.has(line) and not (there and there.has(line)):
                yield cdxj.named(line, one.input.name)

    def _sound_extract(self, one: ListedWarc) -> ExtractKind:
        """The extract of an input, which is rebuilt if it is missing or damaged and can be rebuilt."""
        kind = replace(CDXJ, generation=one.generation)
        if self._extracts.digest(kind, one.sha512) is None:
            why = "its extract is gone, and so is its WARC; empty the server's collection, and remove"
            todo = f"{why} index:sinks/{self.name}: the next scan sends all again"
            if kind != CDXJ:
                raise NotReady(one.name, todo)
            try:
                cdx_making.make(self._extracts, self._store, WARCS + one.name, one.sha512)
            except (NotReady, Mismatch, BadInput) as error:
                raise NotReady(one.name, f"{error}; {todo}") from error
        return kind

    def _shown(self, part: SinkInput) -> _Shown:
        return _Shown(frozenset(part.input.left_out), self._prefixes(part.hiding))

    def _read_prefixes(self, hiding: Hiding) -> tuple[bytes, ...]:
        return tuple(hidden_list.at(self._state, hiding).prefixes())


class _Shown:
    def __init__(self, left_out: frozenset[int], prefixes: tuple[bytes, ...]) -> None:
        self._left_out, self._prefixes = left_out, prefixes

    def has(self, line: bytes) -> bool:
        """True if a part shows a line of its extract."""
        if self._left_out and cdxj.offset(line) in self._left_out:
            return False
        return not hidden_list.is_hidden(line, self._prefixes)


def _place(line: bytes) -> CapturePlace:
    _, second, text = line.rstrip(b"\n").split(b" ", 2)
    fields = json.loads(text)
    return CapturePlace(second.decode(), fields["filename"], fields["offset"])


def _compare(what: str, expected: object, found: object) -> None:
    if expected != found:
        raise Mismatch(what, expected, found)


def _same_bytes(one: SinkInput, other: SinkInput) -> bool:
    return one.input.extract_identity == other.input.extract_identity


def _neighbours(lookup: CdxLookup, lines: Sequence[bytes]) -> Iterator[bytes]:
    """The lines of the current version with the keys and seconds of these lines."""
    for begin in sorted({b" ".join(line.split(b" ", 2)[:2]) + b" " for line in lines}):
        yield from lookup.beginning_with(begin)


def batches(lines: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Lines for one POST each."""
    held, size = list[bytes](), 0
    for line in lines:
        held.append(line)
        size += len(line)
        if len(held) >= LINES or size >= BYTES:
            yield held
            held, size = [], 0
    if held:
        yield held


def _halves(lines: Sequence[bytes]) -> list[Sequence[bytes]]:
    middle = len(lines) // 2
    return [lines[:middle], lines[middle:]] if middle else []


def is_indexed(state: MarkerStore, launch: Launch) -> bool:
    """True if the next fold has all of a launch."""
    return state.holds(layout.step("cdx", launch, FINAL))


def follow(state: MarkerStore, index: LocalStore, roots: JobRoots, sink: CdxSink, launch: Launch) -> int:
    """Send what is new in a launch's crawl logs; return how many captures. Of an indexed launch, nothing.

    Hidden captures are not sent, nor those of the current version. Busy while another process follows the launch.
    """
    _take(state, sink, launch)
    if is_indexed(state, launch):
        return 0
    known, sent = Followed(index, sink.name, launch), 0
    for name in known.begun():
        sent += sink.post_provisional(known.lines(name))
        known.done(name)
    prefixes = tuple(hidden_now(state.store, index, cdx.NAME).prefixes())
    for first, end, lines in _parts(roots, launch, known.place()):
        shown = [line for line in lines if not hidden_list.is_hidden(line, prefixes)]
        name = known.begin(first, end, shown)
        sent += sink.post_provisional(shown)
        known.done(name)
    return sent


def _take(state: MarkerStore, sink: CdxSink, launch: Launch) -> None:
    if locks.take(state, f"follow.{sink.name}.{launch.job}.{launch.id}"):
        raise Busy(f"following {launch}")


def _parts(roots: JobRoots, launch: Launch, start: int) -> Iterator[tuple[int, int, list[bytes]]]:
    """The new lines for one POST each: where they begin and end in the logs."""
    lines, first, last = list[bytes](), start, start
    for end, line in crawled(roots, launch, start):
        if end < last:  # the logs are others than those of before: all is taken again
            first = 0
        last = end
        lines += [line] if line else []
        if len(lines) >= LINES:
            yield first, last, lines
            lines, first = [], last
    if last > first:
        yield first, last, lines


def settle(state: MarkerStore, index: LocalStore, sink: CdxSink) -> Iterator[str]:
    """Delete what is provisional of launches that the index has, and what is hidden of others.

    Yields what went wrong; the next run tries it again.
    """
    hiding = hidden_now(state.store, index, cdx.NAME)
    for launch in provisional_captures.launches(index, sink.name):
        known = Followed(index, sink.name, launch)
        try:
            _take(state, sink, launch)
            if is_indexed(state, launch):
                sink.delete(known.all_lines())
                sink.prove_none(known.all_lines())
                known.forget()
                log.info("%s: nothing provisional is left of %s", sink.place, launch)
            elif not known.is_without(hiding.hiding.sha512):
                prefixes = tuple(hiding.prefixes())
                sink.delete(line for line in known.all_lines() if hidden_list.is_hidden(line, prefixes))
                known.note_without(hiding.hiding.sha512)
        except Unavailable as error:
            yield str(error)
            return
        except WarcmillError as error:
            yield f"{sink.place}: {launch}: {error}"
