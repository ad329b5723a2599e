"""config/compose.yaml says the same as servers/pins.py: which servers, which versions, which ports."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from servers import pins
from servers.__main__ import SERVERS, USUAL

ROOT = Path(__file__).parent.parent.parent
COMPOSE = yaml.safe_load((ROOT / "config" / "compose.yaml").read_text("utf-8"))
VERSIONS = {"heritrix": pins.HERITRIX_VERSION, "hdfs": pins.HADOOP_VERSION, "sshd": "debian12", "luigid": "locked"}


def test_it_has_the_usual_servers() -> None:
    assert tuple(COMPOSE["services"]) == USUAL


@pytest.mark.parametrize("name", USUAL)
def test_versions_and_ports(name: str) -> None:
    service = COMPOSE["services"][name]
    assert service["command"] == [name]
    assert service["image"] == f"warcmill-{name}:{VERSIONS[name]}"
    assert service["expose"] == [str(port) for port in SERVERS[name].ports.values()]
    assert service["network_mode"] == "host", "the servers listen on loopback alone"


def test_the_image_has_all_that_the_script_needs() -> None:
    recipe = COMPOSE["x-server"]["build"]["dockerfile_inline"]
    for package in ("openjdk-17-jre-headless", "maven", "openssh-server", "openssh-client", "python3-venv"):
        assert package in recipe
    for line in recipe.splitlines():
        if line.startswith("COPY "):
            for source in line.split()[1:-1]:
                assert (ROOT / source).exists(), source
    for package in ("servers", "warcmill", "commands", "tasks", "targets", "scripts"):
        assert f"COPY {package} {package}" in recipe


def test_no_port_is_given_twice() -> None:
    ports = [port for server in SERVERS.values() for port in server.ports.values()]
    assert len(ports) == len(set(ports))
