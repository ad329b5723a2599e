"""The links of a package index: which files of a page are asked for, and which part of a wheel is still needed."""

from __future__ import annotations

import hashlib
import io
import json
import random
import zipfile
from email.message import Message

import pytest

from servers.package_journal import RangeFault
from servers.package_site import file_answer
from warcmill.crawl import extract
from warcmill.crawl.extract import package_index
from warcmill.crawl.extract.links import Outlinks
from warcmill.crawl.fetch.answer import HeaderFields
from warcmill.crawl.fetch.exchange import key_of, read, request_of

URI = "https://index.example/simple/demo/"
WHEEL = "https://files.example/demo-1.0-py3-none-any.whl"
JSON = HeaderFields([("content-type", "application/vnd.pypi.simple.v1+json")])
FILES = [
    "demo-1.0.tar.gz", "demo-1.0-py3-none-any.whl", "demo-2.0-py3-none-any.whl", "demo-2.0.zip",
    "demo-3.0rc1-py3-none-any.whl", "demo-1.0-py2.7.egg", "demo-1.0.win32.exe", "demo-1.0-1.noarch.rpm",
]  # fmt: skip


def page(*names: str, **more: object) -> bytes:
    files = [{"filename": name, "url": f"https://files.example/{name}", "hashes": {}, **more} for name in names]
    return json.dumps({"meta": {"api-version": "1.1", "_last-serial": 7}, "name": "demo", "files": files}).encode()


def found(data: bytes, **options: object) -> dict[str, str]:
    payload = json.dumps(package_index.page("demo", **options))  # type: ignore[arg-type]
    links = extract.find(data, URI, 200, JSON, [package_index.NAME], payload)
    assert {link.hop for link in links} <= {"E"}
    return {link.uri.rpartition("/")[2]: link.payload for link in links}


def test_a_page_embeds_its_files_and_of_a_wheel_the_end_is_asked_for() -> None:
    files = found(page(*FILES))
    assert set(files) == set(FILES[:6])  # names of installers and RPMs suffice
    assert read(files["demo-1.0-py3-none-any.whl"]).range == (-65536, None)
    assert files["demo-1.0.tar.gz"] == files["demo-1.0-py2.7.egg"] == ""


def test_whole_wheels_and_short_ones_are_asked_for_without_a_range() -> None:
    assert not any(found(page(*FILES), whole=True).values())
    assert not any(found(page(*FILES, size=65536)).values())
    assert found(page("demo-1.0-py3-none-any.whl", size=65537))["demo-1.0-py3-none-any.whl"]


def test_only_the_files_that_are_named_are_wanted() -> None:
    assert set(found(page(*FILES), files=["demo-2.0.zip", "demo-9.tar.gz"])) == {"demo-2.0.zip"}


def test_the_newest_release_is_no_pre_release_and_not_yanked_unless_all_are() -> None:
    newest = {"demo-2.0-py3-none-any.whl", "demo-2.0.zip"}
    assert set(found(page(*FILES), newest=True)) == newest
    assert set(found(page(*FILES, yanked="broken"), newest=True)) == newest
    assert set(found(page("demo-1rc1.tar.gz", "demo-1rc2.tar.gz"), newest=True)) == {"demo-1rc2.tar.gz"}
    assert set(found(page("demo-final-cut.tar.gz"), newest=True)) == {"demo-final-cut.tar.gz"}
    yanked = json.loads(page(*FILES))
    for file in yanked["files"]:
        file["yanked"] = file["filename"] in newest
    assert "demo-1.0.tar.gz" in found(json.dumps(yanked).encode(), newest=True)


def test_older_releases_are_asked_for_once_the_newest_was_unless_the_page_has_changed() -> None:
    newest = {"demo-2.0-py3-none-any.whl", "demo-2.0.zip"}
    assert set(found(page(*FILES), newest=package_index.FIRST)) == newest
    assert set(found(page(*FILES), older=7)) == set(FILES[:6]) - newest
    assert set(found(page(*FILES), older=6)) == set(FILES[:6]), "another release may be the newest by now"
    assert set(found(page(*FILES), files=["demo-1.0.tar.gz", "demo-2.0.zip"], older=7)) == {"demo-1.0.tar.gz"}


def test_of_a_release_with_a_wheel_no_sdist_is_asked_for_where_it_is_not_needed() -> None:
    assert set(found(page(*FILES), needed=True)) == set(FILES[1:3] + FILES[4:6])
    names = ["demo-1.0-beta.tar.gz", "demo-1.0b0-py3-none-any.whl", "demo-0.9.tar.gz", "demo-old.zip"]
    assert set(found(page(*names), needed=True)) == {names[1], *names[2:]}
    assert set(found(page(names[0]), needed=True)) == {names[0]}
    assert set(found(page(*FILES), newest=True, needed=True)) == {"demo-2.0-py3-none-any.whl"}


