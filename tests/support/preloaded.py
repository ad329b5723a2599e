"""Run `python -m MODULE WORD ...`, or `python -c TEXT WORD ...`, in a process of its own, forked from one that has
imported the libraries already.

Of the time of a short command, nearly all goes into the import of Luigi and of Warcmill's library, and into taking them
apart at the end; and tests run a thousand commands. A server of each pytest process imports these once; each command
is forked from it, and then runs as `python -m` runs it: with its own words, environment, working folder, output, locks,
signals and exit code. `tasks` and `commands` are imported by each command anew: they keep what they find at import,
such as their process. What a command starts in its turn as one of our two commands is forked from the server as well:
so `warcmill scan` starts its scans. The harnesses of `tests/support`, which fork for themselves, have a server of their
own: Python must start with a path and a hash seed for them.

A test that is about the start of a command starts a Python of its own.
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
from subprocess import PIPE, STDOUT
from typing import IO, Any, NoReturn, Self, TextIO

LIBRARIES = ("luigi.retcodes", "luigi.date_interval", "rich.console", "rich.table", "warcio.archiveiterator")
# How one command starts another.
COMMANDS = {
    (sys.executable, "-P", "-m", "luigi"): "luigi",
    (sys.executable, "-P", "-m", "tasks.luigis"): "tasks.luigis",
    (sys.executable, "-m", "commands.main"): "commands.main",
    (sys.executable, "-P", "-m", "commands.main"): "commands.main",
    ("luigi",): "luigi",
    ("warcmill",): "commands.main",
}
_File = int | IO[Any]
_ROOT = Path(__file__).parents[2]
_NUMBER = 12  # bytes of a process's number, and of its exit code, in an answer
_AT_CTRL_C = 0.25  # seconds
_LARGEST = 1 << 17  # bytes of a request; the system takes one whole, or not at all
_AT_START = ("PYTHON", "LC_", "LANG")  # how the names begin of what Python looks at when it starts, and not later
# As they were before any test changed one.
_OURS = dict(os.environ)
_HARNESS = {
    **_OURS,
    "PYTHONPATH": os.pathsep.join(str(_ROOT / one) for one in ("", "tests/support", "scripts")),
    "PYTHONHASHSEED": "0",
}


class Process:
    """A command that was forked, with what we need of the interface of `subprocess.Popen`."""

    def __init__(
        self, requests: socket.socket, request: object, out: _File, err: _File, in_: _File | None = None
    ) -> None:
        """Have it forked; `out` and `err` become its output, `in_` its input, which is empty without."""
        self.args = request
        reading, writing = os.pipe()
        try:
            files = [one if isinstance(one, int) else one.fileno() for one in (out, err, in_) if one is not None]
            socket.send_fds(requests, [json.dumps(request).encode()], [*files, writing])
        except BaseException:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        self._answer = open(reading, "rb", buffering=0)  # noqa: SIM115 `wait` closes it
        self.pid = int(self._answer.read(_NUMBER))
        self.returncode: int | None = None
        self.stdout: TextIO | None = None
        self.stderr: TextIO | None = None

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, once it has ended; minus the signal that has killed it."""
        if self.returncode is None:
            try:
                ended = select.select([self._answer], [], [], timeout)[0]
            except KeyboardInterrupt:  # Ctrl-C: Popen gives the child as long to end by itself
                select.select([self._answer], [], [], _AT_CTRL_C)
                raise
            if not ended:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
            self.returncode = int(self._answer.read(_NUMBER))
            self._answer.close()
        return self.returncode

    def poll(self) -> int | None:
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, *_: object, **__: object) -> tuple[str | None, str | None]:
        """All that it prints to its pipes, of which one at most may be long."""
        printed = (self.stdout and self.stdout.read(), self.stderr and self.stderr.read())
        self.wait()
        return printed

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file in (self.stdout, self.stderr):
            if file:
                file.close()
        self.wait()


@dataclass(frozen=True)
class _Server:
    """A process that commands are forked from."""

    requests: socket.socket
    process: subprocess.Popen[bytes]

    def stop(self) -> None:
        self.requests.close()
        self.process.wait()


