"""The formats of a WARC's payloads by PRONOM: of each declared type all are counted, and the first few identified.

The first payloads stand for their type: identifying all of a crawl's millions would cost more than the crawl. A
payload is identified as a browser gets it, with chunks and codings undone, by its first bytes.

Siegfried names the format, in a process of its own, as it is in Go: its threads would be missing in processes that
Luigi forks later, and a call there would never return. Its signatures take 85 MB. And a payload that it cannot survive
ends only that process.

    request: the length of the bytes, 4 bytes big-endian, then the bytes
    answer:  one line of JSON, siegfried's own
"""

from __future__ import annotations

import atexit
import json
import os
import re
import select
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from warcmill.errors import BadInput, Unavailable
from warcmill.formats.warc.header import CONTENT_TYPE
from warcmill.formats.warc.hearers import Hearer, Listener, RecordHead
from warcmill.formats.warc.http import BodyReadings, payload_start

LOOKED_AT: Final = 3  # payloads of each type that are identified
SAMPLE: Final = 1 << 20  # bytes of a block that are looked at
MOST_TYPES: Final = 500  # types of one WARC; payloads of more are counted together
OTHERS: Final = "(other types)"
UNDECLARED: Final = "(none declared)"
UNKNOWN: Final = "UNKNOWN"  # siegfried's word
_TYPE = re.compile(rb"\ncontent-type[ \t]*:[ \t]*([^\r\n;]*)", re.IGNORECASE)
_MIME = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,126}/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}")
_WITH_PAYLOAD = ("response", "resource", "conversion", "arc")
_VERSION = re.compile(r"V([0-9]+)\.xml.*?([0-9]{8})\.xml")


class TypeSample(Struct):
    """The payloads of one declared type: how many, and how many of the first are of which format."""

    payloads: int = 0
    formats: dict[str, int] = field(default_factory=dict)  # a Counter takes ten times as long

    def add(self, name: str, number: int) -> None:
        """Count some payloads of a format."""
        self.formats[name] = self.formats.get(name, 0) + number


class _Line(msgspec.Struct, frozen=True, gc=False):
    """A line of an extract: a package reads those of 100,000 WARCs."""

    type: str
    payloads: int
    formats: dict[str, int]


_LINES = msgspec.json.Decoder(_Line)


class Formats(Hearer):
    """Hears the formats of one WARC; `types` is its result, by declared type."""

    def __init__(self) -> None:
        self.types: dict[str, TypeSample] = {}

    def begin(self, head: RecordHead) -> Listener | None:
        if head.type not in _WITH_PAYLOAD:
            return None
        if head.type == "arc":
            return _Payload(
                self, head.fields.get(b"Content-type", b""), head.fields.get(b"URL", b"").startswith(b"http")
            )
        declared = head.fields.get(CONTENT_TYPE, b"")
        return _Payload(self, declared, declared.strip().lower().startswith(b"application/http"))

    def is_looked_at(self, declared: str) -> bool:
        """True if the next payload of a type is one of the first, which are identified."""
        seen = self.types.get(self._named(declared))
        return seen is None or sum(seen.formats.values()) < LOOKED_AT

    def count(self, declared: str, sample: Callable[[], bytes]) -> None:
        """Count a payload, and identify it if it is one of the first of its type. Only then is a sample asked for."""
        is_looked_at = self.is_looked_at(declared)
        seen = self.types.setdefault(self._named(declared), TypeSample())
        seen.payloads += 1
        if is_looked_at and (first := sample()):
            seen.add(identified(first), 1)

    def _named(self, declared: str) -> str:
        return declared if declared in self.types or len(self.types) < MOST_TYPES else OTHERS

    def lines(self) -> Iterator[bytes]:
        """The result as JSON Lines, sorted by type."""
        for declared, seen in sorted(self.types.items()):
            one = {"type": declared, "payloads": seen.payloads, "formats": seen.formats}
            yield json.dumps(one, sort_keys=True).encode() + b"\n"


class _Payload(Listener):
    """One payload. Once its type is known, and has been looked at often enough, nothing more of it is kept."""

    def __init__(self, formats: Formats, declared: bytes, is_http: bool) -> None:
        self._formats, self._is_http = formats, is_http
        self._block = bytearray()
        self._begin = -1 if is_http else 0  # where the body begins; -1: not known yet
        self._declared = "" if is_http else _declared(declared)
        self._wanted = SAMPLE if is_http or formats.is_looked_at(self._declared) else 0

    def feed(self, piece: memoryview) -> None:
        before = len(self._block)
        if before >= self._wanted:
            return
        self._block += piece[: self._wanted - before]
        if self._begin < 0:
            self._begin = payload_start(self._block, max(0, before - 3), response=True)
            if self._begin >= 0:
                self._end_of_header()

    def _end_of_header(self) -> None:
        found = _TYPE.search(self._block, 0, self._begin)
        self._declared = _declared(found[1] if found else b"")
        if not self._formats.is_looked_at(self._declared):
            self._wanted = 0

    def end(self, _offset: int, _length: int) -> None:
        if self._begin < 0:  # a header without an end, or one longer than a sample: no body
            self._begin = len(self._block)
            self._end_of_header()
        self._formats.count(self._declared, self._sample)

    def _sample(self) -> bytes:
        body = bytes(self._block[self._begin :])
        return _decoded(bytes(self._block[: self._begin]), body) if self._is_http else body


