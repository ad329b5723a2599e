"""Ask siegfried for the format of some bytes, in a process of its own.

Siegfried is in Go: its threads would be missing in processes that Luigi forks later, and a call there would never
return. Its signatures take 85 MB. And a payload that it cannot survive ends only that process.

    request: the length of the bytes, 4 bytes big-endian, then the bytes
    answer:  one line of JSON, siegfried's own
"""

from __future__ import annotations

import atexit
import json
import os
import select
import subprocess
import sys
from typing import Any, Final

from warcmill.errors import Unavailable

TIMEOUT: Final = 60  # seconds for an answer, the process's start included: it takes milliseconds
_COMMAND: Final = (sys.executable, "-P", "-m", "warcmill.formats.siegfried")  # -P: no module of the working folder
_running: dict[int, subprocess.Popen[bytes]] = {}  # by the process that asks: one that was forked has its own


def ask(sample: bytes) -> dict[str, Any]:
    """What siegfried says about some bytes. Unavailable when it ends or is silent; the next question starts it again.

    Its process stays, and ends with the one that asks.
    """
    child = _running.get(os.getpid()) or _start()
    try:
        _send(child, sample)
        return dict(json.loads(_answer(child)))
    except (OSError, ValueError) as error:
        child.kill()
        _end(child)
        raise Unavailable("siegfried", f"{error} (exit status {child.returncode})") from error


def ask_once(sample: bytes) -> dict[str, Any]:
    """The same, by a process that ends after its answer, and holds no memory then."""
    asked = _framed(sample)
    try:
        done = subprocess.run(_COMMAND, input=asked, stdout=subprocess.PIPE, check=True, timeout=TIMEOUT)  # noqa: S603
        return dict(json.loads(done.stdout))
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise Unavailable("siegfried", str(error)) from error


def _start() -> subprocess.Popen[bytes]:
    child = subprocess.Popen(_COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603 - our own words
    _running[os.getpid()] = child
    atexit.register(_end, child)
    return child


def _send(child: subprocess.Popen[bytes], sample: bytes) -> None:
    assert child.stdin
    child.stdin.write(_framed(sample))
    child.stdin.flush()


def _answer(child: subprocess.Popen[bytes]) -> bytes:
    assert child.stdout
    if not select.select([child.stdout], [], [], TIMEOUT)[0]:
        raise OSError(f"no answer in {TIMEOUT} seconds")
    line = child.stdout.readline()
    if not line:
        raise OSError("it ended without an answer")
    return line


def _end(child: subprocess.Popen[bytes]) -> None:
    """End the process if it is ours: it ends by itself when nobody can ask any more."""
    if _running.get(os.getpid()) is child:
        del _running[os.getpid()]
        atexit.unregister(_end)
        child.communicate()


def _framed(sample: bytes) -> bytes:
    return len(sample).to_bytes(4, "big") + sample


def _serve() -> None:
    """Answer until the last who can ask has closed our input."""
    import signal  # noqa: PLC0415 - the rest is for this process alone

    import pygfried  # noqa: PLC0415

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for who asks; we end when it does
    while head := sys.stdin.buffer.read(4):
        sample = sys.stdin.buffer.read(int.from_bytes(head, "big"))
        descriptor = os.memfd_create("payload")  # siegfried reads files only: this one is in memory, and has no name
        with open(descriptor, "wb") as file:
            file.write(sample)
            file.flush()
            answer = pygfried.identify(f"/proc/self/fd/{descriptor}", detailed=True)
        sys.stdout.write(f"{json.dumps(answer)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _serve()
