"""A fold of many lines, beside `sort -m | gzip` of the same lines; and a lookup in what it made.

    LINES=10000000 scripts/bench fold

The fold also unpacks the extracts, digests them, and reads back what it wrote; the peer gets its lines unpacked and
with their names, and checks nothing. Both are processes: CPU time of the whole, start-up included. 200 WARCs, so that
there are more than are merged at once. Disk for the default: 1 GB, in SCRATCH if that is set.
"""

from __future__ import annotations

import base64
import os
import random
import resource
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from hashlib import sha512
from pathlib import Path

from benchmarks.gate import child_cpu
from warcmill.extracts.cdx import CDXJ
from warcmill.extracts.extracts import Extracts
from warcmill.extracts.per_warc import LocalExtractor
from warcmill.formats.index.cdxj import GENERATION, all_named
from warcmill.markers.state import MarkerStore
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore
from warcmill.versions.cdx import Cdx
from warcmill.versions.dataset import Wanted
from warcmill.versions.fold import fold
from warcmill.versions.inputs import ListedWarc
from warcmill.versions.publication import open_version

Row = tuple[str, str, str, str, str]
WARCS, LOOKUPS = 200, 300


class Given(Cdx, frozen=True):
    """The CDX of WARCs that no marker stands for: their extracts are all there is."""

    def seen(self) -> str:
        return "given"

    def wanted(self, before: Sequence[ListedWarc]) -> Wanted:  # noqa: ARG002 - nothing was before
        return Wanted(tuple(map(_input, range(WARCS))))


def _input(number: int) -> ListedWarc:
    return ListedWarc(f"daily/20161019234428/{number:05}.warc.gz", sha512(b"%d" % number).hexdigest(), GENERATION)


def rows() -> Iterator[Row]:
    """What, ours, peer, ratio, target."""
    number = int(os.environ.get("LINES", "1000000"))
    with tempfile.TemporaryDirectory(dir=os.environ.get("SCRATCH")) as scratch:
        folder = Path(scratch)
        keys = _lay_out(folder, number)
        command: list[Path | str] = [sys.executable, "-m", "benchmarks.fold", folder]
        ours = child_cpu(command)
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
        merge = f"LC_ALL=C sort -m --batch-size={WARCS} {folder}/plain/* | gzip > {folder}/peer.gz"
        peer = child_cpu(["sh", "-c", merge])
        what = f"fold of {number:,} lines"
        yield what, f"{ours:.1f} s", f"{peer:.1f} s sort -m | gzip", f"{ours / peer:.2f}", "<= 1"
        yield f"{what}, memory", f"{peak} MB RSS", "-", "-", "< 200 MB"
        one = _lookup(FileStore("index", folder / "index"), keys)
        yield f"lookup in {number:,} lines", f"{one * 1000:.2f} ms", "-", "-", "< 10 ms"


def _lay_out(folder: Path, number: int) -> list[str]:
    """Extracts of random captures, and the same lines for the peer; some of their keys."""
    sentinel.adopt({"index": folder / "index", "state": folder / "state", "store": folder / "store"})
    (folder / "plain").mkdir()
    extracts, chance, keys = Extracts(FileStore("index", folder / "index")), random.Random(7), list[str]()
    for at in range(WARCS):
        one = _input(at)
        lines = _random_extract(extracts, chance, one.sha512, number // WARCS)
        keys += [line.partition(b" ")[0].decode() for line in chance.sample(lines, 5)]
        (folder / "plain" / f"{at:05}").write_bytes(all_named(b"".join(lines), one.name))
    return keys


def random_extracts(extracts: Extracts, warcs: int, number: int) -> dict[str, str]:
    """Leave extracts of so many WARCs with `number` random captures; the SHA-512 of each by its name."""
    chance, made = random.Random(7), [_input(at) for at in range(warcs)]
    for one in made:
        _random_extract(extracts, chance, one.sha512, number // warcs)
    return {one.name: one.sha512 for one in made}


def _random_extract(extracts: Extracts, chance: random.Random, sha512: str, number: int) -> list[bytes]:
    lines = sorted(_line(chance, offset) for offset in range(number))
    extracts.leave(CDXJ, sha512, [b' {"captures": {"response": %d}, "left_out": {}}\n' % number, *lines])
    return lines


def _line(chance: random.Random, offset: int) -> bytes:
    host, page = chance.randrange(5_000), f"news/{chance.randrange(10**6)}/article-{chance.randrange(1000)}.html"
    digest = base64.b32encode(chance.randbytes(20)).decode()
    url = f"http://www.site{host}.example/{page}"
    fields = f'"url": "{url}", "mime": "text/html", "status": "200", "digest": "sha1:{digest}"'
    places = f'"length": "{chance.randrange(10**5)}", "offset": "{offset * 20_000}", "filename": ""'
    time = f"2016101923{chance.randrange(60):02}{chance.randrange(60):02}"
    return f"example,site{host})/{page} {time} {{{fields}, {places}}}\n".encode()


def _lookup(index: FileStore, keys: Sequence[str]) -> float:
    """Seconds of a lookup, open version and all."""
    begun = time.perf_counter()
    for key in keys[:LOOKUPS]:
        _, lookup = open_version(index, "cdx")
        assert next(lookup.captures(key), None), key
        lookup.close()
    return (time.perf_counter() - begun) / LOOKUPS


def _fold(folder: Path) -> None:
    state = MarkerStore(FileStore("state", folder / "state"))
    index = FileStore("index", folder / "index")
    store = FileStore("store", folder / "store")
    done = fold(
        state, lambda: store, index, Given(state, LocalExtractor(store, Extracts(index)), index), "file:///warcs"
    )
    assert done.new, done


if __name__ == "__main__":
    _fold(Path(sys.argv[1]))
