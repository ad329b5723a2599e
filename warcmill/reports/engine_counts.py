"""Compare what a launch's logs and its list of seeds have with what its engine counted itself. Pure.

An engine's reports are of the whole crawl, so the stages count that a launch continues. The crawl-report has the number
of URIs that are done, a line of a crawl log for each; the responsecode-report has the number of each status; the
seeds-report has all seeds. Without a crawl-report, as after a kill, the last row of progress-statistics.log counts: the
logs must have that many lines at least. Bytes are not compared: engines count unmodified pages in different ways.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import BinaryIO

from msgspec import Struct, field

from warcmill.formats.logs.crawllog import blocks
from warcmill.formats.seeds import comparable

CRAWL_LOG, SEED_LIST = "crawl.log", "seeds.txt"
CRAWL, CODES, SEEDS = "crawl-report.txt", "responsecode-report.txt", "seeds-report.txt"
NEVER_EMPTY = frozenset(
    {CRAWL, CODES, SEEDS, "frontier-summary-report.txt", "hosts-report.txt", "mimetype-report.txt", "source-report.txt"}
)
"""The reports that have a heading, even of a crawl that got nothing."""
_BLANK = b"\0 \t\r\n"  # a disk that failed may leave NULs
_SHOWN = 3
_PROCESSED = re.compile(rb"^URIs processed: (\d{1,18})\r?$", re.MULTILINE).search
_CODE_ROW = re.compile(rb"^(\d{1,18}) (\d{1,5})\r?$", re.MULTILINE).findall
_SEED_ROW = re.compile(rb"^-?\d{1,5} (?:NOT)?CRAWLED (\S+)(?: (\S+))?\r?$", re.MULTILINE).findall
_PROGRESS_ROW = re.compile(
    rb"\d{4}-\d\d-\d\dT[0-9:]{8}Z +\d+ +\d+ +(\d{1,18}) +[^ (]+\([^ )]+\) +[^ (]+\([^ )]+\) +(\d{1,18}) .*"
).fullmatch


class EngineReports(Struct):
    """The reports of a launch, b'' for one that is not there; the first bytes of each report by name; and the URIs that
    are done by its progress-statistics.log."""

    crawl: bytes = b""
    codes: bytes = b""
    seeds: bytes = b""
    heads: dict[str, bytes] = field(default_factory=dict)
    done: int = 0

    def add_progress(self, stream: BinaryIO) -> None:
        """Keep the greatest number of URIs that a row of a progress-statistics.log has as done."""
        for lines in blocks(stream):
            for match in filter(None, map(_PROGRESS_ROW, lines)):
                self.done = max(self.done, int(match[1]) + int(match[2]))


def lines(reports: EngineReports, by_status: Iterable[Mapping[str, int]]) -> str:
    """The difference between crawl logs and their engine's counts, in words; '' without one.

    `by_status`: the lines of each stage of the crawl by status, without answers after which a URI was asked again.
    """
    logged = Counter[str]()
    for table in by_status:
        logged.update(table)
    total, processed = logged.total(), _PROCESSED(reports.crawl)
    found = []
    if processed and int(processed[1]) != total:
        found.append(f"{_lines(total)}, and {CRAWL} counts {int(processed[1])} URIs")
    elif not processed and reports.done > total:
        found.append(f"{_lines(total)}, and progress-statistics.log counts {reports.done} URIs")
    if rows := _CODE_ROW(reports.codes):
        counted = {str(int(code)): int(number) for number, code in rows}
        found += _statuses({code: number for code, number in logged.items() if _is_answer(code)}, counted)
    return "; ".join(found)


def _lines(number: int) -> str:
    return "the crawl logs have 1 line" if number == 1 else f"the crawl logs have {number} lines"


def _is_answer(code: str) -> bool:
    return code.isdecimal() and int(code) > 0


def _statuses(logged: Mapping[str, int], counted: Mapping[str, int]) -> Iterator[str]:
    codes = sorted({*logged, *counted}, key=lambda code: (len(code), code))
    differ = [code for code in codes if logged.get(code, 0) != counted.get(code, 0)]
    for code in differ[:_SHOWN]:
        yield f"of status {code} the logs have {logged.get(code, 0)}, and {CODES} has {counted.get(code, 0)}"
    if differ[_SHOWN:]:
        yield f"{len(differ) - _SHOWN} more statuses differ"


def seeds(reports: EngineReports, known: Collection[str]) -> str:
    """The seeds that the engine had and the list lacks, in words; '' without one.

    `known`: the seeds of the list and what they lead to, as comparable URLs. A redirect's target need not be in it.
    """
    rows = [(row.decode("utf-8", "replace"), to.decode("utf-8", "replace")) for row, to in _SEED_ROW(reports.seeds)]
    led_to = {comparable(to) for _, to in rows if to}
    lost = [seed for seed, _ in rows if (url := comparable(seed)) not in known and url not in led_to]
    if not lost:
        return ""
    more = f" and {len(lost) - _SHOWN} more" if lost[_SHOWN:] else ""
    return f"{SEED_LIST} lacks {len(lost)} of the {len(rows)} seeds in {SEEDS}: {', '.join(lost[:_SHOWN])}{more}"


def empty(reports: EngineReports) -> list[str]:
    """The names of the reports that are there and have no content: no byte, or none that is printed."""
    return sorted(name for name in NEVER_EMPTY & reports.heads.keys() if not reports.heads[name].strip(_BLANK))
