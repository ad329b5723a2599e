"""`warcmill import` of a folder beside the gate over it, and a copy of it: CPU of each by turns, its median.

The folder is the bundled WARCs, or every closed one below the folder CORPUS, COPIES files or more; each has another
time in its gzip header, so that no two are the same. The peer does what an operator would do without the command, and
nothing more: judge each WARC, then copy it durably. Ours also takes each SHA-512 and the dates of all records, and
leaves a launch that a scan can take. A linked import copies nothing.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import process_time

from benchmarks.crawllog import Row
from warcmill.decisions import folder_import
from warcmill.decisions.folder_layouts import BareFolder, ImportOrder
from warcmill.decisions.intake import Advance
from warcmill.formats.warc.gate import examine
from warcmill.markers.state import MarkerStore
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore

COPIES, ROUNDS = 60, 5
SAMPLE = Path(__file__).resolve().parent.parent / "tests/data/sample/kind-first"
GZIP_TIME = slice(4, 8)  # bytes of a member's header that no digest covers (RFC 1952, 2.3)


def rows() -> Iterator[Row]:
    """What, ours, the peer's, their ratio, the target."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCHMARK_FOLDER")) as folder:
        base = Path(folder)
        size = _lay_out(base / "source")
        for what, mode, target in (("copied", 0o664, "at most 1.3 x"), ("linked", 0o644, "-")):
            for path in (base / "source").iterdir():
                path.chmod(mode)
            times = [(_cpu(_import, base), _cpu(_gate_and_copy, base)) for _ in range(ROUNDS)]
            mine, peer = (median(each) for each in zip(*times, strict=True))
            rates = (f"{size / seconds / 1e6:.0f} MB/s" for seconds in (mine, peer))
            yield (f"import, {what}", next(rates), f"{next(rates)} gate + copy", f"{mine / peer:.2f} x", target)


def _lay_out(folder: Path) -> int:
    """Make the folder; return its size in bytes."""
    folder.mkdir()
    warcs = sorted(Path(os.environ.get("CORPUS", SAMPLE / "warcs")).rglob("*.warc.gz"))
    size = 0
    for number in range(max(COPIES, len(warcs))):
        data = bytearray(warcs[number % len(warcs)].read_bytes())
        data[GZIP_TIME] = number.to_bytes(4, "little")
        (folder / f"{number:03}.warc.gz").write_bytes(data)
        size += len(data)
    return size


def _cpu(work: Callable[[Path], None], base: Path) -> float:
    """CPU seconds of one run; what it leaves is removed, and not counted."""
    for left in ("state", "imported", "copy"):
        shutil.rmtree(base / left, ignore_errors=True)
    sentinel.adopt({"state": base / "state"})
    sentinel.adopt({"output": base / "imported", "jobs": base / "imported"})
    os.sync()
    before = process_time()
    work(base)
    return process_time() - before


def _import(base: Path) -> None:
    state = MarkerStore(FileStore("state", base / "state"))
    root, source = FileStore("output", base / "imported"), BareFolder(base / "source")
    done = folder_import.import_folder(state, root, source, ImportOrder("old", "benchmark"), _silent)
    assert done.claim
    assert len(done.claim.items) == len(list(source.base.iterdir())), done


@contextmanager
def _silent(_: int) -> Iterator[Advance]:
    yield lambda _: None


def _gate_and_copy(base: Path) -> None:
    """Each WARC judged, then copied and synced."""
    (base / "copy").mkdir()
    for path in sorted((base / "source").iterdir()):
        with path.open("rb") as stream:
            assert examine(stream, path.name).ok, path
        target = base / "copy" / path.name
        shutil.copyfile(path, target)
        with target.open("rb") as copied:
            os.fsync(copied.fileno())
