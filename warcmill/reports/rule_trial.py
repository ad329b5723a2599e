"""Other rules of a job over what a launch has logged: what they would leave out, and what they would take. Reads only.

Its crawl logs are judged, and its scope.log where it has one, by hops, via and seed as they are logged; no site is
asked. They are read from the folder of the launch, or from its stored stages where that is retired.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypeVar

from msgspec import Struct, field

from warcmill import layout
from warcmill.crawl import uri as uris
from warcmill.crawl.job import file
from warcmill.crawl.job.rules import RuleBook, in_words
from warcmill.crawl.logs.lines import BY_OWN, OUT_OF_SCOPE, ROBOTS_FORBID
from warcmill.crawl.logs.logs import SCOPE
from warcmill.crawl.uri import Uri
from warcmill.errors import BadInput, NotReady
from warcmill.formats.logs import crawllog
from warcmill.formats.logs.crawllog import CrawlRecord
from warcmill.launches import stored_logs
from warcmill.markers.state import MarkerStore
from warcmill.model import Json, Launch
from warcmill.stores import Store

SHOWN = 200  # addresses of a rule that are listed
REMEMBERED = 2_000_000  # addresses that were refused, each counted once
T = TypeVar("T")
_RULES = ("scope", "traps", "patterns", "extensions")


class RuleHits(Struct):
    """The addresses that one rule leaves out: how many, and the first of them."""

    number: int = 0
    first: list[str] = field(default_factory=list)

    def add(self, address: str) -> None:
        """Count an address."""
        self.number += 1
        if len(self.first) < SHOWN:
            self.first.append(address)

    def json(self) -> dict[str, Json]:
        """The hits for programs."""
        return {"first": [*self.first], "number": self.number}


class RuleTrial(Struct):
    """The effect of other rules on a launch. `asked`: the addresses that it asked for. `left_out`: those that would be
    left out, by rule. `behind`: those that it found on such pages alone. `refused`: the addresses that its rules
    refused; `taken`: those that would be taken. `is_whole`: all of its logs were read."""

    launch_id: str
    asked: int = 0
    left_out: dict[str, RuleHits] = field(default_factory=lambda: defaultdict(RuleHits))
    behind: RuleHits = field(default_factory=RuleHits)
    refused: int = 0
    taken: RuleHits = field(default_factory=RuleHits)
    has_scope_log: bool = False
    is_whole: bool = True

    @property
    def number_left_out(self) -> int:
        """The addresses that would be left out, by whichever rule."""
        return sum(hits.number for hits in self.left_out.values())

    @property
    def by_rule(self) -> list[tuple[str, RuleHits]]:
        """The rules that leave something out, those first that leave out most."""
        return sorted(self.left_out.items(), key=lambda one: (-one[1].number, one[0]))

    @property
    def words(self) -> list[str]:
        """The trial in sentences."""
        rules = ", ".join(f"{hits.number:,} by {rule}" for rule, hits in self.by_rule[:3])
        more = f", {len(self.left_out) - 3} more rules" if len(self.left_out) > 3 else ""
        found = [f"would leave out {self.number_left_out:,} of {self.asked:,}{f': {rules}{more}' if rules else ''}"]
        if self.behind.number:
            found.append(f"{self.behind.number:,} more were found on those pages alone")
        links = "" if self.has_scope_log else "; links that were refused are known where scope_log is true"
        found.append(f"would take {self.taken.number:,} of {self.refused:,} that were refused{links}")
        if not self.is_whole:
            found.append("not all of its logs were read")
        return found

    def json(self) -> dict[str, Json]:
        """The trial for programs."""
        rules: list[Json] = [{"rule": rule, **hits.json()} for rule, hits in self.by_rule]
        return {
            "asked": self.asked, "behind": self.behind.json(), "launch": self.launch_id, "left_out": rules,
            "left_out_number": self.number_left_out, "refused": self.refused, "scope_log": self.has_scope_log,
            "taken": self.taken.json(), "whole": self.is_whole,
        }  # fmt: skip


class RefusedLink(NamedTuple):
    """A link that a policy has refused, as scope.log has it."""

    policy: str
    uri: str
    hops: str
    via: str
    seed: str


def refused_links(lines: Iterable[bytes]) -> Iterator[RefusedLink]:
    """The refused links of a scope.log, by its lines; an invalid line is passed over."""
    for raw in lines:
        parts = raw.split(b" ", 5)  # time, number, policy, decision, URI, what is known of it
        if len(parts) < 6 or parts[3] != b"REJECT":
            continue
        try:
            about = json.loads(parts[5])
            hops, via, seed = (str(about.get(name) or "") for name in ("hopPath", "via", "seed"))
        except (ValueError, AttributeError, RecursionError):
            continue
        yield RefusedLink(parts[2].decode("ascii", "replace"), parts[4].decode("utf-8", "replace"), hops, via, seed)


class LaunchLogs(Struct, frozen=True):
    """The place of the logs of a launch: its folder, and the store where that has none any more."""

    state: MarkerStore
    open_store: Callable[[], Store]
    folder: Path

    def read(self, launch: Launch, take: Mapping[str, Callable[[BinaryIO], None]]) -> None:
        """Give the logs of each plain name, such as `crawl.log`, to a function, oldest first. NotReady without any."""
        if found := logs_in(self.folder):
            for plain, path in found:
                if plain in take:
                    with path.open("rb") as stream:
                        crawllog.read(stream, take[plain], is_gzip=path.name.endswith(".gz"))
            return
        stages = [self.state.read(layout.step("verify", launch, stage)) for stage in sorted(self.state.stages(launch))]
        if not any(stages):
            raise NotReady(str(launch), "it has no crawl log, neither in its folder nor in the store")
        with self.state.scratch() as scratch:
            for marker in filter(None, stages):
                with stored_logs.opened(self.open_store(), marker, scratch) as logs:
                    logs.read_crawl_logs(take["crawl.log"])
                    for plain in take.keys() - {"crawl.log"}:
                        logs.read_logs(plain, take[plain])


def tried(logs: LaunchLogs, launch: Launch, files: Mapping[str, bytes], *, most: int = 0) -> RuleTrial:
    """Judge what a launch has logged by the rules of these papers. `most`: at most so many lines, 0 for all."""
    trial = _Trial(launch, files, most)
    logs.read(launch, {"crawl.log": trial.crawl_log, SCOPE: trial.scope_log})
    return trial.found


def logs_in(folder: Path) -> list[tuple[str, Path]]:
    """The logs in a folder with their plain names, in the order of their lines."""
    paths = [*folder.iterdir()] if folder.is_dir() else []
    found = list[tuple[str, tuple[int, str, int, bool], str, Path]]()
    for path in paths:
        plain, stage = layout.split_log_name(path.name)
        if order := layout.crawl_log_order(plain):
            found.append((stage, order, "crawl.log", path))
        elif plain.removesuffix(".gz") == SCOPE:
            found.append((stage, (2, "", 0, False), SCOPE, path))
    return [(plain, path) for _, _, plain, path in sorted(found)]


class _Trial:
    """A trial while its logs are read."""

    def __init__(self, launch: Launch, files: Mapping[str, bytes], most: int) -> None:
        job = file.described(files, launch.job)
        self.found = RuleTrial(launch.id)
        self._rules, self._robots, self._left = RuleBook(job), job.robots, most or 1 << 60
        self._out, self._refused = set[bytes](), set[bytes]()

    def crawl_log(self, stream: BinaryIO) -> None:
        """Judge the lines of a crawl log."""
        for record in self._bounded(crawllog.lines(stream)):
            if not isinstance(record, CrawlRecord) or record.is_asked_again or is_first(record):
                continue
            status = record.status or 0
            if status in (OUT_OF_SCOPE, BY_OWN, ROBOTS_FORBID):
                if status != ROBOTS_FORBID or not self._robots:
                    self._refuse(record.uri, record.hops, record.via, record.source)
                continue
            self._ask(record)

    def scope_log(self, stream: BinaryIO) -> None:
        """Judge the links in a scope.log that a rule has refused."""
        self.found.has_scope_log = True
        for one in refused_links(self._bounded(line for block in crawllog.blocks(stream) for line in block)):
            if one.policy in _RULES:
                self._refuse(one.uri, one.hops, one.via, one.seed)

    def _ask(self, record: CrawlRecord) -> None:
        uri = logged_uri(record.uri, record.hops, record.via, record.source)
        if uri is None:
            return
        self.found.asked += 1
        against = self._rules.against(uri)
        if against:
            self.found.left_out[in_words(against)[0]].add(uri.uri)
            self._out.add(_key(uri.uri))
        elif record.via and _key(record.via) in self._out:
            self.found.behind.add(uri.uri)
            self._out.add(_key(uri.uri))

    def _refuse(self, address: str, hops: str | None, via: str | None, seed: str | None) -> None:
        uri = logged_uri(address, hops, via, seed)
        if uri is None or (key := _key(uri.uri)) in self._refused or len(self._refused) >= REMEMBERED:
            return
        self._refused.add(key)
        self.found.refused += 1
        if not self._rules.against(uri):
            self.found.taken.add(uri.uri)

    def _bounded(self, lines: Iterable[T]) -> Iterator[T]:
        for line in lines:
            if not self._left:
                self.found.is_whole = False
                return
            self._left -= 1
            yield line


def is_first(record: CrawlRecord) -> bool:
    """True for what another fetch needs first: an address, a robots.txt."""
    return (record.hops or "").rstrip("R").endswith("P") or not record.uri.startswith(("http://", "https://"))


def logged_uri(address: str, hops: str | None, via: str | None, seed: str | None) -> Uri | None:
    """The URI of a line, with what is logged of it; None for an invalid one."""
    try:
        return uris.make(address, hops=hops or "", via=via or "", source=seed or "")
    except BadInput:
        return None


def _key(address: str) -> bytes:
    return blake2b(address.encode("utf-8", "surrogatepass"), digest_size=8).digest()
