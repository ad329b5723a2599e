"""config/compose.yaml without a container engine: docker-compose reads it, and its services' commands run here.

No container engine runs where these tests do, so no container does either. The image is a folder with what the
Dockerfile copies, made by the script that it runs; the volumes are folders beside it; the names, addresses and ports of
containers are those of loopback, and a pause between two runs is some seconds. Each command, health check and signal is
the file's. What a container adds (its user, its own network and process ids, the end of all that it has started) is not
tested.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.request import urlopen

import pytest
import yaml
from sites.several_hosts import Page, serve

from servers import clamd as clamd_server
from servers import packages, pins, postgresql
from warcmill.clients.clamd import Clamd
from warcmill.replay import pywb

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "operate" / "containers.md").read_text("utf-8")
SECONDS = 600  # a loaded machine needs minutes
PAUSE = "5"
OWN = "127.0.0.2"
NAMED = {"warcmill_newest_warc_timestamp_seconds", "warcmill_backup_end_timestamp_seconds", "warcmill_warcs"}
LINE = ("scan", "due", "backup", "serve", "luigid")
HERE = "--allow-private 127.0.0.0/8 --no-delay --resolve www.example.org=127.0.0.1"
SITE = {
    ("www.example.org", "/"): Page(b"<title>The Heron Society</title><h1>Herons</h1><a href=/news>News</a>"),
    ("www.example.org", "/news"): Page(b"<title>News</title><p>The osprey has come back."),
    ("www.example.org", "/robots.txt"): Page(b"User-agent: *\nDisallow:\n", "text/plain"),
}


@dataclass(frozen=True)
class Host:
    """A folder in place of a host with containers: the image, the volumes, and the ports of loopback."""

    base: Path
    ports: Mapping[str, int]

    @property
    def image(self) -> Path:
        return self.base / "image"

    @property
    def archive(self) -> Path:
        return self.base / "archive"

    def mapped(self, text: str) -> str:
        """A text of the file or of the image, with the places of this host."""
        places = {"/opt/warcmill": str(self.image), "/srv/archive": str(self.archive), "0.0.0.0": pins.HOST}
        places |= {name: str(port) for name, port in self.ports.items()} | {
            f"/srv/{name}": str(self.base / name) for name in ("clamav", "servers")
        }
        for name, place in places.items():
            text = text.replace(name, place)
        return text.replace("=luigid", f"={pins.HOST}")

    @cached_property
    def services(self) -> dict[str, Any]:
        """The services, by the file; `$$` is a dollar in it."""
        text = (ROOT / "config" / "compose.yaml").read_text("utf-8").replace("$$", "$")
        return dict(yaml.safe_load(self.mapped(text))["services"])

    def environment(self, name: str) -> dict[str, str]:
        """The environment of the image, then the service's own; nothing of this process."""
        image = self.mapped((ROOT / "config" / "Dockerfile").read_text("utf-8"))
        lines = [line.removeprefix("ENV ") for line in image.splitlines() if line.startswith("ENV ")]
        values = dict(word.split("=", 1) for line in lines for word in line.split())
        own = self.base / name
        own.mkdir(exist_ok=True)
        return values | {"HOME": str(own), "TMPDIR": str(own), **self.services[name].get("environment", {})}

    def command(self, name: str) -> list[str]:
        """What a service runs; a clock pauses for some seconds only."""
        service = self.services[name]
        words = [*service.get("entrypoint", []), *service["command"]]
        return ["scripts/every", PAUSE, *words[2:]] if words[0] == "scripts/every" else words

    def start(self, name: str, words: list[str] | None = None) -> subprocess.Popen[bytes]:
        with (self.base / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                words or self.command(name), cwd=self.image, env=self.environment(name), stdout=log, stderr=log
            )

    def run(self, name: str, words: list[str] | None = None) -> int:
        return self.start(name, words).wait(SECONDS)

    def log(self, name: str) -> str:
        return (self.base / f"{name}.log").read_text("utf-8")

    def is_healthy(self, name: str) -> bool:
        """By the service's own health check."""
        kind, *words = self.services[name]["healthcheck"]["test"]
        assert kind == "CMD"
        return self.run(name, words) == 0


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Host:
    """The image is made as the Dockerfile makes it; the volumes are there, and empty."""
    free = pins.free({"8090": 0, "8091": 0, "8082": 0, "3310": 0})
    made = Host(tmp_path_factory.mktemp("host"), free)
    made.image.mkdir()
    (made.base / "clamav").mkdir()
    for folder in ("state", "store", "index", "output", "jobs"):
        (made.archive / folder).mkdir(parents=True)
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for line in (ROOT / "config" / "Dockerfile").read_text("utf-8").splitlines():
        if line.startswith("COPY "):
            *sources, place = line.split()[1:]
            for source in sources:
                if (ROOT / source).is_dir():
                    shutil.copytree(ROOT / source, made.image / place, symlinks=True, ignore=ignored)
                else:
                    shutil.copy(ROOT / source, made.image / place)
    for path in (made.image / "config").glob("*.c[of]*"):
        path.write_text(made.mapped(path.read_text("utf-8")), "utf-8")
    subprocess.run(["scripts/setup"], cwd=made.image, check=True)
    _install_replay(made.archive / pywb.FOLDER)
    return made


