"""How long hosts are left alone, as their last answers say: by queue, and by the address that several may share."""

from __future__ import annotations

from collections import OrderedDict

from warcmill.crawl import steady
from warcmill.crawl.addresses import Judge
from warcmill.crawl.exchange import Exchange
from warcmill.crawl.job import Live
from warcmill.crawl.limits import Failure
from warcmill.crawl.policies.politeness import Politeness, wait

REMEMBERED = 20_000  # hosts that are strained, and addresses that are left alone


class Manners:
    """The politeness of one launch. A job of `no_delay` does not wait for addresses that only `allow_private` lets
    pass."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._public = Judge()
        self._strains: OrderedDict[str, float] = OrderedDict()
        self._closed: OrderedDict[str, float] = OrderedDict()
        self._turns: OrderedDict[str, float] = OrderedDict()

    def turn(self, settings: Politeness, address: str) -> float:
        """When it is a host's turn to ask an address that others ask too; 0: now."""
        until = self._closed.get(address, 0.0)
        if until <= steady.now():
            return 0.0
        turn = max(until, self._turns.get(address, 0.0))
        _put(self._turns, address, turn + settings.least)
        return turn

    def begin(self, settings: Politeness, address: str) -> None:
        """Note that an address is being asked: another host there waits."""
        if settings.by_address and not self._is_hurried(address):
            self._close(address, steady.now() + settings.least)

    def after(
        self, settings: Politeness, queue: str, address: str, answer: Exchange | Failure | None, took: float,
        crawl_delay: float,
    ) -> float:  # fmt: skip
        """When the queue may be asked again; 0: at once. `answer` is None after its robots.txt."""
        if self._is_hurried(address):
            return 0.0
        asked = answer.retry_after if isinstance(answer, Exchange) else 0.0
        strain = self._strains.get(queue, 1.0)
        found = wait(settings, strain, took, answer.status if answer else 0, asked, crawl_delay)
        if found.strain > 1.0:
            _put(self._strains, queue, found.strain)
        else:
            self._strains.pop(queue, None)
        until = steady.now() + found.seconds
        if settings.by_address and address:
            self._close(address, until)
        return until

    def _close(self, address: str, until: float) -> None:
        _put(self._closed, address, until)
        for times in (self._closed, self._turns):
            while times and next(iter(times.values())) <= steady.now():
                times.popitem(last=False)

    def _is_hurried(self, address: str) -> bool:
        return self._live.job.no_delay and bool(address) and bool(self._public.why_refused(address))


def _put(known: OrderedDict[str, float], name: str, value: float) -> None:
    known[name] = value
    known.move_to_end(name)
    if len(known) > REMEMBERED:
        known.popitem(last=False)
