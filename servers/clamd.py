"""clamd, ClamAV's server, with signatures of our own and small limits, on a Unix socket and a port."""

from __future__ import annotations

import getpass
import signal
import tempfile
from pathlib import Path

from msgspec import Struct

from servers import packages, pins, process
from servers.pins import HOST, Ports, refuse_taken
from warcmill.clients.clamd import Clamd
from warcmill.errors import Unavailable

NAME = "clamd"
READY_SECONDS = 300
STREAM_MAX_LENGTH, MAX_FILE_SIZE = 4 << 20, 2 << 20  # bytes; small, so that tests can go over them
# The EICAR test file, as hex: another scanner would take this file away for the text itself. Offset 0, as ClamAV's own.
EICAR = bytes.fromhex(
    "58354f2150254041505b345c505a58353428505e2937434329377d24"
    "45494341522d5354414e444152442d414e544956495255532d544553542d46494c452124482b482a"
)
SIGNATURE = "Warcmill.Test.EICAR.UNOFFICIAL"  # ClamAV marks what is not its own
OTHER, OTHER_SIGNATURE = b"warcmill-test-signature-of-another-database", "Warcmill.Test.Other.UNOFFICIAL"
CONFIG = """Foreground yes
LogFile {folder}/clamd-own.log
LogClean yes
DatabaseDirectory {folder}/db
LocalSocket {socket}
LocalSocketMode 600
TCPSocket {port}
TCPAddr {host}
User {user}
MaxThreads 4
StreamMaxLength {stream}
MaxFileSize {file}
MaxScanSize 400M
AlertExceedsMax {alert}
CommandReadTimeout 30
SelfCheck 0
"""


class ClamdServer(Struct, frozen=True):
    """A clamd: its addresses, and methods to change, stop and break it."""

    folder: Path
    ports: Ports

    @property
    def port(self) -> int:
        """The port at which it listens on 127.0.0.1."""
        return self.ports["clamd"]

    @property
    def socket(self) -> Path:
        """Its socket: in the system's folder, as a socket's path is at most 107 bytes long (unix(7))."""
        return Path(tempfile.gettempdir()) / f"warcmill-clamd-{self.port}.sock"

    @property
    def client(self) -> Clamd:
        """Our client, by the socket."""
        return Clamd(str(self.socket))

    def start(self, *, alert: bool = True, stream: int = STREAM_MAX_LENGTH, file: int = MAX_FILE_SIZE) -> None:
        """Start it with these limits, in bytes, and wait until it answers: 0.1 s."""
        values = {"folder": self.folder, "socket": self.socket, "port": self.port, "host": HOST}
        words = {"user": getpass.getuser(), "stream": stream, "file": file, "alert": "yes" if alert else "no"}
        (self.folder / "clamd.conf").write_text(CONFIG.format(**values, **words), encoding="utf-8")
        program = packages.program("clamd", "clamav-daemon")
        process.start(self.folder, NAME, [program, "-c", self.folder / "clamd.conf"])
        process.wait_ready(self.folder, NAME, self._answers, READY_SECONDS)

    def restart(self, *, alert: bool = True, stream: int = STREAM_MAX_LENGTH, file: int = MAX_FILE_SIZE) -> None:
        """End it if it runs, and start it again with these limits."""
        process.stop(self.folder, NAME)
        self.start(alert=alert, stream=stream, file=file)

    def kill(self) -> None:
        """SIGKILL it."""
        process.kill(self.folder, NAME)

    def hang(self, *, hung: bool = True) -> None:
        """Suspend it, or resume it: its sockets stay."""
        running = process.running(self.folder, NAME)
        if running is None:
            raise Unavailable(NAME, "not running, so it cannot hang")
        process.send(running, signal.SIGSTOP if hung else signal.SIGCONT)

    def know(self, *, other: bool) -> None:
        """Have it know the other signature too, or no longer, from its next start or reload on."""
        path = self.folder / "db" / "other.ndb"
        if other:
            path.write_text(_line("Warcmill.Test.Other", OTHER, "*"), encoding="ascii")
        else:
            path.unlink(missing_ok=True)

    def _answers(self) -> bool:
        try:
            self.client.ping()
        except Unavailable:
            return False
        return True


def at(work: Path, ports: Ports = pins.CLAMD) -> ClamdServer:
    """The server of this work folder, running or not."""
    return ClamdServer(work / NAME, ports)


def up(work: Path, ports: Ports = pins.CLAMD) -> ClamdServer:
    """Start it unless it runs, and wait until it answers."""
    server = at(work, ports)
    if process.running(server.folder, NAME) is None:
        refuse_taken(NAME, ports)
        (server.folder / "db").mkdir(parents=True, exist_ok=True)
        (server.folder / "db" / "eicar.ndb").write_text(_line("Warcmill.Test.EICAR", EICAR, "0"), encoding="ascii")
        server.start()
    return server


def down(work: Path) -> list[str]:
    """End it; it removes its socket."""
    folder = work / NAME
    if (running := process.running(folder, NAME)) is not None:
        process.send(running, signal.SIGCONT)  # one that hangs would not see the end coming
    return [NAME] if process.stop(folder, NAME) else []


def _line(name: str, text: bytes, offset: str) -> str:
    return f"{name}:0:{offset}:{text.hex()}\n"
