"""Servers of S3 that do not keep what a store promises: refused at once, or caught in the lie."""

from __future__ import annotations

import hashlib
import io
import logging
import os
from pathlib import Path

import pytest
from storing.lying_s3 import LyingS3, lying

from warcmill.errors import BadConfig, BadInput, Mismatch, Unavailable
from warcmill.layout import SENTINEL
from warcmill.stores import opening, temporary_names
from warcmill.stores.opening import Access
from warcmill.stores.remote_files import Budget
from warcmill.stores.s3.client import Bucket
from warcmill.stores.s3.place import S3Access, S3Place
from warcmill.stores.s3.store import PART, S3Store

URL = "s3://archive/line"
SECRET = "not-for-other-eyes"
LONG = bytes(range(256)) * (PART // 256 + 1)


def access(server: LyingS3) -> Access:
    return Access(s3=S3Access(server.endpoint, "", "somebody", SECRET))


def store_of(server: LyingS3, *, patience: float = 20) -> S3Store:
    bucket = Bucket("archive", access(server).s3, Budget(patience), 60)
    return S3Store("store", bucket, S3Place("archive", "line"), new=True)


def commit(store: S3Store, data: bytes, path: str = "a.warc.gz") -> bool:
    return store.commit_new(path, io.BytesIO(data), len(data), hashlib.sha512(data).hexdigest())


def test_a_server_without_a_lie_is_adopted() -> None:
    with lying("") as server:
        opening.adopt(URL, ["store"], access(server))
        opening.adopt(URL, ["store"], access(server))
        assert set(server.objects) == {f"line/{SENTINEL}"}
        assert server.uploads == {}


@pytest.mark.parametrize(
    ("lie", "why"),
    [
        ("lets the second win", "publishes a second file over the first"),
        ("lets a second upload win", "publishes a second file over the first"),
        ("knows no conditions", "501"),
        ("takes wrong bytes", "do not fit their SHA-256"),
        ("stores other bytes", "returned b'other'"),
        ("lists late", "does not list a file that it has just stored"),
        ("keeps no digest", "as the server keeps it"),
        ("loses a part", "as the server keeps it"),
    ],
)
def test_init_refuses_a_server_that_is_no_store(lie: str, why: str) -> None:
    with lying(lie) as server:
        with pytest.raises(BadConfig, match=why):
            opening.adopt(URL, ["store"], access(server))
        assert (server.objects, server.uploads) == ({}, {})


def test_a_bucket_with_other_files_is_refused() -> None:
    with lying("") as server:
        assert commit(store_of(server), b"another's")
        with pytest.raises(BadConfig, match="holds files"):
            opening.adopt(URL, ["store"], access(server))
        assert set(server.objects) == {"line/a.warc.gz"}


def test_a_server_that_ignores_ranges_is_caught() -> None:
    with lying("ignores ranges") as server:
        assert commit(store_of(server), b"0123456789")
        with store_of(server).open("a.warc.gz") as file:
            assert file.read() == b"0123456789"
        with (
            store_of(server, patience=0.3).open("a.warc.gz", 3) as file,
            pytest.raises(Unavailable, match="from byte 3 on"),
        ):
            file.read()


def test_an_answer_that_ends_early_is_continued() -> None:
    with lying("ends early") as server:
        assert commit(store_of(server), b"0123456789abcdef")
        with store_of(server).open("a.warc.gz") as file:
            assert file.read() == b"0123456789abcdef"


@pytest.mark.parametrize(
    ("lie", "why"), [("lists without end", "has no end"), ("answers no XML", "refuses list_objects_v2")]
)
def test_a_list_that_is_none_is_an_outage(lie: str, why: str) -> None:
    with lying("") as server:
        assert commit(store_of(server), b"data")
        server.lie = lie
        with pytest.raises(Unavailable, match=why):
            list(store_of(server, patience=0.3).list(""))


def test_a_long_file_of_which_a_part_is_lost_is_a_mismatch() -> None:
    with lying("loses a part") as server, pytest.raises(Mismatch, match="SHA-256 of its parts"):
        commit(store_of(server), LONG)


def test_a_long_file_goes_in_parts_and_leaves_no_note() -> None:
    with lying("") as server:
        assert commit(store_of(server), LONG)
        assert not commit(store_of(server), LONG)
        assert {key: data for key, (data, _) in server.objects.items()} == {"line/a.warc.gz": LONG}
        assert server.uploads == {}


@pytest.mark.parametrize("lie", ["", "copies short"])
def test_a_file_is_deleted_only_when_its_copy_is_whole(lie: str) -> None:
    with lying(lie) as server:
        store = store_of(server)
        assert commit(store, b"0123456789")
        found = store.stat("a.warc.gz")
        assert found
        if lie:
            with pytest.raises(Mismatch, match="as the server copied it"):
                store.move_aside("a.warc.gz", "aside/a.warc.gz", found)
            assert server.objects["line/a.warc.gz"][0] == b"0123456789"
        else:
            assert store.move_aside("a.warc.gz", "aside/a.warc.gz", found)
            assert {key: data for key, (data, _) in server.objects.items()} == {"line/aside/a.warc.gz": b"0123456789"}


def test_what_another_process_sweeps_at_the_same_time_is_no_failure() -> None:
    with lying("") as server:
        store = store_of(server)
        dead = temporary_names.name("a.warc.gz").replace(f".{os.getpid()}.", ".999999999.")
        assert commit(store, b"upload\na.warc.gz", dead)
        server.lie = "lists what is gone"
        assert store.sweep("") == 1


def test_a_folder_is_found_also_by_a_list_that_counts_no_keys() -> None:
    with lying("") as server:
        assert commit(store_of(server), b"data", "2016/a.warc.gz")
        server.lie = "counts no keys"
        found = store_of(server).stat("2016")
        assert found
        assert found.kind == "folder"


def test_an_endpoint_with_a_secret_is_refused_without_it() -> None:
    with pytest.raises(BadConfig, match="endpoint") as caught:
        S3Access("https://somebody:secret@s3.example")
    assert "secret@" not in str(caught.value)


def test_the_secret_is_in_no_header_message_or_log(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    with lying("") as server, caplog.at_level(logging.DEBUG):
        assert commit(store_of(server), b"data")
        seen = "".join([*server.headers_seen, caplog.text, repr(access(server)), str(store_of(server)._s3)])
        assert "somebody" in seen
        assert SECRET not in seen
    with pytest.raises(BadConfig, match="secret_key_file"):
        Bucket("archive", S3Access("http://127.0.0.1:9", secret_key_file=str(tmp_path / "none")), Budget(0))


def test_no_server_is_an_outage_and_no_absence() -> None:
    with lying("") as server:
        gone = server
    with pytest.raises(Unavailable, match="Could not connect"):
        store_of(gone).stat("a.warc.gz")


@pytest.mark.parametrize("path", ["\u00fc", "new\nline", "x/" * 600 + "y"])
def test_paths_that_no_answer_could_name_are_refused(path: str) -> None:
    with lying("") as server, pytest.raises(BadInput):
        commit(store_of(server), b"data", path)


@pytest.mark.parametrize(
    "url",
    [
        "s3://a:secret@bucket/x",
        "s3://",
        "s3://Bucket/x",
        "s3://b/x",
        "s3://bucket/x?secret",
        "s3://bucket/../x",
        "s3://bucket/a//b",
    ],
)
def test_urls_that_are_none_are_refused_without_their_secrets(url: str) -> None:
    with pytest.raises(BadConfig) as caught:
        S3Place.parse(url)
    assert "secret" not in str(caught.value)


def test_a_url_is_taken_apart() -> None:
    assert S3Place.parse("s3://bucket/x/y/") == S3Place("bucket", "x/y")
    assert S3Place.parse("s3://bucket") == S3Place("bucket", "")


@pytest.mark.parametrize("root", ["output", "jobs", "state", "index", "destination"])
def test_only_the_store_may_be_in_s3(root: str) -> None:
    with pytest.raises(BadConfig, match="is not a place for it"):
        opening.check_place(root, URL)
