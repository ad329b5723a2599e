"""Indexes of one's own, without a changelog: devpi and pypiserver, each mirrored through a day of changes."""

from __future__ import annotations

import base64
import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from line import Line, line_at, with_index_root
from mirroring.mirrored import CONFIGURATION, JOB, asked, crawled, dumped, rows

from servers import distributions, packages, pins, process
from servers.pins import HOST, Ports, answers
from warcmill.model import Launch

ORACLE = "own-index"
SECONDS = 120
PORTS: Ports = {"http": 3151}


def line_of(folder: Path, index: str, more: str = "") -> Line:
    made = with_index_root(line_at(folder))
    text = CONFIGURATION.format(job=JOB, index=index)
    made.config.write_text(f"{made.config.read_text()}{text}changes=simple\n{more}")
    return made


def whole(line: Line, verb: str = "trigger_incremental") -> Launch | None:
    """Crawl, and lack nothing."""
    launch = crawled(line, verb)
    assert launch is None or not dumped(line, launch).lacked
    return launch


def names(line: Line, project: str, *words: str) -> list[str]:
    """The files of a project."""
    done = line.warcmill("pypi", "show", project, *words, "--json")
    return [one["filename"] for one in json.loads(done.stdout)["files"]]


class Devpi:
    """devpi-server with an index `root/dev`, by what its client sends."""

    def __init__(self, url: str) -> None:
        self.url, self._headers = url, dict[str, str]()
        token = self._send("POST", "/+login", {"user": "root", "password": "secret"})["result"]["password"]
        self._headers = {"X-Devpi-Auth": base64.b64encode(f"root:{token}".encode()).decode()}
        self._send("PUT", "/root/dev", {"bases": [], "type": "stage", "volatile": True})

    def upload(self, project: str, version: str, path: Path) -> None:
        kind = "bdist_wheel" if path.suffix == ".whl" else "sdist"
        fields = {":action": "file_upload", "name": project, "version": version, "filetype": kind}
        parts = [f'--b\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{fields[name]}\r\n' for name in fields]
        head = f'--b\r\nContent-Disposition: form-data; name="content"; filename="{path.name}"\r\n\r\n'
        body = ("".join(parts) + head).encode() + path.read_bytes() + b"\r\n--b--\r\n"
        self._ask("POST", "/root/dev/", body, "multipart/form-data; boundary=b")

    def remove(self, project: str, version: str) -> None:
        self._ask("DELETE", f"/root/dev/{project}/{version}", None, "application/json")

    def _send(self, method: str, path: str, data: dict[str, Any]) -> Any:
        return json.loads(self._ask(method, path, json.dumps(data).encode(), "application/json"))

    def _ask(self, method: str, path: str, body: bytes | None, kind: str) -> bytes:
        headers = {**self._headers, "Content-Type": kind, "Accept": "application/json"}
        asked = urllib.request.Request(self.url + path, body, headers, method=method)
        with urllib.request.urlopen(asked, timeout=SECONDS) as answer:
            return bytes(answer.read())


@pytest.fixture
def devpi(tmp_path: Path) -> Iterator[Devpi]:
    port, place = pins.free(PORTS)["http"], tmp_path / "devpi"
    place.mkdir()
    programs = packages.bin_folder(ORACLE)
    init = [programs / "devpi-init", "--serverdir", place / "data", "--no-root-pypi", "--root-passwd", "secret"]
    process.run("devpi-init", place, init, SECONDS)
    serve = ["--serverdir", place / "data", "--host", HOST, "--port", str(port), "--offline-mode"]
    process.start(place, "devpi", [programs / "devpi-server", *serve])
    try:
        process.wait_ready(place, "devpi", lambda: answers(port), SECONDS)
        yield Devpi(f"http://{HOST}:{port}")
    finally:
        process.kill(place, "devpi")


def test_devpi_is_mirrored_by_its_list_and_pages(devpi: Devpi, tmp_path: Path) -> None:
    for name in ("alpha", "beta"):
        devpi.upload(name, "1.0", distributions.wheel(tmp_path, name, "1.0", requires=["six>=1"]))
        devpi.upload(name, "1.0", distributions.sdist(tmp_path, name, "1.0", {f"{name}.py": b""}))
    line = line_of(tmp_path, f"{devpi.url}/root/dev/+simple/")
    first = whole(line, "trigger_full")
    assert first
    begin = dumped(line, first).window.up_to
    assert names(line, "alpha") == ["alpha-1.0-py3-none-any.whl", "alpha-1.0.tar.gz"]
    assert asked(line, "requires", "alpha-1.0-py3-none-any.whl")["requires_dist"] == ["six>=1"]
    assert whole(line) is None

    devpi.upload("alpha", "2.0", distributions.wheel(tmp_path, "alpha", "2.0"))
    devpi.upload("gamma", "1.0", distributions.wheel(tmp_path, "gamma", "1.0"))
    devpi.remove("beta", "1.0")
    second = whole(line)
    assert second
    found = rows(line, second, "python_distribution_data")
    assert [row["filename"] for row in found] == ["alpha-2.0-py3-none-any.whl", "gamma-1.0-py3-none-any.whl"]
    assert len(names(line, "beta")) == 2
    third = whole(line)
    assert third
    assert (names(line, "beta"), len(names(line, "beta", "--as-of", str(begin)))) == ([], 2)
    assert len(names(line, "alpha")) == 3
    assert whole(line) is None


def test_pypiserver_is_mirrored_by_its_pages_in_html(tmp_path: Path) -> None:
    port, place = pins.free(PORTS)["http"], tmp_path / "pypiserver"
    (place / "files").mkdir(parents=True)
    for name in ("alpha", "beta"):
        distributions.wheel(tmp_path, name, "1.0").rename(place / "files" / f"{name}-1.0-py3-none-any.whl")
    words = ["run", "-i", HOST, "-p", str(port), "--hash-algo", "sha256", "--disable-fallback", place / "files"]
    process.start(place, "pypiserver", [packages.bin_folder(ORACLE) / "pypi-server", *words])
    try:
        process.wait_ready(place, "pypiserver", lambda: answers(port), SECONDS)
        line = line_of(tmp_path, f"http://{HOST}:{port}")
        first = whole(line, "trigger_full")
        assert first
        assert asked(line, "provides", "beta")["files"][0]["filename"] == "beta-1.0-py3-none-any.whl"
        distributions.wheel(tmp_path, "alpha", "2.0").rename(place / "files/alpha-2.0-py3-none-any.whl")
        (place / "files/beta-1.0-py3-none-any.whl").unlink()
        assert whole(line)
        assert (names(line, "alpha")[-1], len(names(line, "beta"))) == ("alpha-2.0-py3-none-any.whl", 1)
        assert whole(line)
        assert names(line, "beta") == []
        assert whole(line) is None
    finally:
        process.kill(place, "pypiserver")
