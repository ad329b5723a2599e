"""A piece of work, and the answer of the process that did it. Both can be pickled, whatever went wrong.

An error is sent as its name and its fields: most exceptions cannot be unpickled, and some cannot be pickled.
"""

from __future__ import annotations

import logging
import os
import platform
import socket
import traceback
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypeVar

from msgspec import Struct

import warcmill
from warcmill import errors
from warcmill.base.threads import is_given_up
from warcmill.errors import Mismatch, Unavailable, WarcmillError

log = logging.getLogger(__name__)
PATIENCE = 60  # seconds for which a cluster may be without a worker
_LOOK = 2  # seconds between two looks whether there is one, or Ctrl-C was typed
Result = TypeVar("Result")


class WorkerFault(Exception):
    """An unexpected error on a worker, as text: a fault in Warcmill."""


class Work(Struct, frozen=True):
    """A function that can be imported by its name, and what it gets. `name` is for messages.

    `versions`: what must be installed where it is done, as `versions` returns it.
    """

    name: str
    function: Callable[[Any], Any]
    order: Any
    versions: Mapping[str, str]


class WorkAnswer(Struct, frozen=True):
    """The answer of a process: a result; or the name of an error, and its fields; or a fault, as text."""

    where: str
    result: Any = None
    error: str = ""
    fields: Mapping[str, Any] | None = None


def versions(packages: tuple[str, ...]) -> dict[str, str]:
    """The versions of Python, of Warcmill as it was loaded, and of these packages, without those not installed."""
    found = {"Python": ".".join(platform.python_version_tuple()[:2]), "warcmill": warcmill.__version__}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def answer(work: Work) -> WorkAnswer:
    """Do a piece of work in this process. It never raises: what went wrong is in the answer."""
    where = f"worker {socket.gethostname()}, process {os.getpid()}"
    try:
        _check(work.versions, where)
        return WorkAnswer(where, work.function(work.order))
    except WarcmillError as error:
        fields = {name: _plain(value) for name, value in vars(error).items() if not name.startswith("_")}
        return WorkAnswer(where, error=type(error).__name__, fields=fields)
    except OSError as error:
        return WorkAnswer(where, error=OSError.__name__, fields={"text": str(error)})
    except MemoryError:
        why = "out of memory; give it more, or have it do less at a time, then run the task again"
        return WorkAnswer(where, error=Unavailable.__name__, fields={"what": work.name, "why": why})
    except Exception as error:  # noqa: BLE001 - a fault in Warcmill: `result` raises it, as text
        text = f"{type(error).__name__}: {error}"
        return WorkAnswer(where, error=WorkerFault.__name__, fields={"text": text, "traceback": traceback.format_exc()})


def result(answered: WorkAnswer) -> Any:
    """The result of an answer, or its error, raised."""
    fields = answered.fields or {}
    if not answered.error:
        return answered.result
    if answered.error == OSError.__name__:
        raise OSError(f"{fields['text']} (on {answered.where})")
    if answered.error == WorkerFault.__name__:
        log.error("on %s:\n%s", answered.where, fields["traceback"])
        raise WorkerFault(f"{fields['text']} (on {answered.where})")
    if answered.error == Unavailable.__name__:  # perhaps there alone
        raise Unavailable(fields["what"], f"{fields['why']} (on {answered.where})")
    error: WarcmillError = getattr(errors, answered.error)(**fields)
    raise error


def _check(wanted: Mapping[str, str], where: str) -> None:
    """Mismatch if this process has other versions: it would make other bytes."""
    found = versions(tuple(name for name in wanted if name not in ("Python", "warcmill")))
    for name, one in wanted.items():
        if found.get(name) != one:
            what = f"{name} on {where}; install the same on every worker, and start it again. The version"
            raise Mismatch(what, one, found.get(name, "none"))


def _plain(value: Any) -> Any:
    """A value that can be pickled everywhere."""
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return value if isinstance(value, str | int | None) else str(value)


def wait_for(result: Callable[[float], Result], workers: Callable[[], int], where: str, name: str) -> Result:
    """Wait for a result, which raises TimeoutError after the seconds it gets; `name`: the piece of work.

    Unavailable once all workers are gone, or this process was interrupted.
    """
    alone = 0
    while True:
        try:
            return result(_LOOK)
        except TimeoutError:
            if is_given_up():
                log.warning("%s: given up, as this process was interrupted; the next run does it", name)
                raise Unavailable(name, "it was interrupted") from None
            alone = 0 if workers() else alone + _LOOK
            if alone >= PATIENCE:
                why = f"for {alone} s it has had no worker; start one, then run the task again"
                raise Unavailable(where, why) from None
