"""Read the last member of a zip from the zip's end only: fast enough for thousands of zips.

It accepts only a plain end, as `logzip.write` makes it, without ZIP64, extra fields or comments. For any other it
returns None, and `logzip.evidence` reads the whole zip. The fields are those of APPNOTE 4.3.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

_LOCAL = struct.Struct("<4s5H3L2H")  # 4.3.7
_MEMBER = struct.Struct("<4s6H3L5H2L")  # 4.3.12
_END = struct.Struct("<4s4H2LH")  # 4.3.16
_STORED, _DEFLATED = 0, 8  # 4.4.5
_ENCODINGS = {0: "ascii", 0x800: "utf-8"}  # by the flags, 4.4.4: no other bit may be set
_NEWEST = 20  # the version needed to extract deflated members, 4.4.3


@dataclass(frozen=True, slots=True)
class _Member:
    """A member as the directory lists it."""

    name: str
    flags: int
    method: int
    crc: int
    packed: int
    size: int
    offset: int


def last_member(end: bytes, size: int, name: str) -> bytes | None:
    """Return the bytes of a zip's last member, if it is stored uncompressed and has this name.

    `end` are the last bytes of the zip, `size` is its length. None if the member is another, or not
    all of it is within `end`, or the end is not plain.
    """
    cut = len(end) - _END.size
    if cut < 0:
        return None
    sign, disk, first_disk, here, count, length, start, comment = _END.unpack_from(end, cut)
    if (sign, disk, first_disk, here, comment, start + length) != (b"PK\5\6", 0, 0, count, 0, size - _END.size):
        return None
    members = _members(end[cut - length : cut]) if length <= cut else []
    if len(members) != count or not members or len({member.name for member in members}) < count:
        return None
    last = members[-1]
    if last.name != name or any(member.offset >= last.offset for member in members[:-1]):
        return None
    return _stored(end[: cut - length], last, start)


def _members(directory: bytes) -> list[_Member]:
    """The members that a directory lists; none if anything in it is not plain."""
    members, place = [], 0
    while place + _MEMBER.size <= len(directory):
        sign, _, needed, flags, method, _, _, crc, packed, size, length, extra, comment, disk, _, _, offset = (
            _MEMBER.unpack_from(directory, place)
        )
        place += _MEMBER.size + length
        raw = directory[place - length : place]
        if sign != b"PK\1\2" or needed > _NEWEST or extra or comment or disk or flags not in _ENCODINGS or b"\0" in raw:
            return []
        try:
            name = raw.decode(_ENCODINGS[flags])
        except UnicodeDecodeError:
            return []
        members.append(_Member(name, flags, method, crc, packed, size, offset))
    methods = {member.method for member in members}
    return members if place == len(directory) and methods <= {_STORED, _DEFLATED} else []


def _stored(before: bytes, last: _Member, start: int) -> bytes | None:
    """The last member's bytes, which end where the directory begins; None if its header or CRC does not match."""
    raw = last.name.encode()
    begin = len(before) - last.size - len(raw) - _LOCAL.size
    if last.method != _STORED or last.packed != last.size or begin < 0 or start - len(before) + begin != last.offset:
        return None
    sign, _, flags, *_, length, extra = _LOCAL.unpack_from(before, begin)
    data = before[len(before) - last.size :] if last.size else b""
    named = before[begin + _LOCAL.size : len(before) - last.size]
    sound = (sign, flags, length, extra, named) == (b"PK\3\4", last.flags, len(raw), 0, raw)
    return data if sound and zlib.crc32(data) == last.crc else None
