"""The walls around scripts: no network, no file but Python's and a little scratch, no environment, few processes.

A script is a text that a page can edit, so whoever may save one must not have a shell on the archive. The walls are
bubblewrap's: namespaces of the kernel, without a daemon. As root the worker takes the place of another user, since the
kernel bounds the processes of every user but root; any other user gets a namespace of users instead.
`can_stand` starts one process.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import warcmill
from warcmill.base.worker import WorkerLimits
from warcmill.errors import BadConfig

SCRATCH = 16 << 20  # bytes
NOBODY = 65534
SECONDS = 30  # of one callback; `LIMITS` leave it time to name what it was at
LIMITS = WorkerLimits(cpu=SECONDS + 5, wall=SECONDS + 10, memory=1 << 30, file=SCRATCH, processes=64)
_PROGRAM, _PATIENCE = "bwrap", 30
_WITHOUT = "or set 'walls = none' in [scripts] of luigi.cfg: then whoever may save a script has a shell on the archive"
_WHAT = "the walls of scripts"


def command(*, walls: bool) -> tuple[str, ...]:
    """The words that begin a worker; BadConfig if it is to be within walls and no program makes them."""
    worker = (sys.executable, "-P", "-m", "warcmill.scripts.walled.worker")
    if not walls:
        return (*worker, "open")
    program = shutil.which(_PROGRAM)
    if program is None:
        raise BadConfig(_WHAT, f"there is no program {_PROGRAM}; install the package bubblewrap, {_WITHOUT}")
    is_root = os.geteuid() == 0
    binds = [word for path in _pythons() for word in (*_open_to_all(path), "--ro-bind", path, path)]
    return (
        program, *(_AS_ROOT if is_root else _AS_USER), "--die-with-parent", "--new-session", "--clearenv",
        "--setenv", "LANG", "C.UTF-8", *_system(), *binds, "--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev",
        "--perms", "1777", "--size", str(SCRATCH), "--tmpfs", "/tmp", "--chdir", "/tmp", "--remount-ro", "/",  # noqa: S108 - its own
        *worker, "root" if is_root else "walls",
    )  # fmt: skip


def check(*, walls: bool) -> None:
    """BadConfig, with the reason, if a worker cannot begin."""
    words = command(walls=walls)
    try:
        ended = subprocess.run(  # noqa: S603 - our own module
            [*words, "try"], stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE, check=False, env={}
        )
    except subprocess.TimeoutExpired as error:
        raise BadConfig(_WHAT, f"they do not stand within {_PATIENCE} s; start it again, {_WITHOUT}") from error
    if ended.returncode:
        said = ended.stderr.decode("utf-8", "replace").strip().splitlines()
        why = said[-1] if said else f"it ended with {ended.returncode}"
        raise BadConfig(
            _WHAT, f"they cannot stand on this machine ({why}); start it where namespaces are allowed, {_WITHOUT}"
        )


_COMMON = (
    "--unshare-ipc",
    "--unshare-pid",
    "--unshare-net",
    "--unshare-uts",
    "--unshare-cgroup-try",
    "--cap-drop",
    "ALL",
)
_AS_ROOT = (*_COMMON, "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID")
_AS_USER = (*_COMMON, "--unshare-user", "--disable-userns", "--uid", str(NOBODY), "--gid", str(NOBODY))


def _pythons() -> Iterator[str]:
    """The folders of Python, of what is installed for it, and of this program."""
    found = [sys.prefix, sys.base_prefix, sys.exec_prefix, str(Path(warcmill.__file__).parent)]
    resolved = sorted({*found, *(os.path.realpath(path) for path in found)})
    yield from (path for path in resolved if not _is_within(path, ["/usr", *(one for one in resolved if one != path)]))


def _open_to_all(path: str) -> Iterator[str]:
    """Make the folders above a path, which bubblewrap would make for their owner alone."""
    for folder in [*Path(path).parents][-2::-1]:
        yield from ("--perms", "0755", "--dir", str(folder))


def _is_within(path: str, folders: Iterable[str]) -> bool:
    return any(Path(path).is_relative_to(folder) for folder in folders)


def _system() -> Iterator[str]:
    """The libraries of the system, which Python needs."""
    yield from ("--ro-bind", "/usr", "/usr")
    for path in ("/lib", "/lib64", "/bin"):
        if os.path.islink(path):
            yield from ("--symlink", os.readlink(path), path)
        elif os.path.isdir(path):
            yield from ("--ro-bind", path, path)
    yield from ("--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache")
