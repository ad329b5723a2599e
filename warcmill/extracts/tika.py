"""Office documents by Apache Tika: its jar, and the Java processes that this process starts and keeps for it.

    python -m warcmill.extracts.tika JAVA JAR CPU WALL MEMORY      # becomes such a process; its input is a socket

A Java process takes seconds to begin, so it stays for the documents of further WARCs, until this process ends. Like
any worker, it may die of a document, which costs this document alone. Java reserves more addresses than it uses, so its
heap is limited in place of its memory. `TikaWorker.java`, which reads the documents, watches CPU time. Tika puts zipped
ones into temporary files, in a folder of that process.
"""

from __future__ import annotations

import atexit
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from types import TracebackType

from msgspec import Struct
from msgspec.structs import replace

from warcmill.base.worker import WorkerLimits
from warcmill.errors import Unavailable
from warcmill.extracts.text import Office
from warcmill.extracts.text_workers import DocumentCache, TextWorkers
from warcmill.formats.text.document import MOST, Document, Kind, made
from warcmill.stores import temporary_names

LIMITS = WorkerLimits(cpu=60, wall=240, memory=768 << 20)  # of Java's heap
LARGEST_FILE = 256 << 20  # bytes of a temporary file
_TITLE, _VERSION = b"Implementation-Title: Apache Tika application", b"Implementation-Version: "
_MANIFEST, _MOST = "META-INF/MANIFEST.MF", 1 << 16
_SECONDS = 120  # in which a Java prints its version


class Tika(Struct, frozen=True):
    """Tika, by the path of its jar, `tika-app`."""

    jar: str

    def tool(self) -> str:
        """Its name and version; Unavailable if the file is not there, or is another one."""
        try:
            with zipfile.ZipFile(self.jar) as jar, jar.open(_MANIFEST) as file:
                lines = file.read(_MOST).splitlines()
        except (OSError, zipfile.BadZipFile, KeyError) as error:
            raise Unavailable(self.jar, f"no tika-app.jar can be read there: {error}") from error
        version = next((line.removeprefix(_VERSION) for line in lines if line.startswith(_VERSION)), b"")
        if _TITLE not in lines or not version:
            raise Unavailable(self.jar, "it is another program than tika-app, which is one jar with all that it needs")
        return f"tika-app {version.decode('ascii', 'replace')}"

    def check(self) -> None:
        """Unavailable if there is no such file, or no Java. The file is not read: that takes half a second."""
        if not os.path.isfile(self.jar):
            raise Unavailable(self.jar, "there is no such file")
        java()


def java() -> str:
    """The `java` of JAVA_HOME, else the first in PATH; Unavailable if there is none."""
    home = os.environ.get("JAVA_HOME")
    program = shutil.which("java", path=os.path.join(home, "bin") if home else None)
    if not program:
        where = f"in JAVA_HOME, {home}" if home else "in PATH"
        raise Unavailable(
            "java", f"there is none {where}; on Debian and Ubuntu: apt-get install openjdk-17-jdk-headless"
        )
    return os.path.abspath(program)


def java_version(program: str) -> str:
    """The version of a `java`, in one line; Unavailable if it does not begin."""
    try:
        done = subprocess.run([program, "--version"], capture_output=True, timeout=_SECONDS, check=True)  # noqa: S603
    except (OSError, subprocess.SubprocessError) as error:
        raise Unavailable(program, f"it does not report its version: {error}") from error
    return next(iter(done.stdout.decode("utf-8", "replace").splitlines()), "")


class TikaWorkers(TextWorkers):
    """Java processes that read office documents, started when they are needed. Leave the block to end them."""

    def __init__(self, tika: Tika, number: int | None = None, limits: WorkerLimits = LIMITS) -> None:
        self.tool = tika.tool()
        module = (sys.executable, "-P", "-m", "warcmill.extracts.tika")
        super().__init__(number, limits, (*module, java(), os.path.abspath(tika.jar)), DocumentCache())

    def __exit__(
        self, type_: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        super().__exit__(type_, error, at)
        sweep()

    def _extract(self, kind: Kind, data: bytes, charset: str) -> Document:
        document = super()._extract(kind, data, charset)
        if document.why:
            return document
        from warcmill.formats.text.extract import language_of  # noqa: PLC0415 of the extra, which not every process needs

        document = made(document.text, document.title, is_cut=document.is_cut)
        return replace(document, language=language_of(document.text))


_kept: dict[tuple[int, Tika], TikaWorkers] = {}
_lock = Lock()


def kept(tika: Tika, number: int) -> Office:
    """The processes that this process keeps, at most so many. Unavailable if there is no such jar, or no Java."""
    with _lock:
        here = os.getpid(), tika  # a fork must not talk to those of its parent
        if here not in _kept:
            _kept[here] = TikaWorkers(tika, number)
        return _kept[here]


@atexit.register
def end() -> None:
    """End those that are kept."""
    with _lock:
        for (pid, _), workers in [*_kept.items()]:
            if pid == os.getpid():
                workers.__exit__(None, None, None)
        _kept.clear()


SOURCE = Path(__file__).with_name("TikaWorker.java")
_OPTIONS = (
    "-XX:+UseSerialGC",  # one core, and little memory: others work beside it
    "-XX:ActiveProcessorCount=1",
    "-XX:MaxMetaspaceSize=192m",
    "-XX:MaxDirectMemorySize=64m",
    "-XX:-UsePerfData",  # no files but those of documents
    "-XX:-CreateCoredumpOnCrash",
    "-XX:ErrorFile=/dev/null",
    "-Djava.awt.headless=true",
    "-Dlog4j2.level=OFF",
    "-Dfile.encoding=UTF-8",  # the same text on every machine
    "-Duser.language=en",
    "-Duser.country=US",
    "-Duser.timezone=UTC",
)


def command(java: str, jar: str, folder: str, limits: Sequence[str]) -> tuple[str, ...]:
    """The command that starts Java; `limits` are seconds of CPU time, seconds, and bytes of memory."""
    cpu, wall, memory = limits
    own = (f"-Xmx{memory}", f"-Djava.io.tmpdir={folder}", "-cp", jar)
    return (java, *_OPTIONS, *own, str(SOURCE), cpu, wall, str(MOST + 1))


_FOLDER = "warcmill-tika"


def sweep() -> None:
    """Remove the folders for temporary files of dead processes of this host."""
    for entry in os.scandir(tempfile.gettempdir()):
        if entry.name.startswith(f".{_FOLDER}.") and temporary_names.is_dead(entry.name):
            shutil.rmtree(entry.path, ignore_errors=True)


def _temporary_folder() -> str:
    sweep()
    folder = Path(tempfile.gettempdir()) / temporary_names.name(_FOLDER)
    folder.mkdir(mode=0o700)
    return str(folder)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_FILE, LARGEST_FILE))
    _java, _jar, *_limits = sys.argv[1:]
    _folder = _temporary_folder()
    os.chdir(_folder)
    os.execve(_java, command(_java, _jar, _folder, _limits), {})  # noqa: S606 - no shell
