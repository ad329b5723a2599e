"""What markers, packages and logs are made of, whatever their values: to compare those of launches of two engines."""

from __future__ import annotations

import gzip
import json
import re
import tarfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lxml import etree

from warcmill import layout
from warcmill.formats.logs import logzip
from warcmill.markers.facts.reports import REPORT_TABLES
from warcmill.model import Launch

TABLES = {*REPORT_TABLES, "carried", "hashes"}  # their keys are data


def markers(state: Path, launch: Launch) -> dict[str, list[Path]]:
    """The markers of a launch, by task."""
    found = defaultdict(list)
    for path in (state / layout.state_folder(launch)).iterdir():
        if path.is_file() and (key := layout.parse_marker_name(path.name)):
            found[key.task].append(path)
    return dict(found)


def document(path: Path) -> dict[str, Any]:
    """A marker's claim and run."""
    if path.suffix == ".zip":
        with path.open("rb") as stream:
            text = logzip.evidence(stream)
    else:
        text = path.read_bytes()
    found: dict[str, Any] = json.loads(text.rstrip(b"\n").rpartition(b"\n")[0])  # the last line is its digest
    return found


def of_marker(value: Any, at: str = "", name: str = "") -> Iterator[str]:
    """The path and type of each value in it: `claim/items[]/file/size int`."""
    if name in TABLES:
        yield f"{at} table"
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from of_marker(one, f"{at}/{key}", key)
    elif isinstance(value, list):
        yield f"{at} list"
        for one in value:
            yield from of_marker(one, f"{at}[]")
    else:
        yield f"{at} {type(value).__name__}"


def of_sip(path: Path, launch: Launch) -> dict[str, set[str]]:
    """The kinds of a SIP's files, and of each XML document the paths of its elements."""
    found: dict[str, set[str]] = {"files": set()}
    with tarfile.open(path) as tar:
        for member in tar:
            kind = _kind(member.name, launch)
            found["files"].add(kind)
            if member.name.endswith(".xml") and (stream := tar.extractfile(member)):
                found.setdefault(kind, set()).update(_elements(etree.parse(stream).getroot()))
    return found


def _kind(name: str, launch: Launch) -> str:
    """A name without what is of this launch alone; a WARC is any WARC."""
    plain = name.replace(f"{launch.job}.{launch.id}", "SIP").replace(launch.job, "JOB")
    plain = re.sub(r"[^/]*\.warc\.gz(\.open)?$", "WARC", plain)
    return re.sub(r"cp[0-9]{5}-[0-9]{14}|\bfinal\b", "STAGE", plain)


def _elements(element: Any, above: str = "") -> set[str]:
    path = f"{above}/{etree.QName(element).localname}"
    below = [_elements(child, path) for child in element if isinstance(child.tag, str)]
    return {path, *(f"{path}@{etree.QName(name).localname}" for name in element.attrib)}.union(*below)


def of_log(path: Path) -> set[str]:
    """The shapes of a log's lines: letters for words, digits and stamps; free text is cut off where it begins."""
    data = path.read_bytes()
    text = (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8", "replace")
    reader = {"crawl": _of_crawl_line, "progress-statistics": _of_row, "frontier": _of_journal, "job": _of_word,
              "uri-errors": _of_uri_error}  # fmt: skip
    read = reader.get(path.name.partition(".log")[0].partition(".")[0])
    return {read(line) for line in text.splitlines() if line.strip()} if read else set()


def _of_crawl_line(line: str) -> str:
    fields = line.split(maxsplit=12)
    return f"{len(fields)} fields, {_stamp(fields[0])}, {_stamp(fields[8].partition('+')[0])}"


def _of_row(line: str) -> str:
    words = line.split()
    return f"{_stamp(words[0])} CRAWL" if words[1:2] == ["CRAWL"] else f"{_stamp(words[0])}, {len(words)} columns"


def _of_journal(line: str) -> str:
    return line[:2]


def _of_word(line: str) -> str:
    time, level, word, *more = line.split()
    return f"{_stamp(time)} {level} {word}" + (f" {_stamp(more[0])}" if more else "")


def _of_uri_error(line: str) -> str:
    time, _, quoted = line.split(maxsplit=2)
    return f'{_stamp(time)} VIA "..." TEXT' if re.fullmatch(r'".*" \S.*', quoted) else line


def _stamp(text: str) -> str:
    return re.sub(r"[0-9]+", lambda digits: "9" * min(len(digits[0]), 20), text)
