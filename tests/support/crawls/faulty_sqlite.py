"""Let calls of an open SQLite database on its own files fail, as they do on a disk that is going bad.

No disk is broken: the method of SQLite's file (`sqlite3_io_methods`, https://sqlite.org/c3ref/io_methods.html) is
replaced by one that returns an I/O error. All above it is SQLite as it is.
"""

from __future__ import annotations

import _sqlite3
import ctypes
import sqlite3
from collections.abc import Callable

_METHODS, _OTHERS = ("xClose", "xRead", "xWrite", "xTruncate", "xSync"), 13
_FILE = {"database": 7, "log": 28}  # SQLITE_FCNTL_FILE_POINTER, SQLITE_FCNTL_JOURNAL_POINTER: that of the WAL
_ERRORS = {"xRead": 266, "xWrite": 778, "xSync": 1034, "xTruncate": 1546}  # SQLITE_IOERR_READ and so on
_ANSWER = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


class _Methods(ctypes.Structure):
    _fields_ = [
        ("iVersion", ctypes.c_int),
        *((name, ctypes.c_void_p) for name in _METHODS),
        ("others", ctypes.c_void_p * _OTHERS),
    ]


def failing(connection: sqlite3.Connection, file: str, method: str) -> Callable[[], int]:
    """Let a method of the `database`, or of its `log`, fail from now on; return what says how often it was called."""
    library = ctypes.CDLL(_sqlite3.__file__)
    opened = ctypes.c_void_p.from_address(id(connection) + object.__basicsize__)  # its first member: sqlite3 *db
    found = ctypes.c_void_p()
    assert library.sqlite3_file_control(opened, b"main", _FILE[file], ctypes.byref(found)) == sqlite3.SQLITE_OK
    place = ctypes.POINTER(_Methods).from_address(found.value or 0)
    broken, calls = _Methods.from_buffer_copy(place.contents), []

    @_ANSWER
    def fail(*_: object) -> int:
        calls.append(method)
        return _ERRORS[method]

    setattr(broken, method, ctypes.cast(fail, ctypes.c_void_p).value)
    _kept.append((broken, fail))
    place.contents = broken
    return lambda: len(calls)


_kept: list[object] = []
"""What SQLite still points to."""
