"""Scans of the line, each in its own luigi process: run it, show its progress on stderr, and pass signals on to it.

These processes are forked from one that has imported Luigi: `tasks.luigis`, which the first scan starts.

On a terminal one line is always there and moves: the step, its bar, rate and seconds. Elsewhere a line comes every 30
seconds, and at the end one with the sums; on a terminal only where a step has failed. Warnings and errors are shown as
they come. A reader that is gone ends no scan.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Any

from commands.console.show import err, silence
from tasks import logs
from tasks.logs import MARK
from warcmill.base.escapes import printable
from warcmill.base.progress import EVERY, describe
from warcmill.errors import BadConfig, Busy
from warcmill.model import Launch
from warcmill.stores import LocalStore

if TYPE_CHECKING:
    from rich.progress import Progress

    from tasks.line import OpenRoots

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
_LARGEST = 50 << 20  # bytes
ALREADY_RUNNING = 10  # [retcode] already_running; `check_hardened` enforces it
BUG = 70
# Our exit codes for luigi's. 25: another worker of luigid does the rest, or the scan drained.
_OURS = {0: 0, ALREADY_RUNNING: Busy.exit_code, 25: Busy.exit_code, 4: BadConfig.exit_code, 40: BUG}
_ANSWER = 32  # bytes: a number
_WAIT = 5.0  # seconds for what is still in the pipe of a luigi that has ended


def log_file(state: LocalStore) -> str:
    """The log file of scans, beside the markers; one that has become large is kept under another name, once."""
    path = state.base / "log" / "scan.log"
    try:
        path.parent.mkdir(exist_ok=True)
        if path.exists() and path.stat().st_size > _LARGEST:
            path.replace(path.with_name("scan.log.1"))
    except OSError as error:
        err(f"the log file {path} cannot be written: {error.strerror}")
    return str(path)


def ours(code: int) -> int:
    """Our exit code for one of luigi's. A failed step, a failure to plan, and a killed luigi are all 1."""
    return _OURS.get(code, 1)


def run_once(line: OpenRoots, task: str, days: str) -> int:
    """Run one scan of some days, as `warcmill scan` runs each; return our exit code, that of a signal among them."""
    scanner = Scanner({logs.LOG: log_file(line.state.store)})
    with closing(scanner), scanner.handing_down():
        code = scanner.run(task, days)
    return 128 + scanner.signal if scanner.signal else ours(code)


class Scanner:
    """Runs one luigi at a time. `verbose`: with its own output. `draining` is printed as soon as SIGUSR1 comes."""

    def __init__(self, environment: Mapping[str, str], verbose: bool = False, draining: str = "") -> None:
        self.environment, self.verbose, self.draining = environment, verbose, draining
        self.signal = 0
        self._luigi: _ForkServer | None = None

    def run(self, scan: str, days: str, only: Iterable[Launch] = ()) -> int:
        """Run one scan, of all launches of its days or of some; return its exit code."""
        words = ["--module", f"tasks.{scan.partition('.')[0]}", scan, "--date-interval", days]
        words += ["--only", launches] if (launches := ",".join(map(str, only))) else []
        if self._luigi is None:
            shown = {} if self.verbose else {logs.ATTENDED: "1", logs.EVENTS: "1"}
            self._luigi = _ForkServer({**os.environ, **self.environment, **shown})
        if self.verbose:
            self._luigi.begin(words, 2)
            return self._ended(self._luigi)
        reading, writing = os.pipe()
        # Nothing closes it: its reader may wait for what luigi has left behind.
        with ScanProgress(scan).following(open(reading, "rb")):
            self._luigi.begin(words, writing)
            os.close(writing)
            return self._ended(self._luigi)

    def _ended(self, luigi: _ForkServer) -> int:
        """Wait for the scan that has begun; return its exit code."""
        if self.signal:
            luigi.send_signal(self.signal)
        return luigi.wait()

    def close(self) -> None:
        """End what has run the scans."""
        if self._luigi:
            self._luigi.close()

    def hand_down(self, number: int, _: FrameType | None) -> None:
        """Note a signal and pass it on."""
        self.signal = number
        if self.draining and number == signal.SIGUSR1:
            over_bar = "\r\x1b[K" if sys.stderr.isatty() else ""
            os.write(
                sys.stderr.fileno(), f"{over_bar}{self.draining}\n".encode()
            )  # the signal may have interrupted a print
        if self._luigi:
            self._luigi.send_signal(number)

    @contextmanager
    def handing_down(self, signals: Iterable[int] = SIGNALS) -> Iterator[None]:
        """Note these signals and pass them on, while this lasts."""
        before = {number: signal.signal(number, self.hand_down) for number in signals}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


