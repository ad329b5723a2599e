"""Files that pages hand over and take in: the WACZ that an action wrote, and uploads. Writes to their folder.

    {state}/web/files/{action}.wacz      what the action wrote, for who downloads it
    {state}/web/files/{action}.urls      the pages that were chosen for it
    {state}/web/files/{action}/{name}    what was uploaded, for the import that the action is
    {state}/web/files/{action}/          a trial of a job's pages: its papers, its crawl while that runs, its report
    {state}/web/files/{form}.list        a list of targets that a page has looked at, for who then imports it

All have the name of their action, and are kept for some days. An upload has its name once it is whole and durable: of
one that breaks off nothing is left, and of a server that was killed meanwhile the next one sweeps the rest.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from io import BytesIO
from pathlib import Path

from warcmill import layout
from warcmill.base import clock, disk
from warcmill.errors import BadInput, NotReady, Unavailable
from warcmill.stores import LocalStore, temporary_names
from warcmill.web.request import RefusedBody

FOLDER = "web/files"
SUFFIX = ".wacz"
KEPT_DAYS = 7
LARGEST_LIST = 24 << 20  # bytes
RESERVE = 1 << 28  # bytes of the disk that no upload takes: the state is on it
_DAY = 86_400
_OURS = re.compile(r"([0-9]{14}-[0-9a-f]{12})(\.wacz|\.urls|\.list)?")
_UPLOADED = re.compile(r"[^/\\\x00-\x1f\x7f.][^/\\\x00-\x1f\x7f]*\.(?:w?arc(?:\.gz)?|wacz)", re.IGNORECASE)


def wacz_of(action_id: str) -> str:
    """The path in the state of the WACZ that an action writes."""
    return f"{FOLDER}/{action_id}{SUFFIX}"


def folder_of(state: LocalStore, action_id: str) -> Path:
    """The folder of an action. BadInput for what is not the id of one."""
    match = _OURS.fullmatch(action_id)
    if not match or match[2]:
        raise BadInput(action_id[:99], "it is not the id of an action: 14 digits, a hyphen, and 12 hexadecimal digits")
    return state.real(f"{FOLDER}/{action_id}")


def keep_urls(state: LocalStore, action_id: str, urls: Iterable[str]) -> Path:
    """Write the list of the pages that were chosen for a WACZ, once: of a form that comes twice the first counts."""
    path, data = f"{FOLDER}/{action_id}.urls", "".join(f"{url}\n" for url in urls).encode("utf-8", "replace")
    state.commit_new(path, BytesIO(data), len(data), lambda _: True)
    return state.real(path)


def make_folder(state: LocalStore) -> None:
    """Make the folder of the files, unless it is there."""
    place = state.real(FOLDER)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Unavailable(str(place), disk.reason(error, place)) from error


def keep_list(state: LocalStore, form: str, data: bytes) -> None:
    """Keep a list that a page has looked at, under the name of its form."""
    make_folder(state)
    state.replace(f"{FOLDER}/{form}.list", data)


def kept_list(state: LocalStore, form: str) -> bytes:
    """The list that a form has brought. BadInput for one that is not kept, or no more."""
    try:
        if _OURS.fullmatch(form):
            return state.read(f"{FOLDER}/{form}.list", LARGEST_LIST)
    except NotReady:
        pass
    raise BadInput("list", "choose a file; one that was looked at before is kept no more")


def held(state: LocalStore, action_id: str, days: int) -> tuple[int, str] | None:
    """The size of the WACZ that an action wrote, and the time, in UTC, until which it is kept; None without one."""
    try:
        found = state.real(wacz_of(action_id)).stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Unavailable(f"state:{wacz_of(action_id)}", error.strerror or str(error)) from error
    return found.st_size, clock.text(datetime.fromtimestamp(found.st_mtime, UTC) + timedelta(days))


def sweep(state: LocalStore, days: int, is_running: Callable[[str], bool]) -> int:
    """Remove what is older than `days`, unless its action runs, and what dead processes left. Returns how many."""
    place, oldest, number = state.real(FOLDER), time.time() - days * _DAY, 0
    with suppress(FileNotFoundError):  # nothing was handed over yet, or another sweep was first
        for entry in os.scandir(place):
            path = Path(entry.path)
            if match := _OURS.fullmatch(entry.name):
                is_upload = not match[2] and entry.is_dir(follow_symlinks=False)
                is_old = entry.stat(follow_symlinks=False).st_mtime < oldest and not is_running(match[1])
                if is_old or (is_upload and _is_broken_off(path)):
                    shutil.rmtree(path) if is_upload else path.unlink()
                    number += 1
            elif temporary_names.is_dead(entry.name):
                path.unlink()
                number += 1
    return number


def _is_broken_off(folder: Path) -> bool:
    """True for the folder of an upload whose server has died."""
    names = os.listdir(folder)
    return bool(names) and all(map(temporary_names.is_dead, names))


def uploaded_name(sent: str) -> str:
    """The name that an uploaded file gets: the last part of what the browser sent. BadInput for other than a WARC or a
    WACZ."""
    name = re.split(r"[/\\]", sent)[-1]
    if not _UPLOADED.fullmatch(name):
        raise BadInput("file", "choose a file whose name ends with .warc, .warc.gz, .arc, .arc.gz or .wacz")
    if why := layout.why_unpublishable(name):
        raise BadInput("file", f"{why}; rename it")
    return name


class WebUpload:
    """A file that is being taken in. Used in a `with` block: without `finish` nothing of it is left.

    `is_known`: this form has brought the file already; what comes again is not kept. `largest`: its most bytes; 0: as
    many as the disk has room for.
    """

    def __init__(self, state: LocalStore, action_id: str, name: str, largest: int) -> None:
        self.path = f"{FOLDER}/{action_id}/{name}"
        self._final, self._largest, self._size = state.real(self.path), largest, 0
        self._temp = self._final.parent / temporary_names.name(name)
        self.is_known = False
        make_folder(state)
        try:
            self._final.parent.mkdir()
        except FileExistsError:
            self.is_known = self._final.is_file()
            if not self.is_known:
                why = "a file that this page sends is being taken already; open the page again for another"
                raise RefusedBody(HTTPStatus.CONFLICT, why, "the file") from None
            return
        except OSError as error:
            raise self._away(error) from error
        try:
            self._file = self._temp.open("xb")
        except OSError as error:
            self._drop()
            raise self._away(error) from error

    def check_room(self, more: int) -> None:
        """Refuse so many more bytes, if they are too many or the disk has no room for them."""
        if self.is_known:
            return
        if self._largest and self._size + more > self._largest:
            why = f"it is longer than {self._largest:,} bytes, which [serve] upload_gb allows"
            raise RefusedBody(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, why, "the file")
        try:
            free = shutil.disk_usage(self._final.parent).free
        except OSError as error:
            raise self._away(error) from error
        if free - more < RESERVE:
            why = f"the disk of the state has {free:,} bytes left, of which {RESERVE:,} stay free; make room on it"
            raise RefusedBody(HTTPStatus.INSUFFICIENT_STORAGE, why, "the file")

    def write(self, pieces: Sequence[bytes]) -> None:
        """Take the next bytes."""
        if self.is_known:
            return
        size = sum(map(len, pieces))
        self.check_room(size)
        try:
            self._file.writelines(pieces)
        except OSError as error:
            raise self._away(error) from error
        self._size += size

    def finish(self) -> None:
        """Make the file durable, and give it its name."""
        if self.is_known:
            return
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._temp.rename(self._final)
        except OSError as error:
            raise self._away(error) from error

    def __enter__(self) -> WebUpload:
        return self

    def __exit__(self, *_: object) -> None:
        if not self.is_known:
            with suppress(OSError):  # of a full disk; what was not written is not wanted
                self._file.close()
            if not self._final.exists():
                self._drop()

    def _drop(self) -> None:
        self._temp.unlink(missing_ok=True)
        self._final.parent.rmdir()

    def _away(self, error: OSError) -> Unavailable:
        return Unavailable(str(self._final), disk.reason(error, self._final))
