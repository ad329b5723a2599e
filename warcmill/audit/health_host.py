"""Check this host apart from its roots: several workers can run, secrets are secret, notices can be sent."""

from __future__ import annotations

import multiprocessing
import os
import socket
import stat as modes
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

from warcmill.audit.health import Check, Level
from warcmill.clients import notice
from warcmill.clients.notice import Channels, Notice, Trouble
from warcmill.errors import Unavailable
from warcmill.stores import temporary

PATIENCE = 5  # seconds to wait for a connection
SHARED = Path("/dev/shm")  # noqa: S108 - for semaphores; Warcmill writes no file there
_TEST = Trouble("", "test", "doctor", "a test that somebody asked for: nothing is wrong, and nothing is to be done")


def check_workers() -> Check:
    """Check that processes can share a semaphore: `luigi --workers N` needs /dev/shm for that."""
    name, todo = "workers", f"mount a tmpfs on {SHARED} that this user may write; until then run luigi with --workers 1"
    if SHARED.is_dir() and not os.access(SHARED, os.W_OK | os.X_OK):
        return Check(name, Level.FAIL, f"{SHARED} cannot be written: several workers could not start", todo)
    try:
        multiprocessing.Lock()
    except (OSError, ImportError) as error:
        return Check(name, Level.FAIL, f"processes cannot share a lock in {SHARED}: {error}", todo)
    return Check(name, Level.OK, f"several can run: processes share locks in {SHARED}")


def check_secret(name: str, path: str) -> Check:
    """Check that a file with a secret exists, and that only its owner can read or write it (0600)."""
    try:
        status = os.stat(path)
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
    except OSError as error:
        return Check(
            name, Level.FAIL, f"{path}: {error.strerror or error}", "make it, readable only by this user (0600)"
        )
    mode = modes.S_IMODE(status.st_mode)
    if mode & 0o077:
        return Check(
            name, Level.WARN, f"{path} may be read or written by others: its mode is {mode:04o}", f"chmod 600 {path}"
        )
    return Check(name, Level.OK, f"{path} can be read and written only by its owner")


def check_channels(channels: Channels, send: bool) -> Iterator[Check]:
    """Check that the servers for notices answer; with `send`, that each accepts a test notice."""
    if channels.mail_to:
        place = channels.smtp_host, channels.smtp_port
        yield _check("mail", place, channels, notice.send_mail if send else None)
    if channels.webhook:
        url = urlsplit(channels.proxy or channels.webhook)
        place = url.hostname or "", url.port or (443 if url.scheme == "https" else 80)
        yield _check("webhook", place, channels, notice.send_webhook if send else None)


def _check(
    name: str, place: tuple[str, int], channels: Channels, send: Callable[[Channels, Notice], None] | None
) -> Check:
    where = f"{place[0]}:{place[1]}"  # never the URL: it may hold a secret
    key = "smtp_host and smtp_port" if name == "mail" else "webhook"
    try:
        if send:
            send(channels, Notice("doctor", "--notice", temporary.host(), (_TEST,), "warcmill doctor"))
        else:
            socket.create_connection(place, PATIENCE).close()
    except Unavailable as error:
        return Check(name, Level.FAIL, str(error), f"see [notice] {key}, and the server's log")
    except OSError as error:
        return Check(name, Level.FAIL, f"nothing answers at {where}: {error.strerror or error}", f"see [notice] {key}")
    text = f"{where} took a test notice; see that it arrives" if send else f"{where} answers; to send a test: --notice"
    return Check(name, Level.OK, text)
