"""Extracts: same content, same file; a damaged one is never read as a whole one, and is replaced."""

from __future__ import annotations

import gzip
import hashlib
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from warcmill.errors import BadInput, NotReady, Unavailable
from warcmill.extracts.extracts import ExtractKind, Extracts
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore

KIND = ExtractKind("lines", 3, "txt.gz")
WARC = hashlib.sha512(b"a WARC").hexdigest()
LINES = [b"one\n", b"two\n", b"three"]
CONTENT = b"".join(LINES)


@pytest.fixture
def index(tmp_path: Path) -> FileStore:
    sentinel.adopt({"index": tmp_path / "index"})
    return FileStore("index", tmp_path / "index")


def real(index: FileStore) -> Path:
    return index.real(KIND.path(WARC))


def names(index: FileStore) -> set[str]:
    return {path.name for path in index.base.rglob("*") if path.is_file()} - {".warcmill.json"}


def test_its_path_is_its_kind_its_generation_and_the_digest_of_the_warc(index: FileStore) -> None:
    Extracts(index).leave(KIND, WARC, LINES)
    assert KIND.path(WARC) == f"extracts/lines-3/{WARC[:2]}/{WARC}.txt.gz"
    assert gzip.decompress(real(index).read_bytes()) == CONTENT
    assert names(index) == {f"{WARC}.txt.gz"}


def test_what_is_no_digest_has_no_path() -> None:
    for wrong in ("", "../" + WARC[3:], WARC.upper(), WARC[:-1]):
        with pytest.raises(BadInput):
            KIND.path(wrong)


def test_the_same_content_gives_the_same_file_however_it_is_cut(index: FileStore) -> None:
    extracts = Extracts(index)
    extracts.leave(KIND, WARC, LINES)
    first = real(index).read_bytes()
    real(index).unlink()
    extracts.leave(KIND, WARC, [CONTENT[:5], b"", CONTENT[5:]])
    assert real(index).read_bytes() == first


def test_it_is_read_in_lines_and_by_its_digest(index: FileStore) -> None:
    extracts = Extracts(index)
    extracts.leave(KIND, WARC, LINES)
    assert list(extracts.lines(KIND, WARC)) == LINES
    assert extracts.digest(KIND, WARC) == hashlib.sha512(CONTENT).hexdigest()


def test_an_empty_one_is_whole(index: FileStore) -> None:
    extracts = Extracts(index)
    extracts.leave(KIND, WARC, [])
    assert extracts.digest(KIND, WARC) == hashlib.sha512().hexdigest()
    assert list(extracts.lines(KIND, WARC)) == []


def test_one_that_is_not_there(index: FileStore) -> None:
    extracts = Extracts(index)
    assert extracts.digest(KIND, WARC) is None
    with pytest.raises(NotReady):
        list(extracts.read(KIND, WARC))


def test_an_outage_is_no_absence(index: FileStore) -> None:
    (index.base / ".warcmill.json").unlink()
    with pytest.raises(Unavailable):
        Extracts(index).digest(KIND, WARC)


def test_every_flipped_byte_and_every_cut_shows_or_leaves_the_content_whole(index: FileStore) -> None:
    extracts = Extracts(index)
    extracts.leave(KIND, WARC, LINES)
    whole = real(index).read_bytes()
    sound = extracts.digest(KIND, WARC)
    for at in range(len(whole)):
        real(index).write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert extracts.digest(KIND, WARC) in (None, sound), at
        real(index).write_bytes(whole[:at])
        assert extracts.digest(KIND, WARC) is None, at
    real(index).write_bytes(whole + b"x")
    assert extracts.digest(KIND, WARC) is None
    real(index).write_bytes(whole + whole)
    with pytest.raises(BadInput, match="after the end"):
        list(extracts.read(KIND, WARC))


