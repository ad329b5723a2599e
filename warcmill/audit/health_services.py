"""Checks of the services that a line uses: a clamd, and the places where SIPs go. They write test files.

A clamd answers, and has the limits of the configuration: proved with the EICAR test file. That is put into a tar,
which is filled up to the wanted length, since the file itself may not be longer than 128 bytes. For the limit of files
the tar is sent as gzip: it is then a file inside a short stream.

The destination of SIPs is there, can be written, and its watched folder is on the same disk; the folder where they are
read again is there, and can be read.
"""

from __future__ import annotations

import io
import os
import tarfile
import zlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from msgspec.structs import replace

from warcmill.audit.health import MOST_ENTRIES, Check, Level, check_remote, check_roots
from warcmill.clients.clamd import CHUNK, LIMITS, TOO_LONG, Clamd
from warcmill.errors import BadConfig, Unavailable
from warcmill.layout import INGEST, RECEIPTS, STAGING
from warcmill.model import Root
from warcmill.stores.opening import Access, is_remote, open_other

NAME = "viruses"
# As hex: other scanners take a file away that has the text itself.
EICAR = bytes.fromhex(
    "58354f2150254041505b345c505a58353428505e2937434329377d24"
    "45494341522d5354414e444152442d414e544956495255532d544553542d46494c452124482b482a"
)
_UNDER = "set it in [viruses] as in clamd.conf, restart clamd, run 'warcmill doctor' again"


def check_clamd(clamd: Clamd, stream_max_length: int, max_file_size: int) -> Iterator[Check]:
    """Check that it answers and knows the test file, then each limit, in bytes, by a stream at it and one over it."""
    try:
        version = clamd.version()
        yield _version(clamd, version)
        if not _scan(clamd, _tar(0)):
            todo = "give it ClamAV's databases (freshclam), or a signature of the EICAR test file"
            yield Check(NAME, Level.FAIL, "it does not know the EICAR test file: its limits cannot be proved", todo)
            return
        yield _stream_limit(clamd, stream_max_length)
        yield _file_limit(clamd, max_file_size)
    except Unavailable as error:
        todo = "start it, or correct [viruses] clamd; until then no stage is scanned"
        yield Check(NAME, Level.FAIL, str(error), todo)


def _version(clamd: Clamd, version: str) -> Check:
    if "/" in version:
        return Check(NAME, Level.OK, f"{clamd} answers: {version}")
    text = f"{clamd} answers: {version}, without a database of ClamAV's own"
    return Check(NAME, Level.WARN, text, "run freshclam, unless the signatures of your own are all that you want")


def _stream_limit(clamd: Clamd, limit: int) -> Check:
    if _is_too_long(clamd, limit):
        text = f"clamd refuses a stream of [viruses] stream_max_length, {limit} bytes: its StreamMaxLength is smaller"
        return Check(NAME, Level.FAIL, text, _UNDER)
    if not _is_too_long(clamd, limit + 1):
        text = f"clamd takes streams over [viruses] stream_max_length, {limit} bytes, which are not sent to it"
        return Check(NAME, Level.WARN, text, "raise it to StreamMaxLength of clamd.conf")
    return Check(NAME, Level.OK, f"stream_max_length is clamd's StreamMaxLength, {limit} bytes")


def _is_too_long(clamd: Clamd, size: int) -> bool:
    try:
        _scan(clamd, _tar(size))
    except Unavailable as error:
        if TOO_LONG in error.why:
            return True
        raise
    return False


