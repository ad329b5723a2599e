"""A dump of a frontier: JSON Lines, packed by gzip; written from a Redis, and loaded into one.

{"dump": 1}                                            first: the version of the lines
{"uri": "http://a.example/", "hops": "L", ...}         a URI that waits; its key, crawl, until ... where it has any
{"seen": "0f3c...", "crawl": "", "status": "P", ...}   one that was visited, by its digest; what it left
{"history": "...", "seen": "0f3c...", "crawl": ""}     what an earlier launch left of one
{"cookies": [...], "crawl": ""}, {"site": ...}, {"sum": ...}, {"rate": ...}
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from warcmill.crawl.durable import failed, sync
from warcmill.crawl.frontier import rows
from warcmill.crawl.frontier.outbox import MOST, offer_words
from warcmill.crawl.frontier.rows import WaitingRow
from warcmill.crawl.uri import FOREVER, Uri
from warcmill.errors import BadInput, Conflict

Ask = Callable[..., Any]
VERSION, LEVEL = 1, 6
_ALWAYS = ("uri", "queue")
_TEXTS = ("crawl", "hops", "via", "source", "payload", "cluster", "host_ip", "spider")


def write(ask: Ask, path: Path, now: float) -> None:
    """Dump a frontier into a new file, durable. Conflict when there is a file."""
    try:
        with path.open("xb") as raw, gzip.GzipFile("", "wb", LEVEL, raw, 0) as file:
            for line in _lines(ask, now):
                file.write(json.dumps(line, sort_keys=True, separators=(",", ":")).encode() + b"\n")
            file.flush()
            raw.flush()
            os.fsync(raw.fileno())
    except FileExistsError as error:
        raise Conflict(str(path), "it exists; a snapshot needs a new name") from error
    except OSError as error:
        raise failed(path, error) from error
    sync(path)


def load(ask: Ask, path: Path, now: float) -> int:
    """Load a dump into an empty frontier; return how many URIs wait. BadInput, by its number, for a bad line,
    and for a file that cannot be read whole."""
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

    number = 0
    try:
        with gzip.open(path, "rb") as file:
            for raw in file:
                number += 1
                line = json.loads(raw)
                if "uri" in line:
                    uris.append(_uri(line))
                    waits += 1
                else:
                    _load_one(ask, line, words, now)
                flush(MOST)
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(str(path), f"line {number} cannot be used: {error!r}") from error
    except (EOFError, OSError, zlib.error) as error:
        raise BadInput(str(path), f"cannot be read after line {number}: {error!r}") from error
    flush()
    return waits


def _load_one(ask: Ask, line: dict[str, Any], words: dict[str, list[Any]], now: float) -> None:
    if "rate" in line:
        ask("manage", "rate", line["rate"], line["text"])
    elif "seen" in line:
        words["finish"] += _visit(line)
    elif "dump" not in line:
        words["share"] += _share(line, now)
    elif line["dump"] != VERSION:
        raise ValueError(f"version {line['dump']}, not {VERSION}")


def _lines(ask: Ask, now: float) -> Iterator[dict[str, Any]]:
    yield {"dump": VERSION}
    after = 0
    while True:
        after, *page = ask("look", "page", "*", after, MOST)
        yield from (_line(WaitingRow(*one), now) for one in page)
        if not after:
            break
    for name, cid in _pairs(_scan(ask, "job", "crawls")):
        yield from _done(ask, name.decode(), cid.decode())
    for queue, text in _pairs(_scan(ask, "job", "rates")):
        yield {"rate": queue.decode(), "text": text.decode()}
    _, *cookies = ask("look", "cookies")
    for crawl, found in zip(cookies[::2], cookies[1::2], strict=True):
        yield {"cookies": [json.loads(one) for one in found], "crawl": crawl.decode()}
    for origin, value in _pairs(_scan(ask, "era", "sites")):
        until, text = value.split(b" ", 1)
        yield {"site": origin.decode(), "until": int(until) / 1000, "text": base64.b64encode(text).decode()}
    for by in ("host", "target", "crawl"):
        for name, value in dict(_pairs(_scan(ask, "round", f"sum:{by}"))).items():  # each once: they are added
            yield {"sum": by, "name": name.decode(), "values": [int(one) for one in value.split()]}


def _done(ask: Ask, crawl: str, cid: str) -> Iterator[dict[str, Any]]:
    """Yield what was visited of a crawl, and what visits left."""
    for bucket in {*_scan(ask, "era", f"buckets:{cid}"), *_scan(ask, "job", f"histories:{cid}")}:
        kept = ask("look", "bucket", bucket)
        for name, status, http, finished, history in zip(*[iter(kept)] * 5, strict=True):
            line: dict[str, Any] = {"seen": name.hex(), "crawl": crawl}
            if status:
                line |= {"status": status.decode(), "http": http, "finished": finished}
            if history:
                line |= {"history": base64.b64encode(history).decode()}
            yield line


def _line(row: WaitingRow, now: float) -> dict[str, Any]:
    uri = rows.read(row)
    until = None if row.span < 0 else now + row.span / 1000 if row.span else 0
    more = {"key": uri.key if uri.key != uri.uri else "", "tries": uri.tries, "priority": uri.priority, "until": until}
    texts = {name: getattr(uri, name) for name in _TEXTS}
    found = {name: value for name, value in (texts | more).items() if value or (name == "until" and value is None)}
    return {"uri": uri.uri, "queue": uri.queue, **found}


def _uri(line: dict[str, Any]) -> Uri:
    texts = {name: str(line.get(name, "")) for name in _TEXTS}
    until = line.get("until", 0)
    uri = Uri(line.get("key", line["uri"]), line["uri"], line["queue"], priority=int(line.get("priority", 0)))
    uri.not_before = FOREVER if until is None else float(until)
    for name, text in texts.items():
        setattr(uri, name, text)
    return uri


def _visit(line: dict[str, Any]) -> list[Any]:
    name, history = bytes.fromhex(line["seen"]), base64.b64decode(line.get("history", ""))
    if "status" in line:
        return ["V", line["crawl"], name, line["status"], int(line["http"]), int(line["finished"]), 0, history, 0, ""]
    return ["H", line["crawl"], name, history, "", "", "", "", "", ""]


def _share(line: dict[str, Any], now: float) -> list[Any]:
    if "cookies" in line:
        names = ["\0".join((one["domain"], one["path"], one["name"])) for one in line["cookies"]]
        cookies = zip(names, map(json.dumps, line["cookies"]), strict=True)
        return [word for name, text in cookies for word in ("C", line["crawl"], name, text, "", "")]
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


def _pairs(found: Iterator[Any]) -> Iterator[tuple[Any, Any]]:
    return zip(*[found] * 2, strict=True)
