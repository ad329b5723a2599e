"""A dump of a frontier: JSON Lines, packed by gzip if its name ends so. Reads Redis or SQLite, and loads into Redis.

{"dump": 1, "launch": "20261126081902"}                first: the version of the lines, and the launch
{"heard": "3f0c...", "number": 57}                     of a writer: its last group whose changes are in the dump
{"counts": {"W": 70, "S": 0, "P": 9, "F": 1, "R": 0}, "crawl": ""}   how many wait, are suspended, were visited
{"worker": "w2", "writer": "3f0c..."}                  a worker, and as which writer it is known
{"uri": "http://a.example/", "hops": "L", ...}         a URI that waits; its key, crawl, until ... where it has any
{"seen": "0f3c...", "crawl": "", "status": "P", ...}   one that was visited, by its digest; what it left
{"history": "...", "seen": "0f3c...", "crawl": ""}     what an earlier launch left of one
{"cookies": [...], "crawl": ""}, {"site": ...}, {"sum": ...}, {"rate": ...}, {"memory": {...}, "spider": "s"}
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import sqlite3
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from msgspec.structs import asdict

from warcmill.base import disk
from warcmill.crawl.durable import failed, sync
from warcmill.crawl.fetch.cookies import Cookie
from warcmill.crawl.frontier.crew import WRITER
from warcmill.crawl.frontier.database import Names
from warcmill.crawl.frontier.outbox import GROUP, LETTERS, MOST, WaitingRow, offer_words, parts, read_row, site_value
from warcmill.crawl.frontier.table import COLUMNS, TAKEN, LastVisit, Table, read_visit
from warcmill.crawl.uri import FOREVER, Uri
from warcmill.errors import BadInput, Conflict, Unavailable

Ask = Callable[..., Any]
_BUCKETS = 16  # that Redis is asked for at once; each may take a millisecond of it
VERSION, LEVEL = 1, 6
_TEXTS = ("crawl", "hops", "via", "source", "payload", "cluster", "host_ip", "spider")
_GZIP = ".gz"


def write(lines: Iterable[Mapping[str, Any]], path: Path) -> dict[str, int]:
    """Write a dump into a new file, durable; return how many URIs wait in it, and were visited. Conflict when there is
    a file."""
    counts = {"waiting": 0, "visited": 0}
    try:
        path.open("xb").close()
    except FileExistsError as error:
        raise Conflict(str(path), "it exists; a snapshot needs a new name") from error
    except OSError as error:
        raise failed(path, error) from error
    try:
        with path.open("wb") as raw, _packed(raw, path) as file:
            for line in lines:
                counts["waiting"] += "uri" in line
                counts["visited"] += "status" in line
                file.write(json.dumps(line, sort_keys=True, separators=(",", ":")).encode() + b"\n")
            file.flush()
            raw.flush()
            os.fsync(raw.fileno())
    except BaseException as error:
        path.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise failed(path, error) from error
        raise
    sync(path)
    return counts


def _is_named_packed(path: Path) -> bool:
    """True if a name says that the file is packed: `.gz` at its end, or before the name of a stage."""
    return _GZIP in path.suffixes


@contextmanager
def _packed(raw: IO[bytes], path: Path) -> Iterator[IO[bytes]]:
    if not _is_named_packed(path):
        yield raw
        return
    with gzip.GzipFile("", "wb", LEVEL, raw, 0) as file:
        yield cast("IO[bytes]", file)


def opened(path: Path) -> IO[bytes]:
    """Open a file to read its lines, unpacked if its name says that it is packed. BadInput when it is not there, or is
    packed and is not named so."""
    try:
        with path.open("rb") as file:
            is_packed = file.read(2) == b"\x1f\x8b"
        if is_packed != _is_named_packed(path):
            why = f"it is packed by gzip; let its name end with {_GZIP}" if is_packed else "it is not packed by gzip"
            if is_packed or path.stat().st_size:
                raise BadInput(str(path), why)
        return cast("IO[bytes]", gzip.open(path, "rb")) if is_packed else path.open("rb")
    except FileNotFoundError as error:
        raise BadInput(str(path), "there is no such file") from error
    except OSError as error:
        raise Unavailable(str(path), disk.reason(error, path)) from error


def read(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of a dump. BadInput, by its number, for a bad line, and for a file that cannot be read whole."""
    number = 0
    try:
        with opened(path) as file:
            for raw in file:
                number += 1
                line = json.loads(raw)
                if number == 1 and line["dump"] != VERSION:
                    raise ValueError(f"version {line['dump']}, not {VERSION}")
                yield line
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(str(path), f"line {number} cannot be used: {error!r}") from error
    except (EOFError, OSError, zlib.error) as error:
        raise BadInput(str(path), f"cannot be read after line {number}: {error!r}") from error


