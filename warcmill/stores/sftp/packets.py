"""Encode and decode packets of SFTP version 3 (draft-ietf-secsh-filexfer-02), without I/O.

Names are bytes here: a server's disk may have names that are not UTF-8.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import IntEnum

from msgspec import Struct

from warcmill.errors import Unavailable

LARGEST = 1 << 20  # bytes of one packet; OpenSSH sends at most 256 KiB
VERSION = 3


class Type(IntEnum):
    """The type of a packet (section 3)."""

    INIT = 1
    VERSION = 2
    OPEN = 3
    CLOSE = 4
    READ = 5
    WRITE = 6
    LSTAT = 7
    FSTAT = 8
    OPENDIR = 11
    READDIR = 12
    REMOVE = 13
    MKDIR = 14
    RENAME = 18
    STATUS = 101
    HANDLE = 102
    DATA = 103
    NAME = 104
    ATTRS = 105
    EXTENDED = 200


class Code(IntEnum):
    """The code of a STATUS (section 7). FAILURE may mean anything: check the result of the request."""

    OK = 0
    EOF = 1
    NO_SUCH_FILE = 2
    PERMISSION_DENIED = 3
    FAILURE = 4


READ, WRITE_NEW = 0x01, 0x02 | 0x08 | 0x20  # pflags of OPEN (section 6.3)
_HAS_SIZE, _HAS_OWNER, _HAS_MODE, _HAS_TIMES = 1, 2, 4, 8
_NO_ATTRIBUTES = b"\0\0\0\0"


class Attributes(Struct, frozen=True):
    """The attributes of a file (section 5): `size` in bytes, `mode` as in stat(2), `mtime` in seconds."""

    size: int
    mode: int
    mtime: int


class PacketFields:
    """The fields of a packet, read one after the other. Unavailable when the packet is shorter than its fields."""

    def __init__(self, data: bytes | memoryview) -> None:
        self._data, self._at = memoryview(data), 0

    def number(self) -> int:
        """Read a uint32."""
        (value,) = struct.unpack(">I", self._take(4))
        return int(value)

    def long(self) -> int:
        """Read a uint64."""
        (value,) = struct.unpack(">Q", self._take(8))
        return int(value)

    def string(self) -> bytes:
        """Read a length, and so many bytes."""
        return bytes(self.view())

    def view(self) -> memoryview:
        """Read a string without copying it."""
        return self._take(self.number())

    def attributes(self) -> Attributes:
        """Read ATTRS: only the fields whose flag is set are present."""
        flags, size, mode, mtime = self.number(), 0, 0, 0
        if flags & _HAS_SIZE:
            size = self.long()
        if flags & _HAS_OWNER:
            self._take(8)
        if flags & _HAS_MODE:
            mode = self.number()
        if flags & _HAS_TIMES:
            self._take(4)
            mtime = self.number()
        if flags >> 31:
            for _ in range(min(self.number(), LARGEST)):
                self.view(), self.view()
        return Attributes(size, mode, mtime)

    def names(self) -> Iterator[tuple[bytes, Attributes]]:
        """Read NAME: the entries of a folder, without '.' and '..'."""
        for _ in range(self.number()):
            name = self.string()
            self.view()  # the entry as `ls -l` prints it
            attributes = self.attributes()
            if name not in (b".", b".."):
                yield name, attributes

    def rest(self) -> Iterator[bytes]:
        """Read all remaining strings."""
        while self._at < len(self._data):
            yield self.string()

    def _take(self, size: int) -> memoryview:
        taken = self._data[self._at : self._at + size]
        if len(taken) < size:
            raise Unavailable("the SFTP server", "sent a packet that is shorter than its stated length")
        self._at += size
        return taken


def packet(kind: Type, number: int, *fields: bytes) -> bytes:
    """Return a request: its type, its number, its fields."""
    body = b"".join((struct.pack(">BI", kind, number), *fields))
    return struct.pack(">I", len(body)) + body


def init() -> bytes:
    """Return the first packet of a session."""
    return struct.pack(">IBI", 5, Type.INIT, VERSION)


def string(data: bytes | memoryview) -> bytes:
    """Return a string field: a length, and the bytes."""
    return struct.pack(">I", len(data)) + bytes(data)


def numbers(*values: int) -> bytes:
    """Return uint32 fields."""
    return struct.pack(f">{len(values)}I", *values)


def long(value: int) -> bytes:
    """Return a uint64 field."""
    return struct.pack(">Q", value)


def opening(path: bytes, flags: int) -> tuple[bytes, ...]:
    """Return the fields of OPEN."""
    return string(path), numbers(flags), _NO_ATTRIBUTES


def making(path: bytes) -> tuple[bytes, ...]:
    """Return the fields of MKDIR."""
    return string(path), _NO_ATTRIBUTES
