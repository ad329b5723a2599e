"""The local package index (`servers/package_index.py`), as the clients of the real one read it: pip, uv, pypi-simple
and bandersnatch, each a process of its own."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import subprocess
import urllib.error
import urllib.request
import xmlrpc.client
from collections.abc import Callable, Iterator
from email.message import Message
from pathlib import Path
from typing import Any

import msgspec
import pytest

from servers import distributions, package_index, packages, pins, process
from servers.package_index import PackageIndex

JSON = "application/vnd.pypi.simple.v1+json"
ORACLE = "package-index"
READ_BY_PYPI_SIMPLE = """
import json, sys
from pypi_simple import ACCEPT_JSON_ONLY, PyPISimple
with PyPISimple(sys.argv[1], accept=ACCEPT_JSON_ONLY) as client:
    found = {}
    for name in client.get_index_page().projects:
        page = client.get_project_page(name)
        found[page.project] = {one.filename: [one.version, one.size, one.digests["sha256"], one.is_yanked,
            one.package_type, one.upload_time.isoformat()] for one in page.packages} | {"": page.last_serial}
        for one in page.packages[:1]:
            client.download_package(one, sys.argv[2] + "/" + one.filename)
print(json.dumps(found))
"""
BANDERSNATCH = """[mirror]
directory = {folder}
master = {index}
allow-non-https = true
json = true
timeout = 60
workers = 2
hash-index = false
stop-on-error = true
verifiers = 1
"""


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[PackageIndex]:
    """An index without a project, in threads of this process."""
    index = PackageIndex(tmp_path / "index", pins.free(pins.PACKAGE_INDEX))
    with index.running():
        yield index


@pytest.fixture
def index(empty: PackageIndex) -> PackageIndex:
    """The same with all real files."""
    empty.populate()
    return empty


@pytest.fixture
def wheel(tmp_path: Path) -> Callable[..., Path]:
    """Makes wheels."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    return lambda *named, **more: distributions.wheel(folder, *named, **more)


def get(address: str, **headers: str) -> tuple[int, Message, bytes]:
    asked = urllib.request.Request(address, headers=headers)
    try:
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as no:
        return no.code, no.headers, no.read()


def page(index: PackageIndex, project: str) -> dict[str, Any]:
    return dict(json.loads(get(f"{index.simple}{project}/", Accept=JSON)[2]))


def call(index: PackageIndex, method: str, *parameters: int) -> Any:
    with xmlrpc.client.ServerProxy(f"{index.url}/pypi", allow_none=True) as server:
        return getattr(server, method)(*parameters)