def test_a_sound_one_stays_and_a_damaged_one_is_replaced(index: FileStore) -> None:
    extracts = Extracts(index)
    extracts.leave(KIND, WARC, LINES)
    before = real(index).stat().st_ino
    extracts.leave(KIND, WARC, LINES)
    assert real(index).stat().st_ino == before
    whole = real(index).read_bytes()
    real(index).write_bytes(whole[:-1] + bytes([whole[-1] ^ 4]))
    extracts.leave(KIND, WARC, LINES)
    assert real(index).read_bytes() == whole


def test_one_that_another_worker_replaced_meanwhile_is_left_alone(
    index: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    extracts = Extracts(index)
    extracts.leave(KIND, WARC, LINES)
    whole = real(index).read_bytes()
    real(index).write_bytes(b"damaged")

    def replaced_at_the_last_moment(path: str, only: object) -> None:
        real(index).unlink()
        real(index).write_bytes(whole)
        return original(path, only)  # type: ignore[arg-type]

    original = index.remove
    monkeypatch.setattr(index, "remove", replaced_at_the_last_moment)
    extracts.leave(KIND, WARC, LINES)
    assert real(index).read_bytes() == whole


@pytest.mark.parametrize("size", [0, 1, 1 << 10, 1 << 20])
def test_the_lines_of_a_small_and_of_a_large_one(index: FileStore, size: int) -> None:
    extracts, content = Extracts(index), random.Random(size).randbytes(size)
    extracts.leave(KIND, WARC, [content])
    lines = list(extracts.lines(KIND, WARC))
    assert b"".join(lines) == b"".join(extracts.read(KIND, WARC)) == content
    assert all(line.find(b"\n") in (-1, len(line) - 1) for line in lines)


@pytest.mark.parametrize("harm", [lambda data: data[:-1], lambda data: data + b"x", lambda data: b"x" + data])
def test_no_line_of_a_damaged_small_one_is_read(index: FileStore, harm: Callable[[bytes], bytes]) -> None:
    extracts = Extracts(index)
    extracts.leave(KIND, WARC, LINES)
    real(index).write_bytes(harm(real(index).read_bytes()))
    with pytest.raises(BadInput):
        list(extracts.lines(KIND, WARC))


def test_what_its_maker_raises_leaves_nothing(index: FileStore) -> None:
    def content() -> Iterator[bytes]:
        yield b"x" * (1 << 23)
        raise BadInput("a WARC", "it is bad")

    with pytest.raises(BadInput):
        Extracts(index).leave(KIND, WARC, content())
    assert names(index) == set()


def test_a_large_one_takes_little_memory(index: FileStore) -> None:
    code = f"""
import os, sys
from pathlib import Path
from warcmill.extracts.extracts import Extracts, ExtractKind
from warcmill.stores.file import FileStore
extracts, kind = Extracts(FileStore("index", Path(sys.argv[1]))), ExtractKind("lines", 3, "txt.gz")
extracts.leave(kind, "{WARC}", (os.urandom(1 << 20) for _ in range(96)))
assert extracts.digest(kind, "{WARC}")
print(next(row.split()[1] for row in open("/proc/self/status") if row.startswith("VmHWM")))
"""
    done = subprocess.run([sys.executable, "-c", code, index.base], capture_output=True, text=True, check=True)
    assert int(done.stdout) >> 10 < 80


def test_half_written_files_of_dead_processes_are_swept(index: FileStore) -> None:
    code = f"""
import os, sys
from pathlib import Path
from warcmill.extracts.extracts import Extracts, ExtractKind
from warcmill.stores.file import FileStore
os.link = lambda *_: os._exit(9)
Extracts(FileStore("index", Path(sys.argv[1]))).leave(ExtractKind("lines", 3, "txt.gz"), "{WARC}", [b"x"])
"""
    assert subprocess.run([sys.executable, "-c", code, index.base], check=False).returncode == 9
    assert len(names(index)) == 1
    Extracts(index).leave(KIND, WARC, LINES)
    assert os.listdir(real(index).parent) == [real(index).name]
