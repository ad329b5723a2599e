"""jwarc, Java's reader of WARCs, as a judge of ours.

Known differences, which are no faults of a WARC: jwarc computes a payload digest over the de-chunked body, Heritrix
over the body as transferred (`PAYLOAD`); and it refuses an HTTP answer that the server cut or garbled.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from servers import packages, pins, process
from warcmill.errors import Unavailable

SECONDS = 600
PAYLOAD = "payload digest failed"
_FAULT = re.compile(r"(?P<file>.*?): ERROR: (?P<why>.*)")
_PLACE = re.compile(r".*?:   offset (?P<offset>[0-9]+) \(.*failed")
_BROKEN = re.compile(r"Exception validating (?P<file>.*?): (?P<why>.*)")


@dataclass(frozen=True)
class Fault:
    """What jwarc finds wrong in the record at `offset` of a file; without one, it could not read the file on."""

    file: str
    why: str
    offset: int | None


@dataclass(frozen=True)
class CdxjLine:
    """One line of jwarc's CDXJ: its digest has its algorithm before it, which others leave out."""

    urlkey: str
    timestamp: str
    fields: dict[str, Any]


def validate(*warcs: Path) -> list[Fault]:
    """Read WARCs whole, with all their digests, in one JVM; return what is wrong in them, by the files' names."""
    missing = [warc for warc in warcs if not warc.is_file()]
    if missing:  # it would report it as a WARC that is wrong
        raise Unavailable("jwarc", f"there is no WARC {missing[0]}")
    command = [str(word) for word in (*_command(), "validate", "--threads", "1", *warcs)]
    done = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False, stdin=subprocess.DEVNULL)
    printed = done.stderr.decode("utf-8", "replace")
    faults = list(_faults(printed))
    if bool(faults) != (done.returncode == 1) or done.returncode > 1:
        raise Unavailable("jwarc", f"it ended with {done.returncode}:\n{printed[-process.TAIL_BYTES :]}")
    return faults


def cdxj(*warcs: Path) -> list[CdxjLine]:
    """The CDXJ lines of WARCs, in the order of their records."""
    printed = process.run("jwarc", warcs[0].parent, [*_command(), "cdxj", *warcs], SECONDS)
    return [_parse(line) for line in printed.splitlines() if line]


def _faults(printed: str) -> Iterator[Fault]:
    """The faults of a report: jwarc writes those of a record first, then the record's place."""
    pending: list[tuple[str, str]] = []
    for line in printed.splitlines():
        if broken := _BROKEN.fullmatch(line):
            yield Fault(Path(broken["file"]).name, broken["why"], None)
        elif fault := _FAULT.fullmatch(line):
            pending.append((fault["file"], fault["why"]))
        elif place := _PLACE.fullmatch(line):
            yield from (Fault(file, why, int(place["offset"])) for file, why in pending)
            pending = []
    yield from (Fault(file, why, None) for file, why in pending)


def _parse(line: str) -> CdxjLine:
    urlkey, timestamp, fields = line.split(" ", 2)
    return CdxjLine(urlkey, timestamp, json.loads(fields))


def _command() -> list[str | Path]:
    return [packages.java(), "-Xmx256m", "-jar", packages.jar(pins.JWARC, pins.JWARC_SHA256)]
