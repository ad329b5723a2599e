"""The frontier of a job, in its database or in Redis: opened, rebuilt and checked here alone."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from warcmill.base import clock
from warcmill.crawl.books.files import Folders, complete_rotation
from warcmill.crawl.books.replay import journals, replay, restore_register
from warcmill.crawl.durable import set_aside
from warcmill.crawl.frontier import Begins, Frontier, database, dump, journal
from warcmill.crawl.frontier.link import PARTLY, RedisLink, RedisPlace
from warcmill.crawl.frontier.redis import RedisFrontier
from warcmill.crawl.frontier.register import FED, Register
from warcmill.crawl.frontier.sqlite import SqliteFrontier
from warcmill.errors import BadInput, Foreign, NotReady
from warcmill.model import Launch


def open_frontier(path: Path, job: str = "", place: RedisPlace | None = None) -> tuple[Frontier, Register]:
    """Open a job's frontier, and the register of a launch's files, which is in the same database. A frontier in Redis
    leaves that to the register alone."""
    if place is None:
        frontier = SqliteFrontier(path)
        return frontier, frontier.register
    return on_redis(path, job, place)


def on_redis(
    path: Path,
    job: str,
    place: RedisPlace,
    leads: bool = True,
    exit: str = "",  # noqa: A002
) -> tuple[RedisFrontier, Register]:
    """Open a frontier in Redis, to lead its launches or to join them, and the register of a launch's files."""
    register = open_register(path)
    try:
        return RedisFrontier(RedisLink(place, job), register, leads=leads, exit=exit), register
    except BaseException:
        register.disconnect()
        raise


def open_register(path: Path) -> Register:
    """Open the register of a launch's files, where the frontier is elsewhere."""
    return Register(database.open_database(path), path, is_shared=True)


def lines_of(path: Path, job: str = "", place: RedisPlace | None = None) -> Iterator[dict[str, Any]]:
    """Yield the lines of a dump of a job's frontier. One in the database at `path` must have no other user."""
    if place:
        with closing(RedisLink(place, job)) as link:
            link.examine()
            yield from dump.lines_of_redis(link.call, clock.steady(), link.call_all)
    else:
        with closing(database.open_database(path)) as db, database.named(path):
            yield from dump.lines_of_sqlite(db)


def committed(path: Path) -> tuple[str, dict[str, int]]:
    """Return the launch of a register, and the committed length of each of its logs."""
    register = open_register(path)
    try:
        return register.launch, {file.name: file.length for file in register.files() if file.folder == "logs"}
    finally:
        register.disconnect()


def refuse_emptied(job: str, place: RedisPlace) -> None:
    """Refuse a Redis that has nothing of a job, or only a part, for a launch that takes over what waits: NotReady."""
    with closing(RedisLink(place, job)) as link:
        link.examine()
        launch = link.call("look", "about", "")[1].decode()
    if not launch or launch.endswith(PARTLY):
        found = "only a part of a dump or of a journal" if launch else "nothing"
        why = f"has {found} that begins with {place.keys(job)}: what waited is lost there"
        step = f"Fill it from the newest checkpoint and the journals: 'warcmill job {job} rebuild'"
        raise NotReady(place.shown, f"{why}. {step}")


def restore(job: str, launch: str, copy: Path, place: RedisPlace) -> None:
    """Bring a checkpoint's copy into Redis, as what a launch begins with; what is there is given up. While a part of it
    is there, no launch can begin with that."""
    link = RedisLink(place, job)
    try:
        link.examine()
        link.call("manage", "begin", "", 0, f"{launch}{PARTLY}", Begins.FRESH.value)
        dump.load(link.call, copy, clock.steady())
        link.call("manage", "begin", "", 0, f"{launch} loaded", Begins.CONTINUES.value)
    finally:
        link.close()


def restore_fed(path: Path, number: int) -> None:
    """Note how far the feed of requests was read for a checkpoint's copy: what came after it is read again."""
    register = open_register(path)
    try:
        register.keep_number(FED, number)
    finally:
        register.disconnect()


async def rebuild(
    path: Path, launch: str, folders: Folders, base: Path | None = None, after: str = "", is_shared: bool = False
) -> int:
    """Set the damaged database aside, rebuild it, and return how many groups of the journal it holds.

    `base` is the copy that the launch began with, if it continues or follows another; or that of its own checkpoint
    `after`, whose journals are in it. NotReady, with nothing done, when there is no journal.
    """
    if not journals(folders.logs, after):
        raise NotReady(str(path), f"there is no journal in {folders.logs} to rebuild it from")
    complete_rotation(folders.logs)
    for part in _parts(path):
        if part.exists():
            set_aside(part, part.name)
    if is_shared:
        register = open_register(path)
        try:
            return restore_register(register, launch, folders)
        finally:
            register.disconnect()
    if base:
        shutil.copyfile(base, path)
    frontier, register = open_frontier(path)
    try:
        return await replay(frontier, register, launch, folders, after)
    finally:
        await frontier.close()


def has_books(path: Path, launch: Launch, logs: Path) -> bool:
    """True if a database was last open for this launch; one that is damaged, lost, or not ours is taken to be."""
    try:
        refuse_lost(path, logs)
        return database.last_launch(path) == launch.id
    except (BadInput, Foreign):
        return True


def refuse_lost(path: Path, logs: Path) -> None:
    """Refuse a database that is gone, or empty, of a launch that has a journal, which is not a new one: BadInput."""
    if database.last_launch(path) is None and any(file.stat().st_size for file in logs.glob(f"{journal.NAME}*")):
        raise database.damaged(path, "it is gone, or empty")


def end_log(path: Path) -> None:
    """Let no write-ahead log be there, which would be taken for that of a database that replaces this one: it goes into
    the one that it belongs to, or aside when that is damaged or gone."""
    if path.exists():
        try:
            database.open_database(path).close()
        except BadInput:
            pass  # damaged: it stays until it is replaced
        else:
            return
    for log in _parts(path)[1:]:
        if log.exists():
            set_aside(log, log.name)


def _parts(path: Path) -> tuple[Path, ...]:
    return path, Path(f"{path}-wal"), Path(f"{path}-shm")
