"""Markers that are sound, with facts that do not fit: as another version, or a hand, may leave them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from warcmill.formats.logs.logzip import EVIDENCE

Json = Any
Change = Callable[[dict[str, Json]], None]


def document(path: Path) -> dict[str, Json]:
    """The document of a marker, a zip's too."""
    if path.suffix != ".zip":
        data = path.read_bytes()
    else:
        with ZipFile(path) as archive:
            data = archive.read(EVIDENCE)
    found: dict[str, Json] = json.loads(data[: data.rindex(b"\n", 0, -1)])
    return found


def rewrite(path: Path, change: Change) -> None:
    """Change a marker's claim, and digest it anew: it is as sound as it was."""
    found = document(path)
    change(found["claim"])
    body = json.dumps(found, ensure_ascii=False, sort_keys=True, indent=1).encode() + b"\n"
    data = body + hashlib.sha512(body).hexdigest().encode() + b"\n"
    if path.suffix != ".zip":
        path.write_bytes(data)
        return
    with ZipFile(path) as archive:
        members = [(info, archive.read(info)) for info in archive.infolist()]
    with ZipFile(path, "w") as archive:
        for info, content in members:
            archive.writestr(info, data if info.filename == EVIDENCE else content)


def places(claim: dict[str, Json]) -> Iterator[tuple[str, dict[str, Json]]]:
    """Where a claim says something: its facts, its counts, and the facts of each item."""
    yield "facts", claim["facts"]
    yield "counts", claim["counts"]
    yield from (("item", item["facts"]) for item in claim["items"] if "facts" in item)


def of_another_type(value: Json) -> tuple[Json, ...]:
    """Values that none takes for one of this type; of a list or an object, also one that holds what it should not."""
    nested = ([[7]], {"y": ["z"]})
    return (None, 7 if isinstance(value, str) else "x", *(one for one in nested if type(one) is type(value)))


def without(place: int, name: str) -> Change:
    """Take one value away."""

    def change(claim: dict[str, Json]) -> None:
        del list(places(claim))[place][1][name]

    return change


def instead(place: int, name: str, value: Json) -> Change:
    """Give one value another."""

    def change(claim: dict[str, Json]) -> None:
        list(places(claim))[place][1][name] = value

    return change
