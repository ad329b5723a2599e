"""Become the Java process that reads office documents by Tika, with what the kernel and Java can limit.

    python -m warcmill.launches.tika_worker JAVA JAR CPU WALL MEMORY      # `tika` starts it; its input is a socket

Java reserves more addresses than it uses, so the limit of memory is that of its heap, and CPU time is watched by
`TikaWorker.java`, which reads the documents. Tika puts zipped ones into temporary files, in a folder of this process.
"""

from __future__ import annotations

import os
import resource
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from warcmill.formats.text.document import MOST
from warcmill.stores import temporary

SOURCE = Path(__file__).with_name("TikaWorker.java")
LARGEST_FILE = 256 << 20  # bytes of a temporary file
_NAME = "warcmill-tika"
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
    """What Java is started by; `limits` are seconds of CPU time, seconds, and bytes of memory."""
    cpu, wall, memory = limits
    own = (f"-Xmx{memory}", f"-Djava.io.tmpdir={folder}", "-cp", jar)
    return (java, *_OPTIONS, *own, str(SOURCE), cpu, wall, str(MOST + 1))


def sweep() -> None:
    """Remove the folders for temporary files of dead processes of this host."""
    for entry in os.scandir(tempfile.gettempdir()):
        if entry.name.startswith(f".{_NAME}.") and temporary.is_dead(entry.name):
            shutil.rmtree(entry.path, ignore_errors=True)


def _folder() -> str:
    sweep()
    made = Path(tempfile.gettempdir()) / temporary.name(_NAME)
    made.mkdir(mode=0o700)
    return str(made)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_FILE, LARGEST_FILE))
    _java, _jar, *_limits = sys.argv[1:]
    _room = _folder()
    os.chdir(_room)
    os.execve(_java, command(_java, _jar, _room, _limits), {})  # noqa: S606 - no shell