@pytest.mark.parametrize(
    ("more", "digest"),
    [
        ({"core-metadata": {"sha256": "a" * 64}}, "a" * 64),
        ({"data-dist-info-metadata": {"sha256": "a" * 64}}, "a" * 64),
        ({"core-metadata": {"sha256": "a" * 64}, "dist-info-metadata": False}, "a" * 64),
        ({"core-metadata": True}, ""),
        ({"core-metadata": {"md5": "0"}}, ""),
        ({"core-metadata": False, "dist-info-metadata": {"sha256": "a" * 64}}, None),
        ({"core-metadata": "yes"}, None),
        ({"core-metadata": [7]}, None),
    ],
)
def test_the_metadata_beside_a_wheel_is_asked_for_by_its_keys(more: dict[str, object], digest: str | None) -> None:
    name = "demo-1.0-py3-none-any.whl"
    files = found(page(name, "demo-1.0.tar.gz", size=90_000, **more))
    if digest is None:
        assert (set(files), read(files[name]).range) == ({name, "demo-1.0.tar.gz"}, (-65536, None))
        return
    assert set(files) == {name, f"{name}.metadata", "demo-1.0.tar.gz"}
    assert json.loads(files[f"{name}.metadata"]) == {"package_index": {"metadata": digest, "size": 90_000}}
    assert json.loads(files[name])["package_index"] == {"wheel": 1, "size": 90_000, "modules": True}
    assert set(found(page(name, **more), whole=True)) == {name}


def test_of_wheels_that_share_version_and_python_tag_one_is_asked_for_its_modules() -> None:
    tags = ["cp311-cp311-win32", "cp311-cp311-macosx_11_0_arm64", "cp312-cp312-win32", "py3-none-any"]
    names = [f"demo-{version}-{tag}.whl" for version in ("1.0", "2.0") for tag in tags]
    files = found(page(*names, **{"core-metadata": True}))
    assert {name for name in files if name.endswith(".metadata")} == {f"{name}.metadata" for name in names}
    assert set(files) & set(names) == {name for name in names if "macosx" not in name}
    named = found(page(*names, **{"core-metadata": True}), files=[names[1]])
    assert set(named) == {names[1], f"{names[1]}.metadata"}, "one that comes later is asked for itself"


@pytest.mark.parametrize(
    ("status", "digest", "size", "wanted"),
    [
        (200, "", 90_000, None),
        (200, hashlib.sha256(b"Name: demo").hexdigest(), 90_000, None),
        (200, "a" * 64, 90_000, (-65537, None)),
        (200, "a" * 64, 65_536, ()),
        (404, "", None, (-65537, None)),
        (403, hashlib.sha256(b"Name: demo").hexdigest(), 90_000, (-65537, None)),
        (301, "", 90_000, (-65537, None)),
    ],
)
def test_a_wheel_is_asked_for_where_its_metadata_is_another(
    status: int, digest: str, size: int | None, wanted: tuple[int, int | None] | tuple[()] | None
) -> None:
    more = {} if size is None else {"size": size}
    payload = json.dumps({package_index.NAME: {"metadata": digest, **more}})
    links = extract.find(b"Name: demo", f"{WHEEL}.metadata", status, JSON, [package_index.NAME], payload)
    asked = [(link.uri, link.hop, read(link.payload).range or ()) for link in links]
    assert asked == ([] if wanted is None else [(WHEEL, "E", wanted)])


def test_what_is_asked_for_of_a_wheel_for_its_modules_is_its_directory() -> None:
    whole = wheel(2000, metadata_first=True)
    parts = answered(whole, modules=True)
    assert len(parts) == 2
    with zipfile.ZipFile(io.BytesIO(b"\0" * (len(whole) - len(parts[-1][2])) + parts[-1][2])) as archive:
        assert len(archive.namelist()) == 2002
    assert len(answered(whole, RangeFault(501), len(whole), modules=True)) == 3
    assert len(answered(wheel(300, metadata_first=True), modules=True)) == 1


@pytest.mark.parametrize(
    "data",
    [b"", b"<html><a href=x.whl>x</a>", b"{}", b"[]", b'{"files": 1}', b'{"files": [{"url": "x"}]}', b"[" * 100_000,
     b'{"files": [{"filename": 1, "url": 2}]}', b"\xff\xfe", b'{"files": null}'],
)  # fmt: skip
def test_what_is_no_page_has_no_links(data: bytes) -> None:
    assert found(data) == {}


