"""An index without a changelog: its list and its pages are compared with what is known; nothing known is forgotten."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from line import Line, line_at, with_index_root
from mirroring.mirrored import CONFIGURATION, JOB, asked, crawled, dumped, holder, mirroring, rows, small_index

from servers import distributions
from servers.package_index import PackageIndex
from warcmill import layout
from warcmill.markers.facts.pulse import Fed, Started
from warcmill.model import Launch


@pytest.fixture
def index(tmp_path: Path) -> Iterator[PackageIndex]:
    with small_index(tmp_path) as found:
        found.fail("/pypi", 404)
        yield found


@pytest.fixture
def line(tmp_path: Path, index: PackageIndex) -> Iterator[Line]:
    with mirroring(tmp_path, index) as made:
        with made.config.open("a") as config:
            config.write("changes=simple\nsweep=0\n")
        yield made


def there(line: Line, project: str, *words: str) -> list[str]:
    """The files that a project has."""
    done = line.warcmill("pypi", "show", project, *words)
    return [one.split()[0] for one in done.stdout.splitlines() if "  from serial " in one]


def fed(line: Line, launch: Launch) -> Fed:
    started = Started.from_claim(line.state.require(layout.key("pulse.Started", launch)).claim)
    return Fed.from_claim(line.state.require(layout.feed_key(JOB, started.due)).claim)


def test_the_serials_of_a_list_are_compared(line: Line, index: PackageIndex, tmp_path: Path) -> None:
    first = crawled(line, "trigger_full")
    assert first
    begin = index.serial
    assert str(dumped(line, first).window) == f"0-{begin}"
    index.upload(distributions.wheel(tmp_path, "alpha", "2.0"))
    index.upload(distributions.wheel(tmp_path, "delta", "1.0"))
    index.remove_project("gamma")
    before = len(index.requests())
    second = crawled(line)
    assert second
    assert (str(dumped(line, second).window), fed(line, second).faulty) == (f"{begin}-{index.serial}", ())
    data = rows(line, second, "python_distribution_data")
    assert [row["filename"] for row in data] == ["alpha-2.0-py3-none-any.whl", "delta-1.0-py3-none-any.whl"]
    paths = [one.path for one in index.requests()[before:]]
    assert "/simple/beta/" not in paths
    assert not [path for path in paths if "alpha-1.0" in path]
    assert len(there(line, "gamma")) == 2  # one page without them may be a sick one
    third = crawled(line)
    assert third
    assert there(line, "gamma") == []
    assert len(there(line, "gamma", "--as-of", str(begin))) == 2
    before = len(index.requests())
    assert crawled(line) is None
    assert [(one.path, one.status) for one in index.requests()[before:]] == [("/simple/", 304)]
    assert asked(line, "lag")["index"] == index.serial


def test_a_sweep_finds_a_status_that_no_event_names(tmp_path: Path) -> None:
    """The index has a changelog here."""
    with small_index(tmp_path) as index, mirroring(tmp_path, index) as line:
        assert crawled(line, "trigger_full")
        begin = index.serial
        assert crawled(line) is None
        index.set_status("beta", "archived", "use alpha")
        index.upload(distributions.wheel(tmp_path, "alpha", "2.0"))
        second = crawled(line)
        assert second
        assert [row["project"] for row in rows(line, second, "python_distribution_state")] == ["alpha", "beta"]
        found = line.warcmill("pypi", "show", "beta")
        assert f"beta is archived from serial {index.serial} on: use alpha" in found.stdout
        assert asked(line, "show", "beta", "--as-of", str(begin))["status"]["status"] == "active"
        index.quarantine("beta")
        assert crawled(line)
        assert asked(line, "show", "beta", "--as-of", str(index.serial - 1))["status"]["status"] == "archived"
        done = line.warcmill("pypi", "show", "beta", "--json")
        assert json.loads(done.stdout)["status"] == {"from": index.serial, "reason": None, "status": "quarantined"}


@contextmanager
def plain_mirror(folder: Path) -> Iterator[str]:
    """A folder of files behind a web server, with pages in HTML: no serials, no digests but those of links."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


class Mirror:
    """The pages of a plain mirror in a folder, made of the files in it; a page is written only if it changes."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._now = folder, 1_700_000_000

    def add(self, project: str, path: Path) -> None:
        place = self.folder / "files" / project
        place.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, place / path.name)

    def write(self, more: str = "") -> None:
        projects = sorted(path.name for path in (self.folder / "files").iterdir())
        self.page("", "".join(f'<a href="{name}/">{name}</a>\n' for name in projects))
        for name in projects:
            links = [
                f'<a href="../../files/{name}/{path.name}#sha256={hashlib.sha256(path.read_bytes()).hexdigest()}">x</a>'
                for path in sorted((self.folder / "files" / name).iterdir())
            ]
            self.page(name, more + "\n".join(links))

    def page(self, name: str, content: str) -> None:
        path = self.folder / "simple" / name / "index.html"
        path.parent.mkdir(parents=True, exist_ok=True)
        text = f"<!DOCTYPE html><title>{f'Links for {name}' if name else 'Simple index'}</title>\n{content}\n"
        if not path.exists() or path.read_text() != text:
            self._now += 60  # its pages are compared by seconds
            path.write_text(text)
            os.utime(path, (self._now, self._now))


def test_a_plain_mirror_is_asked_page_by_page(tmp_path: Path) -> None:
    mirror = Mirror(tmp_path / "mirror")
    for name in (f"p{number}" for number in range(12)):
        mirror.add(name, distributions.wheel(tmp_path, name, "1.0"))
    mirror.write()
    with plain_mirror(mirror.folder) as url:
        line = with_index_root(line_at(tmp_path))
        text = CONFIGURATION.format(job=JOB, index=f"{url}/simple/") + "changes=simple\n"
        line.config.write_text(line.config.read_text() + text)
        first = crawled(line, "trigger_full")
        assert first
        window = dumped(line, first).window
        started = Started.from_claim(line.state.require(layout.key("pulse.Started", first)).claim)
        assert (window.after, window.up_to) == (0, int(started.due))
        assert asked(line, "provides", "p3")["files"]
        assert crawled(line) is None

        mirror.add("p0", distributions.wheel(tmp_path, "p0", "2.0"))
        mirror.write()
        second = crawled(line)
        assert second
        assert [row["filename"] for row in rows(line, second, "python_distribution_data")] == [
            "p0-2.0-py3-none-any.whl"
        ]
        assert there(line, "p0", "--as-of", str(window.up_to)) == ["p0-1.0-py3-none-any.whl"]

        shutil.move(mirror.folder / "files", tmp_path / "away")  # it empties itself
        shutil.rmtree(mirror.folder / "simple")
        (mirror.folder / "files").mkdir()
        mirror.write()
        third = crawled(line)
        assert third is None or fed(line, third).lost == 12
        shutil.rmtree(mirror.folder / "files")
        shutil.move(tmp_path / "away", mirror.folder / "files")
        mirror.write('<meta name="pypi:project-status" content="archived">')
        assert crawled(line)
        found = asked(line, "show", "p0")
        assert [one["to"] for one in found["files"]] == [None, None]
        assert found["status"]["status"] == "archived"
    assert holder(line) is None
