"""Questions to the catalogue: by ARK, WARC, digest, launch or state. A match fits all that is asked. Reads only."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from warcmill.model import Launch
from warcmill.package.catalogue import TABLES, Catalogue

SHORTEST: Final = 8  # hex digits of a digest
Record = dict[str, str | int]  # a row by its columns


class Question(Struct, frozen=True):
    """The values to look for; '' and None: anything. `digest`: the SHA-512 of a WARC or SIP, or its first digits."""

    ark: str = ""
    warc: str = ""
    digest: str = ""
    launch: Launch | None = None
    state: str = ""

    def is_about_files(self) -> bool:
        """True if it asks for single files, so that only those of an answer are of interest."""
        return bool(self.ark or self.warc or self.digest)

    def is_empty(self) -> bool:
        """True if it asks for everything."""
        return self == Question()


class CatalogueMatch(Struct, frozen=True):
    """A SIP that fits: its row, and those of its WARCs, ARKs and events. Of a question about files only the WARCs and
    ARKs that it is about; a SIP that fits by its own digest or ARK may have none."""

    sip: Record
    warcs: tuple[Record, ...]
    arks: tuple[Record, ...]
    events: tuple[Record, ...]


def ask(catalogue: Catalogue, question: Question) -> Iterator[CatalogueMatch]:
    """Yield the SIPs that fit, by launch and stage, one at a time."""
    with catalogue.reading() as database:
        where, values = _where(question)
        asked = f"SELECT * FROM sips WHERE {where} ORDER BY launch_id, job, sip"  # noqa: S608
        for row in database.execute(asked, values):
            yield _found(database, question, _record("sips", row))


def _where(question: Question) -> tuple[str, list[str]]:
    """The condition on a row of `sips`, with its values."""
    parts, values = ["1"], list[str]()
    if question.launch:
        parts.append("job = ? AND launch_id = ?")
        values += [question.launch.job, question.launch.id]
    if question.state:
        parts.append("state = ?")
        values.append(question.state)
    if question.is_about_files():
        of_warc, given = _of_file(question, "warcs")
        of_sip, own = _of_file(question, "sips")
        parts.append(f"({of_sip} OR EXISTS (SELECT 1 FROM warcs WHERE {_SAME.format('warcs')} AND {of_warc}))")  # noqa: S608
        values += [*own, *given]
    return " AND ".join(parts), values


_SAME: Final = "{0}.job = sips.job AND {0}.launch_id = sips.launch_id AND {0}.sip = sips.sip"


def _of_file(question: Question, table: str) -> tuple[str, list[str]]:
    """The condition on one file: a WARC, or the SIP itself, which has no name of a WARC."""
    parts, values = ["1"], list[str]()
    if question.warc:
        parts.append(f"{table}.name = ?" if table == "warcs" else "0 = ?")
        values.append(question.warc)
    if question.digest:
        parts.append(f"{table}.sha512 >= ? AND {table}.sha512 < ?")
        values += [question.digest, f"{question.digest}g"]  # every hex digit sorts before g
    if question.ark:
        only = f"AND arks.path = {table}.path" if table == "warcs" or question.digest else ""  # else also that of a log
        parts.append(f"EXISTS (SELECT 1 FROM arks WHERE {_SAME.format('arks')} {only} AND ark = ?)")  # noqa: S608
        values.append(question.ark)
    return " AND ".join(parts), values


def _found(database: sqlite3.Connection, question: Question, sip: Record) -> CatalogueMatch:
    def rows(table: str) -> tuple[Record, ...]:
        asked = f"SELECT * FROM {table} WHERE job = ? AND launch_id = ? AND sip = ?"  # noqa: S608
        columns = ", ".join(TABLES[table])
        found = database.execute(f"{asked} ORDER BY {columns}", (sip["job"], sip["launch_id"], sip["sip"]))
        return tuple(_record(table, row) for row in found)

    arks = tuple(one for one in rows("arks") if question.ark in ("", one["ark"]))
    warcs = tuple(one for one in rows("warcs") if _fits(question, one, arks))
    if question.warc or question.digest:
        paths = {one["path"] for one in (sip, *warcs)}
        arks = tuple(one for one in arks if one["path"] in paths)
    return CatalogueMatch(sip, warcs, arks, rows("events"))


def _fits(question: Question, warc: Record, arks: tuple[Record, ...]) -> bool:
    return (
        question.warc in ("", warc["name"])
        and str(warc["sha512"]).startswith(question.digest)
        and (not question.ark or warc["path"] in {one["path"] for one in arks})
    )


def _record(table: str, row: tuple[str | int, ...]) -> Record:
    return dict(zip(TABLES[table], row, strict=True))
