"""Accounts in the Redis that has the frontier of the job, for roles on many machines. Talks to Redis.

Redis may be emptied. So what must not be lost is in a log there too, and a role on the job's machine copies that to
the accounts in its file (`keep_in`); from these it fills a Redis that has lost them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

from warcmill.crawl.frontier.link import RedisLink
from warcmill.crawl.frontier.outbox import parts
from warcmill.requests.accounts import (
    LIFETIME,
    WINDOWS,
    AccountChange,
    AsideMessage,
    CrawlKey,
    DomainPolicy,
    DomainRate,
)
from warcmill.requests.accounts.file import FileAccounts

_MOST: Final = 500  # words of a call


class RedisAccounts:
    """The accounts over a link of their own, for one thread."""

    def __init__(self, link: RedisLink) -> None:
        self._link = link

    def close(self) -> None:
        self._link.close()

    def count(self, role: str, names: Iterable[str], number: int = 1) -> None:
        for some in parts([*names], _MOST):
            self._call("count", role, number, *some)

    def sums(self, role: str) -> dict[str, dict[str, int]]:
        rows = iter(self._call("sums", role, *WINDOWS))
        sums = {(name.decode(), window.decode()): int(n) for name, window, n in zip(rows, rows, rows, strict=True)}
        windows, names = [*map(str, WINDOWS), LIFETIME], sorted({name for name, _ in sums})
        return {name: {one: sums[name, one] for one in windows if (name, one) in sums} for name in names}

    def grown(self, name: str, value: int) -> int:
        return int(self._call("grown", name, value))

    def live(self, role: str, machine: str, name: str, seconds: float) -> None:
        self._call("live", role, json.dumps([machine, name]), round(seconds * 1000))

    def leave(self, role: str, machine: str, name: str) -> None:
        self._call("leave", role, json.dumps([machine, name]))

    def lives(self, role: str) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for machine, name in sorted(map(json.loads, self._call("lives", role))):
            found.setdefault(machine, []).append(name)
        return found

    def expire(self, crawl: CrawlKey, at: int) -> None:
        self._call("expire", crawl.text, at)

    def expires(self, crawls: Iterable[CrawlKey]) -> dict[CrawlKey, int]:
        found: dict[CrawlKey, int] = {}
        for some in parts([*crawls], _MOST):
            times = self._call("expires", *(crawl.text for crawl in some))
            found |= {crawl: int(at) for crawl, at in zip(some, times, strict=True) if at is not None}
        return found

    def claim_expired(self) -> list[CrawlKey]:
        return _crawls(self._call("claim_expired"))

    def stop(self, crawl: CrawlKey) -> None:
        self._call("stop", crawl.text)

    def is_stopped(self, crawl: CrawlKey) -> bool:
        return bool(self._call("is_stopped", crawl.text))

    def put_aside(self, message: AsideMessage, crawl: CrawlKey, *, stops: bool, most: int) -> bool:
        words = message.place, json.dumps(message), crawl.text if stops else ""
        return bool(self._call("put_aside", *words, most))

    def stops_aside(self) -> set[CrawlKey]:
        return {*_crawls(self._call("stops_aside"))}

    def claim_aside(self) -> list[AsideMessage]:
        return [AsideMessage(*json.loads(one)) for one in self._call("claim_aside")]

    def end_aside(self, place: str) -> None:
        self._call("end_aside", place)

    def free_aside(self) -> None:
        self._call("free_aside")

    def set_rate(self, domain: str, rate: DomainRate | None) -> None:
        self._call("set_rate", domain, json.dumps(rate) if rate else "")

    def ban(self, domain: str, *, banned: bool) -> None:
        self._call("ban", domain, int(banned))

    def policy(self) -> DomainPolicy:
        pairs, bans = self._call("policy")
        rates = sorted(zip(pairs[::2], pairs[1::2], strict=True))
        found = {domain.decode(): DomainRate(*json.loads(rate)) for domain, rate in rates}
        return DomainPolicy(found, frozenset(one.decode() for one in bans))

    def keep_in(self, file: FileAccounts) -> None:
        """Copy what has changed to the accounts in a file; fill a Redis that has lost its own from these."""
        while True:
            is_filled, log = self._call("changes")
            changes = [one.decode().partition(" ") for one in log]
            for _, _, text in changes:
                name, *words = json.loads(text)
                file.make(AccountChange(name, words))
            if not changes:
                break
            self._call("copied", changes[0][0], changes[-1][0])
        if not is_filled:
            for change in file.changes():
                self._call(change.name, *change.words)
            self._call("filled")

    def _call(self, act: str, *words: Any) -> Any:
        return self._link.call("accounts", act, *words)


def _crawls(found: Sequence[bytes]) -> list[CrawlKey]:
    return [CrawlKey(*json.loads(one)) for one in found]
