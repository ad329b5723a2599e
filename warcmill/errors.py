"""Every error Warcmill raises on purpose, in one small tree.

    WarcmillError
    ├── BadInput      bytes that are permanently wrong: the item is refused
    ├── BadConfig     a setting is missing or wrong: nothing was started
    ├── Unavailable   a disk or server did not answer: an outage, never an absence
    │   └── NotFollowed   the path is behind a symbolic link that is not followed
    ├── NotReady      too early: the crawl has not reached this point
    ├── Mismatch      two things that must be equal are not
    ├── Conflict      another claim is already published under that name
    │   └── NewerEdition   somebody else has saved another text meanwhile
    ├── Unsettled     some items of a batch failed: the settled ones are kept
    ├── Foreign       a sound marker, but of another task, parameters or schema
    └── Busy          another process is doing this

A message names the fault, its place and the next thing to do. `exit_code` is the exit status
of the `warcmill` command when the error reaches the top;
docs/operate/every-day.md lists the exit codes.
"""

from __future__ import annotations

import traceback
from pathlib import Path


class WarcmillError(Exception):
    """The root of the tree: catches everything that Warcmill raises on purpose."""

    exit_code = 1


class BadInput(WarcmillError):
    """Bytes that no retry will repair: `path`, the `offset` of the fault in bytes, and `why`."""

    def __init__(self, path: str, why: str, offset: int | None = None) -> None:
        self.path, self.why, self.offset = path, why, offset
        where = path if offset is None else f"{path} at offset {offset}"
        super().__init__(f"{where}: {why}")


class BadConfig(WarcmillError):
    """A setting is missing or wrong; `key` is its name as written in luigi.cfg."""

    exit_code = 3

    def __init__(self, key: str, why: str) -> None:
        self.key, self.why = key, why
        super().__init__(f"configuration, {key}: {why}")


class Unavailable(WarcmillError):
    """A disk or server did not answer. Conclude nothing from it."""

    exit_code = 4

    def __init__(self, what: str, why: str) -> None:
        self.what, self.why = what, why
        super().__init__(f"{what} is unavailable: {why}")


class NotFollowed(Unavailable):
    """A folder behind a symbolic link that is not followed. Its content is unknown, which is not an absence."""


class NotReady(WarcmillError):
    """Asked too early; a later run will find it ready."""

    def __init__(self, what: str, why: str) -> None:
        self.what, self.why = what, why
        super().__init__(f"{what} is not ready: {why}")


class Mismatch(WarcmillError):
    """`what` was `expected` to be one thing and was `found` to be another."""

    def __init__(self, what: str, expected: object, found: object) -> None:
        self.what, self.expected, self.found = what, expected, found
        super().__init__(f"{what}: expected {expected}, found {found}")


class Conflict(WarcmillError):
    """Something else is already published at `path`; it was left unchanged."""

    def __init__(self, path: str, why: str) -> None:
        self.path, self.why = path, why
        super().__init__(f"{path}: {why}")


class NewerEdition(Conflict):
    """Somebody else has saved another text meanwhile: `who` at `time`, as edition `number`. Nothing was written."""

    def __init__(self, path: str, number: int, who: str, time: str) -> None:
        self.number, self.who, self.time = number, who, time
        by = f"{who} has saved it meanwhile" if who else "it was edited by hand meanwhile"
        super().__init__(path, f"{by}, as edition {number} of {time}; look at both, then save again from {number}")


class Unsettled(WarcmillError):
    """Some items of a batch failed; a retry skips the settled ones."""

    def __init__(self, what: str, failures: list[str]) -> None:
        self.what, self.failures = what, failures
        shown = "; ".join(failures[:3])
        more = f"; and {len(failures) - 3} more" if len(failures) > 3 else ""
        super().__init__(
            f"{what}: {len(failures)} item(s) failed: {shown}{more}."
            " The others are done; run the task again when the cause is gone"
        )


class Foreign(WarcmillError):
    """The marker at `path` is sound, but belongs to something else; nothing was moved."""

    def __init__(self, path: str, why: str) -> None:
        self.path, self.why = path, why
        super().__init__(f"{path}: {why}. Nothing was changed; look at the file, then move it away by hand")


class Busy(WarcmillError):
    """Another process is doing `what`."""

    exit_code = 5

    def __init__(self, what: str, todo: str = "start again when it has ended") -> None:
        self.what = what
        super().__init__(f"{what} is being done by another process; {todo}")


def describe(error: BaseException) -> str:
    """Describe an error in one line, for attempt files and notices; an unexpected one with the line that raised it."""
    if isinstance(error, WarcmillError | OSError) and str(error):
        return str(error)
    frames = traceback.extract_tb(error.__traceback__)
    where = f", at {Path(frames[-1].filename).name} line {frames[-1].lineno}" if frames else ""
    notes = "".join(f", {note}" for note in getattr(error, "__notes__", ()))
    return f"unexpected {type(error).__name__}: {error}{where}{notes}; the log has its traceback"