def start(
    module: str, *words: str, env: Mapping[str, str], folder: Path | None = None, out: int = PIPE, err: int = PIPE
) -> Process:
    """Start a command, and let it run. It prints to pipes, as `subprocess.Popen` names them, or to these files."""
    assert _has_server(env), "this environment needs a Python that starts with it"
    server = _server(_at_start(env))
    pipes = {word: os.pipe() for word, file in (("stdout", out), ("stderr", err)) if file == PIPE}
    files = {"stdout": out, "stderr": err} | {word: writing for word, (_, writing) in pipes.items()}
    files["stderr"] = files["stdout"] if err == STDOUT else files["stderr"]
    process = Process(
        server.requests, [module, words, dict(env), str(folder or Path.cwd())], files["stdout"], files["stderr"]
    )
    for word, (reading, writing) in pipes.items():
        os.close(writing)
        setattr(process, word, open(reading))  # noqa: SIM115 whoever began it closes it
    return process


def run(
    module: str, *words: str, env: Mapping[str, str], folder: Path | None = None, together: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run a command, in the working folder if no other is given; `together`: stdout has what a terminal would show."""
    cwd = folder or Path.cwd()
    if not _has_server(env):
        command = [sys.executable, *_as_typed(module), *words]
        return subprocess.run(
            command,
            env=env,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=PIPE,
            stderr=STDOUT if together else PIPE,
            text=True,
            check=False,
        )
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        errors = out if together else err
        code = start(module, *words, env=env, folder=cwd, out=out.fileno(), err=errors.fileno()).wait()
        for file in (out, err):
            file.seek(0)
        return subprocess.CompletedProcess([module, *words], code, out.read(), err.read())


def of_harness() -> dict[str, str]:
    """The environment of a harness of `tests/support`: two runs of it meet the same calls in the same order."""
    return {**os.environ, **dict(_at_start(_HARNESS))}


def _as_typed(module: str) -> list[str]:
    return [module] if module == "-c" else ["-m", module]


def _at_start(env: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, text) for name, text in env.items() if name.startswith(_AT_START)))


def _has_server(env: Mapping[str, str]) -> bool:
    return _at_start(env) in (_at_start(_OURS), _at_start(_HARNESS))


@cache
def _server(started_with: tuple[tuple[str, str], ...]) -> _Server:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        command = [sys.executable, __file__, str(theirs.fileno())]
        # Luigi reads LUIGI_CONFIG_PATH when it is imported, and keeps its keys: those of the first test's line.
        left_out = ("LUIGI_CONFIG_PATH", *_AT_START)
        env = {name: text for name, text in _OURS.items() if not name.startswith(left_out)} | dict(started_with)
        process = subprocess.Popen(command, pass_fds=[theirs.fileno()], cwd="/", env=env, stdin=subprocess.DEVNULL)
    server = _Server(ours, process)
    atexit.register(server.stop)
    return server


def _modules() -> Iterator[str]:
    """Those of Warcmill's library. Without those of extras, which a line may lack."""
    extras = ("warcmill.formats.text.", "warcmill.scale.dask", "warcmill.scale.spark")
    for found in pkgutil.walk_packages([str(_ROOT / "warcmill")], "warcmill."):
        if not found.name.startswith(extras):
            yield found.name


def _know_what_each_asks() -> None:
    """Keep what a process finds out once, and each command would again: how names are read, and what siegfried is."""
    from warcmill import chain, layout  # noqa: PLC0415 only in the server
    from warcmill.formats.sip import pronom  # noqa: PLC0415

    for row in chain.ROWS:
        layout._parser(row.marker)
    pronom.tools()
    pronom.signatures()


def _serve(requests: socket.socket) -> tuple[str, list[str]]:
    """Fork for each request; when that ends, send its exit code. Return only in what is forked, with its command."""
    ended, ending = os.pipe2(os.O_NONBLOCK)  # the system writes to it whenever a child has ended
    of_commands, to_us = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)  # commands that start commands
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(ending)
    answers: dict[int, int] = {}
    while True:
        readable, _, _ = select.select([requests, of_commands, ended], [], [])
        if ended in readable:
            os.read(ended, 1 << 10)
            _answer(answers)
        asked = next((one for one in (requests, of_commands) if one in readable), None)
        if not asked:
            continue
        data, files, _, _ = socket.recv_fds(asked, _LARGEST, 4)
        if not data:
            sys.exit()
        *files, answer = files
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for file in (requests.detach(), of_commands.detach(), ended, ending, answer, *answers.values()):
                os.close(file)
            _fork_in_turn(to_us)
            return _begin(files, *json.loads(data))
        answers[pid] = answer
        _send(answer, pid)
        for file in files:
            os.close(file)


