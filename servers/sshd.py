"""OpenSSH's server with its own keys and configuration. Only the user who starts it can log in, by key."""

from __future__ import annotations

import getpass
import os
import resource
from pathlib import Path

from msgspec import Struct

from servers import packages, pins, process
from servers.pins import HOST, Ports, answers, refuse_taken
from warcmill.errors import Unavailable

NAME = "sshd"
READY_SECONDS = 120
CONFIG = """Port {port}
ListenAddress {host}
HostKey {folder}/host_key
PidFile none
AuthorizedKeysFile {folder}/authorized_keys
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
PermitRootLogin prohibit-password
Subsystem sftp internal-sftp
LogLevel VERBOSE
MaxStartups 100
"""
# Ignore SIGXFSZ: a write beyond RLIMIT_FSIZE then fails with EFBIG and kills no process (setrlimit(2)).
_IGNORING_XFSZ = ("/bin/sh", "-c", 'trap "" XFSZ; exec "$@"', "sh")


class Sshd(Struct, frozen=True):
    """An sshd: its address and keys, and methods to start, stop and break it. It shows the whole file system."""

    folder: Path
    ports: Ports

    @property
    def port(self) -> int:
        """The port at which it listens on 127.0.0.1."""
        return self.ports["ssh"]

    @property
    def user(self) -> str:
        """The only user who can log in: the one who starts it."""
        return getpass.getuser()

    @property
    def key(self) -> Path:
        """The user's private key, without a passphrase."""
        return self.folder / "user_key"

    @property
    def known_hosts(self) -> Path:
        """The pinned host key, under `[127.0.0.1]:PORT`."""
        return self.folder / "known_hosts"

    @property
    def root(self) -> Path:
        """An empty folder for stores."""
        return self.folder / "root"

    def start(self) -> None:
        """Start it and wait until it listens."""
        program = packages.program("sshd", "openssh-server")
        process.start(self.folder, NAME, [*_IGNORING_XFSZ, program, "-D", "-e", "-f", self.folder / "sshd_config"])
        process.wait_ready(self.folder, NAME, lambda: answers(self.port), READY_SECONDS)

    def cut(self) -> int:
        """SIGKILL every session, not the listener; return the number of killed processes."""
        listener = process.running(self.folder, NAME)
        sessions = process.descendants(listener) if listener else []
        for session in sessions:
            process.kill_process(session)
        return len(sessions)

    def kill(self) -> None:
        """SIGKILL the sessions and the listener."""
        self.cut()
        process.kill(self.folder, NAME)

    def restart(self) -> None:
        """Kill and start again."""
        self.kill()
        self.start()

    def limit_files(self, size: int = resource.RLIM_INFINITY) -> None:
        """Refuse, in new sessions, to write a file beyond `size` bytes, as a full disk would."""
        listener = process.running(self.folder, NAME)
        if listener is None:
            raise Unavailable(NAME, "not running, so it cannot be limited")
        resource.prlimit(listener.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    def change_host_key(self) -> None:
        """Restart with another host key, as an impostor would have; `known_hosts` still pins the old one."""
        _make_key(self.folder / "host_key", replace=True)
        self.restart()


def at(work: Path, ports: Ports = pins.SSHD) -> Sshd:
    """The server of this work folder, running or not."""
    return Sshd(work / NAME, ports)


def up(work: Path, ports: Ports = pins.SSHD) -> Sshd:
    """Start it unless it runs, and wait until it listens: 0.3 s."""
    server = at(work, ports)
    if process.running(server.folder, NAME) is None:
        refuse_taken(NAME, ports)
        prepare(server)
        server.start()
    return server


def down(work: Path) -> list[str]:
    """End the listener and its sessions; files stay."""
    server = at(work)
    server.cut()
    return [NAME] if process.stop(server.folder, NAME) else []


def prepare(server: Sshd) -> None:
    """Write its keys and its configuration; start nothing."""
    server.root.mkdir(parents=True, exist_ok=True)
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # where root's sshd drops its privileges
    for name in ("host_key", "user_key"):
        _make_key(server.folder / name)
    (server.folder / "authorized_keys").write_bytes(_public(server.key).read_bytes())
    host_key = " ".join(_public(server.folder / "host_key").read_text(encoding="ascii").split()[:2])
    server.known_hosts.write_text(f"[{HOST}]:{server.port} {host_key}\n", encoding="ascii")
    config = CONFIG.format(port=server.port, host=HOST, folder=server.folder)
    (server.folder / "sshd_config").write_text(config, encoding="utf-8")


def _public(key: Path) -> Path:
    return key.with_name(f"{key.name}.pub")


def _make_key(path: Path, *, replace: bool = False) -> None:
    if replace:
        path.unlink(missing_ok=True)
    if not path.exists():
        program = packages.program("ssh-keygen", "openssh-client")
        process.run("ssh-keygen", path.parent, [program, "-q", "-t", "ed25519", "-N", "", "-f", path], 30)
