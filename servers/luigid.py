"""luigid, Luigi's central scheduler and its visualiser."""

from __future__ import annotations

import http.client
import sys
from pathlib import Path

from msgspec import Struct

from servers import pins, process
from servers.pins import HOST, Ports, refuse_taken

NAME = "luigid"
READY_SECONDS = 300
CONFIG = """[scheduler]
state_path={folder}/state.pickle
"""


class Luigid(Struct, frozen=True):
    """The scheduler: its address, and methods to start and kill it."""

    folder: Path
    ports: Ports

    @property
    def port(self) -> int:
        """The port for `--scheduler-host 127.0.0.1 --scheduler-port PORT`."""
        return self.ports["http"]

    @property
    def visualiser(self) -> str:
        """The URL of its page."""
        return f"http://{HOST}:{self.port}/static/visualiser/index.html"

    def start(self) -> None:
        """Start it and wait until it answers: about 2 s."""
        luigid = Path(sys.executable).with_name("luigid")
        command: list[str | Path] = [
            luigid,
            "--address",
            HOST,
            "--port",
            str(self.port),
            "--logdir",
            self.folder / "logs",
        ]
        process.start(self.folder, NAME, command, {"LUIGI_CONFIG_PATH": str(self.folder / "luigi.cfg")})
        process.wait_ready(self.folder, NAME, self._answers, READY_SECONDS)

    def kill(self) -> None:
        """SIGKILL it: it forgets its tasks; the markers stay."""
        process.kill(self.folder, NAME)

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection(HOST, self.port, timeout=10)
        try:
            connection.request("GET", "/api/graph?data=%7B%7D")
            return connection.getresponse().status == http.client.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


def at(work: Path, ports: Ports = pins.LUIGID) -> Luigid:
    """The server of this work folder, running or not."""
    return Luigid(work / NAME, ports)


def up(work: Path, ports: Ports = pins.LUIGID) -> Luigid:
    """Start it unless it runs, and wait until it answers."""
    server = at(work, ports)
    if process.running(server.folder, NAME) is None:
        refuse_taken(NAME, ports)
        (server.folder / "logs").mkdir(parents=True, exist_ok=True)
        (server.folder / "luigi.cfg").write_text(CONFIG.format(folder=server.folder), encoding="utf-8")
        server.start()
    return server


def down(work: Path) -> list[str]:
    """End it by SIGTERM: it saves its state."""
    return [NAME] if process.stop(work / NAME, NAME) else []
