"""The health of the line, looked at by `warcmill health`, a scan's end and pages. Writes `status/` of the state."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

from tasks.config.settings import settings
from warcmill.audit.answers import health
from warcmill.audit.answers.health import Asker
from warcmill.errors import WarcmillError
from warcmill.model import JsonObject

if TYPE_CHECKING:
    from luigi.date_interval import DateInterval

log = logging.getLogger(__name__)
AT_END = 5.0  # seconds that `warcmill scan` waits for answers


def look(asker: Asker, seconds: float = health.BOUND) -> JsonObject:
    """Ask everything, each within a bound; write the answer, and return it. Unavailable if the state is away."""
    from tasks.config import services  # steps ask none

    config = settings()
    state, scans = config.open_state(), config.scans()
    found = health.answer(state, asker.ask(services.questions(config), seconds), scans)
    health.write(state, found)
    return found


def note_end(name: str, dates: DateInterval, troubles: int = 0) -> None:
    """Note that a scan, or the backup, has ended. Nothing is asked: a process that ends can begin no thread."""
    with _harmless():
        last = dates.date_b - timedelta(days=1)
        health.note_end(settings().open_state(), name, str(dates.date_a), str(last), troubles)


def look_after_scan() -> None:
    """Look once `warcmill scan` is done. An error is logged: it fails no scan."""
    with _harmless():
        look(Asker(), AT_END)


@contextmanager
def _harmless() -> Iterator[None]:
    try:
        yield
    except (WarcmillError, OSError) as error:
        log.error("health: %s", error)
    except Exception:  # a fault in Warcmill; what is reported here is not a reason to fail
        log.exception("health")