def test_an_entry_that_is_no_file_costs_itself_alone() -> None:
    whole = json.loads(page("demo-1.0.tar.gz", "demo-2.0.tar.gz"))
    whole["files"].insert(1, {"filename": 7, "url": []})
    payload = json.dumps(package_index.page("demo"))
    links = extract.find(json.dumps(whole).encode(), URI, 200, JSON, [package_index.NAME], payload)
    assert [link.uri.rpartition("/")[2] for link in links] == ["demo-1.0.tar.gz", "demo-2.0.tar.gz"]
    assert links.cut


@pytest.mark.parametrize(
    "asked_for",
    [
        "",
        "7",
        '{"page": 7}',
        '{"page": "a", "files": [{}], "newest": 3}',
        '{"wheel": []}',
        '{"metadata": "", "size": []}',
    ],
)
def test_no_payload_and_no_damage_raises(asked_for: str) -> None:
    noise = random.Random(7)
    sound = [page(*FILES), wheel(30), wheel(30, metadata_first=True)[-3000:]]
    for number in range(600):
        data = bytearray(sound[number % 3])
        for _ in range(noise.randrange(1, 9)):
            data[noise.randrange(len(data))] = noise.randrange(256)
        payload = f'{{"package_index": {asked_for or "null"}}}'
        fields = HeaderFields([("content-range", f"bytes 100-{99 + len(data)}/{100 + len(data)}")])
        for status, kind in ((200, JSON), (206, fields)):
            assert isinstance(extract.find(bytes(data), WHEEL, status, kind, [package_index.NAME], payload), list)
            whole = json.dumps({**package_index.page("demo", newest=True), "x": 1})
            assert isinstance(extract.find(bytes(data), WHEEL, status, kind, [package_index.NAME], whole), list)
            part = json.dumps({package_index.NAME: {"wheel": 1}})
            assert isinstance(extract.find(bytes(data), WHEEL, status, kind, [package_index.NAME], part), list)


def test_odd_urls_are_left_out_and_the_log_notes_it() -> None:
    files = [
        {"filename": "a-1.zip", "url": "ftp://x.example/a-1.zip"}, {"filename": "b-1.zip", "url": "/b-1.zip#sha256=0"},
        {"filename": "c-1.zip", "url": "https://[x/"}, {"filename": "d-1.zip", "url": "d" * 100_000},
    ]  # fmt: skip
    payload = json.dumps(package_index.page("demo"))
    links = extract.find(json.dumps({"files": files}).encode(), URI, 200, JSON, [package_index.NAME], payload)
    assert [link.uri for link in links] == ["https://index.example/b-1.zip"]
    assert links.cut


def test_pages_are_read_for_their_payload_alone() -> None:
    assert extract.find(page(*FILES), URI, 200, JSON, [package_index.NAME]) == []
    assert extract.find(page(*FILES), URI, 200, JSON, extract.DEFAULT, json.dumps(package_index.page("demo"))) == []
    assert extract.find(page(*FILES), URI, 404, JSON, [package_index.NAME], json.dumps(package_index.page("d"))) == []


def wheel(modules: int, *, metadata_first: bool = False, before: bytes = b"", size: int = 200) -> bytes:
    noise = random.Random(1)
    made = io.BytesIO()
    made.write(before)
    with zipfile.ZipFile(made, "a") as archive:
        if metadata_first:
            archive.writestr("demo-1.0.dist-info/METADATA", "Name: demo\n")
        for number in range(modules):
            archive.writestr(f"demo/module_{number}.py", noise.randbytes(size))
        if not metadata_first:
            archive.writestr("demo-1.0.dist-info/METADATA", "Name: demo\n")
        archive.writestr("demo-1.0.dist-info/RECORD", "")
    return made.getvalue()


def answered(
    whole: bytes, fault: RangeFault | None = None, size: int | None = None, *, modules: bool = False
) -> list[tuple[str, int, bytes]]:
    """What the crawler asks for of a wheel, and gets from the tests' index, request after request."""
    more = ({} if size is None else {"size": size}) | ({"modules": True} if modules else {})
    payload, got = json.dumps({"fetch": {"range": [-65536, None]}, package_index.NAME: {"wheel": 1, **more}}), []
    while payload:
        headers = Message()
        for name, value in request_of(WHEEL, read(payload)).headers:
            headers[name] = value
        status, sent, body = file_answer(whole, headers, fault)
        got.append((headers.get("Range", ""), int(status), body))
        fields = HeaderFields([(name.lower(), value) for name, value in sent.items()])
        links: Outlinks = extract.find(body, WHEEL, status, fields, [package_index.NAME], payload)
        assert [link.hop for link in links] in ([], ["R"])
        payload = links[0].payload if links else ""
    return got


def asked(whole: bytes) -> list[bytes]:
    return [body for _, _, body in answered(whole)]