def load(ask: Ask, path: Path, now: float) -> int:
    """Load a dump into an empty frontier; return how many URIs wait. BadInput as `read` raises it."""
    return load_lines(ask, read(path), now, str(path))


def load_lines(ask: Ask, lines: Iterable[Mapping[str, Any]], now: float, name: str) -> int:
    """Load the lines of a dump of this name. BadInput for one that cannot be used."""
    uris: list[Uri] = []
    waits, words = 0, dict[str, list[Any]](finish=[], share=[])

    def flush(least: int = 1) -> None:
        if len(uris) >= least:
            ask("offer", "", 0, 0, *offer_words(uris, now))
            uris.clear()
        for script, some in words.items():
            if len(some) >= 6 * least:
                ask(script, "", 0, 0, *some)
                some.clear()

    line: Mapping[str, Any] = {}
    try:
        for line in lines:
            if "uri" in line:
                uris.append(uri_of(line))
                waits += 1
            else:
                _load_one(ask, line, words, now)
            flush(MOST)
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(name, f"{json.dumps(line)[:200]} cannot be used: {error!r}") from error
    flush()
    return waits


def _load_one(ask: Ask, line: Mapping[str, Any], words: dict[str, list[Any]], now: float) -> None:
    if "rate" in line:
        ask("manage", "rate", line["rate"], line["text"])
    elif "seen" in line:
        words["finish"] += _visit(line)
    elif not {"dump", "heard", "worker", "counts"} & line.keys():
        words["share"] += _share(line, now)


def lines_of_redis(ask: Ask, now: float, ask_all: Ask) -> Iterator[dict[str, Any]]:
    """Yield the lines of a dump of a frontier in Redis. A change that comes meanwhile may be in it, or not. `ask_all`
    calls a script several times at once."""
    yield {"dump": VERSION, "launch": ask("look", "about", "")[1].decode()}
    yield from ({"heard": writer, "number": number} for writer, number in heard(ask).items())
    for name, value in _pairs(_scan(ask, "job", "workers")):
        yield {"worker": name.decode(), "writer": value[:WRITER].decode()}
    asked = Counter[tuple[str, str]]()
    yield from _rows(ask, now, asked)
    for name, cid in _pairs(_scan(ask, "job", "crawls")):
        yield from _done(ask, ask_all, name.decode(), cid.decode())
        waits, suspended, _, *done = map(int, ask("look", "count", name))
        numbers = zip("WSPFR", [waits, suspended, *done], strict=True)
        yield _counts(name.decode(), [number + asked[name.decode(), letter] for letter, number in numbers])
    for queue, text in _pairs(_scan(ask, "job", "rates")):
        yield {"rate": queue.decode(), "text": text.decode()}
    _, *cookies = ask("look", "cookies")
    for crawl, found in zip(cookies[::2], cookies[1::2], strict=True):
        yield {"cookies": [json.loads(one) for one in found], "crawl": crawl.decode()}
    yield from _memories(ask)
    for origin, value in _pairs(_scan(ask, "era", "sites")):
        until, text = value.split(b" ", 1)
        yield {"site": origin.decode(), "until": int(until) / 1000, "text": base64.b64encode(text).decode()}
    for by in ("host", "target", "crawl"):
        for name, value in dict(_pairs(_scan(ask, "round", f"sum:{by}"))).items():  # each once: they are added
            yield {"sum": by, "name": name.decode(), "values": [int(one) for one in value.split()]}


