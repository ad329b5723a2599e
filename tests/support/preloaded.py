"""Run `python -m MODULE WORD ...` in a process of its own, forked from one that has imported the libraries already.

Of the time of a short command, nearly all goes into the import of Luigi and of Warcmill's library, and into taking them
apart at the end; and tests run a thousand commands. One server for each pytest process imports these once; each command
is forked from it, and then runs as `python -m` runs it: with its own words, environment, working folder, output, locks,
signals and exit code. `tasks` and `commands` are imported by each command anew: they keep what they find at import,
such as their process.

A test that is about the start of a command, or signals it, starts a Python of its own.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NoReturn

LIBRARIES = ("luigi.retcodes", "luigi.date_interval", "rich.console", "rich.table", "warcio.archiveiterator")
_LARGEST = 1 << 17  # bytes of a request; the system takes one whole, or not at all


@dataclass(frozen=True)
class _Server:
    """The process that commands are forked from."""

    requests: socket.socket
    process: subprocess.Popen[bytes]
    started_with: Mapping[str, str]

    def ask(self, request: object, out: int, err: int) -> int:
        """Have a command run; its exit code."""
        reading, writing = os.pipe()
        try:
            socket.send_fds(self.requests, [json.dumps(request).encode()], [out, err, writing])
        finally:
            os.close(writing)
        with open(reading, "rb") as answer:
            return int(answer.read())

    def stop(self) -> None:
        self.requests.close()
        self.process.wait()


def run(
    module: str, *words: str, env: Mapping[str, str], folder: Path | None = None, together: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run a command, in the working folder if no other is given; `together`: stdout has what a terminal would show."""
    server, cwd = _server(), folder or Path.cwd()
    if _at_start(env) != server.started_with:
        command = [sys.executable, "-m", module, *words]
        both = subprocess.STDOUT if together else subprocess.PIPE
        return subprocess.run(
            command,
            env=env,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=both,
            text=True,
            check=False,
        )
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        code = server.ask([module, words, dict(env), str(cwd)], out.fileno(), (out if together else err).fileno())
        for file in (out, err):
            file.seek(0)
        return subprocess.CompletedProcess([module, *words], code, out.read(), err.read())


def _at_start(env: Mapping[str, str]) -> dict[str, str]:
    """What of an environment Python looks at when it starts, and not later."""
    return {name: text for name, text in env.items() if name.startswith(("PYTHON", "LC_", "LANG"))}


@cache
def _server() -> _Server:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        command = [sys.executable, __file__, str(theirs.fileno())]
        # Luigi reads this file when it is imported, and keeps its keys: those of the first test's line.
        env = {name: text for name, text in os.environ.items() if name != "LUIGI_CONFIG_PATH"}
        process = subprocess.Popen(command, pass_fds=[theirs.fileno()], cwd="/", env=env, stdin=subprocess.DEVNULL)
    server = _Server(ours, process, _at_start(os.environ))
    atexit.register(server.stop)
    return server


def _modules() -> Iterator[str]:
    """Those of Warcmill's library. Without the readers of text: they are an extra, which a line may lack."""
    for found in pkgutil.walk_packages([str(Path(__file__).parents[2] / "warcmill")], "warcmill."):
        if not found.name.startswith("warcmill.formats.text."):
            yield found.name


def _serve(requests: socket.socket) -> tuple[str, list[str]]:
    """Fork for each request; when that ends, send its exit code. Return only in what is forked, with its command."""
    ended, ending = os.pipe2(os.O_NONBLOCK)  # the system writes to it whenever a child has ended
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(ending)
    answers: dict[int, int] = {}
    while True:
        readable, _, _ = select.select([requests, ended], [], [])
        if ended in readable:
            os.read(ended, 1 << 10)
            _answer(answers)
        if requests not in readable:
            continue
        data, files, _, _ = socket.recv_fds(requests, _LARGEST, 3)
        if not data:
            sys.exit()
        *output, answer = files
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for file in (requests.detach(), ended, ending, answer, *answers.values()):
                os.close(file)
            return _begin(*json.loads(data), output)
        answers[pid] = answer
        for file in output:
            os.close(file)


def _answer(answers: dict[int, int]) -> None:
    """Send the exit codes of all that have ended."""
    while answers:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        answer = answers.pop(pid)
        with suppress(BrokenPipeError):  # perhaps nobody waits any more
            os.write(answer, str(os.waitstatus_to_exitcode(status)).encode())
        os.close(answer)


def _begin(module: str, words: list[str], env: dict[str, str], folder: str, output: list[int]) -> tuple[str, list[str]]:
    """Become the command: its output, working folder, environment and configuration."""
    for number, file in enumerate(output, 1):
        os.dup2(file, number)
        os.close(file)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    _configure(module, words)
    return module, words


def _configure(module: str, words: list[str]) -> None:
    """Have Luigi read luigi.cfg, as when it is imported. If it cannot, a new Python has to: that is what is tested."""
    from luigi.configuration import add_config_path, get_config  # noqa: PLC0415 only in what is forked

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            path = os.environ.get("LUIGI_CONFIG_PATH")
            _ = add_config_path(path) if path else get_config().reload()
    except Exception:  # noqa: BLE001 whatever it is, the new Python reports it
        os.execv(sys.executable, [sys.executable, "-m", module, *words])


def _run(module: str) -> NoReturn:
    """As `python -m` runs it, to its exit code. But what was imported is not taken apart, which takes long."""
    code: object = None
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        code = end.code
    except BaseException:  # noqa: BLE001 as Python does with what nobody caught
        sys.excepthook(*sys.exc_info())
        code = 1
    if not isinstance(code, int | None):
        sys.stderr.write(f"{code}\n")
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code or 0)


if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[2])
    for name in (*LIBRARIES, *_modules()):
        importlib.import_module(name)
    assert threading.active_count() == 1, "a thread would be missing in what is forked"
    gc.collect()
    gc.freeze()
    name, sys.argv[1:] = _serve(socket.socket(fileno=int(sys.argv[1])))
    sys.path[0] = os.getcwd()
    _run(name)
