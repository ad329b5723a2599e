"""Checks of this host and of the roots of a line. They write and remove a probe in each root, and send a test if asked.

The roots exist, are mounted, writable where needed, and have free space; several workers can run, secrets are secret,
notices can be sent.
"""

from __future__ import annotations

import hashlib
import io
import os
import secrets
import socket
import stat as modes
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from msgspec import Struct

from warcmill.audit import remedies
from warcmill.base import clock
from warcmill.errors import BadConfig, BadInput, Mismatch, NotReady, Unavailable
from warcmill.markers.state import SCRATCH
from warcmill.model import Root, is_writer
from warcmill.stores import Stat, Store, temporary_names
from warcmill.stores.file import FileStore
from warcmill.stores.opening import Access, open_store, prove
from warcmill.stores.sentinel import OWN

if TYPE_CHECKING:
    from warcmill.clients.notice import Channels, Notice

GIB = 1 << 30
LITTLE, TOO_LITTLE = 10 * GIB, 1 * GIB  # bytes free
FEW_INODES = 10_000
_PROBE = b"warcmill doctor\n"
SKEW = 5  # seconds; greatest difference between this clock and a file server's
MOST_ENTRIES = 200_000  # entries checked for litter; a full walk of an archive would take too long


class Level(StrEnum):
    """The result of a check."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Check(Struct, frozen=True):
    """One check: what was checked, its result in words, and what to do next ('' for nothing)."""

    name: str
    level: Level
    text: str
    todo: str = ""


def check_roots(folders: Mapping[Root, Path], retire: bool) -> Iterator[Check]:
    """Check the local roots. A root that is not there gets one check, and none of its contents.

    `retire`: the configuration lets WARCs be removed, so engines' and writers' roots must be writable.
    """
    for root, base in folders.items():
        name = f"root {root}"
        try:
            entries = _entries(root, base)
        except (Unavailable, BadConfig) as error:
            yield Check(name, Level.FAIL, str(error), remedies.ROOT)
            continue
        yield _readable(name, base, [base / entry.path for entry in entries if entry.kind == "folder"])
        if root in OWN:
            yield from check_own(root, base)
        if retire and (root == "output" or is_writer(root)) and not os.access(base, os.W_OK):
            yield Check("retire", Level.FAIL, f"{base} cannot be written", "retire=false, or let this user write there")


def check_remote(root: Root, url: str, access: Access) -> Check:
    """Check that a root on another host exists; in the store also that a file can be published and removed again."""
    name = f"root {root}"
    try:
        store = open_store(root, url, access)
        if root not in OWN:
            return Check(name, Level.OK, f"{url} is there, with {len(list(store.list('')))} entries")
        path = f"doctor.{secrets.token_hex(8)}"
        store.commit_new(path, io.BytesIO(_PROBE), len(_PROBE), hashlib.sha512(_PROBE).hexdigest())
        written = store.stat(path)
        assert written is not None, f"{path} was published"
        store.remove(path, written)
        server = prove(store)
    except (Unavailable, BadConfig, Mismatch) as error:
        return Check(name, Level.FAIL, str(error), "make it reachable, or correct luigi.cfg")
    proven = f"; {server} replaces nothing, and refuses wrong bytes" if server else ""
    return Check(name, Level.OK, f"{url} is there; a file was published in it and removed again{proven}")


def _entries(root: Root, base: Path) -> list[Stat]:
    if not base.is_absolute():
        raise BadConfig(f"[warcmill] {root}", f"'{base}' is not an absolute path")
    return list(islice(FileStore(root, base).list(""), MOST_ENTRIES))


def _readable(name: str, base: Path, folders: list[Path]) -> Check:
    unreadable = [folder for folder in folders if not os.access(folder, os.R_OK | os.X_OK)]
    if unreadable:
        return Check(name, Level.FAIL, f"{unreadable[0]} cannot be read", "give this user the right to read it")
    return Check(name, Level.OK, f"{base} is there, and can be read")


def check_own(root: Root, base: Path) -> Iterator[Check]:
    """Check a folder in which the line writes: files can be written, synced and linked, and there is room."""
    yield from _probe(root, base)
    yield _space(root, base)
    yield _litter(root, base)
    scratch = base / SCRATCH
    if root == "state" and scratch.exists() and scratch.stat().st_dev != base.stat().st_dev:
        yield Check("scratch", Level.FAIL, f"{scratch} is on another disk than {base}", "remove the link or mount")


def _probe(root: Root, base: Path) -> Iterator[Check]:
    """Write, sync and link a file, as publishing does. Then compare the file's time with the clock."""
    name = f"write {root}"
    files = [base / temporary_names.name("doctor") for _ in range(2)]
    try:
        with files[0].open("xb") as file:
            os.fsync(file.fileno())
        os.link(*files)
        skew = round(abs(files[0].stat().st_mtime - time.time()))
    except OSError as error:
        todo = "this user must be able to write there, and the file system must have hard links"
        yield Check(name, Level.FAIL, f"{base}: {error.strerror or error}", todo)
        return
    finally:
        for path in files:
            with suppress(OSError):
                path.unlink()
    yield Check(name, Level.OK, "files can be written, synced and linked")
    if skew > SKEW:
        text = f"this machine's clock and that of {base} are {skew} seconds apart"
        yield Check(f"clock {root}", Level.WARN, text, "synchronise both (NTP)")


