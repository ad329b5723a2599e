"""The text of a WARC's documents: gate, sha512, extraction in a worker process, the extract; beside warc-indexer.

Reads the sample, or every closed WARC under the folder CORPUS:

    CORPUS=/data/heritrix scripts/bench text
    WARC_INDEXER=/data/warc-indexer/lib CORPUS=/data/heritrix scripts/bench text

CPU seconds of all processes, start-up is counted. WARC_INDEXER is a folder with the jars of UKWA's warc-indexer 3.3.0
(`mvn dependency:copy-dependencies`), which also identifies formats and extracts links. It extracts text, and writes its
documents as XML. Without it the row has no peer.
"""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage

from benchmarks.gate import NAME, SAMPLE
from warcmill.extracts import text
from warcmill.extracts.extracts import Extracts
from warcmill.extracts.text import TextHearer
from warcmill.extracts.text_workers import TextWorkers
from warcmill.formats.warc.gate import examine
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore

Row = tuple[str, str, str, str, str]
TARGET = ">= 20 x warc-indexer"


def rows() -> Iterator[Row]:
    """What, ours, peer, ratio, target."""
    files = sorted(Path(os.environ.get("CORPUS", SAMPLE)).rglob("*.warc.gz"))
    documents, cpu = ours([file.read_bytes() for file in files])
    jars = os.environ.get("WARC_INDEXER")
    what = f"text of {documents} documents, {documents / cpu:.0f} for each CPU second"
    if not jars:
        yield what, f"{cpu:.1f} s", "-", "-", TARGET
        return
    other = theirs(files, jars)
    yield what, f"{cpu:.1f} s", f"{other:.1f} s warc-indexer", f"{other / cpu:.1f}", TARGET


def ours(warcs: list[bytes]) -> tuple[int, float]:
    """How many documents were extracted, and the CPU seconds it took."""
    begin, documents = _cpu(), 0
    with tempfile.TemporaryDirectory() as folder:
        sentinel.adopt({"index": Path(folder)})
        extracts = Extracts(FileStore("index", Path(folder)))
        with TextWorkers() as workers:
            for data in warcs:
                sha512 = hashlib.sha512(data).hexdigest()
                with closing(TextHearer(extracts, sha512, workers.submit)) as hearer:
                    verdict = examine(io.BytesIO(data), NAME, hearers=[hearer])
                    assert verdict.ok, verdict
                    assert not verdict.unheard, verdict.unheard
                    hearer.leave(sha512)
                documents += sum(text.tally(extracts, sha512).documents.values())
    return documents, _cpu() - begin


def theirs(files: list[Path], jars: str) -> float:
    """The CPU seconds that warc-indexer takes."""
    begin = _cpu()
    with tempfile.TemporaryDirectory() as folder:
        command = ["java", "-Xmx2g", "-cp", f"{jars}/*", "uk.bl.wa.indexer.WARCIndexerCommand"]
        arguments = ["-o", folder, "-t", "-F", "xml", *map(str, files)]
        subprocess.run([*command, *arguments], check=True, capture_output=True, cwd=folder)
        assert any(Path(folder).rglob("FILE_*.xml"))
    return _cpu() - begin


def _cpu() -> float:
    """CPU seconds of this process, and of its children that have ended."""
    return sum(usage.ru_utime + usage.ru_stime for usage in map(getrusage, (RUSAGE_SELF, RUSAGE_CHILDREN)))
