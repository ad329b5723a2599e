"""Read a dump back from the store, by other code than wrote it: Python's own gzip and JSON. Reads only.

Each file has to have the length and the SHA-512 that pypi.dumped claims. Its rows have to be in their shard, in order,
each once; there have to be as many as were counted; and each row of facts has to be of a file that a project's page
lists, with the digest that it lists.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from itertools import groupby
from typing import Any, BinaryIO, cast

from warcmill import layout
from warcmill.base import digests
from warcmill.base.line_sort import SortedLines
from warcmill.errors import BadInput, Mismatch
from warcmill.layout import DumpedData, DumpFile, parse_dump_path
from warcmill.markers.claim import Claim
from warcmill.markers.facts.pypi import Dumped
from warcmill.markers.state import MarkerStore, rests_on
from warcmill.model import FileRef, Item, Json, Launch, Outcome
from warcmill.pypi.dump import SHARDS
from warcmill.stores import Store

_LISTED, _ROW = b"0", b"1"


def verify(state: MarkerStore, store: Store, launch: Launch) -> Claim:
    """The claim of pypi.dump-verified. NotReady when a file of the dump is missing, Mismatch when it has other bytes,
    or rows that cannot be right."""
    dumped = state.require(layout.step("dump", launch))
    items, counts = read_back(state, store, dumped.claim)
    return Claim(layout.step("verify-dump", launch), rests_on(dumped), items=items, counts=counts)


def read_back(state: MarkerStore, store: Store, claim: Claim) -> tuple[tuple[Item, ...], dict[str, Json]]:
    """The files of a dump, as items, and the counts of all; fails as `verify`."""
    facts = Dumped.from_claim(claim)
    found, items = Counter[str](), []
    with state.scratch() as folder, closing(SortedLines(folder)) as listed:
        for file in facts.files:
            with tempfile.TemporaryFile(dir=folder) as copy:
                _fetch(store, file, cast("BinaryIO", copy))
                rows = _rows(cast("BinaryIO", copy), file, listed)
            found.update(rows)
            items.append(Item(file, Outcome.OK, file, facts={name: rows[name] for name in sorted(rows)}))
        _check_listed(listed, facts)
    counts: dict[str, Json] = {name: found[name] for name in facts.counts}
    if counts != facts.counts:
        launch = layout.launch_of(claim.key)
        raise Mismatch(f"rows in the dump of {launch}, of serials {facts.window}", dict(facts.counts), counts)
    return tuple(items), counts


def _fetch(store: Store, file: FileRef, copy: BinaryIO) -> None:
    """Copy a file of the store, and compare it with its claim."""
    with store.open(file.path) as stream:
        shutil.copyfileobj(stream, copy, digests.CHUNK)
    copy.seek(0)
    if (found := digests.sha512(copy)) != (file.size, file.sha512):
        raise Mismatch(f"length and SHA-512 of store:{file.path}", (file.size, file.sha512), found)
    copy.seek(0)


def _rows(copy: BinaryIO, file: FileRef, listed: SortedLines) -> Counter[str]:
    """Count the rows of a file, and add the files that they list or are of."""
    place = parse_dump_path(file.path)
    if place is None:
        raise BadInput(file.path, "no path of a dump's file")
    found, before = Counter[str](), ("", "")
    for row in _parsed(copy, file.path):
        is_state, is_past = place.data is DumpedData.STATE, place.data is DumpedData.LIVES
        name = (row["project"], "" if is_state or is_past else row["filename"])
        if name <= before:
            raise Mismatch(f"order of rows in store:{file.path}", f"after {before}", name)
        before = name
        digest = hashlib.sha256(row["project"].encode()).hexdigest() if is_state or is_past else row["sha256"]
        _check_shard(place, file.path, digest)
        if is_past:
            found["lives"] += 1
        elif is_state:
            found["projects"] += 1
            found["files"] += len(row["files"])
            for one in row["files"]:
                listed.add(_key(row["project"], one["filename"], _LISTED, one["sha256"]))
        else:
            found["rows"] += 1
            listed.add(_key(row["project"], row["filename"], _ROW, row["sha256"]))
    return found


def _check_shard(place: DumpFile, path: str, digest: str) -> None:
    if place.window.after == 0 and int(digest[:2], 16) != place.number % SHARDS:
        raise Mismatch(f"shard of a row in store:{path}", int(digest[:2], 16), place.number % SHARDS)


def _parsed(copy: BinaryIO, path: str) -> Iterator[Mapping[str, Any]]:
    """The rows of a dump's file: its lines but for the brackets, one object each."""
    try:
        with gzip.open(copy, "rt", encoding="ascii", newline="\n") as text:
            opening, last = next(text, ""), ""
            for line in text:
                last = line
                if line not in ("]\n", "\n"):
                    yield json.loads(line.rstrip("\n").removesuffix(","))
        if (opening, last) != ("[\n", "]\n"):
            raise BadInput(path, "it is not an array, a row a line")
    except (EOFError, OSError, ValueError) as error:
        raise BadInput(path, f"it cannot be read: {error}") from error


def _key(project: str, filename: str, kind: bytes, sha256: str | None) -> bytes:
    return json.dumps([project, filename]).encode() + b"\t" + kind + b"\t" + (sha256 or "").encode() + b"\n"


def _check_listed(listed: SortedLines, facts: Dumped) -> None:
    """Mismatch if a row is of a file that no page lists, or that it lists with another digest."""
    for file, some in groupby(listed, lambda line: line.partition(b"\t")[0]):
        known: set[bytes] = set()
        for line in some:
            _, kind, sha256 = line.rstrip(b"\n").split(b"\t")
            if kind == _LISTED:
                known.add(sha256)
            elif not known & {sha256, b""}:
                what = f"SHA-256 of {file.decode()} in the dump of serials {facts.window}"
                raise Mismatch(what, sorted(one.decode() for one in known) or "a page that lists it", sha256.decode())
