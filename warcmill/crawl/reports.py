"""Write a launch's nine reports as Heritrix does, when it ends: text, a row each, greatest first.

crawl-report      frontier-summary-report   hosts-report
mimetype-report   processors-report         responsecode-report
seeds-report      source-report             threads-report
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from warcmill.crawl import durable
from warcmill.crawl.log_line import moment
from warcmill.crawl.report_texts import duration, number, size
from warcmill.crawl.statistics import Figure, Statistics


@dataclass(frozen=True, slots=True)
class Waiting:
    """What the frontier still has: `by_queue` counts URIs by the name of their queue, the longest first.

    `discovered` counts all URIs ever taken. Queues are ready, snoozed until a time, retired (blocked), or exhausted.
    """

    discovered: int = 0
    queued: int = 0
    by_queue: Mapping[str, int] = field(default_factory=dict)
    ready: int = 0
    snoozed: int = 0
    retired: int = 0
    exhausted: int = 0
    in_process: int = 0


@dataclass(frozen=True, slots=True)
class Processor:
    """A part of the crawler that each URI passes, with lines on what it did."""

    name: str
    lines: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Ending:
    """How a launch has ended. `seconds` is how long it ran, without pauses; `how` describes the end as Heritrix does:
    `Finished`, `Finished - Ended by operator`. `threads` describes downloads that are under way."""

    job: str
    at: float
    seconds: float
    how: str
    state: str
    statistics: Statistics
    waiting: Waiting = Waiting()
    chains: Mapping[str, Sequence[Processor]] = field(default_factory=dict)
    threads: Sequence[str] = ()


Row = TypeVar("Row")
Report = Callable[[Ending], Iterator[str]]


def write(folder: Path, ending: Ending, reports: Mapping[str, Report] | None = None) -> list[Path]:
    """Write the reports of a kind of job, those of a crawl when none are given, durable; return their paths."""
    durable.make_folder(folder)
    paths = []
    for name, report in (CRAWL if reports is None else reports).items():
        text = bytearray()  # a line at a time: there may be 100,000
        for line in report(ending):
            text += f"{line}\n".encode("utf-8", "backslashreplace")
        paths.append(folder / f"{name}.txt")
        durable.replace(paths[-1], text)
    return paths


def crawl(ending: Ending) -> Iterator[str]:
    """The totals."""
    found, total = ending.statistics, ending.statistics.total
    crawled = sum(seed.code > 0 for seed in found.seeds.values())
    seconds = ending.seconds
    kinds = _kinds(total)
    yield f"crawl name: {ending.job}"
    yield f"crawl status: {ending.how}"
    yield f"duration: {duration(seconds)}"
    yield from ("", f"seeds crawled: {crawled}", f"seeds uncrawled: {len(found.seeds) - crawled}")
    yield from ("", f"hosts visited: {sum(bool(host) and host != 'dns:' for host in found.hosts)}")
    yield from ("", f"URIs processed: {found.processed}", f"URI successes: {found.succeeded}")
    yield from (f"URI failures: {found.failed}", f"URI disregards: {found.disregarded}", "")
    yield from (f"{name} URIs: {count}" for name, count, _ in kinds)
    yield from ("", f"total crawled bytes: {total[Figure.BYTES]} ({size(total[Figure.BYTES])}) ")
    yield from (f"{name} crawled bytes: {n} ({size(n)}){' ' * (name != 'novel')}" for name, _, n in kinds)
    yield from ("", f"URIs/sec: {number(found.succeeded / seconds if seconds else 0, 2)}")
    yield f"KB/sec: {int(total[Figure.BYTES] / 1024 / seconds) if seconds else 0}"


def seeds(ending: Ending) -> Iterator[str]:
    """What came of each seed: those that were not crawled first."""
    yield "[code] [status] [seed] [redirect]"
    rows = ending.statistics.seeds.items()
    for uri, seed in sorted(rows, key=lambda row: (row[1].code > 0, -row[1].code, len(row[0]), row[0])):
        status = "CRAWLED" if seed.code > 0 else "NOTCRAWLED"
        yield f"{seed.code} {status} {uri}{f' {seed.redirect}' if seed.redirect else ''}"


def hosts(ending: Ending) -> Iterator[str]:
    """What was fetched from each host; `dns:` has the look-ups."""
    names = "urls bytes host robots remaining novel-urls novel-bytes dup-by-hash-urls dup-by-hash-bytes"
    yield " ".join(f"[#{name}]" for name in f"{names} not-modified-urls not-modified-bytes".split()).replace(
        "[#host]", "[host]"
    )
    remaining = _remaining(ending.waiting.by_queue)
    for host, row in sorted(ending.statistics.hosts.items(), key=lambda item: (-item[1][0], item[0])):
        front, back = (" ".join(map(str, part)) for part in (row[:2], row[3:]))
        yield f"{front} {host or '-'} {row[Figure.ROBOTS]} {remaining.get(host, 0)} {back} "


def mime_types(ending: Ending) -> Iterator[str]:
    """What was fetched, by type."""
    yield "[#urls] [#bytes] [mime-types]"
    for mime, (urls, total) in _by_count(ending.statistics.mimes.items(), lambda row: row[0]):
        yield f"{urls} {total} {mime}"


def response_codes(ending: Ending) -> Iterator[str]:
    """What was answered, by status."""
    yield "[#urls] [rescode]"
    for code, urls in sorted(ending.statistics.codes.items(), key=lambda row: (-row[1], len(row[0]), row[0])):
        yield f"{urls} {code}"


def sources(ending: Ending) -> Iterator[str]:
    """What was fetched for each source, by host."""
    yield "[source] [host] [#urls]"
    for source, table in sorted(ending.statistics.sources.items()):
        for host, urls in _by_count(table.items(), int):
            yield f"{source} {host} {urls}"


def processors(ending: Ending) -> Iterator[str]:
    """What each part of the crawler did."""
    for chain, parts in ending.chains.items():
        yield f"{chain} - Processors report - {_minute(ending.at)}"
        yield from (f"  Number of Processors: {len(parts)}", "")
        for part in parts:
            yield f"Processor: {part.name}"
            yield from (f"  {line}" for line in part.lines)
            yield ""
        yield ""


def frontier(ending: Ending) -> Iterator[str]:
    """What was found, what is done, and what still waits."""
    found, waiting = ending.statistics, ending.waiting
    active = waiting.ready + waiting.snoozed + waiting.in_process
    yield from (f"Frontier report - {_minute(ending.at)}", f" Job being crawled: {ending.job}")
    yield from ("", " -----===== STATS =====-----")
    yield from (f" Discovered:    {waiting.discovered}", f" Queued:        {waiting.queued}")
    yield from (f" Finished:      {found.processed}", f"  Successfully: {found.succeeded}")
    yield from (f"  Failed:       {found.failed}", f"  Disregarded:  {found.disregarded}")
    yield from ("", " -----===== QUEUES =====-----", f" Already included size:     {waiting.discovered}")
    yield "               pending:     0"
    yield from ("", f" All class queues map size: {active + waiting.retired + waiting.exhausted}")
    yield from (f"             Active queues: {active}", f"                    In-process: {waiting.in_process}")
    yield from (
        f"                         Ready: {waiting.ready}",
        f"                       Snoozed: {waiting.snoozed}",
    )
    yield from ("           Inactive queues: 0", f"            Retired queues: {waiting.retired}")
    yield from (f"          Exhausted queues: {waiting.exhausted}", "", f"             Last state: {ending.state}")
    longest = list(waiting.by_queue.items())[:_LONGEST]
    yield from ("", f" -----===== {len(longest)} LONGEST QUEUES =====-----")
    for place, (queue, items) in enumerate(longest):
        yield from (f"LONGEST#{place}:", f"Queue {queue}", f"  {items} items")


def threads(ending: Ending) -> Iterator[str]:
    """What is being fetched."""
    yield from ending.threads or ["no ToeThreads"]


CRAWL: Mapping[str, Report] = {
    "crawl-report": crawl,
    "frontier-summary-report": frontier,
    "hosts-report": hosts,
    "mimetype-report": mime_types,
    "processors-report": processors,
    "responsecode-report": response_codes,
    "seeds-report": seeds,
    "source-report": sources,
    "threads-report": threads,
}
"""The reports of a crawl. Another kind of job has a list of its own."""

_LONGEST = 20


def _kinds(total: Sequence[int]) -> list[tuple[str, int, int]]:
    """How many URIs and bytes were new, and how many not; a kind that did not occur is left out, as by Heritrix."""
    kinds = (("novel", Figure.NOVEL), ("duplicate-by-hash", Figure.DUPLICATE), ("not-modified", Figure.NOT_MODIFIED))
    return [(name, total[at], total[at + 1]) for name, at in kinds if at is Figure.NOVEL or total[at]]


def _remaining(by_queue: Mapping[str, int]) -> dict[str, int]:
    """What waits by host: queues are by host and port."""
    found: dict[str, int] = {}
    for queue, items in by_queue.items():
        host = queue if queue.endswith("]") else queue.rpartition(":")[0] or queue
        found[host] = found.get(host, 0) + items
    return found


def _by_count(rows: Iterable[tuple[str, Row]], count: Callable[[Row], int]) -> list[tuple[str, Row]]:
    return sorted(rows, key=lambda row: (-count(row[1]), row[0]))


def _minute(at: float) -> str:
    return "".join(filter(str.isdigit, moment(at)))[:12]
