"""Names of half-written files: they say whose they are, so that a host sweeps only its own dead ones.

.{name}.{host}.{boot}.{pid}.{random}.tmp
"""

from __future__ import annotations

import os
import re
import secrets
import socket
from functools import cache
from pathlib import Path

_NAME = re.compile(r"\..*\.(?P<host>[^.]*)\.(?P<boot>[^.]*)\.(?P<pid>[0-9]+)\.[0-9a-f]{8}\.tmp", re.DOTALL)
_ROOM = 120  # bytes left for the name itself: the whole stays below 255


def name(target: str) -> str:
    """A temporary name beside `target` that no other process will choose."""
    kept = target.encode("utf-8", "surrogateescape")[:_ROOM].decode("utf-8", "surrogateescape")
    return f".{kept}.{host()}.{_boot()}.{os.getpid()}.{secrets.token_hex(4)}.tmp"


def is_temporary(candidate: str) -> bool:
    """Whether a file so named is half-written, whoever's it is."""
    return _NAME.fullmatch(candidate) is not None


def is_dead(candidate: str) -> bool:
    """Whether it was left by a process of this host that is no more."""
    found = _NAME.fullmatch(candidate)
    if not found or found["host"] != host():
        return False
    return found["boot"] != _boot() or not _alive(int(found["pid"]))


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return not _is_zombie(pid)


def _is_zombie(pid: int) -> bool:
    """A killed process that nobody has reaped yet still has its number, and no file (proc(5), /proc/pid/stat)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(b") ")[2][:1] in b"ZX"


@cache
def host() -> str:
    """This host's name, in one word and at most 60 characters."""
    return re.sub(r"[^A-Za-z0-9-]", "_", socket.gethostname())[:60]


@cache
def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text()[:8]
    except FileNotFoundError:  # a system without it: all its processes count as of one boot
        return "0"
