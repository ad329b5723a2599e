"""What `warcmill status` costs over a month of many launches, all of them through the whole line.

4,000 launches, 28,000 markers: each is opened, checked by its digest and parsed; no cache is kept
The peer is the floor: a Python that does just this with the same files, and the digest of each claim, and no more
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from hashlib import sha512
from io import BytesIO
from pathlib import Path

from commands.init import configuration
from warcmill import layout, roots
from warcmill.evidence import Claim, Input, claim_digest
from warcmill.formats import logzip
from warcmill.formats.logzip import Member
from warcmill.layout import OutputLayout
from warcmill.model import FINAL, FileRef, Item, Launch, Outcome, Root
from warcmill.state import State
from warcmill.stores.file import FileStore

RUNS = 3
LAUNCHES = 4_000
FIRST = datetime(2016, 10, 1, tzinfo=UTC)
APART = timedelta(minutes=11)
WARCS = 2
FLOOR = """
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
    """CPU of the whole command, beside the floor; and what it costs to come up over a day without a launch."""
    with tempfile.TemporaryDirectory() as folder:
        config = whole_launches(Path(folder), LAUNCHES)
        command = [sys.executable, "-m", "commands.main", "status"]
        month = min(_cpu(config, *command, "2016-10") for _ in range(RUNS))
        empty = min(_cpu(config, *command, "1999-01-01") for _ in range(RUNS))
        floor = min(_cpu(config, sys.executable, "-c", FLOOR, str(Path(folder) / "state")) for _ in range(RUNS))
        what = f"status of {LAUNCHES:,} whole launches, CPU s"
        yield what, f"{month:.2f}", f"{floor:.2f} (floor)", f"{month / floor:.2f}x", "under 2 s"
        yield "status of a day without a launch, CPU s", f"{empty:.2f}", "-", "-", "-"


def whole_launches(base: Path, count: int) -> Path:
    """A line whose launches all came to `verified`; its luigi.cfg."""
    folders: dict[Root, Path] = {root: base / root for root in ("output", "jobs", "state", "store")}
    roots.adopt(folders)
    state = State(FileStore("state", folders["state"]))
    for number in range(count):
        launch = Launch(f"job{number % 10}", (FIRST + number * APART).strftime("%Y%m%d%H%M%S"))
        (folders["jobs"] / launch.job / launch.id).mkdir(parents=True)
        (folders["output"] / "warcs" / launch.job / launch.id).mkdir(parents=True)
        (folders["state"] / layout.state_folder(launch)).mkdir(parents=True)
        for claim in _claims(launch):
            (folders["state"] / layout.marker_path(claim.key)).write_bytes(_bytes(state, claim))
    config = base / "luigi.cfg"
    config.write_text(configuration(folders, OutputLayout.KIND_FIRST))
    return config


def _claims(launch: Launch) -> Iterator[Claim]:
    """The seven claims of a launch without a checkpoint, each resting on the one before."""
    logs = tuple(Item(_file(f"logs/{launch}/{name}"), Outcome.OK) for name in layout.ENGINE_LOGS)
    named = {"absent": [], "unnamed": [], "named_again": [], "carried": [], "prefixes": []}
    warcs = [_file(f"warcs/{launch}/BL-{launch.id}000-{number:05d}-1~crawler~8443.warc.gz") for number in range(WARCS)]
    listed = tuple(Item(file, Outcome.OK, facts={"log": 12345}) for file in warcs)
    stored = tuple(Item(one, Outcome.OK, _stored(one), facts={"hdfs": f"crc:{'a' * 56}"}) for one in warcs)
    ended = {"how": "finished", "finished": "2016-10-20T00:00:00Z"}
    whole = {"stages": [str(FINAL)], "stage_holes": [], "serial_holes": [], "ended": "finished"}
    yield (stopped := Claim(layout.key("output.CheckJobStopped", launch), facts=ended))
    yield (packed := _claim("output.PackageLogs", launch, stopped, logs, {"absent": []}))
    yield (assembled := _claim("output.AssembleOutput", launch, packed, listed, named))
    yield Claim(layout.key("output.ProcessOutputs", launch), (_input(assembled), _input(stopped)), facts=whole)
    for step in ("Checksum", "Copy", "Verify"):
        yield (assembled := _claim(f"files.{step}", launch, assembled, stored, {}))


def _claim(task: str, launch: Launch, before: Claim, items: tuple[Item, ...], facts: dict) -> Claim:  # type: ignore[type-arg]
    counts = {"files": len(items), "bytes": sum(item.file.size for item in items)}
    return Claim(layout.key(task, launch, stage=FINAL), (_input(before),), (), items, counts, facts)


def _input(claim: Claim) -> Input:
    return Input(layout.marker_path(claim.key), claim_digest(claim))


def _file(path: str) -> FileRef:
    return FileRef("output", path, 1_000_000, sha512(path.encode()).hexdigest())


def _stored(file: FileRef) -> FileRef:
    return FileRef("store", file.path, file.size, file.sha512)


def _bytes(state: State, claim: Claim) -> bytes:
    if claim.key.task != "output.PackageLogs":
        return state.document(claim)
    target = BytesIO()
    members = [Member(item.file.name, 4, lambda: BytesIO(b"log\n")) for item in claim.items]
    logzip.write(target, members, lambda _: state.document(claim))
    return target.getvalue()


def _cpu(config: Path, *command: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env={**os.environ, "LUIGI_CONFIG_PATH": str(config)}, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