def read(content: bytes, path: Callable[[], str]) -> dict[str, TypeSample]:
    """Read what `Formats.lines` wrote; BadInput, with its path, when it did not."""
    try:
        return {one.type: TypeSample(one.payloads, one.formats) for one in _LINES.decode_lines(content)}
    except (msgspec.MsgspecError, ValueError) as error:
        raise BadInput(path(), f"not a list of formats: {error!r}") from error


def merged(several: Iterable[Mapping[str, TypeSample]]) -> dict[str, TypeSample]:
    """The sum of the results for several WARCs."""
    total: dict[str, TypeSample] = {}
    for types in several:
        for declared, seen in types.items():
            sum_ = total.get(declared)
            if sum_ is None:
                sum_ = total[declared] = TypeSample()
            sum_.payloads += seen.payloads
            for name, number in seen.formats.items():
                sum_.add(name, number)
    return total


def identified(sample: bytes) -> str:
    """The PRONOM key of some bytes, such as `fmt/471`, or UNKNOWN."""
    matches = ask(sample)["files"][0]["matches"]
    return str(matches[0]["id"]) if matches else UNKNOWN


@cache
def tools() -> Mapping[str, str]:
    """The versions of the identifiers: siegfried, and PRONOM's signatures."""
    known = ask_once(b"%PDF-1.4")
    return {"siegfried": str(known["siegfried"]), "pronom": str(known["identifiers"][0]["details"])}


@cache
def signatures() -> str:
    """The version of PRONOM's signatures as a name, such as `125-20260119`: of files, and of containers."""
    found = _VERSION.search(tools()["pronom"])
    return f"{found[1]}-{found[2]}" if found else re.sub(r"[^A-Za-z0-9]+", "-", tools()["pronom"]).strip("-")


def _declared(value: bytes) -> str:
    text = value.split(b";")[0].strip().lower().decode("ascii", "replace")
    return text if _MIME.fullmatch(text) else UNDECLARED


class _Collected:
    """Stands for a hash, and keeps what it is fed."""

    digest_size = 0

    def __init__(self) -> None:
        self.data = bytearray()

    def update(self, data: bytes | memoryview, /) -> None:
        self.data += data[: max(SAMPLE - len(self.data), 0)]

    def digest(self) -> bytes:
        return bytes(self.data)


def _decoded(header: bytes, body: bytes) -> bytes:
    """The first bytes of a body with its codings undone, as far as they can be."""
    readings = BodyReadings(header, _Collected, len(body))
    readings.feed(memoryview(body))
    readings.close()
    made = readings.made
    return made[-1].hash.digest() if made else body


TIMEOUT: Final = 60  # seconds for an answer, the process's start included: it takes milliseconds
_COMMAND: Final = (sys.executable, "-P", "-m", "warcmill.formats.sip.pronom")  # -P: no module of the working folder
_running: dict[int, subprocess.Popen[bytes]] = {}  # by the process that asks: one that was forked has its own


def ask(sample: bytes) -> dict[str, Any]:
    """Siegfried's answer about some bytes. Unavailable when it ends or is silent; the next question starts it again.

    Its process stays, and ends with the one that asks.
    """
    child = _running.get(os.getpid()) or _start()
    try:
        _send(child, sample)
        return dict(json.loads(_answer(child)))
    except (OSError, ValueError) as error:
        child.kill()
        _end(child)
        raise Unavailable("siegfried", f"{error} (exit status {child.returncode})") from error


def ask_once(sample: bytes) -> dict[str, Any]:
    """The same, by a process that ends after its answer, and holds no memory then."""
    asked = _framed(sample)
    try:
        done = subprocess.run(_COMMAND, input=asked, stdout=subprocess.PIPE, check=True, timeout=TIMEOUT)  # noqa: S603
        return dict(json.loads(done.stdout))
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise Unavailable("siegfried", str(error)) from error


def _start() -> subprocess.Popen[bytes]:
    child = subprocess.Popen(_COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603 - our own words
    _running[os.getpid()] = child
    atexit.register(_end, child)
    return child


def _send(child: subprocess.Popen[bytes], sample: bytes) -> None:
    assert child.stdin
    child.stdin.write(_framed(sample))
    child.stdin.flush()


def _answer(child: subprocess.Popen[bytes]) -> bytes:
    assert child.stdout
    if not select.select([child.stdout], [], [], TIMEOUT)[0]:
        raise OSError(f"no answer in {TIMEOUT} seconds")
    line = child.stdout.readline()
    if not line:
        raise OSError("it ended without an answer")
    return line


def _end(child: subprocess.Popen[bytes]) -> None:
    """End the process if it is ours: it ends by itself when nobody can ask any more."""
    if _running.get(os.getpid()) is child:
        del _running[os.getpid()]
        atexit.unregister(_end)
        child.communicate()


def _framed(sample: bytes) -> bytes:
    return len(sample).to_bytes(4, "big") + sample


def _serve() -> None:
    """Answer until the last who can ask has closed our input."""
    import signal  # noqa: PLC0415 - the rest is for this process alone

    import pygfried  # noqa: PLC0415

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for who asks; we end when it does
    while head := sys.stdin.buffer.read(4):
        sample = sys.stdin.buffer.read(int.from_bytes(head, "big"))
        descriptor = os.memfd_create("payload")  # siegfried reads files only: this one is in memory, and has no name
        with open(descriptor, "wb") as file:
            file.write(sample)
            file.flush()
            answer = pygfried.identify(f"/proc/self/fd/{descriptor}", detailed=True)
        sys.stdout.write(f"{json.dumps(answer)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _serve()