def _space(root: Root, base: Path) -> Check:
    name, disk = f"space {root}", os.statvfs(base)
    free = disk.f_bavail * disk.f_frsize
    text = f"{free // GIB} GiB free of {disk.f_blocks * disk.f_frsize // GIB}"
    if disk.f_files and disk.f_favail < FEW_INODES:
        return Check(name, Level.WARN, f"{text}, and only {disk.f_favail} inodes", "make room")
    level = Level.FAIL if free < TOO_LITTLE else Level.WARN if free < LITTLE else Level.OK
    return Check(name, level, text, "" if level is Level.OK else "make room: a step that finds the disk full fails")


def _litter(root: Root, base: Path) -> Check:
    """Count half-written files that killed processes of this host left."""
    walk = (name for _, folders, files in os.walk(base) for name in (*folders, *files))
    names = list(islice(walk, MOST_ENTRIES))
    dead = sum(temporary_names.is_dead(name) for name in names)
    part = f" among the first {MOST_ENTRIES:,} entries" if len(names) == MOST_ENTRIES else ""
    if dead:
        text = f"{dead} half-written by processes that are gone{part}"
        return Check(f"litter {root}", Level.WARN, text, "nothing: the next run of their steps removes them")
    return Check(f"litter {root}", Level.OK, f"none{part}")


def check_clock(known: Path) -> Check:
    """Check that the clock is not behind the time of a file that already exists."""
    written = known.stat().st_mtime
    behind = round(written - time.time())
    if behind > SKEW:
        return Check("clock", Level.FAIL, f"it is {behind} seconds behind the time of {known}", "set the clock (NTP)")
    return Check("clock", Level.OK, clock.now())


def check_jobs(jobs: Store, names: Iterable[str]) -> Iterator[Check]:
    """Check the configuration of each job that an engine of this line crawls. The engine's own profile lacks much."""
    from warcmill.clients.heritrix.job import CONFIGURATION  # noqa: PLC0415 pages and `health` use the levels alone
    from warcmill.formats.profile import LARGEST  # noqa: PLC0415

    for job in names:
        path = f"{job}/{CONFIGURATION}"
        try:
            with jobs.open(path) as file:
                data = file.read(LARGEST + 1)
        except NotReady:
            yield Check(f"job {job}", Level.WARN, f"jobs:{path} is not there", "make the job, or feed it")
        except Unavailable as error:
            yield Check(f"job {job}", Level.FAIL, str(error), "see the jobs root")
        else:
            yield check_profile(f"job {job}", data, f"jobs:{path}")


def check_profile(name: str, data: bytes, path: str) -> Check:
    """Check that a crawler-beans.cxml lets the engine write all that the line and an archive need."""
    from warcmill.formats import profile  # noqa: PLC0415

    todo = f"correct {path}; config/heritrix/profile.cxml shows how"
    try:
        faults = list(profile.faults(data, path))
    except BadInput as error:
        return Check(name, Level.FAIL, str(error), todo)
    if faults:
        return Check(name, Level.FAIL, f"{path}: {'; '.join(faults)}", todo)
    return Check(name, Level.OK, f"{path} has all that the line needs")


PATIENCE = 5  # seconds to wait for a connection
SHARED = Path("/dev/shm")  # noqa: S108 - for semaphores; Warcmill writes no file there
_TEST = "a test that somebody asked for: nothing is wrong, and nothing is to be done"


def check_workers() -> Check:
    """Check that processes can share a semaphore: `luigi --workers N` needs /dev/shm for that."""
    import multiprocessing  # noqa: PLC0415

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
    from warcmill.clients import notice  # noqa: PLC0415

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
            from warcmill.clients.notice import Notice, Trouble  # noqa: PLC0415

            test = Trouble("", "test", "doctor", _TEST)
            send(channels, Notice("doctor", "--notice", temporary_names.host(), (test,), "warcmill doctor"))
        else:
            socket.create_connection(place, PATIENCE).close()
    except Unavailable as error:
        return Check(name, Level.FAIL, str(error), f"see [notice] {key}, and the server's log")
    except OSError as error:
        return Check(name, Level.FAIL, f"nothing answers at {where}: {error.strerror or error}", f"see [notice] {key}")
    text = f"{where} took a test notice; see that it arrives" if send else f"{where} answers; to send a test: --notice"
    return Check(name, Level.OK, text)
