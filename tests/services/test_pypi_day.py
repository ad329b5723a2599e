"""A package index mirrored through a day of changes by the commands of an operator, with Luigi's own worker: each dump
is exactly what the index had, whatever went wrong meanwhile."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import subprocess
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from line import Line, line_at
from mirroring.mirrored import CONFIGURATION, holder

from servers import distributions, packages, pins, serving
from servers.package_index import PackageIndex
from warcmill.base import clock
from warcmill.crawl.launch import job_log
from warcmill.formats.pypi import data_sets
from warcmill.stores import sentinel

JOB = "packages"
SETTINGS = "no_delay = true\nretries = { times = 2, wait = 0.2 }\n"
SECONDS = 300


class Mirror:
    """A line that mirrors an index, and its dumps as any program reads them."""

    def __init__(self, base: Path, index: PackageIndex) -> None:
        self.index, self.base = index, base
        self.line: Line = line_at(base)
        sentinel.adopt({"index": base / "index"})
        settings = base / "settings.toml"
        settings.write_text(SETTINGS)
        text = self.line.config.read_text().replace("\n[warcmill]\n", f"\n[warcmill]\nindex={base}/index\n")
        self.line.config.write_text(text + CONFIGURATION.format(job=JOB, index=index.url) + f"settings={settings}\n")

    def run(self, *words: str, code: int = 0) -> str:
        done = self.line.warcmill(*words)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def crawl(self, kind: str = "incremental") -> str:
        """Trigger a crawl, wait for its end, and run the line; what reconcile says."""
        self.run("pypi", f"trigger_{kind}", JOB)
        self.wait()
        return self.scan()

    def scan(self) -> str:
        self.line.warcmill("scan", self.days())
        return self.line.warcmill("reconcile", self.days()).stdout

    def wait(self) -> None:
        until(lambda: self.process() == 0)
        last = job_log.last(self.line.folders["jobs"] / JOB)
        assert last
        assert last.ended

    def process(self) -> int:
        found = holder(self.line, JOB)
        return found.pid if found else 0

    def kill(self) -> None:
        pid = self.process()
        assert pid, "0 would kill all of this process's group"
        os.kill(pid, signal.SIGKILL)
        until(lambda: not Path("/proc", str(pid)).exists())

    def days(self) -> str:
        return clock.now()[:10]

    def windows(self, data: str = "data") -> list[str]:
        folder = self._folder(data)
        return sorted((path.name for path in folder.iterdir()), key=lambda name: [*map(int, name.split("-"))])

    def rows(self, window: str, data: str = "data") -> list[dict[str, Any]]:
        files = sorted((self._folder(data) / window).glob("*.json.gz"))
        return [row for path in files for row in json.loads(gzip.decompress(path.read_bytes()))]

    def _folder(self, data: str) -> Path:
        return self.line.folders["store"] / "dumps" / JOB / "v1/data_dumps" / f"python_distribution_{data}"


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline, "it does not come"
        time.sleep(0.05)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[PackageIndex]:
    made = PackageIndex(tmp_path / "pypi", pins.free(pins.PACKAGE_INDEX))
    with made.running():
        yield made


@pytest.fixture
def mirror(tmp_path: Path, index: PackageIndex) -> Iterator[Mirror]:
    made = Mirror(tmp_path, index)
    yield made
    if pid := made.process():
        os.kill(pid, signal.SIGKILL)


@pytest.fixture
def wheel(tmp_path: Path) -> Callable[..., Path]:
    (tmp_path / "made").mkdir()
    return lambda *named, **more: distributions.wheel(tmp_path / "made", *named, **more)


def named(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(row["filename"] for row in rows)


def test_a_day_of_the_index(mirror: Mirror, index: PackageIndex, wheel: Callable[..., Path]) -> None:
    index.populate()
    first = index.serial
    index.delay("/packages/", 0.1, times=6)
    index.delay("/packages/", SECONDS)
    mirror.run("pypi", "trigger_full", JOB)
    until(lambda: sum(one.path.startswith("/packages/") for one in index.requests()) == 6)
    mirror.kill()
    index.recover()
    assert "no gap" in mirror.crawl("full")
    assert mirror.windows() == [f"0-{first}"]
    whole = mirror.rows(f"0-{first}")
    real = {path.name for path in distributions.real()} | {"six-1.16.0-py2.7.egg", "oddly-0.1.tar.bz2"}
    assert named(whole) == sorted(real)
    for row in whole:
        listed = next(one for one in index.project(row["project"]).files.values() if one.filename == row["filename"])  # type: ignore[union-attr]
        assert (row["sha256"], row["version"]) == (listed.sha256, listed.version)
    assert next(row for row in whole if row["filename"].startswith("requests-"))["requires_dist"][:2] == [
        "charset-normalizer <4,>=2", "idna <4,>=2.5"
    ]  # fmt: skip

    index.upload(wheel("yamlish", "1.0", {"yaml/__init__.py": b""}, ["six"]))
    index.upload(wheel("six", "1.18.0"))
    index.yank("six", "1.17.0", "it broke the build")
    index.remove_project("wget")
    index.upload(wheel("docopt", "0.7.0"))
    index.fail("/simple/docopt/", 503)
    second = index.serial
    said = mirror.crawl()
    assert "1 gap" in said
    assert "not dumped: its page was not got: status 503" in said
    assert mirror.windows() == [f"0-{first}", f"{first}-{second}"]
    assert named(mirror.rows(f"{first}-{second}")) == ["six-1.18.0-py3-none-any.whl", "yamlish-1.0-py3-none-any.whl"]
    states = {row["project"]: row for row in mirror.rows(f"{first}-{second}", "state")}
    assert states["wget"]["removed"]
    assert {one["yanked"] for one in states["six"]["files"] if "1.17.0" in one["filename"]} == {"it broke the build"}
    assert "docopt" not in states

    index.recover()
    assert "no gap" in mirror.crawl()
    assert "docopt-0.7.0-py3-none-any.whl" in named(mirror.rows(mirror.windows()[-1]))
    before = mirror.windows()
    assert "nothing is new" in mirror.run("pypi", "trigger_incremental", JOB)
    mirror.scan()
    assert mirror.windows() == before


def test_pip_and_uv_resolve_as_of_before_and_after_the_day(
    mirror: Mirror, index: PackageIndex, wheel: Callable[..., Path], tmp_path: Path
) -> None:
    index.upload(wheel("six", "1.17.0"))
    index.upload(wheel("goes", "1.0", None, ["six"]))
    index.upload(wheel("app", "1.0", None, ["six>=1"], ">=3.8"))
    mirror.crawl("full")
    before = index.serial
    index.upload(wheel("six", "1.18.0"))
    index.yank("six", "1.17.0", "it broke the build")
    index.upload(wheel("app", "2.0", None, ["six", "yamlish; python_version>'3'"]))
    index.upload(wheel("yamlish", "1.0", {"yaml/__init__.py": b""}))
    extras = ["Provides-Extra: bare", "Provides-Extra: fast", "X-Of-Tomorrow: 1"]
    index.upload(wheel("extras", "1.0", None, ["yamlish; 'fast' == extra", 'six; "win32" != sys_platform'], "", extras))
    index.remove_project("goes")
    assert "no gap" in mirror.crawl()
    after = index.serial
    (port,) = pins.free({"port": 0}).values()
    with mirror.line.config.open("a") as config:
        config.write(f"\n[serve]\nport={port}\nreplay=false\n")
    token = mirror.run("serve", "token", "add", "installers", "--role", "reader").split()[-1]

    with serving.serving(mirror.line.config, tmp_path / "serve.log", token) as server:
        for serial, wanted, expected in (
            (before, "app", ["app==1.0", "six==1.17.0"]),
            (before, "goes", ["goes==1.0", "six==1.17.0"]),
            (before, "yamlish", []),
            (after, "app", ["app==2.0", "six==1.18.0", "yamlish==1.0"]),
            (after, "six==1.17.0", ["six==1.17.0"]),
            (after, "goes", []),
            (after, "extras[bare]", ["extras==1.0", "six==1.18.0"]),
            (after, "extras[fast]", ["extras==1.0", "six==1.18.0", "yamlish==1.0"]),
        ):
            simple = f"{server.address}as-of/{serial}/simple/".replace("http://", f"http://any:{token}@")
            assert by_uv(simple, wanted) == expected, (serial, wanted)
            assert by_pip(simple, wanted) == expected, (serial, wanted)
            assert by_uv(simple.replace(token, "no-such-token"), wanted) == []
            if serial == after:
                assert by_pip(index.simple, wanted) == by_uv(index.simple, wanted) == expected
        for path, words in (
            ("provides/yaml", ("provides", "yaml")),
            ("required-by/six", ("requires", "six", "--reverse")),
        ):
            asked = Request(f"{server.address}packages/{path}", headers={"Authorization": f"Bearer {token}"})
            with urlopen(asked) as answer:
                assert json.load(answer) == json.loads(mirror.run("pypi", *words, "--json"))
        got = tmp_path / "got"
        simple = f"http://any:{token}@127.0.0.1:{port}/as-of/{before}/simple/"
        done = run_pip("download", "--quiet", "--dest", got, "--index-url", simple, "app")
        assert done.returncode == 0, done.stderr
        assert sorted(path.name for path in got.iterdir()) == [
            "app-1.0-py3-none-any.whl",
            "six-1.17.0-py3-none-any.whl",
        ]
        removed = run_pip("download", "--quiet", "--no-deps", "--dest", got, "--index-url", simple, "goes")
        assert removed.returncode == 0, removed.stderr
        assert (got / "goes-1.0-py3-none-any.whl").exists(), "the index sends it no more, and the archive has it"
        assert (got / "app-1.0-py3-none-any.whl").read_bytes() == wheel(
            "app", "1.0", None, ["six>=1"], ">=3.8"
        ).read_bytes()


ORACLE = "package-index"


def by_uv(simple: str, wanted: str) -> list[str]:
    """What uv resolves; nothing if it finds no way."""
    words = ["pip", "compile", "--no-cache", "--no-header", "--no-annotate", "--index-url", simple, "-"]
    argv = [packages.bin_folder(ORACLE) / "uv", "--no-config", *words]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("UV_")}
    done = subprocess.run(argv, input=wanted, env=environment, capture_output=True, text=True, check=False)
    return [] if done.returncode else done.stdout.split()


def by_pip(simple: str, wanted: str) -> list[str]:
    """What pip would install; nothing if it finds no way."""
    done = run_pip(
        "install", "--quiet", "--dry-run", "--ignore-installed", "--report", "-", "--index-url", simple, wanted
    )
    if done.returncode:
        assert "No matching distribution" in done.stderr, done.stderr
        return []
    found = [one["metadata"] for one in json.loads(done.stdout)["install"]]
    return sorted(f"{one['name']}=={one['version']}" for one in found)


def run_pip(verb: str, *words: str | Path) -> subprocess.CompletedProcess[str]:
    pip = [packages.bin_folder(ORACLE) / "python", "-m", "pip", "--disable-pip-version-check", "--isolated", verb]
    return subprocess.run([*pip, "--no-cache-dir", *words], capture_output=True, text=True, check=False)


def test_another_reader_of_leveldb_finds_the_stored_data_sets_key_for_key(
    mirror: Mirror, index: PackageIndex, wheel: Callable[..., Path], tmp_path: Path
) -> None:
    """LevelDB itself, by classic-level: after a second version, which has removed a file and added others."""
    index.upload(wheel("six", "1.17.0"))
    index.upload(wheel("goes", "1.0"))
    mirror.crawl("full")
    index.upload(wheel("yamlish", "1.0", {"yaml/__init__.py": b""}, ["six>=1", "tomli; extra=='\u00fc'"], ">=3.8"))
    index.remove_project("goes")
    assert "no gap" in mirror.crawl()
    top = mirror.line.folders["store"] / "dumps" / JOB / "v1"
    found = {name: read_by_node(top / name / "leveldbs/00002", tmp_path / name) for name in data_sets.NAMES}

    rows = [row for window in mirror.windows() for row in mirror.rows(window) if row["project"] != "goes"]
    assert sorted(row["project"] for row in rows) == ["six", "yamlish"]
    assert visible(found["modules"]) == {
        "\t".join([module, row["project"], row["version"], row["filename"]]).encode(): b""
        for row in rows
        for module in row["modules"]
    }
    tags = ("any", "none", "", "py3")
    assert visible(found["depgraph"]) == {
        "\t".join(
            [row["project"], row["version"], "WHEEL", row["requires_python"] or "", *tags, row["filename"]]
        ).encode(): bytes.fromhex(row["sha256"]) + "\t".join(row["requires_dist"]).encode()
        for row in rows
    }
    lives = {key: json.loads(value) for key, value in visible(found["distributions"]).items()}
    assert {key for key, life in lives.items() if life["to"] is None} == {
        f"{row['project']}\t{row['filename']}".encode() for row in rows
    }
    assert [key for key, life in lives.items() if life["to"] is not None] == [b"goes\tgoes-1.0-py3-none-any.whl"]
    for name in data_sets.NAMES:
        (published,) = (mirror.base / "index/versions" / name).glob("000002-*")
        assert read_by_node(published, tmp_path / f"{name}-published") == found[name]


READ_BY_NODE = """
const { ClassicLevel } = require("classic-level");
(async () => {
  const hex = { keyEncoding: "hex", valueEncoding: "hex", createIfMissing: false };
  const database = new ClassicLevel(process.argv[1], hex);
  for await (const [key, value] of database.iterator()) console.log(`${key} ${value}`);
  await database.close();
})();
"""


def read_by_node(stored: Path, copy: Path) -> dict[bytes, bytes]:
    """All pairs of a database, by a copy of it: who opens a LevelDB writes."""
    shutil.copytree(stored, copy)
    modules = {**os.environ, "NODE_PATH": str(packages.node_library("classic-level") / "node_modules")}
    argv = [packages.node(), "-e", READ_BY_NODE, copy]
    done = subprocess.run(argv, env=modules, capture_output=True, text=True, check=True)
    pairs = (line.split(" ") for line in done.stdout.splitlines())
    return {bytes.fromhex(key): bytes.fromhex(value) for key, value in pairs}


def visible(pairs: dict[bytes, bytes]) -> dict[bytes, bytes]:
    """Without the keys that are for whoever writes."""
    return {key: value for key, value in pairs.items() if not key.startswith(b"\0")}


def test_a_page_that_is_away_twice_is_dumped_when_it_is_there(
    mirror: Mirror, index: PackageIndex, wheel: Callable[..., Path]
) -> None:
    """No serial grows meanwhile: the windows begin and end at the same one."""
    index.upload(wheel("one", "1"))
    index.upload(wheel("two", "1"))
    mirror.crawl("full")
    index.upload(wheel("one", "2"))
    index.upload(wheel("two", "2"))
    index.fail("/simple/one/", 503)
    mirror.crawl()
    mirror.crawl()
    index.recover()
    assert "no gap" in mirror.crawl()
    assert "one-2-py3-none-any.whl" in {name for window in mirror.windows() for name in named(mirror.rows(window))}


def test_removals_alone_are_whole_and_no_finding(
    mirror: Mirror, index: PackageIndex, wheel: Callable[..., Path]
) -> None:
    index.upload(wheel("stays", "1"))
    index.upload(wheel("goes", "1"))
    mirror.crawl("full")
    index.remove_project("goes")
    assert "no gap" in mirror.crawl()
    assert [(row["project"], row["removed"]) for row in mirror.rows(mirror.windows()[-1], "state")] == [("goes", True)]


def test_a_page_older_than_its_event_is_asked_for_again(
    mirror: Mirror, index: PackageIndex, wheel: Callable[..., Path]
) -> None:
    index.upload(wheel("held", "1"))
    mirror.crawl("full")
    index.hold_page("held")
    serial = index.upload(wheel("held", "2"))
    for _ in range(2):  # the second time the index has no event of it any more
        assert "its page is of serial" in mirror.crawl()
        assert named(mirror.rows(mirror.windows()[-1])) == []
    index.release_page("held")
    assert "no gap" in mirror.crawl()
    assert mirror.windows()[-1].endswith(f"-{serial}")
    assert "held-2-py3-none-any.whl" in named(mirror.rows(mirror.windows()[-1]))


def test_what_is_wrong_with_one_file_costs_its_own_row_alone(
    mirror: Mirror, index: PackageIndex, wheel: Callable[..., Path], tmp_path: Path
) -> None:
    index.upload(wheel("sound", "1"))
    index.upload(wheel("listed-wrongly", "1"), sha256="0" * 64)
    bomb, broken, escapes = (tmp_path / f"{name}-1-py3-none-any.whl" for name in ("bomb", "broken", "escapes"))
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("bomb-1.dist-info/METADATA", bytes(120 << 20))
    broken.write_bytes(b"PK\x03\x04 no zip at all")
    with zipfile.ZipFile(escapes, "w") as packed:
        packed.writestr("../../evil.py", b"")
        packed.writestr("nul\0name.py", b"")
        packed.writestr("escapes.py", b"")
        packed.writestr("escapes-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: escapes\nVersion: 1\n")
    for path in (bomb, broken, escapes):
        index.upload(path, project=path.name.partition("-")[0], version="1")
    for seed in ("html", "cut"):
        index.upload(wheel(seed, "1"))
    index.answer_html("/simple/html/")
    mirror.crawl("full")
    (window,) = mirror.windows()
    rows = {row["project"]: row for row in mirror.rows(window)}
    assert rows["sound"]["modules"] == ["sound"]
    assert rows["escapes"]["modules"] == ["escapes"]
    assert [rows[name]["requires_dist"] for name in ("bomb", "broken")] == [None, None]
    assert "html" not in rows
    index.recover()
    mirror.crawl()
    assert "html-1-py3-none-any.whl" in named(mirror.rows(mirror.windows()[-1]))


def test_an_outage_of_120_000_events(mirror: Mirror, index: PackageIndex, wheel: Callable[..., Path]) -> None:
    for name in ("one", "two", "three"):
        index.upload(wheel(name, "1"))
    mirror.crawl("full")
    first = index.serial
    index.burst(120_000)
    index.upload(wheel("two", "2"))
    assert "no gap" in mirror.crawl()
    assert mirror.windows()[-1] == f"{first}-{index.serial}"
    assert "two-2-py3-none-any.whl" in named(mirror.rows(mirror.windows()[-1]))


def test_serials_that_go_back_and_an_index_that_answers_html_launch_nothing(
    mirror: Mirror, index: PackageIndex, wheel: Callable[..., Path]
) -> None:
    index.upload(wheel("one", "1"))
    mirror.crawl("full")
    before = mirror.windows()
    index.report_serial(1)
    assert "its last serial is 1" in mirror.run("pypi", "trigger_incremental", JOB, code=30)
    index.recover()
    index.answer_html("/pypi")
    assert "XML-RPC" in mirror.run("pypi", "trigger_incremental", JOB, code=30)
    index.recover()
    index.upload(wheel("one", "2"))
    assert "no gap" in mirror.crawl()
    assert len(mirror.windows()) == len(before) + 1
