"""A list of URIs as a crawl takes them: a dump of a frontier, a recovery log of Heritrix or of ours, or plain URLs.

Each line has its form by itself: `{...}` is of a dump, `F+ ...` of a recovery log, all others are URLs. Reads only.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from warcmill.crawl.books.replay import taken
from warcmill.crawl.frontier import LONGEST_PAYLOAD, check_offer, dump, journal
from warcmill.crawl.frontier.dump import line_of, uri_of
from warcmill.crawl.uri import Uri, make, shown
from warcmill.errors import BadInput
from warcmill.formats.seeds import coding_of

LONGEST = 4 * LONGEST_PAYLOAD  # bytes of a line: JSON escapes what a request carries
PREREQUISITE = "P"  # the last hop of a name and of a robots.txt, which this crawler asks for itself
_VISITED = {"Fs": "Parsed", "Fd": "Removed"}
_PASSED = frozenset({"Fe", "Fr", "Ff", *map(str.strip, (journal.COOKIES, journal.SITE, journal.SPENT, journal.GROUP,
                                                        journal.ROUND, journal.CARRIED, journal.PURGED,
                                                        journal.MEMORY, journal.HANDED))})  # fmt: skip


class ListRead(Struct):
    """The figures of a list, as far as it was read: `bad` names lines by number, `left_out` counts them by reason."""

    number: int = 0
    waiting: int = 0
    visited: int = 0
    bad: list[tuple[int, str]] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)


def read(path: Path, found: ListRead) -> Iterator[dict[str, Any]]:
    """Yield what a list has: lines of a dump, `{"uri": ...}`, and `{"visited": URI, "status": ...}`; count all in
    `found`. BadInput for a file that cannot be read whole."""
    try:
        with dump.opened(path) as file:
            while raw := file.readline(LONGEST + 1):
                found.number += 1
                try:
                    line = _line(raw, found)
                except (ValueError, KeyError, TypeError, BadInput) as error:
                    found.bad.append((found.number, error.why if isinstance(error, BadInput) else repr(error)))
                    while len(raw) > LONGEST and not raw.endswith(b"\n"):  # the rest of it
                        raw = file.readline(LONGEST + 1)
                    continue
                if line:
                    found.waiting, found.visited = found.waiting + ("uri" in line), found.visited + ("visited" in line)
                    yield line
    except (EOFError, OSError, zlib.error) as error:
        raise BadInput(str(path), f"cannot be read after line {found.number}: {error!r}") from error


def _line(raw: bytes, found: ListRead) -> dict[str, Any] | None:
    if len(raw) > LONGEST:
        raise BadInput("line", f"it is longer than {LONGEST} bytes")
    if found.number == 1 and (coding := coding_of(raw)) not in ("utf-8", "utf-8-sig"):
        raise BadInput("line", f"the file is {coding.upper()}; save it as UTF-8")
    text = raw.decode("utf-8-sig" if found.number == 1 else "utf-8").strip()
    if not text or text.startswith("#"):
        return None
    if text.startswith("{"):
        return _of_dump(text, found)
    word = text.partition(" ")[0]
    if len(word) == 2 and word[0] == "F":
        return _of_log(text, word, found)
    return _checked(make(text))


def _of_dump(text: str, found: ListRead) -> dict[str, Any] | None:
    line = json.loads(text)
    if "uri" in line:
        return _checked(uri_of(line))
    if "dump" in line:
        if line["dump"] != dump.VERSION:
            raise BadInput("line", f"a dump of version {line['dump']}, not {dump.VERSION}")
    elif "seen" in line:
        found.left_out["visited, of which a dump has the digest alone"] += 1
    elif not {"heard", "worker", "counts", "cookies", "site", "sum", "rate", "memory"} & line.keys():
        raise BadInput("line", "it has no 'uri'")
    return None


def _of_log(text: str, word: str, found: ListRead) -> dict[str, Any] | None:
    entry = journal.read_line(text)
    if word == journal.TAKEN or word in _VISITED:
        uri = taken(entry)
        if not entry.columns or not entry.columns[0]:
            raise BadInput("line", "it names no URI")
        if uri.hops.endswith(PREREQUISITE) or uri.uri.startswith("dns:") or uri.uri.endswith("/robots.txt"):
            found.left_out["names and robots.txt, which the crawl asks for itself"] += 1
            return None
        plain = make(uri.uri, crawl=uri.crawl)
        uri.key, uri.uri, uri.queue = uri.key if uri.key != uri.uri else plain.key, plain.uri, plain.queue
        if word in _VISITED and entry.more.get("again"):  # one of ours, that waits to be visited once more
            return None
        if word in _VISITED:
            return {"visited": uri.uri, "key": uri.key, "crawl": uri.crawl, "status": _VISITED[word]}
        uri.source = uri.source if uri.source != entry.columns[0] else uri.uri
        return _checked(uri)
    if word not in _PASSED:
        raise BadInput("line", f"'{shown(word)}' is no word of a recovery log")
    return None


def _checked(uri: Uri) -> dict[str, Any]:
    check_offer(uri)
    scheme = uri.uri.partition(":")[0]
    if scheme not in ("http", "https", "data"):
        raise BadInput(shown(uri.uri), f"{scheme}: is not fetched, only data, http, https")
    return line_of(uri)