def _rows(ask: Ask, now: float, asked: Counter[tuple[str, str]]) -> Iterator[dict[str, Any]]:
    """Yield what waits; `asked` is what Redis will count otherwise at the end of visits, as persons have asked for."""
    after = 0
    while True:
        after, *page = ask("look", "page", "*", after, MOST)
        for row in (WaitingRow(*one) for one in page):
            line = _line_of_row(row, now)
            if row.is_leased and (row.ends or row.span < 0):
                crawl = str(line.get("crawl", ""))
                asked.update({(crawl, "W"): -1, (crawl, line.get("status", "S")): 1})
            yield line
        if not after:
            return


def _memories(ask: Ask) -> Iterator[dict[str, Any]]:
    """Yield what each spider remembers."""
    for spider in set(_scan(ask, "era", "remember")):
        _, *texts = ask("look", "memory", spider, 0)
        for name, text in _pairs(iter(texts)):
            yield from [{"memory": {name.decode(): text.decode()}, "spider": spider.decode()}] if text else []


def _done(ask: Ask, ask_all: Ask, crawl: str, cid: str) -> Iterator[dict[str, Any]]:
    """Yield what was visited of a crawl, and what visits left."""
    buckets = {*_scan(ask, "era", f"buckets:{cid}"), *_scan(ask, "job", f"histories:{cid}")}
    calls = [("bucket", name) for name in buckets]
    for kept in (one for some in parts(calls, _BUCKETS) for one in ask_all("look", some)):
        for name, status, http, finished, history in zip(*[iter(kept)] * 5, strict=True):
            line: dict[str, Any] = {"seen": name.hex(), "crawl": crawl}
            if status:
                line |= {"status": status.decode(), "http": http, "finished": finished}
            if history:
                line |= {"history": base64.b64encode(history).decode()}
            yield line


def _line_of_row(row: WaitingRow, now: float) -> dict[str, Any]:
    uri = read_row(row, FOREVER if row.span < 0 else now + row.span / 1000 if row.span else 0)
    if row.visit:
        status, http, finished = row.visit
        ended = {"status": status.decode(), "http": http, "finished": finished}
        return {"seen": row.raw[:16].hex(), "crawl": uri.crawl, **ended}
    return line_of(uri)


def line_of(uri: Uri) -> dict[str, Any]:
    """The line of a URI that waits."""
    until = None if uri.not_before >= FOREVER else uri.not_before
    more = {"key": uri.key if uri.key != uri.uri else "", "tries": uri.tries, "priority": uri.priority, "until": until}
    texts = {name: getattr(uri, name) for name in _TEXTS}
    found = {name: value for name, value in (texts | more).items() if value or (name == "until" and value is None)}
    return {"uri": uri.uri, "queue": uri.queue, **found}


def uri_of(line: Mapping[str, Any]) -> Uri:
    """The URI of a line; ValueError, KeyError or TypeError for an invalid line."""
    texts = {name: line.get(name, "") for name in _TEXTS}
    key, until = line.get("key", line["uri"]), line.get("until", 0)
    for text in (line["uri"], line["queue"], key, *texts.values()):
        if not isinstance(text, str):
            raise TypeError(f"{text!r} is no text")
    uri = Uri(key, line["uri"], line["queue"], priority=int(line.get("priority", 0)))
    uri.not_before = FOREVER if until is None else float(until)
    for name, text in texts.items():
        setattr(uri, name, text)
    uri.tries = int(line.get("tries", 0))
    return uri


