"""Made files: each is generated once, and read as often as it is asked for."""

from __future__ import annotations

import hashlib
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

from warcmill.formats.sip.tar import CHUNK, DocumentSpool, measured


def test_a_spool_keeps_what_is_generated_once(tmp_path: Path) -> None:
    generated = []

    def chunks() -> Iterator[bytes]:
        generated.append(1)
        yield from (b"a" * CHUNK, b"b" * 7)

    with DocumentSpool(tmp_path) as spool:
        first, empty, last = spool.keep("1", chunks), spool.keep("0", lambda: iter(())), spool.keep("2", chunks)
        assert len(generated) == 2
        assert (first.path, first.size, first.sha512) == (
            "1",
            CHUNK + 7,
            hashlib.sha512(b"a" * CHUNK + b"bbbbbbb").hexdigest(),
        )
        both = zip(first.chunks(), last.chunks(), strict=True)  # read side by side
        assert [one == other for one, other in both] == [True, True]
        assert b"".join(last.chunks()) == b"".join(last.chunks()) == b"a" * CHUNK + b"bbbbbbb"
        assert list(empty.chunks()) == []
        again = measured("1", chunks)
        assert (again.size, again.sha512) == (first.size, first.sha512)
    assert not list(tmp_path.iterdir())


def test_a_large_document_is_never_in_memory(tmp_path: Path) -> None:
    tracemalloc.start()
    with DocumentSpool(tmp_path) as spool:
        made = spool.keep("1", lambda: (bytes([number]) * CHUNK for number in range(40)))
        assert sum(map(len, made.chunks())) == 40 * CHUNK
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 12 * CHUNK