class _ForkServer:
    """The process that runs one luigi after the other; `close` ends it."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._pid = 0  # of the luigi that runs
        with theirs:
            # In its own process group, so that a terminal's Ctrl-C reaches a scan only once: through us.
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "tasks.luigis"], env=environment, stdin=theirs.fileno(), process_group=0
            )

    def begin(self, words: list[str], errors: int) -> None:
        """Run luigi with these words and this stderr."""
        with suppress(OSError):  # it has ended, as `wait` finds
            socket.send_fds(self._requests, [json.dumps(words).encode()], [errors])
            self._pid = int(self._requests.recv(_ANSWER) or 0)

    def send_signal(self, number: int) -> None:
        """Pass a signal on to the luigi that runs; none may be running."""
        if self._pid:
            os.kill(self._pid, number)

    def close(self) -> None:
        """Have it end."""
        self._requests.close()
        self._process.wait()

    def wait(self) -> int:
        """The exit code of the luigi that runs, minus the signal that has killed it; or of what could not run it."""
        with suppress(OSError):
            answer = self._requests.recv(_ANSWER) if self._pid else b""
            self._pid = 0
            if answer:
                return int(answer)
        return self._process.wait() or 1


class ScanProgress:
    """Shows one luigi. `follow` its stderr in a thread of its own."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._done, self._failed = Counter[str](), Counter[str]()
        self._of, self._step = 0, ""
        self._printed = time.monotonic()
        self._bar: Progress | None = None

    @contextmanager
    def following(self, stream: Iterable[bytes]) -> Iterator[None]:
        """Show all lines of this stream, while the luigi that writes it is waited for."""
        reader = threading.Thread(target=self._follow, args=[stream], daemon=True)
        with moving(f"{self._name}: looks for what is missing") as self._bar:
            reader.start()
            try:
                yield
            finally:
                reader.join(_WAIT)  # a process that luigi has left behind may still hold the pipe
        self._bar = None
        if (sums := self._sums()) and (self._failed or not sys.stderr.isatty()):
            with _unless_gone():
                show(f"{self._name}: {sums}", None)

    def _follow(self, stream: Iterable[bytes]) -> None:
        for raw in stream:
            text = raw.decode("utf-8", "backslashreplace").rstrip("\n")
            with _unless_gone():
                event = _event(text)
                if event:
                    self._take(event)
                else:
                    self._print(text.lstrip(MARK))

    def _take(self, event: dict[str, Any]) -> None:
        """Show an event."""
        match event["kind"]:
            case "pending":
                self._of = event["number"]
            case "begins":
                self._step = event["step"]
                self._show()
            case "at":
                self._step = event["step"]
                figures = describe(event["done"], event["total"], max(event["seconds"], 0.001))
                self._show(event["done"], event["total"], f"{figures} {printable(event['file'])}")
            case "done" if "task" in event:
                self._done[event["task"].rpartition(".")[2]] += 1
            case "failed":
                self._failed[event["step"].partition(" ")[0]] += 1

    def _show(self, done: int = 0, total: int | None = None, figures: str = "") -> None:
        """Move the line on a terminal; elsewhere print one when it is due."""
        number = sum(self._done.values()) + 1
        step = f"{number} of {self._of}: {printable(self._step)}" if number <= self._of else printable(self._step)
        if self._bar:
            if not figures:  # another step: its seconds begin at 0
                self._bar.remove_task(self._bar.task_ids[0])
                self._bar.add_task(step, total=None, figures="")
            self._bar.update(self._bar.task_ids[0], description=step, completed=done, total=total, figures=figures)
        elif time.monotonic() - self._printed >= EVERY:
            self._print(f"{self._name}: {step} {figures}".rstrip())

    def _print(self, text: str) -> None:
        self._printed = time.monotonic()
        show(text, self._bar)

    def _sums(self) -> str:
        """The steps that are done and that have failed, counted by kind; '' if there was none."""
        kinds = (("done", self._done), ("failed", self._failed))
        return "; ".join(
            f"{sum(of.values())} {word} ({', '.join(f'{kind} {number}' for kind, number in of.items())})"
            for word, of in kinds
            if of
        )


def _event(text: str) -> dict[str, Any] | None:
    """The event in a line; None for any other line, also where those of two processes came into one."""
    try:
        return dict(json.loads(text[1:])) if text.startswith(MARK) else None
    except (ValueError, TypeError):
        return None


@contextmanager
def _unless_gone() -> Iterator[None]:
    """Print no more once the reader is gone: luigi's lines must still be taken, or it would wait for ever."""
    try:
        yield
    except OSError:
        silence(sys.stderr)


def show(text: str, bar: Progress | None) -> None:
    """Print a line on stderr, above the line that moves if there is one."""
    if bar:
        bar.console.print(text, markup=False, highlight=False, soft_wrap=True)
    else:
        print(text, file=sys.stderr, flush=True)


@contextmanager
def moving(what: str) -> Iterator[Progress | None]:
    """On a terminal, show a line that moves while this lasts: what is done, and the seconds; else None."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console  # takes 50 ms: import it only for a terminal
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.table import Column

    whole, rest = Column(no_wrap=True), Column(no_wrap=True, overflow="ellipsis", ratio=1)
    bar = Progress(  # one line, so that what is printed meanwhile stays readable
        TimeElapsedColumn(table_column=whole),
        BarColumn(bar_width=10),
        TextColumn("{task.description}", markup=False, table_column=whole),
        TextColumn("{task.fields[figures]}", markup=False, table_column=rest),
        console=Console(stderr=True, markup=False, highlight=False),
        expand=True,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    bar.add_task(what, total=None, figures="")
    with bar:
        yield bar
