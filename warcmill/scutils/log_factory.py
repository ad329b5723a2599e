"""One log of a process: text or JSON lines, on stdout or in a file that several processes share. Writes files.

The file is rotated at a size. Who writes holds a lock on `{file}.lock`, so no line is torn and none goes to a file
that another process has just rotated away.
"""

from __future__ import annotations

import fcntl
import json as json_format
import logging
import os
import re
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

Callback = Callable[[str, Mapping[str, Any]], object]

_LEVELS: Final = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
_FORMAT: Final = "%(asctime)s [%(name)s] %(levelname)s: %(message)s"
_EXPRESSION: Final = re.compile(r"(<=|>=|<|>|=|)(DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL)")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_EXTRA: Final = "scutils_extra"  # where a record carries what its line has beside the message


class LogFactory:
    """Gives the log of the process."""

    _instance: LogObject | None = None

    @classmethod
    def get_instance(cls, **kwargs: Any) -> LogObject:
        """Return the log. The first call makes it, with the parameters of `LogObject`; later ones change nothing."""
        if cls._instance is None:
            cls._instance = LogObject(**kwargs)
        return cls._instance


class LogObject:
    """A log with one method a level. Each takes a message, and fields that a JSON line has as well."""

    level_dict: Final = {"DEBUG": 0, "INFO": 1, "WARN": 2, "WARNING": 2, "ERROR": 3, "CRITICAL": 4}

    def __init__(
        self,
        json: bool = False,
        stdout: bool = True,
        name: str = "scrapy-cluster",
        dir: str = "logs",  # noqa: A002 the names are those of Scrapy Cluster
        file: str = "main.log",
        bytes: int = 25_000_000,  # noqa: A002
        backups: int = 5,
        level: str = "INFO",
        format: str = _FORMAT,  # noqa: A002
        propagate: bool = False,
        include_extra: bool = False,
    ) -> None:
        """Log to stdout, or to `dir/file`, of which `backups` are kept when it would grow over `bytes`.

        `include_extra` adds the fields to a text line. An unknown `level` is DEBUG, with a warning.
        """
        self.json, self.include_extra, self.log_level = json, include_extra, level
        self.logger = logging.getLogger(name)
        self.logger.setLevel(logging.DEBUG)
        self.logger.propagate = propagate
        self._callbacks: list[tuple[frozenset[int], Callback, Mapping[str, Any]]] = []
        path = Path(dir, file)
        handler: logging.Handler = logging.StreamHandler(sys.stdout) if stdout else _SharedFile(path, bytes, backups)
        handler.setFormatter(_JsonLines() if json else _TextLines(format))
        self.logger.addHandler(handler)
        if level not in self.level_dict:
            self.log_level = "DEBUG"
            self.warning(f"Unknown log level '{level}', defaulting to DEBUG")
        self.debug("Logging to stdout" if stdout else f"Logging to file: {path}")

    @property
    def name(self) -> str:
        """The name of the logger."""
        return self.logger.name

    def debug(self, message: str, extra: Mapping[str, Any] | None = None) -> None:
        """Log a detail for debugging."""
        self._log("DEBUG", message, extra)

    def info(self, message: str, extra: Mapping[str, Any] | None = None) -> None:
        """Log an event."""
        self._log("INFO", message, extra)

    def warn(self, message: str, extra: Mapping[str, Any] | None = None) -> None:
        """Log a warning: `warning` by its old name."""
        self._log("WARNING", message, extra)

    def warning(self, message: str, extra: Mapping[str, Any] | None = None) -> None:
        """Log a warning."""
        self._log("WARNING", message, extra)

    def error(self, message: str, extra: Mapping[str, Any] | None = None) -> None:
        """Log a failure."""
        self._log("ERROR", message, extra)

    def critical(self, message: str, extra: Mapping[str, Any] | None = None) -> None:
        """Log a failure that ends the program."""
        self._log("CRITICAL", message, extra)

    def register_callback(self, log_level: str, fn: Callback, criteria: Mapping[str, Any] | None = None) -> None:
        """Call `fn(message, extra)` after each line of a level that is written.

        `log_level` is a level, one after `<`, `<=`, `>`, `>=` or `=`, or `*`. `criteria` are fields that the line must
        have. ValueError for another expression.
        """
        self._callbacks.append((self._levels(log_level), fn, dict(criteria or {})))

    def _levels(self, expression: str) -> frozenset[int]:
        every = range(len(_LEVELS))
        if expression == "*":
            return frozenset(every)
        found = _EXPRESSION.fullmatch(expression)
        if found is None:
            raise ValueError(f"{expression!a} is not a level: write INFO, '>=INFO' or '*'")
        sign, bound = found[1], self.level_dict[found[2]]
        fits: dict[str, Callable[[int], bool]] = {
            "<": lambda level: level < bound,
            "<=": lambda level: level <= bound,
            ">": lambda level: level > bound,
            ">=": lambda level: level >= bound,
        }
        return frozenset(filter(fits.get(sign, lambda level: level == bound), every))

    def _log(self, level: str, message: str, extra: Mapping[str, Any] | None) -> None:
        number = self.level_dict[level]
        if number < self.level_dict[self.log_level]:
            return
        given = extra or {}
        shown = f"{message} {dict(given)}" if given and self.include_extra and not self.json else message
        self.logger.log(getattr(logging, level), "%s", shown, extra={_EXTRA: given})
        for levels, callback, criteria in list(self._callbacks):
            if number in levels and all(key in given and given[key] == value for key, value in criteria.items()):
                callback(message, given)


class _TextLines(logging.Formatter):
    """Lines of text; a control character, which could change a terminal, is escaped."""

    def format(self, record: logging.LogRecord) -> str:
        return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", super().format(record))


class _JsonLines(logging.Formatter):
    """A JSON object a line: the message, the fields of the event, then level, time and name."""

    def format(self, record: logging.LogRecord) -> str:
        when = datetime.fromtimestamp(record.created, UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
        fields = {"message": record.getMessage(), **getattr(record, _EXTRA, {})}
        own = {"level": record.levelname, "timestamp": when, "logger": record.name}
        return json_format.dumps({**fields, **{key: own[key] for key in own if key not in fields}}, default=str)


class _SharedFile(logging.Handler):
    """A file that several processes append to and rotate."""

    def __init__(self, path: Path, most: int, backups: int) -> None:
        super().__init__()
        self._path, self._most, self._backups = path, most, backups
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock_path = path.with_name(f"{path.name}.lock")

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._write((self.format(record) + "\n").encode("utf-8", "backslashreplace"))
        except OSError:
            self.handleError(record)  # as every handler of logging: printed to stderr, and the program continues

    def _write(self, line: bytes) -> None:
        with self._lock_path.open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if self._backups > 0 and 0 < self._most < self._size() + len(line) and self._size():
                self._rotate()
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            try:
                rest = memoryview(line)
                while rest:
                    rest = rest[os.write(descriptor, rest) :]
            finally:
                os.close(descriptor)

    def _size(self) -> int:
        return self._path.stat().st_size if self._path.exists() else 0

    def _rotate(self) -> None:
        for number in range(self._backups, 0, -1):
            older = self._path.with_name(f"{self._path.name}.{number}")
            newer = self._path if number == 1 else self._path.with_name(f"{self._path.name}.{number - 1}")
            if newer.exists():
                newer.replace(older)
