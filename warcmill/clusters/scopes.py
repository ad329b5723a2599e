"""The scope of a group: one for all of its jobs, by editions in the centre, which updaters write into their jobs. Talks
to PostgreSQL; reads and writes the papers of jobs.

It is surts.txt, exclude.txt, and those keys of crawl.toml that decide what is in scope. `pages` is not of them, as it
names the seeds of one job; nor is `policies`, as it names code of a machine. A crawl that runs lets the papers count
from its next URI on.
"""

from __future__ import annotations

import json
import logging
import tomllib
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, cast

from msgspec import Struct

from warcmill.base import clock, disk
from warcmill.base.escapes import printable
from warcmill.clients.postgresql import Postgresql
from warcmill.crawl import durable
from warcmill.crawl.job import file, text, values
from warcmill.crawl.job.file import EXCLUDE, SURTS
from warcmill.crawl.job.values import CONFIGURATION, toml_of
from warcmill.crawl.policies.scope import CrawlScope
from warcmill.errors import BadConfig, BadInput, NotReady, Unavailable, WarcmillError

KEYS = ("hops", "patterns", "extensions", "traps")
"""The keys of crawl.toml that are of the scope."""

LARGEST = 64 << 20  # bytes of a paper
BEFORE = ".before"
HEAD = f"# {', '.join(KEYS)} are those of the group's scope. The file as it was: {CONFIGURATION}{BEFORE}\n"
_PAPERS = (EXCLUDE, SURTS, CONFIGURATION)  # in the order in which they are written: nothing is let in too early
_COLUMNS = "surts, exclude, keys"

log = logging.getLogger(__name__)


class GroupScope(Struct, frozen=True):
    """A scope: the bytes of surts.txt and of exclude.txt, and keys of crawl.toml; one that is not there has its
    default."""

    surts: bytes
    exclude: bytes
    keys: Mapping[str, Any]

    def is_in(self, paper: str, data: bytes) -> bool:
        """True if a paper of a job has its part of this scope. BadConfig for a crawl.toml that is not TOML."""
        if paper == CONFIGURATION:
            return _keys_of(toml_of(data)) == self.keys
        return data == (self.surts if paper == SURTS else self.exclude)

    def put_into(self, paper: str, data: bytes) -> bytes:
        """Return a paper with its part of this scope; all else of a crawl.toml stays, but for its comments."""
        if paper != CONFIGURATION:
            return self.surts if paper == SURTS else self.exclude
        found = toml_of(data)
        wanted = {**{key: value for key, value in found.items() if key not in KEYS}, **self.keys}
        made = text.render(wanted, HEAD)
        if tomllib.loads(made) != wanted:
            raise BadConfig(CONFIGURATION, f"the scope cannot be written into it; set its {', '.join(KEYS)} by hand")
        return made.encode()


class ScopeEdition(NamedTuple):
    """An edition of a group's scope, and if it `is_new`: else the centre had it as its newest."""

    edition: int
    is_new: bool


def _keys_of(found: Mapping[str, Any]) -> dict[str, Any]:
    return {key: found[key] for key in KEYS if key in found}


def read_folder(folder: Path) -> GroupScope:
    """Return the scope that the papers in a folder have; other keys of its crawl.toml do not count. BadInput or
    BadConfig for one that no job could be crawled by, by name."""
    for name in _PAPERS:
        path = folder / name
        try:
            if path.exists() and path.stat().st_size > LARGEST:
                raise BadInput(str(path), f"is larger than {LARGEST:,} bytes")
        except OSError as error:
            raise Unavailable(str(path), disk.reason(error, path)) from error
    files = file.files_in(folder)
    if SURTS not in files:
        raise BadInput(str(folder / SURTS), "is not there; it has the SURT prefixes of the group's sites, a line each")
    try:
        found = toml_of(files.get(CONFIGURATION, b""))
        values.refuse_unknown(CONFIGURATION, found, file.KEYS)
        keys = _keys_of(found)
        papers = {
            SURTS: files[SURTS], EXCLUDE: files.get(EXCLUDE, b""),
            CONFIGURATION: text.render({"endless": True, **keys}).encode(),
        }  # fmt: skip
        scope = cast("CrawlScope", file.parse(papers, "scope").scope)
    except BadConfig as error:
        raise BadConfig(f"{folder}, {error.key}", error.why) from error
    if not len(scope.sites):
        raise BadConfig(f"{folder}, {SURTS}", "has no SURT prefix in it: nothing would be in scope")
    return GroupScope(papers[SURTS], papers[EXCLUDE], keys)


