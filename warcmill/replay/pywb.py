"""pywb, which replays: installed by its lock, configured, started and watched here. It writes beside the state alone.

pywb is GPL: a program of its own in an environment beside the state, of which nothing is imported. A file that is
written last proves that the environment is whole: an installation that was killed begins again. It listens on
loopback, under another name and port than search, and asks our index server (`replay/captures.py`) at each request.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import IO, ClassVar

from msgspec import Struct

from warcmill.base.escapes import printable
from warcmill.errors import BadConfig, Unavailable

LOCK = Path(__file__).with_name("pywb.lock")  # a link to the one of the tests, so that the wheel contains it
PAGES = Path(__file__).with_name("pages")  # our frame around an archived page, in the place of pywb's own
LICENCE = "pywb is free software under the GNU GPL 3: a program of its own, which Warcmill starts and does not contain"
FOLDER = "replay"  # beside the state
_WHOLE = "installed"
_SOURCES = ("surt",)  # no wheel of it exists: built last, with what the lock has installed before
_KEPT = 40  # lines of pip
_WIDTH = 100
_NEEDED = "pip asks for the network, or for the index that its own configuration names; then repeat the command"
_VENV = "the module venv of Python is needed, as of the package python3-venv of Debian"
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


def program(folder: Path) -> Path | None:
    """The program of a whole environment; None where there is none."""
    found = folder / "bin/wayback"
    return found if (folder / _WHOLE).is_file() and found.is_file() else None


def install(folder: Path, say: Callable[[str], None]) -> Path:
    """Make the environment, unless it is there; return its program. Unavailable with what pip said last.

    `say` gets a line now and then. Only one process may do this at a time.
    """
    digest = hashlib.sha256(LOCK.read_bytes()).hexdigest()
    whole = folder / _WHOLE
    if (found := program(folder)) and whole.read_text("utf-8") == digest:
        say(f"{found} is installed already")
        return found
    whole.unlink(missing_ok=True)
    say(LICENCE)
    say(f"it is installed into {folder}, by {LOCK}")
    _run([sys.executable, "-P", "-m", "venv", "--clear", str(folder)], _VENV, say)
    pip = [str(folder / "bin/python"), "-P", "-m", "pip", "--disable-pip-version-check", "--no-input", "install"]
    pip += ["--progress-bar=off", "--retries=1", "--no-deps", "--require-hashes"]
    for sources in (False, True):
        part = folder / ("sources.lock" if sources else "wheels.lock")
        part.write_text(lines_of(LOCK, _SOURCES, built=sources), "utf-8")
        how = "--no-build-isolation" if sources else "--only-binary=:all:"
        _run([*pip, how, "-r", str(part)], _NEEDED, say)
    whole.write_text(digest, "utf-8")
    return folder / "bin/wayback"


def lines_of(lock: Path, sources: Iterable[str], *, built: bool) -> str:
    """The packages of a lock that have to be built, or the others; a package is a line and its indented hashes."""
    kept, lines = False, []
    for line in lock.read_text("utf-8").splitlines(keepends=True):
        if line[0].isalnum():
            kept = (line.partition("==")[0] in sources) == built
        lines.append(line if kept else "")
    return "".join(lines)


def _run(words: list[str], todo: str, say: Callable[[str], None]) -> None:
    """Run a command to its end. Unavailable with its last lines if it fails."""
    last: deque[str] = deque(maxlen=_KEPT)
    try:
        with subprocess.Popen(  # noqa: S603 - our own words
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process:
            assert process.stdout
            for line in process.stdout:
                last.append(line.strip())
                if line.startswith(("Collecting", "Building", "Installing")):
                    say(line.strip().partition(" (from ")[0][:_WIDTH])
    except OSError as error:
        raise Unavailable("pywb", f"{words[0]} does not run: {error.strerror}") from error
    if process.returncode:
        raise Unavailable("pywb", f"it could not be installed: {_why(list(last))}; {todo}")


def _why(lines: list[str]) -> str:
    """The error among the last lines of pip or venv."""
    text = " ".join(lines)
    if "DO NOT MATCH THE HASHES" in text:
        return "a file has another hash than the lock names: it was changed on its way"
    if "connection" in text.lower() or "No matching distribution" in text:
        return "the index of packages does not answer, or does not have all of it"
    said = [line for line in lines if line]
    errors = [line for line in said if line.startswith("ERROR")]
    return (errors or said or ["it printed nothing"])[-1]


class ReplaySources(Struct, frozen=True):
    """Where pywb finds what it replays: the WARCs, by what comes before their paths (of a folder, or of a server), and
    the address of the index server, which pywb fills in."""

    warcs: str
    captures: str


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


OFF = "off"  # of a replay that luigi.cfg does not want


class NoReplay(Struct, frozen=True):
    """In the place of a pywb that is not installed, or not wanted (`OFF`). `missing`: why, and what installs it.

    `address`: where replay would be. Its name stays reserved: a cookie that is given there would reach replay later.
    """

    missing: str
    address: str
    word: str = "not installed"

    def state(self) -> str:
        """It is never ready."""
        return self.word

    def start(self) -> None:
        """There is nothing to start."""

    def stop(self) -> None:
        """There is nothing to stop."""


class Pywb:
    """A pywb that is started again whenever it ends, until `stop`. `secret` is the name of its collection.

    `style`: the stylesheet of our pages around an archived one. `pages`: the address of search, for the links above an
    archived page; '' where it is not known. `framed`: False has it show an archived page alone, without a frame around.
    """

    missing: ClassVar[str] = ""

    def __init__(
        self,
        program: Path,
        places: ReplaySources,
        port: int,
        secret: str,
        style: Path,
        public: str = "",
        listen: str = LOOPBACK,
        pages: str = "",
        *,
        framed: bool = True,
    ) -> None:
        self.framed = framed
        self.program, self.places, self.port, self.secret = program, places, port, secret
        self.style, self.public, self.listen, self.pages = style, public, listen, pages
        self._stopped = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread: threading.Thread | None = None

    @property
    def address(self) -> str:
        """The address before the time and the URL of a capture."""
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
        while not self._stopped.is_set():
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
        self._write_pages(folder)
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

    def _write_pages(self, folder: Path) -> None:
        """Write our templates and files to where pywb looks before it takes its own."""
        templates, static = folder / "templates", folder / "pywb/static"
        templates.mkdir()
        static.mkdir(parents=True)
        known = f"{{% set pages = {json.dumps(self.pages)} %}}\n"
        for path in PAGES.glob("*.html"):
            (templates / path.name).write_text(known + path.read_text("utf-8"), "utf-8")
        for path in (self.style, *PAGES.glob("*.js")):
            shutil.copyfile(path, static / path.name)

    def _config(self) -> str:
        """JSON is YAML."""
        index = {"type": "cdx", "api_url": self.places.captures, "replay_url": ""}
        places = {"archive_paths": self.places.warcs, "index": index}
        collections = {"collections": {self.secret: places}, "collections_root": "none"}
        return json.dumps({**collections, **({} if self.framed else {"framed_replay": False})})

    def words(self) -> list[str]:
        """The command that runs it, as a child of this process alone: it ends with this process."""
        words = [str(self.program), "--bind", self.listen, "--port", str(self.port)]
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