def _answer(answers: dict[int, int]) -> None:
    """Send the exit codes of all that have ended."""
    while answers:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        answer = answers.pop(pid)
        _send(answer, os.waitstatus_to_exitcode(status))
        os.close(answer)


def _send(answer: int, number: int) -> None:
    with suppress(BrokenPipeError):  # perhaps nobody waits any more
        os.write(answer, f"{number:>{_NUMBER}}".encode())


def _fork_in_turn(requests: socket.socket) -> None:
    """Have the server fork what the command would start as a Python with one of our commands."""

    class Popen(subprocess.Popen[Any]):
        def __new__(
            cls,
            args: Any,
            env: Any = None,
            stdout: Any = None,
            stderr: Any = None,
            process_group: int = -1,
            stdin: Any = None,
            start_new_session: bool = False,
            **more: object,
        ) -> Any:
            begin = next((one for one in COMMANDS if one == tuple(args[: len(one)])), None)
            if not begin:
                return super().__new__(cls)
            assert not more
            own_stdin = None if stdin == subprocess.DEVNULL else stdin  # the server's is empty
            process_group = 0 if start_new_session else process_group  # its own, as far as signals go
            request = COMMANDS[begin], args[len(begin) :], dict(env or os.environ), os.getcwd(), process_group
            with open(os.devnull, "w") as nowhere:
                out = {None: 1, subprocess.DEVNULL: nowhere}.get(stdout, stdout)
                if stderr != PIPE:
                    return Process(requests, request, out, out if stderr == STDOUT else 2, own_stdin)
                reading, writing = os.pipe()
                process = Process(requests, request, out, writing, own_stdin)
                os.close(writing)
                process.stderr = open(reading, "rb")  # noqa: SIM115 whoever began it closes it
                return process

    subprocess.Popen = Popen  # type: ignore[misc]


def _begin(
    files: list[int], module: str, words: list[str], env: dict[str, str], folder: str, group: int = -1
) -> tuple[str, list[str]]:
    """Become the command: its process group, output, working folder, environment and configuration."""
    if group >= 0:
        os.setpgid(0, group)
    for number, file in zip((1, 2, 0), files, strict=False):
        os.dup2(file, number)
        os.close(file)
    # Anew, as Python begins: those of the server keep of its own output whether it is a file, a pipe or a terminal.
    sys.stdout = sys.__stdout__ = open(1, "w", encoding=sys.stdout.encoding, errors=sys.stdout.errors, closefd=False)  # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(2, "w", encoding=sys.stderr.encoding, errors=sys.stderr.errors, closefd=False)  # noqa: SIM115
    sys.stderr.reconfigure(line_buffering=True)
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
            path = os.environ.get("LUIGI_CONFIG_PATH") or _found(module)
            # `warcmill` silences Luigi's warning that there is no such file, and reports it itself.
            is_silent = path and module == "commands.main" and not os.path.isfile(path)
            _ = add_config_path(path) if path and not is_silent else get_config().reload()
    except Exception:  # noqa: BLE001 whatever it is, the new Python reports it
        os.execv(sys.executable, [sys.executable, *_as_typed(module), *words])


def _found(module: str) -> str | None:
    """The luigi.cfg that a verb finds before it imports Luigi, which is imported here already."""
    from tasks.config import folders  # noqa: PLC0415 only in what is forked

    found = folders.find() if module == "commands.main" else None
    return str(found) if found else None


def _run(module: str) -> NoReturn:
    """As Python runs it, to its exit code. But what was imported is not taken apart, which takes long."""
    code: object = None
    try:
        if module == "-c":
            exec(sys.argv.pop(1), {"__name__": "__main__"})
        else:
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
    import quick_luigi

    quick_luigi.install()
    sys.path[0] = str(_ROOT)
    for name in (*LIBRARIES, *_modules()):
        importlib.import_module(name)
    _know_what_each_asks()
    assert threading.active_count() == 1, "a thread would be missing in what is forked"
    gc.collect()
    gc.freeze()
    name, sys.argv[1:] = _serve(socket.socket(fileno=int(sys.argv[1])))
    sys.path[0] = os.getcwd()
    _run(name)
