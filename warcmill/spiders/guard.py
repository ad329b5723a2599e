"""The guard of a project's code while that runs: it knows which page the code is at, keeps what it raises from ending
the launch, names code that does not let go of the loop, and counts pages at which the process has died.

Writes two files of a job's state, which outlive the process. `callback`, which is mapped: the digest of the URI whose
code runs now, zeros while no code runs; then a digest for each death of the process at a page that is not done with.
`callback.cause`: the reason that the process itself had to die. Without one it was killed: no page is at fault.
"""

from __future__ import annotations

import asyncio
import faulthandler
import logging
import mmap
import os
import sys
import sysconfig
import threading
import time
import types
from collections.abc import Awaitable, Callable, Generator
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import scrapy
import twisted

from warcmill.crawl import durable
from warcmill.crawl.uri import Uri, digest, shown
from warcmill.errors import WarcmillError

log = logging.getLogger(__name__)
T = TypeVar("T")
DEATHS = 3  # of the process at a page, until that is given up
STANDS, LOOK = 60.0, 1.0  # seconds
NAME, CAUSE, _LENGTH, _MOST = "callback", "callback.cause", 16, 1_000  # bytes of a digest; deaths that are kept
VMSTAT = Path("/proc/vmstat")
_STDERR = 2
_HOMES = (str(Path(__file__).parents[1]), str(Path(scrapy.__file__).parent), str(Path(twisted.__file__).parent))
_PYTHON, _OTHERS = sysconfig.get_path("stdlib"), "site-packages"


class CodeExit(Exception):
    """Code of a project wanted to end the process, or raised what nobody expects: an error of its page."""


class CodeGuard:
    """The guard of one launch of a spider; `alert` takes a level and a text. From `begin` to `end` it watches the loop.
    Unavailable when the disk of the job is away."""

    def __init__(self, spider: str, state: Path, alert: Callable[[str, str], None]) -> None:
        self._spider, self._alert = spider, alert
        self._cause = DeathCause(state / CAUSE)
        self._died, self._file = _opened(state / NAME, self._cause.was_own)
        self._uri: Uri | None = None
        self._over, self._loop_thread = threading.Event(), threading.get_ident()
        self._thread = threading.Thread(target=self._look, name="guard", daemon=True)
        self._beats, self._beaten, self._is_named = 0, time.monotonic(), False
        self._timer: asyncio.TimerHandle | None = None

    @property
    def code(self) -> str:
        """The name of the code."""
        return f"the code of spider {self._spider}"

    # What the code raises, and at which page

    @types.coroutine
    def run(self, uri: Uri | None, code: Awaitable[T]) -> Generator[Any, Any, T]:
        """Run code that is at a page, or within code that is. CodeExit for an error that is not an Exception: Scrapy
        lets it pass, so it would end the process, or leave the page in hand for ever."""
        steps: Any = code.__await__()
        sent: Any = None
        thrown: BaseException | None = None
        while True:
            before = self._uri
            self._enter(uri or before)
            try:
                asked = steps.send(sent) if thrown is None else steps.throw(thrown)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            except Exception:
                raise
            except BaseException as error:
                if isinstance(error, type(thrown)) and _is_ended(error):
                    raise
                raise CodeExit(f"{self.code} has {_raised(error)}") from error
            finally:
                self._enter(before)
            sent = thrown = None
            try:
                sent = yield asked
            except BaseException as error:  # noqa: BLE001 it is passed on
                thrown = error

    def _enter(self, uri: Uri | None) -> None:
        if uri is not self._uri:
            self._uri = uri
            self._file[:_LENGTH] = _name(uri) if uri else bytes(_LENGTH)

    # Pages at which the process has died

    def deaths(self, uri: Uri) -> int:
        """The number of times that the process has died while the code ran for a page."""
        return self._died.count(_name(uri))

    def forget(self, uri: Uri) -> None:
        """Note that a page is done with."""
        for place, name in enumerate(self._died, 1):
            if name == _name(uri):
                self._died[place - 1] = self._file[place * _LENGTH : (place + 1) * _LENGTH] = bytes(_LENGTH)

    # Code that does not let go

    def begin(self) -> None:
        """Watch the loop that runs."""
        self._cause.begin()
        self._thread.start()
        self._beat()

    def end(self) -> None:
        """Watch no more."""
        self._over.set()
        self._thread.join()
        faulthandler.cancel_dump_traceback_later()
        if self._timer:
            self._timer.cancel()
        self._cause.end()
        self._file.close()

    def _beat(self) -> None:
        now, self._beats = time.monotonic(), self._beats + 1
        if self._is_named or now - self._beaten > STANDS:
            self._cause.forget()
            self._say("WARNING", f"{self.code} has let go of the loop, after {now - self._beaten:,.0f} s")
        self._beaten, self._is_named = now, False
        # Code that does not even let threads run, such as a regular expression, is named by the interpreter.
        faulthandler.dump_traceback_later(STANDS + 10 * LOOK, file=_STDERR)
        self._timer = asyncio.get_running_loop().call_later(LOOK, self._beat)

    def _look(self) -> None:
        """Watch, on a thread. Looks are counted, as a process that was stopped has had no looks."""
        seen, looks = 0, 0
        while not self._over.wait(LOOK):
            seen, looks = self._beats, looks + 1 if seen == self._beats else 0
            if looks * LOOK >= STANDS and not self._is_named:
                self._is_named = True
                self._cause.note("it does not let go of the loop, so that a person has to kill it")
                faulthandler.cancel_dump_traceback_later()
                with suppress(WarcmillError):  # of a disk; the log has it
                    self._say("SEVERE", self._standing())

    def _standing(self) -> str:
        what = f"{self.code} has not let go of the loop for {STANDS:.0f} s: {self._where()}"
        meanwhile = "Meanwhile nothing is fetched, and no signal is heard"
        todo = f"If it does not end, 'kill -9 {os.getpid()}': the same command continues. Let it await, or time out"
        return f"{what}. {meanwhile}. {todo}"

    def _where(self) -> str:
        """The function that Scrapy has called, its line, and the page."""
        frame = sys._current_frames().get(self._loop_thread)  # noqa: SLF001 it has no public name
        innermost, found = frame, None
        while frame and not frame.f_code.co_filename.startswith(_HOMES):
            found = found if _is_python(frame.f_code.co_filename) else frame
            frame = frame.f_back
        found = found or innermost
        name = f"{found.f_code.co_qualname}, {found.f_code.co_filename}:{found.f_lineno}" if found else "it is unknown"
        uri = self._uri
        return f"{name}, at {shown(uri.uri)}" if uri else name

    def _say(self, level: str, text: str) -> None:
        self._alert(level, text)
        log.log(logging.WARNING if level == "WARNING" else logging.ERROR, "%s", text)


