"""Runs Luigi for our commands, in half the time of a `luigi` that is typed.

`python -m tasks.luigis WORD ...` is that `luigi`. Without words it imports Luigi once, and forks for each run: its
stdin is a socket. A request is the words of a `luigi`, `--module` first, with the file that becomes its stderr; the
answers are its process id, and its exit code once it has ended. Each run is a process of its own, with its locks,
signals and log, as if its words had been typed.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import socket
import sys

LONGEST = 1 << 17  # bytes of a request; the system takes one whole, or not at all
_STDIN, _STDERR = 0, 2


def main(words: list[str]) -> None:
    """Run Luigi, until its SystemExit. Without words, fork for each request until the command closes its end."""
    gc.disable()  # what is imported stays: to look through it again and again takes as long as the import
    from luigi.cmdline import luigi_run
    from luigi.configuration import get_config

    if not words:
        with socket.socket(fileno=os.dup(_STDIN)) as requests:
            words = _asked(requests)
        if not words:
            os._exit(0)  # at once: taking Luigi apart takes long
        config = get_config()  # luigi.cfg as it is now, not as it was when the command began
        config.clear()
        config.reload()
    gc.enable()
    try:
        luigi_run(words)
    finally:
        gc.freeze()  # nor at the end


def _asked(requests: socket.socket) -> list[str]:
    """Serve; none at the end. In what is forked: its words, once its stdin and stderr are its own."""
    pid = 0
    while True:
        data, files, _, _ = socket.recv_fds(requests, LONGEST, 1)
        if pid:  # a zombie until now, for the command may have sent it a signal as it ended
            os.waitpid(pid, 0)
        if not data:
            return []
        words: list[str] = json.loads(data)
        importlib.import_module(words[1])
        gc.freeze()  # what is forked shares it
        if (pid := os.fork()) == 0:
            break
        os.close(files[0])
        try:
            requests.send(str(pid).encode())
            ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
            assert ended, "it was waited for"
            requests.send(str(ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status).encode())
        except BrokenPipeError:  # the command was killed; what it began has come to its end
            return []
    os.dup2(files[0], _STDERR)
    os.close(files[0])
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), _STDIN)
    return words


if __name__ == "__main__":
    main(sys.argv[1:])
