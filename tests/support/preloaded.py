"""Run `python -m MODULE WORD ...` in a process of its own, forked from one that has imported the libraries already.

Of the time of a short command, nearly all is the import of Luigi and of Warcmill's library, and tests run a thousand of
them. One server for each pytest process imports these once; each command is forked from it, and then runs as
`python -m` runs it: with its own words, environment, working folder, output, locks, signals and exit code. `tasks` and
`commands` are imported by each command anew: they keep what they find at import, such as their process.

A test that is about the start of a command, or signals it, starts a Python of its own.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import runpy
import socket
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

LIBRARIES = (
    "luigi.retcodes",
    "luigi.date_interval",
    "rich.console",
    "rich.table",
    "warcmill.audit.day_summary",
    "warcmill.audit.findings",
    "warcmill.audit.gaps",
    "warcmill.audit.progress_grid",
    "warcmill.clients.notice",
    "warcmill.files.checksum",
    "warcmill.files.copy",
    "warcmill.launches.cdx_extracts",
    "warcmill.output.assemble",
    "warcmill.stores.opening",
)
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


def _serve(requests: socket.socket) -> tuple[str, list[str]]:
    """Fork for each request. Return only in the new process, which then is to run this module with these words."""
    while True:
        data, files, _, _ = socket.recv_fds(requests, _LARGEST, 3)
        if not data:
            sys.exit()
        if os.fork() == 0:
            requests.close()
            return _begin(*json.loads(data), *files)
        for file in files:
            os.close(file)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _begin(
    module: str, words: list[str], env: dict[str, str], folder: str, out: int, err: int, answer: int
) -> tuple[str, list[str]]:
    """Fork once more: one waits for the command and sends its exit code, the other becomes the command."""
    command = os.fork()
    if command:
        code = os.waitstatus_to_exitcode(os.waitpid(command, 0)[1])
        os.write(answer, str(code).encode())
        os._exit(0)
    os.close(answer)
    for number, file in ((1, out), (2, err)):
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


if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[2])
    for name in LIBRARIES:
        importlib.import_module(name)
    assert threading.active_count() == 1, "a thread would be missing in what is forked"
    gc.collect()
    gc.freeze()
    name, sys.argv[1:] = _serve(socket.socket(fileno=int(sys.argv[1])))
    sys.path[0] = os.getcwd()
    runpy.run_module(name, run_name="__main__", alter_sys=True)
