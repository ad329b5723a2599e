"""Damaged WARCs and ARCs, made by rule: each kind of damage at the begin, in the middle, at the end, and often."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from records.warcs import http, member, record, sha1, warcinfo

RECORDS = 9
_FILEDESC = (
    b"filedesc://x.arc 0.0.0.0 20161019234428 text/plain 69\n"
    b"1 0 Example\nURL IP-address Archive-date Content-type Archive-length\n\n\n"
)
_GARBAGE = b"\x00lost\xffbytes\n" * 9


class DamagedFile(NamedTuple):
    """A damaged file: the URLs of the pages that are readable; where its bad records are, and its odd ones."""

    name: str
    data: bytes
    found: frozenset[str]
    bad: tuple[int, ...]
    odd: tuple[int, ...]


class _Part(NamedTuple):
    """The bytes of a page's record in the file. `bad`: something bad is where they begin; `page`: where the page is, if
    it is readable; `odd`: it is odd; `lost`: where the part ends is not known, so that the next record is searched."""

    data: bytes
    page: int | None = None
    bad: bool = False
    odd: bool = False
    lost: bool = False


Damage = Callable[[bytes], _Part]


def url(number: int) -> str:
    """The URL of a page."""
    return f"http://damaged.example/{number}"


def _body(number: int) -> bytes:
    words = " ".join(f"{number * 7919 + word * 104729:x}" for word in range(60))
    return f"<html><title>Page {number}</title>cassowary {words}</html>".encode()


def warc_record(number: int) -> bytes:
    """A page in a WARC."""
    body = _body(number)
    block = http(body, b"Content-Type: text/html")
    made = record(block=block, payload=sha1(body), digest=sha1(block))
    return made.replace(b"http://gov.example/", url(number).encode())


def arc_record(number: int) -> bytes:
    """A page in an ARC."""
    block = http(_body(number), b"Content-Type: text/html")
    return b"%s 192.0.2.7 20161019234428 text/html %d\n%s\n" % (url(number).encode(), len(block), block)


def _crc(data: bytes) -> _Part:
    packed = member(data)
    return _Part(packed[:-8] + bytes([packed[-8] ^ 0xFF]) + packed[-7:], bad=True)


def _deflate(data: bytes) -> _Part:
    packed = member(data)
    return _Part(packed[:30] + b"\xff" * 30 + packed[60:], bad=True, lost=True)


def _empty(data: bytes) -> _Part:
    before = member(b"")
    return _Part(before + member(data), page=len(before), bad=True)


def _garbage(data: bytes) -> _Part:
    return _Part(_GARBAGE + data, page=len(_GARBAGE), bad=True, odd=True)


def _foreign_digest(data: bytes) -> _Part:
    return _Part(re.sub(rb"(?<=WARC-Block-Digest: sha1:).{8}", b"AAAAAAAA", data), bad=True)


def _length(off: int) -> Damage:
    """A Content-Length, or an ARC's length, that is so many bytes off."""
    pattern = re.compile(rb"(?<=Content-Length: )\d+(?=\r\n\r\n)|(?<=text/html )\d+(?=\n)")
    return lambda data: _Part(
        pattern.sub(lambda found: b"%d" % (int(found[0]) + off), data, count=1), bad=True, lost=True
    )


def _without_id(data: bytes) -> _Part:
    return _Part(re.sub(rb"WARC-Record-ID: .*\r\n", b"", data), page=0, odd=True)


def _packed(damage: Damage, *, page: int | None = None) -> Damage:
    """Damage within a sound gzip member, which says where the record ends."""

    def packed(data: bytes) -> _Part:
        part = damage(data)
        is_read = part.page is not None or page is not None
        return _Part(member(part.data), page=0 if is_read else None, bad=not is_read, odd=is_read)

    return packed


KINDS: dict[str, dict[str, Damage]] = {
    "warc.gz": {
        "crc": _crc,
        "deflate": _deflate,
        "empty": _empty,
        "digest": _packed(_foreign_digest),
        "short": _packed(_length(-3)),
        "long": _packed(_length(900)),
        "no-id": _packed(_without_id),
        "garbage": lambda data: _garbage(member(data)),
    },
    "warc": {
        "digest": _foreign_digest,
        "short": _length(-3),
        "long": _length(900),
        "no-id": _without_id,
        "garbage": _garbage,
    },
    "arc.gz": {
        "crc": _crc,
        "deflate": _deflate,
        "empty": _empty,
        "short": _packed(_length(-4), page=0),
        "long": _packed(_length(5), page=0),
        "garbage": lambda data: _garbage(member(data)),
    },
    "arc": {"short": _length(-4), "long": _length(900), "garbage": _garbage},
}
PLACES = {"begin": (1,), "middle": (4,), "end": (RECORDS - 1,), "many": (1, 2, 5, 6, 8)}


def _whole(kind: str, number: int) -> bytes:
    if number:
        made = warc_record(number) if kind.startswith("warc") else arc_record(number)
    else:
        made = warcinfo() if kind.startswith("warc") else _FILEDESC
    return member(made) if kind.endswith(".gz") else made


def _damaged(name: str, kind: str, damage: Damage, places: tuple[int, ...]) -> DamagedFile:
    data, found, bad, odd, lost = _whole(kind, 0), set[str](), list[int](), list[int](), False
    make = warc_record if kind.startswith("warc") else arc_record
    for number in range(1, RECORDS):
        part = damage(make(number)) if number in places else _Part(_whole(kind, number), page=0)
        if part.bad:
            bad.append(len(data))
        if part.page is not None:
            found.add(url(number))
            if part.odd or lost:
                odd.append(len(data) + part.page)
        data, lost = data + part.data, part.lost
    return DamagedFile(name, data, frozenset(found), tuple(bad), tuple(odd))


def corpus() -> Iterator[DamagedFile]:
    """Every kind of damage at every place, in every format."""
    for kind, damages in KINDS.items():
        for word, damage in damages.items():
            for place, numbers in PLACES.items():
                yield _damaged(f"{word}-{place}.{kind}", kind, damage, numbers)
        parts = [_whole(kind, number) for number in range(RECORDS)]
        data, pages = b"".join(parts), frozenset(map(url, range(1, RECORDS)))
        cut = pages - {url(RECORDS - 1)}
        yield DamagedFile(f"cut-end.{kind}", data[:-60], cut, (len(data) - len(parts[-1]),), ())
        yield DamagedFile(f"zeros-end.{kind}", data + bytes(700), pages, (len(data),), ())
