"""A writer of a BagIt 1.0 bag's tag files (RFC 8493): the payload is elsewhere, its digests are known. Pure.

So the tag files can come first in a stream, and who reads it checks the payload in one pass. Paths are those in the
bag, `data/...`, in UTF-8; CR, LF and '%' in them are written as %0D, %0A and %25, and nothing else is (2.1.3).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final, NamedTuple, Protocol

from msgspec import Struct

from warcmill.errors import BadInput
from warcmill.formats.sip.tar import Make, PackageDocument, measured

DECLARATION: Final = b"BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"  # 2.1.1
PROFILE: Final = "https://warcmill.example/bagit-profile.json"  # names config/bagit-profile.json: not on the web
PAYLOAD: Final = "data/"
MANIFEST: Final = "manifest-sha512.txt"
TAG_MANIFEST: Final = "tagmanifest-sha512.txt"
_LINES = 512  # a chunk
_ENCODED = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_RESERVED = re.compile("[%\r\n]")
_LABEL = re.compile(r"[!-9;-~](?:[ -9;-~]*[!-9;-~])?")  # printable, without a colon, no space at an end
_BREAK = re.compile(r"\s*[\r\n\x0b\x0c\x1c-\x1e\x85\u2028\u2029]\s*")


class PayloadFile(NamedTuple):  # cheap to make: a bag of 100,000 files has them made several times
    """A payload file: its path in the bag. With a `url` it is not in the bag, but has to be fetched from there."""

    path: str
    size: int
    sha512: str
    url: str = ""


class BagPayload(Protocol):
    """Payload files that can be gone through several times: a list, or what makes them each time."""

    def __iter__(self) -> Iterator[PayloadFile]: ...


def tag_files(about: Iterable[tuple[str, str]], payload: BagPayload, make: Make = measured) -> list[PackageDocument]:
    """Return the tag files by name, for a payload in the order given.

    bag-info.txt gets `about`, label and value, in its order; then Payload-Oxum and Bag-Size. There is a fetch.txt if
    any file has a URL. BadInput for a label or a URL that a reader would take for another, and a path outside data/.
    """
    totals = _Totals()
    manifest = make(MANIFEST, partial(_encoded, partial(_manifest_lines, payload, totals)))
    oxum = f"{totals.size}.{totals.files}"
    fields = [*about, ("Payload-Oxum", oxum), ("Bag-Size", readable_size(totals.size))]
    made = [
        manifest,
        make("bagit.txt", partial(iter, (DECLARATION,))),
        make("bag-info.txt", partial(_encoded, partial(map, _field, fields))),
    ]
    if totals.fetched:
        made.append(make("fetch.txt", partial(_encoded, partial(_fetch_lines, payload))))
    tags = [PayloadFile(tag.path, tag.size, tag.sha512) for tag in made]
    made.append(make(TAG_MANIFEST, partial(_encoded, partial(map, _tag_line, sorted(tags, key=_path)))))
    return sorted(made, key=lambda document: document.path)


class _Totals(Struct):
    """Bytes and files, as the Payload-Oxum has them (2.2.2); and how many of these files have to be fetched."""

    size: int = 0
    files: int = 0
    fetched: int = 0


def readable_size(size: int) -> str:
    """Return a Bag-Size: the payload's size in bytes for human eyes, in steps of 1,000."""
    steps = [(10**power, unit) for power, unit in ((15, "PB"), (12, "TB"), (9, "GB"), (6, "MB"), (3, "kB"))]
    for step, unit in steps:
        if size >= step:
            return f"{size // step}.{size % step * 10 // step} {unit}"
    return f"{size} bytes"


def encode_path(path: str) -> str:
    """Return a path as manifests and fetch.txt have it."""
    if "%" in path or "\r" in path or "\n" in path:  # of few paths: asking takes a tenth of the time
        return _RESERVED.sub(lambda found: _ENCODED[found[0]], path)
    return path


def _field(field: tuple[str, str]) -> str:
    """A line of bag-info.txt, never wrapped. A line break in a value becomes a space: readers differ on it."""
    label, value = field
    if not _LABEL.fullmatch(label):
        raise BadInput("bag-info.txt", f"{label!r} is not a label: it must be printable ASCII without a colon")
    return f"{label}: {_BREAK.sub(' ', value).strip()}\n"


def _manifest_lines(payload: BagPayload, totals: _Totals) -> Iterator[str]:
    """The lines of the manifest; `totals` counts the payload while they are made."""
    totals.size = totals.files = totals.fetched = 0
    for path, size, sha512, url in payload:
        if not path.startswith(PAYLOAD):
            raise BadInput(path, f"is not a path of a payload: it does not begin with {PAYLOAD}")
        totals.size += size
        totals.files += 1
        totals.fetched += bool(url)
        yield f"{sha512}  {encode_path(path)}\n"


def _tag_line(entry: PayloadFile) -> str:
    return f"{entry.sha512}  {encode_path(entry.path)}\n"


def _fetch_lines(payload: Iterable[PayloadFile]) -> Iterator[str]:
    for path, size, _, url in payload:
        if url:
            if url.split() != [url]:  # 2.2.3: percent-encoded by who knows the URL
                raise BadInput(path, f"its URL has white space in it: {url!r}; write it percent-encoded")
            yield f"{url} {size} {encode_path(path)}\n"


def _encoded(lines: Callable[[], Iterable[str]]) -> Iterator[bytes]:
    held: list[str] = []
    for line in lines():
        held.append(line)
        if len(held) == _LINES:
            yield "".join(held).encode()
            held.clear()
    yield "".join(held).encode()


def _path(entry: PayloadFile) -> str:
    return entry.path
