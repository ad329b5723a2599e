"""What `./scripts/services` promises: idempotent, bounded, clear when it fails, and only its own are ended."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from servers import __main__ as command
from servers import hdfs as hdfs_server
from servers import hdfs_ha as hdfs_ha_server
from servers import hdfs_kerberos as hdfs_kerberos_server
from servers import luigid as luigid_server
from servers import packages, pins, process
from servers import sshd as sshd_server
from servers.hdfs import Hdfs
from servers.hdfs_ha import HdfsHa
from servers.hdfs_kerberos import HdfsKerberos
from servers.luigid import Luigid
from servers.sshd import Sshd
from warcmill.errors import Mismatch, Unavailable


@pytest.fixture
def services(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """The command, with an sshd on a free port; returns what it prints."""
    found = pins.free(pins.SSHD)
    server = command.ServerModule(lambda work: sshd_server.up(work, found), sshd_server.down, found)
    monkeypatch.setitem(command.SERVERS, "sshd", server)
    monkeypatch.setenv("WARCMILL_SERVICES", str(tmp_path))

    def run(*arguments: str) -> str:
        assert command.main(list(arguments)) == 0
        return capsys.readouterr().out

    return run


# --- two at once, and one that is ended

ROOT = Path(__file__).parent.parent.parent
ON_FREE_PORT = """
import sys
from servers import __main__ as command, sshd
found = {"ssh": int(sys.argv[1])}
command.SERVERS["sshd"] = command.ServerModule(lambda work: sshd.up(work, found), sshd.down, found)
sys.exit(command.main(["up", "sshd"]))
"""


def test_a_server_that_is_brought_up_twice_at_once_is_brought_up_once(tmp_path: Path) -> None:
    port = pins.free(pins.SSHD)["ssh"]
    command_line = [sys.executable, "-c", ON_FREE_PORT, str(port)]
    environment = {**os.environ, "WARCMILL_SERVICES": str(tmp_path)}
    both = [subprocess.Popen(command_line, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) for _ in "12"]
    told = [one.communicate()[0] for one in both]
    sshd_server.down(tmp_path)
    assert [one.returncode for one in both] == [0, 0]
    where = f"127.0.0.1:{port} (ssh)"
    assert sorted(told) == [f"sshd: is up already, {where}\n", f"sshd: is up, {where}\n"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, -signal.SIGINT)])
def test_a_benchmark_that_is_ended_leaves_no_server(tmp_path: Path, number: signal.Signals, code: int) -> None:
    environment = {**os.environ, "WARCMILL_SERVICES": str(tmp_path)}
    folder = tmp_path / "benchmark" / "sshd"
    command_line = [sys.executable, "-m", "benchmarks", "sftp"]
    with subprocess.Popen(command_line, cwd=ROOT, env=environment, stderr=subprocess.PIPE) as benchmark:
        while process.running(folder, "sshd") is None:
            assert benchmark.poll() is None
            time.sleep(0.02)
        benchmark.send_signal(number)
        assert benchmark.wait(300) == code
    assert process.running(folder, "sshd") is None


# --- processes: never one that is not ours


@pytest.fixture
def sleeper(tmp_path: Path) -> process.Process:
    return process.start(tmp_path, "sleeper", ["sleep", "600"])


def test_a_process_is_started_known_and_ended(tmp_path: Path, sleeper: process.Process) -> None:
    assert process.running(tmp_path, "sleeper") == sleeper
    assert process.names(tmp_path) == ["sleeper"]
    assert process.stop(tmp_path, "sleeper")
    assert process.running(tmp_path, "sleeper") is None
    assert not process.stop(tmp_path, "sleeper"), "ended already"


@pytest.mark.parametrize("changed", [{"ticks": 1}, {"boot": "another"}])
def test_a_recycled_pid_is_left_alone(tmp_path: Path, sleeper: process.Process, changed: dict[str, object]) -> None:
    record = tmp_path / "sleeper.process.json"
    sound = record.read_text("ascii")
    record.write_text(json.dumps({**json.loads(sound), **changed}), "ascii")
    assert process.running(tmp_path, "sleeper") is None
    assert not process.stop(tmp_path, "sleeper")
    process._signal(msgspec.structs.replace(sleeper, **changed), process.signal.SIGKILL)  # type: ignore[arg-type]
    record.write_text(sound, "ascii")
    assert process.running(tmp_path, "sleeper") == sleeper, "it lives"
    process.stop(tmp_path, "sleeper")


def test_one_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    process.start(tmp_path, "deaf", ["sh", "-c", "trap '' TERM; echo up; while :; do sleep 1; done"])
    process.wait_ready(tmp_path, "deaf", lambda: process.log_of(tmp_path, "deaf").read_text() == "up\n", 10)
    assert process.stop(tmp_path, "deaf", patience=0.5)
    assert process.running(tmp_path, "deaf") is None


def test_one_whose_first_thread_is_over_is_there_as_long_as_another_is(tmp_path: Path) -> None:
    code = "import ctypes, threading, time; threading.Thread(target=time.sleep, args=(600,)).start(); "
    held = process.start(tmp_path, "held", [sys.executable, "-c", code + "ctypes.CDLL(None).pthread_exit(None)"])
    stat = Path(f"/proc/{held.pid}/stat")
    process.wait_ready(tmp_path, "held", lambda: stat.read_text().rpartition(") ")[2].startswith("Z"), 30)
    assert process.running(tmp_path, "held") == held
    process.kill(tmp_path, "held")
    assert process.running(tmp_path, "held") is None


def test_one_that_dies_or_is_late_is_reported_with_the_end_of_its_log(tmp_path: Path) -> None:
    process.start(tmp_path, "dying", ["sh", "-c", "echo no disk; sleep 1; exit 3"])
    with pytest.raises(Unavailable, match=r"(?s)ended before it was ready.*dying\.log:\nno disk"):
        process.wait_ready(tmp_path, "dying", lambda: False, 10)
    process.start(tmp_path, "late", ["sleep", "600"])
    with pytest.raises(Unavailable, match="not ready after 0 s"):
        process.wait_ready(tmp_path, "late", lambda: False, 0.3)
    process.stop(tmp_path, "late")


# --- what can be missing


def test_a_port_in_use_is_named() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as stranger:
        port = stranger.getsockname()[1]
        with pytest.raises(Unavailable, match=f"port {port} \\(ssh\\) is in use by another process"):
            pins.refuse_taken("sshd", {"ssh": port})


def test_free_ports_are_free_and_named_alike() -> None:
    found = pins.free(pins.HDFS)
    assert list(found) == list(pins.HDFS)
    assert len(set(found.values())) == len(found)
    assert not any(pins.answers(port) for port in found.values())


def test_a_program_that_is_missing_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(Unavailable, match="apt-get install openjdk-17-jre-headless"):
        packages.java()


def test_what_is_made_once_has_its_real_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The programs of an environment begin with its path: by way of a link they would fail once that is gone."""
    made, work = tmp_path / "made", tmp_path / "work"
    for folder in (made, work):
        folder.mkdir()
    (work / "packages").symlink_to(made)
    monkeypatch.setenv("WARCMILL_SERVICES", str(work))
    assert packages.folder() == made


