"""Fetch a feed, or a list of exclusions, from a file, an http or https URL, or a command.

Time (`seconds`) and size (`most` bytes) are limited. `key` is the key of luigi.cfg with the source, for messages.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, Final
from urllib.parse import urljoin, urlsplit

import requests

from warcmill.errors import BadConfig, BadInput, Unavailable
from warcmill.formats.feed import LARGEST

SECONDS: Final = 300
CONNECT_SECONDS: Final = 10
MOST_REDIRECTS: Final = 5
COMMAND: Final = "command:"
SOURCE: Final = "[feed] source"
_CHUNK: Final = 64 * 1024
_LAST_WORDS: Final = 500
_REDIRECTS: Final = (301, 302, 303, 307, 308)


def is_remote(source: str) -> bool:
    """True if a source is a URL or a command, not a file."""
    return source.startswith(COMMAND) or urlsplit(source).scheme in ("http", "https")


def shown(source: str) -> str:
    """Return a source without parts that may be secret: no query, no user, no arguments of a command."""
    if source.startswith(COMMAND):
        return COMMAND + _words(source)[0]
    parts = urlsplit(source)
    if parts.scheme in ("http", "https"):
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
    return source


def read(source: str, seconds: float = SECONDS, most: int = LARGEST, key: str = SOURCE) -> bytes:
    """Return the whole content. Unavailable if the source fails; BadInput if it has more than `most` bytes.

    BadConfig if `source` is not a valid source.
    """
    if source.startswith(COMMAND):
        return _from_command(source, seconds, most, key)
    if is_remote(source):
        return _from_url(source, seconds, most, key)
    if not Path(source).is_absolute():
        raise BadConfig(key, f"{source!r} is not an absolute path, an http or https URL, or {COMMAND}...")
    return read_file(source, most)


def probe(source: str, seconds: float) -> str:
    """Ask whether a source is there, and return its name as `shown`. A URL has to be answered, and is not read whole; a
    command has to be found, and is not run. Raises as `read` does."""
    if source.startswith(COMMAND):
        if shutil.which(_words(source)[0]) is None:
            raise Unavailable(shown(source), "there is no such command")
    elif is_remote(source):
        _from_url(source, seconds, LARGEST, SOURCE, whole=False)
    else:
        read(source)
    return shown(source)


def read_file(path: str, most: int = LARGEST) -> bytes:
    """Return the whole content of a file. Raises as `read` does."""
    try:
        if not Path(path).is_file():
            raise Unavailable(path, "it is not a file" if Path(path).exists() else "there is no such file")
        with Path(path).open("rb") as file:
            data = file.read(most + 1)
    except OSError as error:
        raise Unavailable(path, error.strerror or str(error)) from error
    _refuse_large(data, path, most)
    return data


def _from_url(source: str, seconds: float, most: int, key: str, *, whole: bool = True) -> bytes:
    """GET a URL, `whole` or the beginning of its answer.

    Follow redirects only to the same scheme, host and port: its query may hold a secret.
    """
    deadline, url = time.monotonic() + seconds, source
    with requests.Session() as session:
        session.trust_env = False
        for _ in range(MOST_REDIRECTS + 1):
            try:
                with session.get(url, timeout=(CONNECT_SECONDS, seconds), stream=True, allow_redirects=False) as answer:
                    if answer.status_code in _REDIRECTS:
                        url = _same_place(source, urljoin(url, answer.headers.get("Location", "")), key)
                        continue
                    if answer.status_code != requests.codes.ok:
                        raise Unavailable(shown(source), f"it was answered {answer.status_code}")
                    return _body(answer, shown(source), deadline, most) if whole else next(answer.iter_content(1), b"")
            except requests.RequestException as error:
                # The error's text may hold the whole URL.
                raise Unavailable(shown(source), type(error).__name__) from None
    raise Unavailable(shown(source), f"it redirects more than {MOST_REDIRECTS} times")


def _same_place(source: str, target: str, key: str) -> str:
    """The redirect's target; Unavailable if it is on another server."""
    old, new = urlsplit(source), urlsplit(target)
    if (old.scheme, old.netloc) != (new.scheme, new.netloc):
        why = f"it redirects to {shown(target)}, another place; if that is right, name it in {key}"
        raise Unavailable(shown(source), why)
    return target


def _body(answer: requests.Response, name: str, deadline: float, most: int) -> bytes:
    body = bytearray()
    for chunk in answer.iter_content(_CHUNK):
        body += chunk
        if time.monotonic() > deadline:
            raise Unavailable(name, "its answer was still not complete when the time was over")
        _refuse_large(body, name, most)
    return bytes(body)


def _from_command(source: str, seconds: float, most: int, key: str) -> bytes:
    """Run a command without a shell, and return its output. At the time limit, kill it and all its children."""
    words, name, overdue = _words(source, key), shown(source), threading.Event()
    with tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(  # noqa: S603  # the operator's own command, from luigi.cfg
                words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, start_new_session=True
            )
        except OSError as error:
            raise Unavailable(name, error.strerror or str(error)) from error
        timer = threading.Timer(seconds, _end, (process, overdue))
        timer.start()
        data, code = _output(process, most)
        timer.cancel()
        _refuse_large(data, name, most)
        if overdue.is_set() or code:
            how = f"it took more than {seconds:g} seconds" if overdue.is_set() else f"it ended with {code}"
            raise Unavailable(name, f"{how}: {_last_words(errors)}")
    return data


def _output(process: subprocess.Popen[bytes], most: int) -> tuple[bytes, int]:
    """Return a process's output, at most one byte more than `most`, and its exit code."""
    with process:
        assert process.stdout is not None
        data = process.stdout.read(most + 1)
        if len(data) > most:
            _kill(process)
        process.stdout.close()
        return data, process.wait()


def _last_words(errors: IO[bytes]) -> str:
    errors.seek(max(0, errors.seek(0, os.SEEK_END) - _LAST_WORDS))
    return errors.read(_LAST_WORDS).decode("utf-8", "replace").strip() or "it said nothing"


def _end(process: subprocess.Popen[bytes], overdue: threading.Event) -> None:
    overdue.set()
    _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _words(source: str, key: str = SOURCE) -> list[str]:
    try:
        words = shlex.split(source.removeprefix(COMMAND))
    except ValueError as error:
        raise BadConfig(key, f"the command's quotes are wrong: {error}") from error
    if not words:
        raise BadConfig(key, f"{COMMAND} and no command")
    return words


def _refuse_large(data: bytes | bytearray, name: str, most: int) -> None:
    if len(data) > most:
        raise BadInput(name, f"it has more than {most:,} bytes")
