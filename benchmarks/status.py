"""Measure what `warcmill status` costs for a month of many launches, all of them verified.

4,000 launches, 28,000 markers: each is opened, checked by its digest and parsed; there is no cache.
The peer is the minimum: a Python that imports what every command imports, reads the same files, and computes the
digest of each claim.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from hashlib import sha512
from io import BytesIO
from pathlib import Path
from types import MappingProxyType

from commands.init import configuration
from warcmill import layout
from warcmill.formats.logs import logzip
from warcmill.formats.logs.logzip import LogToPack
from warcmill.layout import OutputLayout
from warcmill.markers.claim import Claim, Input, claim_digest
from warcmill.markers.facts.output import NUMBERS, TABLES
from warcmill.markers.state import MarkerStore
from warcmill.model import FINAL, FileRef, Item, Json, Launch, Outcome, Root
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore

RUNS = 3
LAUNCHES = 4_000
FIRST = datetime(2016, 10, 1, tzinfo=UTC)
APART = timedelta(minutes=11)
WARCS = 2
FLOOR = """
import luigi.date_interval, rich.console
import json, os, sys, zipfile
from hashlib import sha512
for folder, _, names in os.walk(sys.argv[1]):
    for name in names:
        path = f"{folder}/{name}"
        if name.endswith(".zip"):
            with zipfile.ZipFile(path) as archive:
                data = archive.read(archive.infolist()[-1])
        elif folder.count("/") < sys.argv[1].count("/") + 3:
            continue
        else:
            with open(path, "rb", buffering=0) as file:
                data = file.read()
        cut = data.rfind(b"\\n", 0, -1) + 1
        assert sha512(data[:cut]).hexdigest().encode() == data[cut:-1], path
        claim = json.loads(data[:cut])["claim"]
        sha512(json.dumps(claim, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
"""


def rows() -> Iterator[tuple[str, str, str, str, str]]:
    """The CPU time of the whole command beside the minimum; and that of a day without a launch."""
    with tempfile.TemporaryDirectory() as folder:
        config = whole_launches(Path(folder), LAUNCHES)
        command = [sys.executable, "-m", "commands.main", "status"]
        peer = sys.executable, "-c", FLOOR, str(Path(folder) / "state")
        turns = [(_cpu(config, *command, "2016-10"), _cpu(config, *peer)) for _ in range(RUNS)]
        month, floor = map(min, zip(*turns, strict=True))
        empty = min(_cpu(config, *command, "1999-01-01") for _ in range(RUNS))
        what = f"status of {LAUNCHES:,} whole launches, CPU s"
        yield what, f"{month:.2f}", f"{floor:.2f} (floor)", f"{month / floor:.2f}x", "under 2 s"
        yield "status of a day without a launch, CPU s", f"{empty:.2f}", "-", "-", "-"


def whole_launches(base: Path, count: int) -> Path:
    """Make a line whose launches are all `verified`; return its luigi.cfg."""
    folders: dict[Root, Path] = {root: base / root for root in ("output", "jobs", "state", "store")}
    sentinel.adopt(folders)
    state = MarkerStore(FileStore("state", folders["state"]))
    for number in range(count):
        launch = Launch(f"job{number % 10}", (FIRST + number * APART).strftime("%Y%m%d%H%M%S"))
        (folders["jobs"] / launch.job / launch.id).mkdir(parents=True)
        (folders["output"] / "warcs" / launch.job / launch.id).mkdir(parents=True)
        leave_markers(state, launch)
    config = base / "luigi.cfg"
    config.write_text(configuration(folders, OutputLayout.KIND_FIRST))
    return config


def leave_markers(state: MarkerStore, launch: Launch) -> None:
    """Write the markers of a `verified` launch, without the work and without a sync."""
    state.store.real(layout.state_folder(launch)).mkdir(parents=True)
    for claim in _claims(launch):
        state.store.real(layout.marker_path(claim.key)).write_bytes(_bytes(state, claim))


def _claims(launch: Launch) -> Iterator[Claim]:
    """The seven claims of a launch without a checkpoint, each with the one before as its input."""
    logs = tuple(
        Item(_file(f"logs/{launch}/{name}"), Outcome.OK, facts={"member": name}) for name in layout.ENGINE_LOGS
    )
    dates = {"start_date": "2016-10-19T23:44:28Z", "end_date": "2016-10-20T00:00:00Z", "ended": "finished"}
    named = {**dates, "absent": [], "unnamed": [], "named_again": [], "odd": [], "carried": {}}
    counted = {**dict.fromkeys(NUMBERS, 1), **{name: {"200": 1} for name in TABLES}}
    warcs = [_file(f"warcs/{launch}/BL-{launch.id}000-{number:05d}-1~crawler~8443.warc.gz") for number in range(WARCS)]
    listed = tuple(Item(file, Outcome.OK, facts={"log": 12345}) for file in warcs)
    learned = {"hdfs": f"crc:{'a' * 56}", "by": "sha512"}
    stored = tuple(Item(one, Outcome.OK, _stored(one), facts=learned) for one in warcs)
    ended = {"how": "finished", "finished": "2016-10-20T00:00:00Z"}
    whole = {"stages": [str(FINAL)], "stage_holes": [], "serial_holes": [], "ended": "finished"}
    yield (stopped := Claim(layout.key("output.CheckJobStopped", launch), facts=ended))
    yield (packed := _claim("output.PackageLogs", launch, stopped, logs, {"absent": []}))
    yield (assembled := _claim("output.AssembleOutput", launch, packed, listed, named, counted))
    yield Claim(layout.key("output.ProcessOutputs", launch), (_input(assembled), _input(stopped)), facts=whole)
    for step in ("Checksum", "Copy", "Verify"):
        yield (assembled := _claim(f"files.{step}", launch, assembled, stored, {}))


def _claim(
    task: str,
    launch: Launch,
    before: Claim,
    items: tuple[Item, ...],
    facts: dict[str, Json],
    more: Mapping[str, Json] = MappingProxyType({}),
) -> Claim:
    counts = {"files": len(items), "bytes": sum(item.file.size for item in items), **more}
    return Claim(layout.key(task, launch, stage=FINAL), (_input(before),), (), items, counts, facts)


def _input(claim: Claim) -> Input:
    return Input(layout.marker_path(claim.key), claim_digest(claim))


def _file(path: str) -> FileRef:
    return FileRef("output", path, 1_000_000, sha512(path.encode()).hexdigest())


def _stored(file: FileRef) -> FileRef:
    return FileRef("store", file.path, file.size, file.sha512)


def _bytes(state: MarkerStore, claim: Claim) -> bytes:
    if claim.key.task != "output.PackageLogs":
        return state.document(claim)
    target = BytesIO()
    members = [LogToPack(item.file.name, 4, lambda: BytesIO(b"log\n")) for item in claim.items]
    logzip.write(target, members, lambda _: state.document(claim))
    return target.getvalue()


def _cpu(config: Path, *command: str) -> float:
    """The CPU time of a command; its first run compiles its modules, as an installed wheel's are."""
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["LUIGI_CONFIG_PATH"] = str(config)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
