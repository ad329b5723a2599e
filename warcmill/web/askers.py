"""One asker for each crawl that somebody watches, however many they are. Asks crawls by their control sockets.

A view takes what was heard last, so that a crawl is asked once a second for all who watch it. An asker is a thread; it
begins with the first look, and ends when nobody has looked for some seconds.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any, Final, Protocol, cast

from msgspec import Struct, field
from msgspec.structs import replace

from warcmill.base import clock
from warcmill.errors import NotReady, Unavailable, WarcmillError
from warcmill.model import Json

EVERY: Final = 1.0  # seconds between two rounds
IDLE: Final = 8.0  # seconds without a look, after which an asker ends
FIRST: Final = 5.0  # seconds for which the first look waits for an answer
PATIENCE: Final = 10.0  # seconds that a crawl has for an answer
SLICES: Final = 5  # of the queue that one look at it takes
SLICE: Final = 1000  # URIs
RATED: Final = 31  # rounds over which a rate is measured
VERBS: Final = ("state", "recent", "active", "hosts")


class AskedJob(Protocol):
    """The way to the crawl of a job."""

    def ask(self, verb: str, seconds: float, **fields: Json) -> Json:
        """Return what the crawl answers. NotReady without a crawl, Unavailable without an answer."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class CrawlNow(Struct, frozen=True):
    """A crawl as it answered last: the answers to VERBS by their names, none before the first one. `asked`: when, UTC.

    `why`: the reason for which it does not answer now; `has_ended`: as it has ended since; `is_silent`: as a socket is
    there, and nobody answers. `documents`, `bytes`: of the last half minute, a thousand seconds' worth of each.
    """

    answers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    asked: str = ""
    why: str = ""
    is_running: bool = False
    is_silent: bool = False
    has_ended: bool = False
    documents: int = 0
    bytes: int = 0

    @property
    def launch_id(self) -> str:
        """The launch that is, or was, crawled; '' before the first answer."""
        return str(self.answers["state"]["launch"]) if self.answers else ""


class QueuePart(Struct, frozen=True):
    """Some URIs that wait, of those that were `looked` at; `next`: where the next part begins, 0 after the last one."""

    uris: Sequence[Mapping[str, Any]]
    looked: int
    next: int


class Askers:
    """The askers of a server. `opened` is the way to the crawl of a job, or BadConfig where it cannot be asked here."""

    def __init__(self, opened: Callable[[str], AskedJob]) -> None:
        self._opened = opened
        self._lock, self._turn = threading.Lock(), threading.Lock()
        self._asking: dict[str, _Asker] = {}

    def look(self, job: str) -> CrawlNow:
        """The crawl of a job as it answered last. The first look waits for an answer, for some seconds."""
        with self._lock:
            found = self._asking.get(job)
            if not found:
                found = self._asking[job] = _Asker(self._opened(job), lambda asker: self._ended(job, asker))
                threading.Thread(target=found.run, name=f"asker of {job}", daemon=True).start()
            found.looked_at = time.monotonic()
        found.has_heard.wait(FIRST)
        return found.now

    def _ended(self, job: str, asker: _Asker) -> bool:
        """True if nobody watches any more: then it is forgotten, and the next look begins another."""
        with self._lock:
            if time.monotonic() - asker.looked_at < IDLE:
                return False
            del self._asking[job]
            return True

    @contextmanager
    def _alone(self, job: str) -> Iterator[None]:
        """Read one queue at a time: a crawl does not pay for many who look at it."""
        if not self._turn.acquire(timeout=PATIENCE):
            raise Unavailable(f"the queue of {job}", "others look at it; load this page again in some seconds")
        try:
            yield
        finally:
            self._turn.release()

    def queue(self, job: str, after: int, most: int, fits: Callable[[str], bool] | None = None) -> QueuePart:
        """Some URIs that wait, in order of arrival: `most` of them; or those of a few slices that fit, at most so
        many."""
        found, looked = list[Mapping[str, Any]](), 0
        with self._alone(job), closing(self._opened(job)) as crawl:

            def part(size: int) -> tuple[Sequence[Mapping[str, Any]], list[int], int]:
                page = cast("Mapping[str, Any]", crawl.ask("list", PATIENCE, after=after, limit=size))
                uris = page["uris"]
                return uris, [at for at, one in enumerate(uris) if not fits or fits(one["uri"])], page["next"]

            for _ in range(SLICES if fits else 1):
                uris, hits, following = part(SLICE if fits else most)
                if len(found) + len(hits) > most:  # asked again up to the last, so that the next part begins after it
                    uris, hits, following = part(hits[most - len(found) - 1] + 1)
                found += [uris[at] for at in hits]
                looked, after = looked + len(uris), following
                if not after or len(found) >= most:
                    break
        return QueuePart(found, looked, after)


class _Asker:
    """Asks one crawl."""

    def __init__(self, crawl: AskedJob, is_over: Callable[[_Asker], bool]) -> None:
        self._crawl, self._is_over = crawl, is_over
        self._figures = deque[tuple[str, float, int, int]](maxlen=RATED)
        self.has_heard = threading.Event()
        self.looked_at = 0.0
        self.now = CrawlNow()

    def run(self) -> None:
        """Ask once a second, until nobody watches."""
        with closing(self._crawl):
            while not self._is_over(self):
                begun = time.monotonic()
                self.now = self._heard()
                self.has_heard.set()
                time.sleep(max(EVERY / 10, EVERY - (time.monotonic() - begun)))

    def _heard(self) -> CrawlNow:
        try:
            answers = {verb: cast("Mapping[str, Any]", self._crawl.ask(verb, PATIENCE)) for verb in VERBS}
        except NotReady as error:
            has_ended = bool(self.now.answers)
            return replace(self.now, why=str(error), is_running=False, is_silent=False, has_ended=has_ended)
        except WarcmillError as error:
            return replace(self.now, why=str(error), is_running=False, is_silent=True)
        documents, size = self._rates(answers["state"])
        return CrawlNow(answers, clock.now(), is_running=True, documents=documents, bytes=size)

    def _rates(self, state: Mapping[str, Any]) -> tuple[int, int]:
        """The documents and the bytes of a thousand seconds, by those of the last half minute."""
        now = (str(state["launch"]), time.monotonic(), int(state["done"]), int(state["bytes"]))
        if self._figures and self._figures[-1][0] != now[0]:
            self._figures.clear()
        self._figures.append(now)
        _, begun, done, size = self._figures[0]
        passed = now[1] - begun
        return (int(1000 * (now[2] - done) / passed), int(1000 * (now[3] - size) / passed)) if passed > 0 else (0, 0)