class DeathCause:
    """The reason that a process itself had to die, in a file: `os._exit`, a fatal error of the interpreter (by
    faulthandler), or code that does not let go of the loop. `was_own`: the process before this one had one, or the
    system has since then killed a process for want of memory, which its first line counts."""

    def __init__(self, path: Path) -> None:
        self._path, self._process = path, 0
        try:
            kills, _, cause = path.read_text(errors="replace").partition("\n") if path.exists() else ("", "", "")
            now = _kills_for_memory()
            self.was_own = bool(cause) or (kills.isdecimal() and int(kills) < now)
            self._first = f"{now}\n".encode()
        except OSError as error:
            raise durable.failed(path, error) from error

    def begin(self) -> None:
        """Note from now on why this process dies. Nothing is synced: the machine outlives it, or nobody is to blame."""
        self._process, self._exit = os.getpid(), os._exit
        self._was_enabled = faulthandler.is_enabled()
        try:
            self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o644)
            os.write(self._file, self._first)
        except OSError as error:
            raise durable.failed(self._path, error) from error
        faulthandler.enable(self._file)
        os._exit = self._leave

    def note(self, cause: str) -> None:
        """Note a cause; without room on the disk there is none."""
        with suppress(OSError):
            os.write(self._file, f"{cause}\n".encode())

    def forget(self) -> None:
        """Forget the causes: the process lives."""
        with suppress(OSError):
            os.ftruncate(self._file, len(self._first))

    def end(self) -> None:
        """Note no more."""
        os._exit = self._exit
        faulthandler.disable()
        if self._was_enabled:
            faulthandler.enable()
        os.close(self._file)

    def _leave(self, status: int) -> NoReturn:
        if os.getpid() == self._process:  # not a process that it has forked
            self.note(f"os._exit({status})")
        self._exit(status)


def _kills_for_memory() -> int:
    """The number of processes that the system has killed for want of memory since it began; 0 if it does not count."""
    text = VMSTAT.read_text() if VMSTAT.exists() else ""
    found = [line.split()[1] for line in text.splitlines() if line.startswith("oom_kill ")]
    return int(found[0]) if found else 0


def _opened(path: Path, was_own: bool) -> tuple[list[bytes], mmap.mmap]:
    """The deaths so far, with that of the process before this one if it `was_own`; and the file, mapped."""
    try:
        before = path.read_bytes() if path.exists() else b""
        found = [before[place : place + _LENGTH] for place in range(0, len(before), _LENGTH)]
        died = [name for name in (found if was_own else found[1:]) if any(name)][-_MOST:]
        durable.replace(path, b"".join([bytes(_LENGTH), *died]))
        with path.open("r+b") as file:
            return died, mmap.mmap(file.fileno(), 0)
    except OSError as error:
        raise durable.failed(path, error) from error


def _is_python(path: str) -> bool:
    return path.startswith(_PYTHON) and _OTHERS not in path


def _name(uri: Uri) -> bytes:
    return digest(uri.crawl, uri.key)


def _is_ended(thrown: BaseException) -> bool:
    """True if the one who runs the code ends it; what it awaits may have been cancelled by itself."""
    task = asyncio.current_task()
    return isinstance(thrown, GeneratorExit) or bool(task and task.cancelling())


def _raised(error: BaseException) -> str:
    what = f"called sys.exit({error.code!r})" if isinstance(error, SystemExit) else f"raised {type(error).__name__}"
    trace = error.__traceback__
    while trace and trace.tb_next:
        trace = trace.tb_next
    return f"{what}, {trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace else what
