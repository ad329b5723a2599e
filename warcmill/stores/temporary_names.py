"""Names of half-written files. They name their process, so that a host sweeps only those of its own dead processes.

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
_ROOM = 120  # bytes for the target's name: the whole stays below 255


def name(target: str) -> str:
    """Return a temporary name beside `target` that no other process will choose."""
    kept = target.encode("utf-8", "surrogateescape")[:_ROOM].decode("utf-8", "surrogateescape")
    return f".{kept}.{host()}.{_boot()}.{os.getpid()}.{secrets.token_hex(4)}.tmp"


def is_temporary(candidate: str) -> bool:
    """True for the name of a half-written file, of any host and process."""
    return _NAME.fullmatch(candidate) is not None


def is_own(candidate: str) -> bool:
    """True for the name of a half-written file of this process."""
    parts = _NAME.fullmatch(candidate)
    own = (host(), _boot(), str(os.getpid()))
    return parts is not None and (parts["host"], parts["boot"], parts["pid"]) == own


def is_dead(candidate: str) -> bool:
    """True for the name of a half-written file of a dead process of this host."""
    parts = _NAME.fullmatch(candidate)
    if not parts or parts["host"] != host():
        return False
    return parts["boot"] != _boot() or not _alive(int(parts["pid"]))


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return not _is_zombie(pid)


def _is_zombie(pid: int) -> bool:
    """True if a process is dead, but not reaped yet: it still has its number, but no open file (proc(5))."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(b") ")[2][:1] in b"ZX"


@cache
def host() -> str:
    """Return this host's name in one word, with at most 60 characters."""
    return re.sub(r"[^A-Za-z0-9-]", "_", socket.gethostname())[:60]


@cache
def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text()[:8]
    except FileNotFoundError:  # a system without it: all processes count as started since one boot
        return "0"
