"""`warcmill serve` and `warcmill doctor` where something is missing or wrong: it is named; what is there is served.

The service tests run it with a real pywb.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing
from html import unescape
from pathlib import Path
from urllib.request import Request, urlopen

import preloaded
import pytest
from line import Line, line_at

from servers import pins
from warcmill.stores import sentinel

FAKE = "#!/bin/sh\n# Stands for a pywb of some version, which cannot be installed side by side.\necho '{}'\n"


@pytest.fixture
def line(tmp_path: Path) -> Line:
    """A line with an index root."""
    made = line_at(tmp_path)
    sentinel.adopt({"index": tmp_path / "index"})
    made.config.write_text(made.config.read_text().replace("\n[warcmill]\n", f"\n[warcmill]\nindex={tmp_path}/index\n"))
    return made


@pytest.mark.parametrize(("key", "said"), [
    ("index=", "There is no index, so nothing can be searched or replayed: 'warcmill init --adopt index'"),
    ("", "pywb, which shows them, is not installed; 'warcmill serve --get-replay' installs one that fits"),
])  # fmt: skip
def test_it_starts_without_pywb_and_without_an_index_and_says_so(line: Line, key: str, said: str) -> None:
    if key:
        index = f"\nindex={line.folders['state'].parent}/index\n"
        line.config.write_text(line.config.read_text().replace(index, "\n"))
    chosen = pins.free({"port": 0, "replay_port": 0})
    add(line, *(f"{name}={port}" for name, port in chosen.items()))
    env = {**os.environ, "LUIGI_CONFIG_PATH": str(line.config), "PATH": "/usr/bin:/bin"}
    with preloaded.start("commands.main", "serve", env=env) as process:
        assert process.stdout
        assert process.stderr
        address, _, token = process.stdout.readline().strip().partition("sign-in?token=")
        printed = [process.stderr.readline() for _ in range(1 if key else 3)]
        asking = Request(address, headers={"Authorization": f"Bearer {token}"})
        with urlopen(asking, timeout=60) as answer:
            page = unescape(answer.read().decode())
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert said in "".join(printed)
    assert said in page


def test_its_port_and_the_pages_alone_are_options_too(line: Line) -> None:
    port = pins.free({"port": 0})["port"]
    env = {**os.environ, "LUIGI_CONFIG_PATH": str(line.config), "PATH": "/usr/bin:/bin"}
    with preloaded.start("commands.main", "serve", "--port", str(port), "--no-replay", env=env) as process:
        assert process.stdout
        address = process.stdout.readline().strip().partition("sign-in")[0]
        with urlopen(f"http://127.0.0.1:{port}/healthz", timeout=60) as answer:
            replay = json.load(answer)["replay"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert (address, replay) == (f"http://127.0.0.1:{port}/", "off")
    for wrong, code in (("0", 2), ("x", 2), ("65535", 3)):
        assert preloaded.run("commands.main", "serve", "--port", wrong, env=env).returncode == code


def test_replay_that_is_not_wanted_is_no_fault(line: Line) -> None:
    chosen = pins.free({"port": 0})
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:  # no port of replay is asked for
        add(line, "replay=false", f"port={chosen['port']}", f"replay_port={taken.getsockname()[1]}")
        env = {**os.environ, "LUIGI_CONFIG_PATH": str(line.config), "PATH": "/usr/bin:/bin"}
        with preloaded.start("commands.main", "serve", env=env) as process:
            assert process.stdout
            assert process.stderr
            address, _, token = process.stdout.readline().strip().partition("sign-in?token=")
            with urlopen(f"{address}healthz", timeout=60) as answer:
                assert json.load(answer)["replay"] == "off"
            basic = b64encode(f"anyone:{token}".encode()).decode()
            with urlopen(Request(address, headers={"Authorization": f"Basic {basic}"}), timeout=60) as answer:
                assert "[serve] replay is false, or --no-replay" in unescape(answer.read().decode())
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0


@pytest.mark.parametrize("roots", [("store",), ("output", "store", "index")])
def test_it_starts_while_roots_are_away_and_names_the_store(line: Line, roots: tuple[str, ...]) -> None:
    add(line, *(f"{name}={port}" for name, port in pins.free({"port": 0, "replay_port": 0}).items()))
    for root in roots:
        folder = line.folders["state"].with_name(root)
        folder.rename(folder.with_name(f"{root}-away"))
    env = {**os.environ, "LUIGI_CONFIG_PATH": str(line.config), "PATH": "/usr/bin:/bin"}
    with preloaded.start("commands.main", "serve", env=env) as process:
        assert process.stdout
        assert process.stderr
        address, _, token = process.stdout.readline().strip().partition("sign-in?token=")
        printed = next(text for text in process.stderr if "store" in text)
        asking = Request(address, headers={"Authorization": f"Bearer {token}"})
        with urlopen(asking, timeout=60) as answer:
            page = unescape(answer.read().decode())
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    for text in (printed, page):
        assert "Nothing can be replayed now" in text
        assert "Mount the disk" in text


def fake_pywb(folder: Path, version: str) -> Path:
    path = folder / "wayback"
    path.write_text(FAKE.format(version))
    path.chmod(0o755)
    return path


def add(line: Line, *keys: str) -> None:
    line.config.write_text("\n".join([line.config.read_text(), "[serve]", *keys, ""]))


@pytest.mark.parametrize(
    ("key", "said"),
    [("pywb=/nowhere/wayback", "there is no program /nowhere/wayback; 'warcmill serve --get-replay' installs"),
     ("port=0", "[serve] port: is 0, not a port"), ("port=x", "[serve] port: "),
     ("replay_port=8090", "[serve] replay_port: is 8090, as port"),
     ("replay_url=ftp://x/", "[serve] replay_url: is 'ftp://x/', not an address"),
     ("token=abcdefghijklmnopqrstuvw", "[serve] token: may not be in luigi.cfg itself"),
     ("token_file=/nowhere", "[serve] token_file: ")],
)  # fmt: skip
def test_what_is_missing_or_wrong_is_named(line: Line, key: str, said: str) -> None:
    add(line, key)
    done = line.warcmill("serve")
    assert (done.returncode, done.stdout) == (3, "")
    assert said in done.stderr


def test_another_version_of_pywb_is_refused_by_name(line: Line, tmp_path: Path) -> None:
    add(line, f"pywb={fake_pywb(tmp_path, 'pywb 2.9.1')}")
    done, checked = line.warcmill("serve"), line.warcmill("doctor")
    said = f"{tmp_path}/wayback is pywb 2.9.1, not 2.10.*; 'warcmill serve --get-replay' installs one"
    assert (done.returncode, checked.returncode) == (3, 1)
    assert said in done.stderr
    assert said in " ".join(checked.stdout.split())


def test_doctor_names_what_there_is_not_to_serve(line: Line, tmp_path: Path) -> None:
    assert not re.search(r'"serve"', line.warcmill("doctor", "--json").stdout), "there is no [serve]"
    add(line, f"pywb={fake_pywb(tmp_path, 'pywb 2.10.3')}")
    said = " ".join(line.warcmill("doctor").stdout.split())
    assert f"{tmp_path}/wayback replays" in line.warcmill("doctor", "--json").stdout
    assert "warn serve no version of cdx is published" in said
    assert "warn serve no version of text is published" in said


@pytest.mark.parametrize(("old", "new", "code", "said"), [
    ("store=", "store=webhdfs://127.0.0.1:1/archive?user=crawl#", 3, "webhdfs URL"),
])  # fmt: skip
def test_a_line_that_cannot_be_served_is_refused(
    line: Line, tmp_path: Path, old: str, new: str, code: int, said: str
) -> None:
    line.config.write_text(line.config.read_text().replace(f"\n{old}", f"\n{new}"))
    add(line, f"pywb={fake_pywb(tmp_path, 'pywb 2.10.0')}")
    done = line.warcmill("serve")
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr


@pytest.fixture
def taken() -> Iterator[int]:
    """A port on which another program listens."""
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        yield int(other.getsockname()[1])


@pytest.mark.parametrize(("key", "free"), [("port", "replay_port"), ("replay_port", "port")])
def test_a_taken_port_is_named(line: Line, tmp_path: Path, taken: int, key: str, free: str) -> None:
    unused = pins.free({free: 0})[free]
    add(line, f"pywb={fake_pywb(tmp_path, 'pywb 2.10.0')}", f"{key}={taken}", f"{free}={unused}")
    done = line.warcmill("serve")
    assert (done.returncode, done.stdout) == (4, "")
    assert f"port {taken} of 127.0.0.1 is unavailable: Address already in use" in done.stderr
    assert f"[serve] {key}" in done.stderr


def test_tokens_that_open_nothing_are_none(line: Line) -> None:
    tokens = line.folders["state"] / "web/tokens"
    tokens.mkdir(parents=True)
    over = {"made": "2016-10-19T23:44:28Z", "name": "over", "role": "operator", "sha256": "0" * 64}
    (tokens / "over.json").write_text(json.dumps({**over, "until": "2016-10-20T23:44:28Z"}))
    (tokens / "broken.json").write_text("{")
    add(line, "listen=0.0.0.0")
    done = line.warcmill("serve")
    assert (done.returncode, done.stdout) == (3, "")
    assert "there are no tokens: 'warcmill serve token add NAME --role operator' makes one" in done.stderr