async def keep(db: Postgresql, scope: GroupScope, who: str, why: str, made_from: str) -> ScopeEdition:
    """Keep a scope as the newest edition, unless it is that."""

    async def act(connection: Any) -> ScopeEdition:
        await connection.execute("LOCK TABLE scopes IN SHARE ROW EXCLUSIVE MODE")
        row = await connection.fetchrow(f"SELECT edition, {_COLUMNS} FROM scopes ORDER BY edition DESC LIMIT 1")
        if row and _of_row(row) == scope:
            return ScopeEdition(row["edition"], is_new=False)
        number = (row["edition"] if row else 0) + 1
        query = f"INSERT INTO scopes (edition, who, why, made_from, {_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7)"
        texts = (printable(who), printable(why), printable(made_from))
        await connection.execute(query, number, *texts, scope.surts, scope.exclude, json.dumps(dict(scope.keys)))
        return ScopeEdition(number, is_new=True)

    return await db.whole(act)


async def _edition(db: Postgresql, number: int) -> GroupScope | None:
    rows = await db.rows(f"SELECT {_COLUMNS} FROM scopes WHERE edition = $1", number)
    return _of_row(rows[0]) if rows else None


def _of_row(row: Any) -> GroupScope:
    return GroupScope(row["surts"], row["exclude"], json.loads(row["keys"]))


class ScopeKeeper:
    """Keeps the papers of a job at the newest edition of its group's scope."""

    def __init__(self, folder: Path, cluster: str) -> None:
        self._folder, self._cluster = folder, cluster
        self._seen: object = None  # the edition, and the papers as they were when they had it
        self._edition: tuple[int, GroupScope] | None = None
        self._fault = ""

    async def look(self, db: Postgresql) -> None:
        """Write the scope into the papers if they have another, and note it in the centre. An edit by hand is kept
        beside. A fault of the papers is noted, and the next look tries again."""
        newest = (await db.rows("SELECT coalesce(max(edition), 0) AS edition FROM scopes"))[0]["edition"]
        if not newest or (newest, self._signature()) == self._seen:
            return
        if self._edition is None or self._edition[0] != newest:
            found = await _edition(db, newest)
            assert found
            self._edition = newest, found
        query = "SELECT scope FROM clusters WHERE cluster = $1"
        had = (await db.rows(query, self._cluster))[0]["scope"]
        known = self._edition[1] if had == newest else await _edition(db, had)
        try:
            kept = put(self._folder, self._cluster, self._edition[1], known)
        except WarcmillError as error:
            await self._note(db, had, newest, f"edition {newest} cannot be written: {error}")
            return
        self._seen, self._fault = (newest, self._signature()), ""
        if kept:
            when = clock.now()
            note = f"{when}: edition {newest} was put in place of others; these are kept: {', '.join(kept)}"
            log.warning("%s: the scope of the job is the group's: %s", self._cluster, note)
            await self._save(db, newest, note)
        elif had != newest:
            log.info("%s has edition %d of the group's scope", self._cluster, newest)
            await self._save(db, newest, "")

    async def _note(self, db: Postgresql, had: int, newest: int, fault: str) -> None:
        if fault != self._fault:
            log.warning("%s has another scope than its group: %s", self._cluster, fault)
            await self._save(db, 0 if had == newest else had, printable(fault))
        self._fault = fault

    async def _save(self, db: Postgresql, edition: int, note: str) -> None:
        query = "UPDATE clusters SET scope = $2, scope_note = $3 WHERE cluster = $1"
        await db.rows(query, self._cluster, edition, note)

    def _signature(self) -> object:
        return tuple(_stat(self._folder / name) for name in _PAPERS)


def _stat(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:  # who reads it says why
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def put(folder: Path, name: str, scope: GroupScope, known: GroupScope | None = None) -> list[str]:
    """Write a scope into the papers of a job that have another; return the names of those that were kept beside: what
    is not of the scope that it is `known` to have had. BadConfig, and nothing is written, if the job could not be
    crawled by them."""
    files = file.files_in(folder)
    if CONFIGURATION not in files:
        raise NotReady(f"job {name}", f"{folder / CONFIGURATION} is not there")
    other = [paper for paper in _PAPERS if not scope.is_in(paper, files.get(paper, b""))]
    made = {paper: scope.put_into(paper, files.get(paper, b"")) for paper in other}
    file.described({**files, **made}, name)
    kept = list[str]()
    for paper, data in made.items():
        path = folder / paper
        if paper in files:
            is_by_hand = not (known and known.is_in(paper, files[paper]))
            if is_by_hand or (paper == CONFIGURATION and not files[paper].startswith(HEAD.encode())):
                kept.append(_keep(path, files[paper]))
        durable.replace(path, data)
    return kept


def _keep(path: Path, data: bytes) -> str:
    """Keep what a paper has in a file beside it, once; return that file's name."""
    names = (path.with_name(f"{path.name}{f'.{n}' if n > 1 else ''}{BEFORE}") for n in count(1))
    for one in names:
        try:
            if one.exists() and one.read_bytes() != data:
                continue
        except OSError as error:
            raise Unavailable(str(one), disk.reason(error, one)) from error
        durable.replace(one, data)
        return one.name
    raise AssertionError("the names do not end")