def run(*words: str | Path, code: int = 0) -> str:
    """Run a client that knows no other index."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PIP_", "UV_"))}
    argv = [str(word) for word in words]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def pip(index: PackageIndex, folder: Path, *wanted: str, code: int = 0) -> list[str]:
    program = [packages.bin_folder(ORACLE) / "python", "-m", "pip", "--disable-pip-version-check", "--isolated"]
    words = ["download", "--no-cache-dir", "--index-url", index.simple, "--dest", folder, *wanted]
    run(*program, *words, code=code)
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def uv(index: PackageIndex, *wanted: str) -> list[str]:
    words = ["pip", "compile", "--no-cache", "--no-header", "--no-annotate", "--index-url", index.simple, "-"]
    argv = [str(packages.bin_folder(ORACLE) / "uv"), *words]
    given = "\n".join(wanted)
    done = subprocess.run(argv, input=given, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


# --- other people's clients read it


def test_pip_downloads_what_it_resolves(index: PackageIndex, tmp_path: Path) -> None:
    got = pip(index, tmp_path / "got", "six", "idna<4", "--no-deps")
    assert got == ["idna-3.10-py3-none-any.whl", "six-1.17.0-py2.py3-none-any.whl"]
    assert "/simple/six/" in [request.path for request in index.requests()]


def test_pip_and_uv_heed_yanks_and_removals(index: PackageIndex, tmp_path: Path) -> None:
    assert uv(index, "six") == ["six==1.17.0"]
    index.yank("six", "1.17.0", "it broke the build")
    assert uv(index, "six") == ["six==1.16.0"]
    assert pip(index, tmp_path / "got", "six") == ["six-1.16.0-py2.py3-none-any.whl"]
    index.unyank("six", "1.17.0")
    assert uv(index, "six") == ["six==1.17.0"]
    index.remove_release("six", "1.17.0")
    assert uv(index, "six") == ["six==1.16.0"]
    index.remove_project("six")
    assert pip(index, tmp_path / "nothing", "six", code=1) == []


def test_pip_refuses_what_is_not_of_its_digest(empty: PackageIndex, wheel: Callable[..., Path], tmp_path: Path) -> None:
    empty.upload(wheel("wrong", "1"), sha256="0" * 64)
    assert pip(empty, tmp_path / "got", "wrong", code=1) == []


def test_pypi_simple_reads_all_of_it(index: PackageIndex, tmp_path: Path) -> None:
    index.yank("six", "1.16.0")
    python = packages.bin_folder(ORACLE) / "python"
    found = json.loads(run(python, "-c", READ_BY_PYPI_SIMPLE, index.simple, tmp_path))
    assert len(found) == len({row[0] for row in call(index, "changelog_since_serial", 0)})
    names = {name for files in found.values() for name in files if name}
    assert names == {path.name for path in distributions.real()} | {"six-1.16.0-py2.7.egg", "oddly-0.1.tar.bz2"}
    six = found["six"]
    assert six.pop("") == str(index.serial)
    wheel = next(path for path in distributions.real() if path.name == "six-1.16.0-py2.py3-none-any.whl")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    assert six[wheel.name][:5] == ["1.16.0", wheel.stat().st_size, digest, True, "wheel"]
    assert six["six-1.16.0-py2.7.egg"][4] == "egg"
    assert not six["six-1.17.0-py2.py3-none-any.whl"][3]


def test_bandersnatch_mirrors_it_by_its_changelog(
    empty: PackageIndex, wheel: Callable[..., Path], tmp_path: Path
) -> None:
    for name in ("one", "two", "three"):
        empty.upload(wheel(name, "1"))
    mirror, config = tmp_path / "mirror", tmp_path / "bandersnatch.conf"
    config.write_text(BANDERSNATCH.format(folder=mirror, index=empty.url))
    command = (packages.bin_folder(ORACLE) / "bandersnatch", "-c", config, "mirror")
    run(*command)
    assert mirrored(mirror) == {"one-1-py3-none-any.whl", "two-1-py3-none-any.whl", "three-1-py3-none-any.whl"}
    assert (mirror / "status").read_text() == str(empty.serial)
    before = len(empty.requests())
    empty.upload(wheel("one", "2"))
    empty.event("two", "add Maintainer another")
    run(*command)
    assert "one-2-py3-none-any.whl" in mirrored(mirror)
    assert (mirror / "status").read_text() == str(empty.serial)
    later = [request.path for request in empty.requests()[before:]]
    assert "/pypi/three/json" not in later, "nothing happened to it"
    assert {"/pypi", "/pypi/one/json", "/pypi/two/json"} <= set(later)


def mirrored(mirror: Path) -> set[str]:
    return {path.name for path in (mirror / "web/packages").rglob("*.whl")}


# --- pages and files


def test_a_page_has_what_the_standards_ask_for(index: PackageIndex) -> None:
    status, headers, body = get(f"{index.simple}zope-event/", Accept=JSON)
    found = json.loads(body)
    assert (status, headers["Content-Type"]) == (200, JSON)
    assert headers["X-PyPI-Last-Serial"] == str(found["meta"]["_last-serial"])
    assert found["versions"] == ["4.4", "5.0"]
    assert [one["filename"] for one in found["files"]] == ["zope.event-4.4.tar.gz", "zope.event-5.0-py3-none-any.whl"]
    for one in found["files"]:
        assert hashlib.sha256(get(one["url"])[2]).hexdigest() == one["hashes"]["sha256"]
        assert len(get(one["url"])[2]) == one["size"]
    metadata = get(f"{found['files'][1]['url']}.metadata")[2]
    assert hashlib.sha256(metadata).hexdigest() == found["files"][1]["core-metadata"]["sha256"]
    assert get(f"{found['files'][0]['url']}.metadata")[0] == 404, "no sdist has one"


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("", "text/html; charset=UTF-8"),
        ("*/*", "text/html; charset=UTF-8"),
        ("text/html;q=0.1, application/vnd.pypi.simple.v1+html", "application/vnd.pypi.simple.v1+html; charset=UTF-8"),
        (f"{JSON}, text/html;q=0.01", JSON),
        (f"text/html, {JSON};q=0.5", "text/html; charset=UTF-8"),
        ("image/png", "text/html; charset=UTF-8"),
    ],
)
def test_a_page_is_of_the_kind_that_is_accepted(index: PackageIndex, accept: str, kind: str) -> None:
    assert get(f"{index.simple}six/", Accept=accept)[1]["Content-Type"] == kind


def test_a_name_that_is_not_normal_leads_to_the_page(index: PackageIndex) -> None:
    asked = urllib.request.Request(f"{index.simple}Zope_Event", headers={"Accept": JSON})
    with urllib.request.urlopen(asked, timeout=60) as answer:
        assert answer.url == f"{index.simple}zope-event/"


@pytest.mark.parametrize(
    ("asked", "status", "said", "part"),
    [
        ("bytes=0-9", 206, "bytes 0-9/{size}", slice(0, 10)),
        ("bytes=100-", 206, "bytes 100-{last}/{size}", slice(100, None)),
        ("bytes=-64", 206, "bytes {tail}-{last}/{size}", slice(-64, None)),
        ("bytes=-99999999", 206, "bytes 0-{last}/{size}", slice(0, None)),
        ("bytes=99999999-", 416, "bytes */{size}", slice(0, 0)),
        ("bytes=9-0", 416, "bytes */{size}", slice(0, 0)),
        ("bytes=0-1,4-5", 200, None, slice(0, None)),
        ("lines=0-1", 200, None, slice(0, None)),
    ],
)
def test_a_file_in_part(index: PackageIndex, asked: str, status: int, said: str | None, part: slice) -> None:
    (one,) = page(index, "idna")["files"]
    whole = get(one["url"])[2]
    got, headers, body = get(one["url"], Range=asked)
    assert (got, body) == (status, whole[part])
    size = len(whole)
    assert headers["Content-Range"] == (said and said.format(size=size, last=size - 1, tail=size - 64))


def test_an_unchanged_page_or_file_is_not_sent_again(index: PackageIndex) -> None:
    for address in (f"{index.simple}six/", page(index, "six")["files"][0]["url"]):
        tag = get(address)[1]["ETag"]
        assert get(address, **{"If-None-Match": tag})[::2] == (304, b"")


# --- the changelog


def test_the_changelog_has_rows_as_the_real_one(empty: PackageIndex, wheel: Callable[..., Path]) -> None:
    empty.upload(wheel("Some.Thing", "1.0"))
    empty.yank("some-thing", "1.0")
    empty.remove_file("some-thing", "some_thing-1.0-py3-none-any.whl")
    empty.remove_project("some-thing")
    rows = call(empty, "changelog_since_serial", 0)
    assert [(row[1], row[3], row[4]) for row in rows] == [
        (None, "create", 1),
        (None, "add Owner someone", 2),
        ("1.0", "new release", 3),
        ("1.0", "add py3 file some_thing-1.0-py3-none-any.whl", 4),
        ("1.0", "yank release", 5),
        ("1.0", "remove file some_thing-1.0-py3-none-any.whl", 6),
        (None, "remove project", 7),
    ]
    assert all(isinstance(row[2], int) for row in rows)
    assert call(empty, "changelog_last_serial") == empty.serial == 7
    assert call(empty, "changelog_since_serial", 5) == rows[5:]
    assert call(empty, "changelog_since_serial", 7) == []


def test_an_outage_of_120_000_events_comes_in_three_answers(index: PackageIndex) -> None:
    before = index.serial
    assert index.burst(120_000) == before + 120_000
    pages, serial = [], before
    while rows := call(index, "changelog_since_serial", serial):
        pages.append(len(rows))
        serial = rows[-1][4]
    assert pages == [50_000, 50_000, 20_000]
    assert serial == index.serial


# --- what goes wrong


def test_it_fails_as_often_as_it_is_to(index: PackageIndex) -> None:
    index.fail("/simple/six/", 429, times=2, retry_after=1)
    index.fail("/simple/idna/", 503)
    first = get(f"{index.simple}six/")
    assert (first[0], first[1]["Retry-After"]) == (429, "1")
    assert [get(f"{index.simple}six/")[0] for _ in "12"] == [429, 200]
    assert [get(f"{index.simple}idna/")[0] for _ in "12"] == [503, 503]
    index.recover()
    assert get(f"{index.simple}idna/")[0] == 200


def test_it_limits_calls(index: PackageIndex) -> None:
    index.limit_calls("changelog_last_serial")
    with pytest.raises(xmlrpc.client.Fault, match="too many requests"):
        call(index, "changelog_last_serial")
    assert call(index, "changelog_last_serial") == index.serial


def test_a_held_page_is_older_than_its_event(empty: PackageIndex, wheel: Callable[..., Path]) -> None:
    empty.upload(wheel("held", "1"))
    empty.hold_page("held")
    serial = empty.upload(wheel("held", "2"))
    assert page(empty, "held")["versions"] == ["1"]
    assert page(empty, "held")["meta"]["_last-serial"] < serial
    empty.release_page("held")
    assert page(empty, "held")["versions"] == ["1", "2"]


def test_html_for_json_a_serial_that_goes_back_and_bodies_that_end(index: PackageIndex) -> None:
    index.answer_html("/simple/six/", times=1)
    status, headers, body = get(f"{index.simple}six/", Accept=JSON)
    assert (status, headers["Content-Type"]) == (200, "text/html")
    assert b"Please wait" in body
    assert page(index, "six")["name"] == "six"
    index.report_serial(3)
    assert call(index, "changelog_last_serial") == 3
    index.cut("/packages/", 100, times=1)
    address = page(index, "six")["files"][0]["url"]
    with pytest.raises(http.client.IncompleteRead):
        get(address)
    assert get(address)[0] == 200


def test_a_name_with_other_bytes_replaces_the_file(empty: PackageIndex, wheel: Callable[..., Path]) -> None:
    empty.upload(wheel("again", "1"))
    (before,) = page(empty, "again")["files"]
    empty.upload(wheel("again", "1", {"other.py": b"x = 1\n"}))
    (after,) = page(empty, "again")["files"]
    assert before["filename"] == after["filename"]
    assert before["hashes"] != after["hashes"]


def test_a_kill_loses_nothing(tmp_path: Path, wheel: Callable[..., Path]) -> None:
    index = PackageIndex(tmp_path / package_index.NAME, pins.free(pins.PACKAGE_INDEX))
    index.upload(wheel("kept", "1"))
    index.start()
    try:
        assert page(index, "kept")["versions"] == ["1"]
        index.kill()
        index.upload(wheel("kept", "2"))
        again = package_index.up(tmp_path, index.ports)
        assert (again.folder, again.ports) == (index.folder, index.ports)
        assert page(index, "kept")["versions"] == ["1", "2"]
        assert msgspec.structs.asdict(index.requests()[-1])["status"] == 200
    finally:
        assert package_index.down(tmp_path) == [package_index.NAME]
    assert process.running(index.folder, package_index.NAME) is None