@pytest.mark.parametrize(
    ("whole", "requests"),
    [
        (wheel(3), 1),
        (wheel(300, size=2000), 1),  # the directory is in its last 64 KiB, and METADATA before it
        (wheel(2000), 2),  # the directory is longer
        (wheel(2000, metadata_first=True), 3),
        (wheel(300, metadata_first=True), 2),
        (wheel(300, metadata_first=True, before=b"#!/bin/sh\n" * 9000), 2),
        (wheel(70_000, size=0), 2),  # zip64: more members than 16 bits count
    ],
)
def test_of_a_wheel_so_many_parts_are_asked_for_and_the_last_one_suffices(whole: bytes, requests: int) -> None:
    parts = asked(whole)
    assert len(parts) == requests
    with zipfile.ZipFile(io.BytesIO(b"\0" * (len(whole) - len(parts[-1])) + parts[-1])) as archive:
        assert archive.read("demo-1.0.dist-info/METADATA") == b"Name: demo\n"


@pytest.mark.parametrize("status", [501, 416, 405, 400, 500, 206])
def test_a_wheel_whose_range_from_the_end_is_refused_is_asked_for_by_its_size(status: int) -> None:
    whole, fault = wheel(300, size=2000), RangeFault(status)
    size, refused = len(whole), ("bytes=-65536", status)
    by_size = (f"bytes={size - 65536}-", 206)
    for known in (size, size + 9, size - 9, None) if status in (206, 416) else (size,):
        assert [one[:2] for one in answered(whole, fault, known)] == [refused, by_size]  # the answer has the size
    if status not in (206, 416):
        first = ("bytes=0-0", 206)
        assert [one[:2] for one in answered(whole, fault)] == [refused, first, by_size]
    assert answered(whole, fault, size)[-1][2] == whole[-65536:]
    long = wheel(2000)
    assert len(answered(long, fault, len(long))) == 3, "its directory is longer"


@pytest.mark.parametrize("status", [501, 416, 405, 400])
def test_a_wheel_whose_ranges_are_all_refused_is_asked_for_whole_below_a_limit(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, fault = wheel(300, size=2000), RangeFault(status, others=True)
    for known in (len(whole), None):
        got = answered(whole, fault, known)
        assert (len(got), got[-1]) == (3, ("", 200, whole))
    short = wheel(3)
    assert answered(short, RangeFault(416))[1:] == [("", 200, short)], "longer than the file"
    monkeypatch.setattr(package_index, "MOST_WHOLE", len(whole) - 1)
    assert len(answered(whole, fault, len(whole))) == 2


@pytest.mark.parametrize("status", [401, 403, 404, 410, 429, 503])
def test_what_is_refused_for_another_reason_than_its_range_is_not_asked_for_again(status: int) -> None:
    assert len(answered(wheel(300), RangeFault(status, others=True), 900_000)) == 1


@pytest.mark.parametrize(
    "lie", ["", "bytes", "bytes 0-9/*", "bytes 9-0/5", "bytes */x", "bytes 0-65535/0", f"bytes 0-{'9' * 30}/1"]
)
def test_ranges_that_lie_end_with_the_whole_wheel(lie: str) -> None:
    payload, times = json.dumps({"fetch": {"range": [-65536, None]}, package_index.NAME: {"wheel": 1}}), 0
    while read(payload).range:
        (link,) = extract.find(b"PK", WHEEL, 206, HeaderFields([("content-range", lie)]), [package_index.NAME], payload)
        payload, times = link.payload, times + 1
    assert times <= 3
    assert key_of(WHEEL, payload) == WHEEL


@pytest.mark.parametrize(
    "tail", [b"", b"PK\5\6", b"\0" * 65536, b"PK\5\6" + b"\xff" * 18, b"PK\5\6" + b"\0" * 8 + b"\xf0" * 10]
)
def test_what_is_no_wheel_is_not_asked_for_again_and_again(tail: bytes) -> None:
    assert len(asked(b"\0" * 200_000 + tail)) <= 2
    payload = json.dumps({package_index.NAME: {"wheel": 1}})
    fields = HeaderFields([("content-range", "bytes 9-99/100")])
    assert extract.find(tail, "https://files.example/odd", 206, fields, [package_index.NAME], payload) == []


def test_parts_of_a_file_are_uris_of_their_own() -> None:
    assert key_of(URI, "") == URI
    assert key_of(URI, json.dumps(package_index.page("demo"))) == URI
    assert key_of(URI, '{"fetch": {"range": [-65536, null]}}') == f"{URI} bytes=-65536"
    assert key_of(URI, '{"fetch": {"range": [7, null]}}') == f"{URI} bytes=7-"
    assert key_of(URI, '{"fetch": {"range": [0, 9]}}') == f"{URI} bytes=0-9"