def _install_replay(folder: Path) -> None:
    """Have pywb there as if --get-replay had installed it: it is that of all tests."""
    (folder / "bin").mkdir(parents=True)
    (folder / "bin/wayback").symlink_to(packages.bin_folder("pywb") / "wayback")
    (folder / "installed").write_text(hashlib.sha256(pywb.LOCK.read_bytes()).hexdigest(), "utf-8")


@contextmanager
def up(host: Host, *names: str) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """Start services as `docker-compose up` does, and end them by SIGTERM as `docker-compose stop` does: first those
    that depend on another."""
    started = {name: host.start(name) for name in names}
    try:
        yield started
    finally:
        codes = {}
        for now in ([name for name in names if name != "luigid"], [name for name in names if name == "luigid"]):
            for name in now:
                started[name].terminate()
            codes |= {name: started[name].wait(SECONDS) for name in now}
    assert codes == dict.fromkeys(names, 0), {name: host.log(name)[-2000:] for name in names}


def wait_for(what: Callable[[], bool], host: Host, *names: str) -> None:
    deadline = time.monotonic() + SECONDS
    while not what():
        assert time.monotonic() < deadline, {name: host.log(name)[-3000:] for name in names}
        time.sleep(0.2)


def test_docker_compose_reads_the_file() -> None:
    """That of Debian 12, which knows no `dockerfile_inline`. It resolves anchors, profiles and conditions."""
    words = ["docker-compose", "config"]
    done = subprocess.run(words, cwd=ROOT / "config", capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    read = yaml.safe_load(done.stdout)["services"]
    profiles = {name: service.get("profiles", []) for name, service in read.items()}
    line = ("init", *LINE)
    others = {name: [name] for name in ("heritrix", "hdfs", "solr", "clamd")}
    workers = {name: ["workers"] for name in ("redis", "worker1", "worker2")}
    clusters = {name: ["clusters"] for name in ("postgresql", "updater")}
    assert profiles == {name: [] for name in line} | others | workers | clusters
    assert read["scan"]["depends_on"]["init"] == {"condition": "service_completed_successfully"}


def test_docker_compose_refuses_a_wrong_key(tmp_path: Path) -> None:
    text = (ROOT / "config" / "compose.yaml").read_text("utf-8")
    (tmp_path / "compose.yaml").write_text(text.replace("stop_grace_period", "stop_grace_time", 1), "utf-8")
    done = subprocess.run(["docker-compose", "config"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "stop_grace_time" in done.stderr


def tree(folder: Path) -> dict[str, tuple[int, bytes]]:
    """All files of a folder: when each was changed, and its bytes."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


def test_init_touches_nothing_that_is_there(host: Host) -> None:
    assert host.run("init") == 0, host.log("init")
    made = tree(host.archive)
    assert {"luigi.cfg", "secrets/readers", "state/.warcmill.json", "store/.warcmill.json"} <= set(made)
    assert oct((host.archive / "secrets/readers").stat().st_mode)[-3:] == "600"
    assert host.run("init") == 0
    assert tree(host.archive) == made


def test_init_killed_before_its_end_is_completed_and_an_edited_file_is_left(host: Host, tmp_path: Path) -> None:
    other = Host(tmp_path, host.ports)
    other.archive.mkdir()
    other.image.symlink_to(host.image)
    words = ["warcmill", "init", str(other.archive)]
    assert other.run("init", words) == 0
    assert other.run("init") == 0, other.log("init")
    config = other.archive / "luigi.cfg"
    assert "[serve]" in config.read_text()
    config.write_text(config.read_text().replace("[serve]\n", "[serve]\nport=9999\n"))
    before = tree(other.archive)
    assert other.run("init") == 0
    assert tree(other.archive) == before


def test_init_refuses_an_archive_that_was_configured_otherwise(host: Host, tmp_path: Path) -> None:
    other = Host(tmp_path, host.ports)
    other.archive.mkdir()
    other.image.symlink_to(host.image)
    (other.archive / "luigi.cfg").write_text("[warcmill]\noutput=/elsewhere\n")
    assert other.run("init") == 3
    assert "exists with other content" in other.log("init")
    assert (other.archive / "luigi.cfg").read_text() == "[warcmill]\noutput=/elsewhere\n"


def documented(program: str) -> list[list[str]]:
    """The words after `docker-compose exec SERVICE` of the page's commands, the service first, of one program."""
    lines = re.findall(r"^docker-compose exec (?:-T )?(\w+ .*)$", PAGE, re.MULTILINE)
    return [words for words in map(shlex.split, lines) if words[1:2] == [program]]


def answer(host: Host, path: str, token: str = "") -> tuple[int, bytes, str]:
    """The status, the body and the way that `serve` answers; with the token that init made, or another one."""
    connection = HTTPConnection(pins.HOST, host.ports["8090"], timeout=SECONDS)
    secret = token or (host.archive / "secrets/readers").read_text().strip()
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {secret}"})
        got = connection.getresponse()
        return got.status, got.read(), got.headers.get("Location", "")
    except ConnectionRefusedError:
        return 0, b"", ""
    finally:
        connection.close()


def test_the_line_works_from_a_crawl_to_replay(host: Host) -> None:
    """The page's own commands, typed in the services that it names, while the clocks run."""
    assert host.run("init") == 0, host.log("init")
    with serve(SITE) as port, up(host, "luigid", "serve", "scan", "due"):
        wait_for(lambda: host.is_healthy("luigid"), host, "luigid")
        wait_for(lambda: host.is_healthy("serve"), host, "serve")
        crawl, schedule, status, sign_in = documented("warcmill")[:4]
        for name, *words in (crawl, schedule, status):
            url = f"http://www.example.org:{port}/"
            typed = [url if word == "https://www.example.org/" else word for word in words]
            typed[-1:] = [*shlex.split(HERE), typed[-1]] if words[1] == "crawl" else typed[-1:]
            assert host.run(name, typed) in (0, 5), host.log(name)

        def whole() -> bool:
            """Both launches are in the store, verified: the one that was typed, and the one that was due."""
            return len(list((host.archive / "state").glob("*/*/*/files.verified.*.final"))) == 2

        wait_for(whole, host, "due", "scan")
        wait_for(lambda: answer(host, "/healthz")[0] == 200, host, "serve", "scan")
        with up(host, "backup"):
            wait_for(lambda: len(list((host.archive / "store/state").glob("*/2*/*.zip"))) == 2, host, "backup")
            assert [name for name in LINE if not host.is_healthy(name)] == []
        wait_for(lambda: NAMED <= set(re.findall(r"^(\w+)", answer(host, "/metrics")[1].decode(), re.MULTILINE)), host)
        token = subprocess.run(
            sign_in[1:], cwd=host.image, env=host.environment(sign_in[0]), check=True, capture_output=True, text=True
        ).stdout.strip()  # fmt: skip
        code, body, _ = answer(host, "/search?q=osprey&format=json", token)
        (found,) = json.loads(body)["found"]
        assert (code, found["url"]) == (200, f"http://www.example.org:{port}/news")
        code, _, replayed = answer(host, f"/{found['capture']}", token)
        assert code == 303, "to the port of replay, which is published, too"
        with urlopen(replayed.replace(f"/{found['time']}/", f"/{found['time']}id_/"), timeout=SECONDS) as page:
            assert b"osprey" in page.read()


def test_a_clock_whose_command_fails_is_unhealthy(host: Host, tmp_path: Path) -> None:
    assert host.run("init") == 0
    sentinel = host.archive / "store/.warcmill.json"
    sentinel.rename(tmp_path / "away")
    try:
        with up(host, "luigid", "backup"):
            wait_for(lambda: not host.is_healthy("backup"), host, "backup")
    finally:
        (tmp_path / "away").rename(sentinel)
    with up(host, "luigid", "backup"):
        wait_for(lambda: host.is_healthy("backup"), host, "backup")


@pytest.mark.parametrize("name", ["heritrix", "solr", "hdfs"])
def test_a_server_of_a_profile_listens_at_its_own_address_until_it_is_stopped(host: Host, name: str) -> None:
    """At another address than that of loopback's servers, as in a container of its own."""
    folder = host.base / "servers"
    folder.mkdir(exist_ok=True)
    if not (folder / "packages").exists():
        (folder / "packages").symlink_to(packages.folder())
    shell, option, text = host.services[name]["entrypoint"]
    ready = host.base / f"{name}.ready"
    text = text.replace("$(hostname -i)", OWN).replace("/tmp/ready", str(ready))
    process = host.start(name, [shell, option, text, *host.services[name]["command"]])
    try:
        wait_for(lambda: ready.exists() or process.poll() is not None, host, name)
        assert ready.exists(), host.log(name)
        port = int(host.services[name]["expose"][0])
        socket.create_connection((OWN, port), SECONDS).close()
    finally:
        process.terminate()
        assert process.wait(SECONDS) == 0
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((OWN, port), SECONDS)


def test_clamd_of_the_profile_has_the_limits_that_the_page_sets(host: Host) -> None:
    """With a signature of our own: freshclam, which fetches ClamAV's, needs its mirror, and is left out."""
    (host.base / "clamav/eicar.ndb").write_text(clamd_server._line("Warcmill.Test.EICAR", clamd_server.EICAR, "0"))
    shell, option, text = host.services["clamd"]["entrypoint"]
    started = "\n".join(line for line in text.splitlines() if "freshclam" not in line)
    assert started.startswith("exec clamd ")
    with host.start("clamd", [shell, option, started]) as process:
        try:
            client = Clamd((pins.HOST, host.ports["3310"]))
            wait_for(lambda: host.is_healthy("clamd"), host, "clamd")
            client.ping()
            config = host.archive / "luigi.cfg"
            (section,) = re.findall(r"^\[viruses\]\n(?:\w.+\n)+", PAGE, re.MULTILINE)
            checked = host.base / "checked.cfg"
            section = section.replace("clamd:3310", f"{pins.HOST}:{host.ports['3310']}")
            checked.write_text(f"{config.read_text()}\n{section}")
            done = subprocess.run(
                [host.image / ".venv/bin/warcmill", "doctor", "--json"],
                env={**host.environment("scan"), "LUIGI_CONFIG_PATH": str(checked)},
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            checks = json.loads(done.stdout)["checks"]
            levels = {check["level"] for check in checks if "clamd" in check["name"] + check["text"]}
            assert levels, done.stdout + done.stderr
            assert "fail" not in levels, done.stdout
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(SECONDS)


def test_workers_of_the_profile_crawl_what_a_line_with_its_redis_begins(host: Host, tmp_path: Path) -> None:
    """The page's own lines of luigi.cfg; the names of containers are those of loopback."""
    other = Host(tmp_path, {**host.ports, **pins.free({"6379": 0})})
    other.archive.mkdir()
    other.image.symlink_to(host.image)
    for name in ("redis", "workers"):
        (other.base / name).mkdir()
    places = {"redis://redis": f"redis://{pins.HOST}", "/srv/redis": f"{other.base}/redis"}
    places |= {"/srv/workers": f"{other.base}/workers", "${WARCMILL_JOB:-ondemand}": "ondemand"}

    def here(words: list[str]) -> list[str]:
        return [_replaced(word, places) for word in words]

    assert other.run("init") == 0, other.log("init")
    config = re.findall(r"^\[engine.workers\]\n(?:.*\n)+?```", PAGE, re.MULTILINE)[0]
    text = _replaced(other.mapped(config.removesuffix("```")), places)
    (other.archive / "luigi.cfg").write_text((other.archive / "luigi.cfg").read_text() + text)
    job = other.archive / "jobs/ondemand"
    job.mkdir(parents=True)
    with serve(SITE) as port, ExitStack() as stack:
        toml = 'allow_private = ["127.0.0.0/8"]\nno_delay = true\nresolve = ["www.example.org=127.0.0.1"]\n'
        (job / "crawl.toml").write_text(toml)
        (job / "seeds.txt").write_text(f"http://www.example.org:{port}/\n")
        (job / "surts.txt").write_text(f"+http://(org,example,www,:{port})/\n")
        redis = other.start("redis", here(other.command("redis")))
        stack.callback(redis.wait)
        stack.callback(redis.terminate)
        check = other.services["redis"]["healthcheck"]["test"][1:]
        wait_for(lambda: other.run("redis", here(check)) == 0, other, "redis")
        workers = [other.start(name, here(other.command(name))) for name in ("worker1", "worker2")]
        for worker in workers:
            stack.callback(worker.kill)
        locks = [other.base / f"workers/{name}/.worker/ondemand/state/lock" for name in ("worker1", "worker2")]
        wait_for(lambda: all(lock.exists() for lock in locks), other, "worker1", "worker2")
        luigi = f"-e 's/^scheduler_host.*//;s/^scheduler_port.*/local_scheduler=true/' {other.archive}/luigi.cfg"
        subprocess.run(["sed", "-i", *shlex.split(luigi)], check=True)
        for name in ("worker1", "worker2"):
            words = ["warcmill", "init", "--adopt", f"writer.{name}"]
            assert other.run("scan", words) == 0, other.log("scan")
        assert other.run("due", ["warcmill", "pulse", "start", "ondemand", "--again"]) == 0, other.log("due")
        wait_for(lambda: _ended(job), other, "due", "worker1", "worker2")
        for worker in workers:
            worker.terminate()
            assert worker.wait(SECONDS) == 0, other.log("worker1") + other.log("worker2")


def _ended(job: Path) -> bool:
    return (job / "job.log").exists() and "FINISHED" in (job / "job.log").read_text()


def _replaced(text: str, places: Mapping[str, str]) -> str:
    for name, place in places.items():
        text = text.replace(name, place)
    return text


def test_the_centre_of_clusters_is_healthy_and_keeps_what_it_has(host: Host) -> None:
    """By its own words; PostgreSQL refuses root, and nobody has no way into the folders of tests."""
    port = str(pins.free({"postgresql": 0})["postgresql"])
    service, who = host.services["postgresql"], [*map(str, postgresql.as_nobody())]
    with TemporaryDirectory() as place:
        if who:
            os.chown(place, postgresql.NOBODY, postgresql.NOBODY)

        def mapped(words: list[str]) -> list[str]:
            return [word.replace("/srv/postgresql", place).replace("5432", port) for word in words]

        words = mapped([*who, *service["entrypoint"], *service["command"]])
        healthy = mapped(service["healthcheck"]["test"][1:])
        url = f"postgresql://warcmill@{pins.HOST}:{port}/postgres"
        for statement in ("CREATE TABLE kept (one int)", "SELECT * FROM kept"):
            with (host.base / "postgresql.log").open("ab") as log:
                server = subprocess.Popen(words, cwd=place, stdout=log, stderr=log)
            wait_for(lambda: subprocess.run(healthy, check=False).returncode == 0, host, "postgresql")
            done = subprocess.run([postgresql.program("psql"), url, "-c", statement], check=False)
            server.send_signal(signal.SIGINT)
            assert (done.returncode, server.wait(SECONDS)) == (0, 0), host.log("postgresql")