def _file_limit(clamd: Clamd, limit: int) -> Check:
    at, over = _scan(clamd, _gzip(_tar(limit))), _scan(clamd, _gzip(_tar(limit + 1)))
    if not at or at.startswith(LIMITS):
        text = f"clamd does not scan a file of [viruses] max_file_size, {limit} bytes: its MaxFileSize is smaller"
        return Check(NAME, Level.FAIL, text, _UNDER)
    if not over:
        text = f"AlertExceedsMax is off: clamd answers OK to a file over its MaxFileSize, {limit} bytes, unscanned"
        return Check(NAME, Level.FAIL, text, "set 'AlertExceedsMax yes' in clamd.conf, restart clamd")
    if not over.startswith(LIMITS):
        text = f"clamd scans files over [viruses] max_file_size, {limit} bytes, and they are called not scanned"
        return Check(NAME, Level.WARN, text, "raise it to MaxFileSize of clamd.conf: this also proves AlertExceedsMax")
    return Check(NAME, Level.OK, f"max_file_size is clamd's MaxFileSize, {limit} bytes; AlertExceedsMax is on")


def _scan(clamd: Clamd, pieces: Iterator[bytes]) -> str:
    """The name of what clamd finds in a stream."""
    stream = clamd.stream()
    try:
        for piece in pieces:
            stream.send(piece)
        stream.end()
        return stream.signature()
    finally:
        stream.close()


def _tar(size: int) -> Iterator[bytes]:
    """A tar with the test file, filled with zeros up to `size` bytes."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        member = tarfile.TarInfo("eicar.com")
        member.size = len(EICAR)
        tar.addfile(member, io.BytesIO(EICAR))
    begin = made.getvalue()
    begin = begin[: min(len(begin), max(size, 2 * tarfile.BLOCKSIZE))]
    yield begin
    left = size - len(begin)
    while left > 0:
        piece = bytes(min(left, CHUNK))
        left -= len(piece)
        yield piece


def _gzip(pieces: Iterator[bytes]) -> Iterator[bytes]:
    deflate = zlib.compressobj(1, wbits=31)
    for piece in pieces:
        yield deflate.compress(piece)
    yield deflate.flush()


_TODO = "make it reachable, or correct [package] destination; a new one: warcmill init --adopt package"
_VERIFIED_AT: Root = "verified_at"


def check_destination(place: str, access: Access) -> Iterator[Check]:
    """Check a destination, a folder or a URL."""
    if is_remote(place):
        checks = [check_remote("destination", place, access)]
    else:
        checks = [*check_roots({"destination": Path(place)}, retire=False), *_folders(Path(place))]
    for check in checks:
        is_lost = (check.name, check.level) == ("root destination", Level.FAIL)
        yield replace(check, todo=_TODO) if is_lost else check


def check_verified_at(place: str, access: Access) -> Check:
    """Check that the folder or URL where the ingesting system puts SIPs is there, and can be read."""
    name = f"root {_VERIFIED_AT}"
    try:
        _list(place, access)
    except (Unavailable, BadConfig) as error:
        todo = "make it reachable, and let this user read it; or correct [package] verified_at"
        return Check(name, Level.FAIL, str(error), todo)
    return Check(name, Level.OK, f"{place} is there, and can be read")


def _list(place: str, access: Access) -> None:
    """List the folder, or Unavailable. A remote store lists nothing for one that is not there."""
    store = open_other(_VERIFIED_AT, place, access)
    there = store.stat("") if is_remote(place) else None
    if is_remote(place) and (there is None or there.kind == "file"):
        raise Unavailable(place, "there is no such folder")
    list(islice(store.list(""), MOST_ENTRIES))
    if not is_remote(place) and not os.access(place, os.R_OK | os.X_OK):
        raise Unavailable(place, "this user cannot read it")


def _folders(base: Path) -> Iterator[Check]:
    """The folders that are there already: a SIP is renamed from one into another, which needs one disk."""
    for folder in (base / name for name in (INGEST, STAGING, RECEIPTS)):
        if not folder.is_dir():
            continue  # made with the first SIP
        if not os.access(folder, os.W_OK | os.X_OK):
            todo = "let this user write there, too"
            yield Check("submission", Level.FAIL, f"{folder} cannot be written", todo)
        elif folder.stat().st_dev != base.stat().st_dev:
            todo = "use one disk: a SIP is renamed into the watched folder, so that it is never seen half-copied"
            yield Check("submission", Level.FAIL, f"{folder} is on another disk than {base}", todo)