def test_a_package_that_is_not_the_pinned_one_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WARCMILL_SERVICES", str(tmp_path))
    monkeypatch.setattr(pins, "HERITRIX_SHA256", "0" * 64)
    with pytest.raises(Mismatch, match=f"expected {'0' * 64}, found 3376c6ec"):
        packages.heritrix()
    assert not (tmp_path / "packages" / f"heritrix-{pins.HERITRIX_VERSION}").exists()


# --- the command


def test_the_command_from_up_to_down(services: Callable[..., str]) -> None:
    assert services("status", "sshd").split() == ["sshd", "down"]
    assert services("up", "sshd").startswith("sshd: is up, 127.0.0.1:")
    assert services("up", "sshd").startswith("sshd: is up already, 127.0.0.1:")
    assert services("status", "sshd").split()[:2] == ["sshd", "up"]
    assert "Server listening on 127.0.0.1 port" in services("logs", "sshd")
    assert services("down", "sshd") == "sshd: ended sshd\n"
    assert services("down", "sshd") == "sshd: was not up\n"


def test_a_name_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["up", "rabbitmq"])
    assert "no server is called rabbitmq" in capsys.readouterr().err


def test_what_cannot_be_started_ends_the_command_with_its_reason(
    services: Callable[..., str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with closing(socket.create_server(("127.0.0.1", command.SERVERS["sshd"].ports["ssh"]))):
        assert command.main(["up", "sshd"]) == Unavailable.exit_code
    assert "in use by another process" in capsys.readouterr().err


# --- the servers


def test_up_again_starts_nothing(work: Path, sshd: Sshd) -> None:
    before = process.running(sshd.folder, "sshd")
    assert sshd_server.up(work, sshd.ports) == sshd
    assert process.running(sshd.folder, "sshd") == before


def ssh(server: Sshd, *command: str) -> subprocess.CompletedProcess[str]:
    options = ("-F", "none", "-o", "BatchMode=yes", "-o", f"UserKnownHostsFile={server.known_hosts}")
    words = ["ssh", *options, "-p", str(server.port), "-i", str(server.key), f"{server.user}@127.0.0.1", *command]
    return subprocess.run(words, capture_output=True, text=True, timeout=300, check=False, stdin=subprocess.DEVNULL)


def test_sshd_lets_its_own_key_in_and_no_other(sshd: Sshd, tmp_path: Path) -> None:
    assert ssh(sshd, "echo", "hello").stdout == "hello\n"
    other = msgspec.structs.replace(sshd, folder=tmp_path)
    shutil.copy(sshd.known_hosts, other.known_hosts)
    process.run("ssh-keygen", tmp_path, ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", other.key], 30)
    assert "Permission denied" in ssh(other, "echo", "hello").stderr


def test_sshd_cut_restarted_and_with_another_host_key(sshd: Sshd) -> None:
    going_on = process.start(sshd.folder, "client", ["ssh", "-F", "none", "-o", "BatchMode=yes",
        "-o", f"UserKnownHostsFile={sshd.known_hosts}", "-p", str(sshd.port), "-i", sshd.key,
        f"{sshd.user}@127.0.0.1", "echo logged in; sleep 600"])  # fmt: skip
    process.wait_ready(sshd.folder, "client", lambda: "logged in" in process.tail(sshd.folder, "client"), 30)
    assert sshd.cut() > 0
    assert process._gone(going_on, 20), "the session is cut"
    assert ssh(sshd, "true").returncode == 0, "the listener lives"
    sshd.restart()
    assert ssh(sshd, "true").returncode == 0
    kept = sshd.folder.joinpath("host_key").read_bytes(), sshd.folder.joinpath("host_key.pub").read_bytes()
    sshd.change_host_key()
    assert "Host key verification failed" in ssh(sshd, "true").stderr
    sshd.folder.joinpath("host_key").write_bytes(kept[0])
    sshd.folder.joinpath("host_key.pub").write_bytes(kept[1])
    sshd.restart()
    assert ssh(sshd, "true").returncode == 0


def test_luigid_answers_after_a_kill_too(work: Path, luigid: Luigid) -> None:
    luigid.kill()
    assert not pins.answers(luigid.port)
    assert luigid_server.up(work, luigid.ports) == luigid
    assert pins.answers(luigid.port)


def test_hdfs_and_its_faults(work: Path, hdfs: Hdfs) -> None:
    hdfs.webhdfs("PUT", "/servers/a", "op=MKDIRS")
    hdfs.set_quota("/servers", names=2)
    with pytest.raises(Unavailable, match="NSQuotaExceededException"):
        hdfs.webhdfs("PUT", "/servers/b", "op=MKDIRS")
    hdfs.set_quota("/servers")
    hdfs.safe_mode(True)
    with pytest.raises(Unavailable, match="SafeModeException"):
        hdfs.webhdfs("PUT", "/servers/b", "op=MKDIRS")
    hdfs.safe_mode(False)
    hdfs.kill_datanode(1)
    hdfs.kill_namenode()
    try:
        with pytest.raises(Unavailable, match="Connection refused"):
            hdfs.webhdfs("GET", "/servers/a", "op=GETFILESTATUS")
    finally:
        assert hdfs_server.up(work, hdfs.ports) == hdfs, "up again mends what is missing"
    assert hdfs.webhdfs("GET", "/servers/a", "op=GETFILESTATUS")
    hdfs.webhdfs("DELETE", "/servers", "op=DELETE&recursive=true")


def test_hdfs_with_kerberos_lets_in_nobody_without_a_ticket(work: Path, hdfs_kerberos: HdfsKerberos) -> None:
    host, port = hdfs_kerberos.namenode_http.split(":")
    with closing(http.client.HTTPConnection(host, int(port), timeout=30)) as connection:
        connection.request("GET", "/webhdfs/v1/?op=LISTSTATUS&user.name=hdfs")
        answer = connection.getresponse()
        assert (answer.status, answer.getheader("WWW-Authenticate")) == (401, "Negotiate")
    hdfs_kerberos.kdc.take_ticket()
    assert "Live datanodes (1)" in hdfs_kerberos.admin("-report")
    assert hdfs_kerberos_server.up(work, hdfs_kerberos.ports) == hdfs_kerberos


def test_the_pair_fails_over(work: Path, hdfs_ha: HdfsHa) -> None:
    active, standby = ("nn1", "nn2") if hdfs_ha.state("nn1") == "active" else ("nn2", "nn1")
    hdfs_ha.fail_over(active, standby)
    assert (hdfs_ha.state(active), hdfs_ha.state(standby)) == ("standby", "active")
    hdfs_ha.kill_namenode(standby)
    assert (hdfs_ha.state(active), hdfs_ha.state(standby)) == ("standby", "")
    hdfs_ha.activate(active)
    assert hdfs_ha_server.up(work, hdfs_ha.ports) == hdfs_ha
    assert (hdfs_ha.state(active), hdfs_ha.state(standby)) == ("active", "standby")