def lines_of_sqlite(db: sqlite3.Connection) -> Iterator[dict[str, Any]]:
    """Yield the lines of a dump of a frontier in SQLite; rates are left out, as their users set them anew."""
    table, launch = Table(db, Names(db, "queues", "name")), db.execute("SELECT value FROM about WHERE name = 'launch'")
    yield {"dump": VERSION, "launch": str((launch.fetchone() or [""])[0])}
    names: dict[int, str] = dict(db.execute("SELECT id, name FROM crawls WHERE name IS NOT NULL"))
    after, some = 0, f"SELECT {COLUMNS} FROM waiting WHERE id > ? ORDER BY id LIMIT ?"
    while page := db.execute(some, (after, MOST)).fetchall():
        after = page[-1][0]
        yield from map(line_of, table.uris([row for row in page if row[4] in names]))
    taken = f"SELECT crawl, digest, id, visit, {TAKEN} FROM seen WHERE visit IS NOT NULL ORDER BY crawl, digest"
    for crawl, name, number, raw, is_taken in db.execute(taken, table.rounds.taken):
        if crawl in names:
            yield _line_of_visit(names[crawl], name, read_visit(raw), bool(is_taken) and number is None)
    for crawl, *numbers in db.execute("SELECT name, waiting, suspended, parsed, failed, removed FROM crawls"):
        if crawl is not None:
            yield _counts(crawl, numbers)
    fields = "domain, path, name, value, expires, created, host_only, secure"
    for crawl, *values in db.execute(f"SELECT crawl, {fields} FROM cookies"):
        if crawl in names:
            cookie = Cookie(**dict(zip(fields.split(", "), values, strict=True)))
            yield {"cookies": [asdict(cookie)], "crawl": names[crawl]}
    memories = db.execute("SELECT spider, name, value FROM memory")
    yield from ({"memory": {name: value}, "spider": spider} for spider, name, value in memories)
    for origin, status, until, failures, text in db.execute("SELECT origin, status, until, failures, text FROM sites"):
        packed = base64.b64encode(site_value(status, failures, zlib.decompress(text))).decode()
        yield {"site": origin, "until": until, "text": packed}
    for by, name, documents, size, seconds in db.execute("SELECT what, name, documents, bytes, seconds FROM spent"):
        yield {"sum": by, "name": name, "values": [documents, size, round(seconds * 1000)]}


def _counts(crawl: str, numbers: Iterable[Any]) -> dict[str, Any]:
    return {"counts": dict(zip("WSPFR", map(int, numbers), strict=True)), "crawl": crawl}


def _line_of_visit(crawl: str, name: bytes, visit: LastVisit, counts: bool) -> dict[str, Any]:
    line: dict[str, Any] = {"seen": name.hex(), "crawl": crawl}
    if counts:
        line |= {"status": LETTERS[visit.status], "http": visit.http_status, "finished": visit.finished}
    return line | ({"history": base64.b64encode(visit.history).decode()} if visit.history else {})


def _visit(line: Mapping[str, Any]) -> list[Any]:
    name, history = bytes.fromhex(line["seen"]), base64.b64decode(line.get("history", ""))
    if "status" in line:
        return ["V", line["crawl"], name, line["status"], int(line["http"]), int(line["finished"]), 0, history, 0, ""]
    return ["H", line["crawl"], name, history, "", "", "", "", "", ""]


def _share(line: Mapping[str, Any], now: float) -> list[Any]:
    if "cookies" in line:
        names = ["\0".join((one["domain"], one["path"], one["name"])) for one in line["cookies"]]
        cookies = zip(names, map(json.dumps, line["cookies"]), strict=True)
        return [word for name, text in cookies for word in ("C", line["crawl"], name, text, "", "")]
    if "memory" in line:
        return [word for name, text in line["memory"].items() for word in ("M", line["spider"], name, text, "", "")]
    if "site" in line:
        span = round((line["until"] - now) * 1000)
        return ["R", line["site"], span, base64.b64decode(line["text"]), "", ""]
    return ["S", line["sum"], line["name"], *line["values"]]


def _scan(ask: Ask, where: str, key: str) -> Iterator[Any]:
    """Yield what a set has, or the fields and values of a hash; some may come twice."""
    cursor = b"0"
    while True:
        cursor, found = ask("look", "scan", where, key, cursor)
        yield from found
        if cursor == b"0":
            break


def heard(ask: Ask) -> dict[str, int]:
    """Return the last group that a frontier in Redis has heard whole of each writer."""
    return {writer.decode(): (int(number) + 1) // GROUP - 1 for writer, number in _pairs(_scan(ask, "job", "heard"))}


def _pairs(found: Iterator[Any]) -> Iterator[tuple[Any, Any]]:
    return zip(*[found] * 2, strict=True)
