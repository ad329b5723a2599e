"""Files of a package index that are taken out of WARCs: whole, and with the digest that their page lists."""

from __future__ import annotations

import gzip
import hashlib
import io
from pathlib import Path

import pytest
from mirroring import index_answers as index
from mirroring.index_answers import file, file_url, page
from records.captures import response
from records.warcs import chunked, warc_gz

from warcmill.errors import Mismatch, NotReady, Unavailable
from warcmill.extracts.held_files import take_out
from warcmill.formats.pypi.dump import HeldFile
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore

NAME = "alpha-1.0.tar.gz"
CONTENT = index.sdist("alpha", "1.0")
SHA256 = hashlib.sha256(CONTENT).hexdigest()
BEFORE = warc_gz(page("alpha", 1, {NAME: CONTENT}))


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    sentinel.adopt({"store": tmp_path / "store"})
    return FileStore("store", tmp_path / "store")


def kept(store: FileStore, data: bytes, name: str = "warcs/a.warc.gz") -> str:
    assert store.commit_new(name, io.BytesIO(data), len(data), hashlib.sha512(data).hexdigest())
    return name


def taken(store: FileStore, path: str, offset: int = len(BEFORE), sha256: str = SHA256) -> bytes:
    stream, size = take_out(store, HeldFile(path, offset), sha256, store.base)
    with stream:
        data = stream.read()
    assert len(data) == size
    return data


def test_a_file_is_taken_out_of_a_warc(store: FileStore) -> None:
    record = file(NAME, CONTENT)
    assert taken(store, kept(store, BEFORE + warc_gz(record, file("b-1.zip", b"")))) == CONTENT
    plain = gzip.decompress(BEFORE)
    assert taken(store, kept(store, plain + record, "warcs/a.warc"), len(plain)) == CONTENT


def test_the_chunks_of_an_answer_are_joined(store: FileStore) -> None:
    some = response(file_url(NAME), b"Transfer-Encoding: chunked", body=chunked(CONTENT))
    assert taken(store, kept(store, BEFORE + warc_gz(some))) == CONTENT


def test_a_large_file_is_not_held_in_memory(store: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warcmill.extracts.held_files._IN_MEMORY", 10)
    assert taken(store, kept(store, BEFORE + warc_gz(file(NAME, CONTENT)))) == CONTENT


def test_no_byte_is_given_of_what_is_another_file_or_none(store: FileStore) -> None:
    path = kept(store, BEFORE + warc_gz(file(NAME, CONTENT)))
    with pytest.raises(Mismatch, match="sha256 of the file at offset"):
        taken(store, path, sha256="0" * 64)
    with pytest.raises(NotReady):
        taken(store, "warcs/b.warc.gz")
    for offset in (len(BEFORE) + 1, 1 << 40):
        with pytest.raises(Unavailable, match="at offset"):
            taken(store, path, offset)
    cut = kept(store, (BEFORE + warc_gz(file(NAME, CONTENT)))[:-30], "warcs/c.warc.gz")
    with pytest.raises(Unavailable, match="at offset"):
        taken(store, cut)
