"""config/kubernetes by kubernetes-validate, without a cluster: what the manifests say, not that a pod runs."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from commands.console import parser
from servers import packages, sshd

ROOT = Path(__file__).parent.parent.parent
MANIFESTS = sorted((ROOT / "config" / "kubernetes").glob("*.yaml"))
DOCUMENTS = [one for path in MANIFESTS for one in yaml.safe_load_all(path.read_text("utf-8"))]
COMPOSE = yaml.safe_load((ROOT / "config" / "compose.yaml").read_text("utf-8").replace("$$", "$"))["services"]


def validated(*paths: Path) -> tuple[int, str]:
    command = [packages.bin_folder("kubernetes") / "kubernetes-validate", "--strict", *paths]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def containers(name: str, kind: str = "containers") -> dict[str, Any]:
    """The containers of a StatefulSet, by their names."""
    (found,) = (one for one in DOCUMENTS if (one["kind"], one["metadata"]["name"]) == ("StatefulSet", name))
    return {one["name"]: one for one in found["spec"]["template"]["spec"][kind]}


def test_every_manifest_is_one() -> None:
    code, told = validated(*MANIFESTS)
    assert code == 0, told
    assert told.count(" passed for resource ") == len(DOCUMENTS)


def test_a_wrong_key_would_be_found(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text((ROOT / "config/kubernetes/workers.yaml").read_text().replace("replicas:", "replica:"))
    code, told = validated(wrong)
    assert code != 0
    assert "replica" in told


def test_a_worker_has_the_words_that_the_command_takes() -> None:
    program, *words = containers("warcmill-worker")["worker"]["command"]
    args = parser.parser_of(words[0]).parse_args([w.replace("$(POD_NAME)", "warcmill-worker-0") for w in words[1:]])
    assert (program, args.role, args.name, str(args.output)) == (
        "warcmill",
        "worker",
        "warcmill-worker-0",
        "/srv/output",
    )


@pytest.mark.parametrize("name", ["scan", "due", "backup", "serve", "luigid"])
def test_the_line_runs_what_compose_runs(name: str) -> None:
    assert containers("warcmill-line")[name]["command"] == COMPOSE[name]["command"]
    assert containers("warcmill-line", "initContainers")["init"]["command"] == COMPOSE["init"]["command"]


def test_redis_is_one_that_a_crawl_takes() -> None:
    words = containers("warcmill-redis")["redis"]["command"]
    assert [words[words.index(one) + 1] for one in ("--appendonly", "--maxmemory-policy")] == ["yes", "noeviction"]


def test_the_sftp_server_beside_a_worker_takes_its_configuration(tmp_path: Path) -> None:
    (files,) = (one for one in DOCUMENTS if (one["kind"], one["metadata"]["name"]) == ("ConfigMap", "warcmill-files"))
    server = sshd.at(tmp_path)
    sshd.prepare(server)  # the key that the pod's secret has
    config = tmp_path / "sshd_config"
    text = files["data"]["sshd_config"]
    assert "/etc/warcmill/files/host_key" in text
    config.write_text(text.replace("/etc/warcmill/files", str(server.folder)))
    program = packages.program("sshd", "openssh-server")
    done = subprocess.run([program, "-t", "-f", config], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    config.write_text(config.read_text() + "ForceComand internal-sftp\n")
    done = subprocess.run([program, "-t", "-f", config], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "Bad configuration option: ForceComand" in done.stderr
