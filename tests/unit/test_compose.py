"""config/compose.yaml and config/Dockerfile say the same as servers/pins.py, and as the crontab."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from servers import pins
from servers.__main__ import SERVERS

ROOT = Path(__file__).parent.parent.parent
COMPOSE = yaml.safe_load((ROOT / "config" / "compose.yaml").read_text("utf-8"))
DOCKERFILE = (ROOT / "config" / "Dockerfile").read_text("utf-8")
SERVICES = COMPOSE["services"]
LINE = ("init", "scan", "due", "backup", "serve", "luigid")
CLOCK = {"scan": "*/15 * * * *", "due": "*/5 * * * *", "backup": "10 2 * * *"}
PAUSES = {"scan": "900", "due": "300", "backup": "86400"}


def test_without_a_profile_it_is_the_line() -> None:
    assert tuple(name for name, service in SERVICES.items() if "profiles" not in service) == LINE
    assert {name: service["profiles"] for name, service in SERVICES.items() if name not in LINE} == {
        **{name: [name] for name in ("heritrix", "hdfs", "solr", "clamd")},
        **{name: ["workers"] for name in ("redis", "worker1", "worker2")},
        **{name: ["clusters"] for name in ("postgresql", "updater")},
    }


def test_no_two_containers_share_a_host_name() -> None:
    """A host sweeps the half-written files of its own dead processes, and containers share no process ids."""
    names = [service["hostname"] for service in SERVICES.values()]
    assert len(set(names)) == len(names) == len(SERVICES)


@pytest.mark.parametrize("name", CLOCK)
def test_the_clock_runs_what_cron_runs(name: str) -> None:
    program, pause, *shell, words = SERVICES[name]["command"]
    assert (program, pause, shell) == ("scripts/every", PAUSES[name], ["sh", "-c"])
    tool, rest = words.replace("$$", "$").removeprefix("exec ").split(" ", 1)
    rest = rest.replace("%", "\\%")
    assert f'{CLOCK[name]} "$BIN/{tool}" {rest} ' in (ROOT / "config" / "crontab").read_text("utf-8")


@pytest.mark.parametrize("name", ["heritrix", "hdfs", "solr", "clamd", "luigid", "redis", "postgresql"])
def test_ports_are_those_of_the_servers(name: str) -> None:
    assert SERVICES[name]["expose"] == [str(port) for port in SERVERS[name].ports.values()]


def test_only_pages_and_replay_are_published_and_on_loopback_alone() -> None:
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert published == {"serve": ["127.0.0.1:8090:8090", "127.0.0.1:8091:8091"]}


def test_what_the_image_copies_is_there_and_nothing_runs_as_root() -> None:
    for line in DOCKERFILE.splitlines():
        if line.startswith("COPY "):
            for source in line.split()[1:-1]:
                assert (ROOT / source).exists(), source
    targets = DOCKERFILE.split("\nFROM ")[1:]
    users = [[line for line in target.splitlines() if line.startswith("USER ")][-1] for target in targets]
    assert users == ["USER warcmill", "USER warcmill"]


def test_every_volume_of_ours_belongs_to_that_user_from_the_beginning() -> None:
    """An empty volume takes the owner of the folder that it is mounted on, and else is root's."""
    made = {word for word in DOCKERFILE.split() if word.startswith("/srv/")}
    mounted = {volume.split(":")[1] for service in SERVICES.values() for volume in service["volumes"]}
    assert mounted <= made


def test_no_port_is_given_twice() -> None:
    ports = [port for server in SERVERS.values() for port in server.ports.values()]
    assert len(ports) == len(set(ports))
    assert pins.HOST == "127.0.0.1", "elsewhere than in a container"
