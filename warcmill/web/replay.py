"""pywb, which replays: a program of its own, started and watched here. It is GPL, so nothing of it is imported.

It listens on loopback, under another name and port than search, and reads the files that the current version's link
leads to, at each request anew.
"""

from __future__ import annotations

import http.client
import json
import logging
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, ClassVar

from warcmill.base.printable import printable
from warcmill.errors import BadConfig, Unavailable

LOOPBACK = "127.0.0.1"
NAME = "localhost"  # a cookie of 127.0.0.1 reaches all its ports, and never this name
VERSION = "2.10."
INSTALL = "'warcmill serve --get-replay' installs one that fits"
_SECONDS = 60  # that pywb may take to print its version, or to end
_PATIENCE = 20  # seconds that it may take to answer when it is asked whether it is there
_FIRST_PAUSE, _LONGEST_PAUSE = 1, 60  # seconds before it is started again
_LONGEST_LINE = 2_000
_DIRECTLY = {"no_proxy": LOOPBACK, "NO_PROXY": LOOPBACK, "NETRC": os.devnull}  # to our own server of WARCs
_IF_OURS = '[ "$PPID" = "$0" ] && exec "$@"'  # we may be killed before the kernel knows that it ends with us
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Places:
    """Where pywb finds what it replays: the WARCs, by what comes before their paths (of a folder, or of a server), and
    the link to the current version of the CDX."""

    warcs: str
    cdx: Path


def command(configured: str) -> Path:
    """The program `wayback` of a pywb that fits, or BadConfig."""
    found = shutil.which(configured or "wayback")
    if found is None:
        what = f"there is no program {configured}" if configured else "is not set, and there is no wayback on PATH"
        raise BadConfig("[serve] pywb", f"{what}; {INSTALL}")
    said = _version(found)
    if not said.startswith(f"pywb {VERSION}"):
        raise BadConfig("[serve] pywb", f"{found} is {printable(said) or 'no pywb'}, not {VERSION}*; {INSTALL}")
    return Path(found)


def _version(program: str) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - the operator's own program
            [program, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BadConfig("[serve] pywb", f"{program} does not run: {error}; {INSTALL}") from error
    return done.stdout.decode("utf-8", "replace").strip().partition("\n")[0][:200]


def check_free(port: int, key: str) -> None:
    """Unavailable if another program has this port on loopback."""
    with closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError as error:
            why = f"{error.strerror}; end the program that has it, or set another port: [serve] {key}"
            raise Unavailable(f"port {port} of {LOOPBACK}", why) from error


@dataclass(frozen=True, slots=True)
class NoReplay:
    """In the place of a pywb that is not installed. `missing`: why, and what installs it.

    `address`: where replay would be. Its name stays reserved: a cookie that is given there would reach replay later.
    """

    missing: str
    address: str

    def state(self) -> str:
        """It is never ready."""
        return "not installed"

    def start(self) -> None:
        """There is nothing to start."""

    def stop(self) -> None:
        """There is nothing to stop."""


@dataclass
class Pywb:
    """A pywb that is started again whenever it ends, until `stop`. `secret` is the name of its collection."""

    program: Path
    places: Places
    port: int
    secret: str
    public: str = ""
    missing: ClassVar[str] = ""
    _stopped: threading.Event = field(default_factory=threading.Event)
    _process: subprocess.Popen[bytes] | None = None
    _thread: threading.Thread | None = None

    @property
    def address(self) -> str:
        """What comes before the time and the URL of a capture."""
        return f"{self.public or f'http://{NAME}:{self.port}'}/{self.secret}/"

    def state(self) -> str:
        """`ready`, or `not ready`: it is being started, or does not answer."""
        try:
            with closing(http.client.HTTPConnection(LOOPBACK, self.port, timeout=_PATIENCE)) as connection:
                connection.request("GET", f"/{self.secret}/cdx?url=http://warcmill.invalid/")
                return "ready" if connection.getresponse().status == http.client.OK else "not ready"
        except (OSError, http.client.HTTPException):
            return "not ready"

    def start(self) -> None:
        """Start it, and a thread that watches it."""
        self._thread = threading.Thread(target=self._watch, name="replay", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End it, and wait until it has ended."""
        self._stopped.set()
        if self._process:
            self._process.terminate()
        if self._thread:
            self._thread.join(_SECONDS)
        if self._process and self._process.poll() is None:
            self._process.kill()

    def _watch(self) -> None:
        pause = _FIRST_PAUSE
        while not self._stopped.wait(0 if self.places.cdx.exists() else _FIRST_PAUSE):
            if not self.places.cdx.exists():  # pywb looks only once whether that is a folder
                continue
            begun = time.monotonic()
            try:
                with tempfile.TemporaryDirectory(prefix="warcmill-pywb-") as folder:
                    why = self._run(Path(folder))
            except OSError as error:
                why = str(error)
            if self._stopped.is_set():
                return
            pause = _FIRST_PAUSE if time.monotonic() - begun > _LONGEST_PAUSE else min(2 * pause, _LONGEST_PAUSE)
            log.error("pywb has ended: %s; it is started again in %d s", why, pause)
            self._stopped.wait(pause)

    def _run(self, folder: Path) -> str:
        """Run it once. Returns how it ended, with the last line that it printed."""
        (folder / "config.yaml").write_text(self._config(), "utf-8")
        with subprocess.Popen(  # noqa: S603 - the operator's own program
            self.words(),
            cwd=folder,
            env={**os.environ, **_DIRECTLY},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as process:
            self._process = process
            if self._stopped.is_set():
                process.terminate()
            assert process.stdout
            last = _last_line(process.stdout)
        return f"exit code {process.returncode}, {last or 'it printed nothing'}"

    def _config(self) -> str:
        """JSON is YAML."""
        places = {"archive_paths": self.places.warcs, "index_paths": f"{self.places.cdx}/"}
        return json.dumps({"collections": {self.secret: places}, "collections_root": "none"})

    def words(self) -> list[str]:
        """The command that runs it, as a child of this process alone: it ends with this process."""
        words = [str(self.program), "--bind", LOOPBACK, "--port", str(self.port)]
        tied = shutil.which("setpriv")
        return [tied, "--pdeathsig", "TERM", "sh", "-c", _IF_OURS, str(os.getpid()), *words] if tied else words


def _last_line(stream: IO[bytes]) -> str:
    """The last line that it prints until it ends, but for those about a request."""
    last = ""
    while line := stream.readline(_LONGEST_LINE):
        text = printable(line.decode("utf-8", "replace").strip())
        if text and " HTTP/1." not in text:
            last = text
    return last
