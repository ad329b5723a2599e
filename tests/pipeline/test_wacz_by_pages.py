"""A curator hands over a WACZ and takes in files by the pages of `warcmill serve`, by its verbs and its server."""

from __future__ import annotations

import os
import re
import signal
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from html import unescape
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import preloaded
import pytest
import requests
import sample
from line import Line
from records.warcs import WEEKLY
from waiting import wait_for

from servers import pins
from warcmill.web.handover import files

PAGE = f"/launches/{sample.JOB}/{sample.LAUNCH_ID}"
WGET = Path(__file__).parents[1] / "data" / "wget"
_FORM = re.compile(r'name="form" value="([^"]+)"')


class Curator(requests.Session):
    """A person at a browser without JavaScript, who has a token of the role curator."""

    def __init__(self, address: str, token: str) -> None:
        super().__init__()
        self.trust_env = False
        self.base = address.partition("/sign-in")[0]
        self.headers["Authorization"] = f"Bearer {token}"

    def form(self, path: str) -> str:
        found = _FORM.search(self.get(f"{self.base}{path}").text)
        assert found, path
        return unescape(found[1])

    def ended(self, answer: requests.Response) -> Any:
        """The document of the action that a post has led to, once it has ended."""
        assert "/actions/" in answer.url, answer.text
        fields = {"format": "json"}
        wait_for(lambda: self.get(answer.url, params=fields).json()["exit_code"] is not None)
        return self.get(answer.url, params=fields).json()

    def makes(self, path: str) -> Any:
        form = {"form": self.form(path)}
        return self.ended(self.post(f"{self.base}{path}", form, headers={"Origin": self.base}))

    def imports(self, job: str, name: str, data: bytes) -> Any:
        form = {"form": self.form("/import"), "job": job}
        sent = {"file": (name, BytesIO(data))}
        return self.ended(self.post(f"{self.base}/import", form, files=sent, headers={"Origin": self.base}))


@pytest.fixture
def line(done: Line) -> Line:
    ports = pins.free({"port": 0, "replay_port": 0})
    keys = "\n".join(f"{key}={port}" for key, port in ports.items())
    done.config.write_text(f"{done.config.read_text()}\n[serve]\nreplay=false\n{keys}\n")
    adopted = done.warcmill("init", "--adopt", "engine.imported").stdout
    done.config.write_text(f"{done.config.read_text()}\n{adopted.partition('luigi.cfg:')[2]}")
    return done


@contextmanager
def served(line: Line) -> Iterator[Curator]:
    token = line.warcmill("serve", "token", "add", "anna", "--role", "curator").stdout.strip()
    env = {**os.environ, "LUIGI_CONFIG_PATH": str(line.config)}
    with preloaded.start("commands.main", "serve", env=env) as process:
        try:
            assert process.stdout
            yield Curator(process.stdout.readline().strip(), token)
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0


def left(line: Line) -> list[str]:
    return sorted(one.name for one in (line.folders["state"] / files.FOLDER).rglob("*") if one.is_file())


def test_a_wacz_is_handed_over_and_files_are_taken_in(line: Line) -> None:
    with served(line) as curator:
        assert f'href="{PAGE}/wacz"' in curator.get(f"{curator.base}{PAGE}").text
        made = curator.makes(f"{PAGE}/wacz")
        assert made["exit_code"] == 0, made["output"]
        address = f"{curator.base}{made['file']['address']}"
        wacz = curator.get(address).content
        with ZipFile(BytesIO(wacz)) as archive:
            assert archive.read(f"archive/{WEEKLY.name}") == WEEKLY.read_bytes()
        part = curator.get(address, headers={"Range": "bytes=-1000"})
        assert (part.status_code, part.content) == (206, wacz[-1000:])

        warc = next(one for one in sorted(WGET.iterdir()) if one.name.endswith(".warc.gz"))
        taken = curator.imports("wget", warc.name, warc.read_bytes())
        assert taken["exit_code"] == 0, taken["output"]
        again = curator.imports("wget", warc.name, warc.read_bytes())
        assert (again["exit_code"], "nothing new" in again["output"]) == (0, True), again["output"]
        second = curator.imports("again", "weekly.wacz", wacz)
        assert "1 WARC" in second["output"], second["output"]
        imported = [one.name for one in (line.config.parent / "imported").rglob("*.warc.gz")]
        assert sorted(imported) == sorted((warc.name, WEEKLY.name))
        damaged = curator.imports("broken", "broken.wacz", wacz[:-100])
        assert (damaged["exit_code"] != 0, bool(damaged["output"])) == (True, True)


def half(curator: Curator) -> socket.socket:
    """A connection by which a part of an upload has come."""
    token, (host, port) = curator.form("/import"), curator.base.removeprefix("http://").split(":")
    head = (
        f"POST /import HTTP/1.1\r\nHost: {host}:{port}\r\nOrigin: {curator.base}\r\n"
        f"Authorization: {curator.headers['Authorization']!s}\r\nContent-Length: 9000000\r\n"
        "Content-Type: multipart/form-data; boundary=b\r\n\r\n"
        f'--b\r\nContent-Disposition: form-data; name="form"\r\n\r\n{token}\r\n'
        '--b\r\nContent-Disposition: form-data; name="job"\r\n\r\nold\r\n'
        '--b\r\nContent-Disposition: form-data; name="file"; filename="a.warc"\r\n\r\n'
    )
    one = socket.create_connection((host, int(port)))
    one.sendall(head.encode() + bytes(2_000_000))
    return one


def test_an_upload_that_breaks_off_leaves_nothing(line: Line) -> None:
    with served(line) as curator:
        with closing(half(curator)):
            wait_for(lambda: left(line))
        wait_for(lambda: not left(line))
        last = half(curator)
        wait_for(lambda: left(line))
    with closing(last):
        assert left(line) == [], "the server has ended meanwhile"
