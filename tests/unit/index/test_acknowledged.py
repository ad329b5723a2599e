"""The bytes of acknowledgements, and of the lines that a CDX server gets."""

from __future__ import annotations

import io
from hashlib import sha512
from pathlib import Path

import pytest

from warcmill.errors import NotReady
from warcmill.index.provisional_captures import _line
from warcmill.index.sink_cdx import batches, name_of, sent
from warcmill.index.sinks import Acknowledged, SinkInput
from warcmill.model import Launch
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore
from warcmill.versions.inputs import Hiding, ListedWarc

LAUNCH = Launch("daily", "20161019234428")
PART = SinkInput(ListedWarc("daily/20161019234428/a.warc.gz", "ab" * 64, 1, left_out=(9,)), Hiding(2, "cd" * 64))
TEXT = (
    f'{{"decisions": 2, "hidden": "{"cd" * 64}", "refused": [4620], "schema": 1}}\n'
    f"daily/20161019234428/a.warc.gz {'ab' * 64} 1  9\n"
)


@pytest.fixture
def index(tmp_path: Path) -> FileStore:
    sentinel.adopt({"index": tmp_path / "index"})
    return FileStore("index", tmp_path / "index")


def test_an_acknowledgement_is_a_sealed_file_named_by_what_it_says(index: FileStore) -> None:
    known = Acknowledged(index, "cdx-1")
    known.begin(PART)
    known.done(PART, [4620])
    name = sha512(f"{TEXT.splitlines()[1]}\n{'cd' * 64}\n".encode()).hexdigest()[:40]
    (path,) = (index.base / "sinks/cdx-1").iterdir()
    assert path.name == name
    assert path.read_text() == f"{TEXT}{sha512(TEXT.encode()).hexdigest()}\n"
    assert known.of(PART).refused == (4620,)
    known.begin(PART)
    with pytest.raises(NotReady, match=r"a.warc.gz in index:sinks/cdx-1 is not ready: not acknowledged"):
        known.of(PART)


def test_an_acknowledgement_of_an_earlier_warcmill_is_read(index: FileStore) -> None:
    data = f"{TEXT}{sha512(TEXT.encode()).hexdigest()}\n".encode()
    index.commit_new(f"sinks/cdx-1/{PART.digest}", io.BytesIO(data), len(data), sha512(data).hexdigest())
    (answer,) = Acknowledged(index, "cdx-1").others([])
    assert (answer.part, answer.is_whole, answer.refused) == (PART, True, (4620,))


def test_a_line_is_sent_without_what_the_server_does_not_know() -> None:
    fields = (
        b'{"url": "http://e.example/\\u00e9", "mime": "text/html", "digest": "sha1:AB", "length": "9", "offset": "1",'
    )
    line = b"example,e)/ 20161019234428 " + fields + b' "filename": "d/2/a.warc.gz", "truncated": "length"}\n'
    assert sent(line) == (
        b'example,e)/ 20161019234428 {"url": "http://e.example/%C3%A9", "mime": "text/html", "digest": "AB", '
        b'"length": "9", "offset": "1", "filename": "d/2/a.warc.gz"}\n'
    )


def test_a_provisional_line_says_what_the_log_says() -> None:
    raw = b"2016-10-20T00:00:01.000Z   200 90 http://e.example/ L - text/html #001 20161019234428000+5 sha1:AB - - {}"
    assert _line(raw, LAUNCH, 77) == (
        b'example,e)/ 20161019234428 {"url": "http://e.example/", "mime": "text/html", "status": "200", '
        b'"digest": "sha1:AB", "offset": "77", "filename": "provisional/daily/20161019234428"}\n'
    )
    for bad in (b"", b"\xff", raw[:50], raw.replace(b"  200 ", b"   -6 "), raw.replace(b"20161019234428000+5", b"-")):
        assert _line(bad, LAUNCH, 77) == b""


def test_a_long_line_has_a_post_of_its_own_and_a_server_its_folder() -> None:
    long = b"x" * (5 << 20)
    assert [len(batch) for batch in batches([b"a", long, b"b", b"c"])] == [2, 2]
    assert name_of("http://cdx.example/main") == name_of("http://cdx.example/main/") != name_of("http://cdx.example/m")
