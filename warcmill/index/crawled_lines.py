"""What a running launch has crawled, as lines of an index that say so: provisional ones.

`filename` is `provisional/{job}/{launch}`, which no WARC has, and `offset` is where the line ends in the crawl logs of
the launch, taken as one. Engines give a record the time of its fetch, so its second is that of the capture to come.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import BinaryIO

from warcmill import layout
from warcmill.formats import crawllog
from warcmill.formats.crawllog import CrawlRecord
from warcmill.formats.loglines import CHUNK, LIMIT
from warcmill.formats.urlkey import urlkey
from warcmill.launches.roots import JobRoots
from warcmill.model import Launch, Stage
from warcmill.stores import Stat

_HTTP = 100  # from here on a status is one of HTTP; 1 is a DNS answer; below are failures


def name_of(launch: Launch) -> str:
    """The `filename` of the provisional lines of a launch."""
    return f"provisional/{launch.job}/{launch.id}"


def crawled(roots: JobRoots, launch: Launch, start: int) -> Iterator[tuple[int, bytes]]:
    """The lines of a launch's crawl logs from a place on: for each, where it ends, and what an index gets, or b''.

    Rotated logs come first. A last line that is not whole yet is left for later. A start that is no end of a line is of
    other logs: then everything is taken again.
    """
    logs = _logs(roots, launch)
    if start and not _is_an_end(roots, logs, start):
        start = 0
    base = 0
    for log in logs:
        if base + log.size > start:
            with roots.output.open(log.path, max(start - base, 0)) as stream:
                for end, raw in _whole_lines(stream, max(start, base)):
                    yield end, _line(raw, launch, end)
        base += log.size


def _logs(roots: JobRoots, launch: Launch) -> list[Stat]:
    """The crawl logs, oldest first; not compressed ones."""
    found: dict[tuple[Stage, tuple[int, str, int, bool]], Stat] = {}
    for entry in roots.output.list(roots.layout.folder("logs", launch)):
        plain, stage = layout.split_log_name(entry.name)
        order = layout.crawl_log_order(plain)
        if entry.kind == "file" and order and not plain.endswith(".gz"):
            found[Stage.parse(stage), order] = entry
    return [found[order] for order in sorted(found)]


def _is_an_end(roots: JobRoots, logs: list[Stat], place: int) -> bool:
    base = 0
    for log in logs:
        if base < place <= base + log.size:
            with roots.output.open(log.path, place - base - 1) as stream:
                return stream.read(1) == b"\n"
        base += log.size
    return False


def _whole_lines(stream: BinaryIO, at: int) -> Iterator[tuple[int, bytes]]:
    """Lines without their ends; of one that is too long, the last bytes."""
    rest, dropped = b"", 0
    while chunk := stream.read(CHUNK):
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            at, dropped = at + dropped + len(line) + 1, 0
            yield at, line
        if len(rest) > LIMIT:
            dropped, rest = dropped + len(rest) - LIMIT, rest[-LIMIT:]


def _line(raw: bytes, launch: Launch, end: int) -> bytes:
    record = crawllog.parse(raw)
    if not isinstance(record, CrawlRecord) or (record.status or 0) <= 0:
        return b""
    second = (record.fetched or "")[:14]
    if len(second) != 14 or not second.isdigit():
        return b""
    fields = {"url": record.uri, "mime": record.mime or "unk"}
    if record.status and record.status >= _HTTP:
        fields["status"] = str(record.status)
    if record.digest:
        fields["digest"] = record.digest
    text = json.dumps({**fields, "offset": str(end), "filename": name_of(launch)})
    return f"{urlkey(record.uri)} {second} {text}\n".encode()
