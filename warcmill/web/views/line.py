"""The pages of the whole line: what needs a person, and its launches by day. Read from the state folder alone."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from itertools import groupby
from urllib.parse import urlencode

from msgspec import Struct
from msgspec.structs import replace

from warcmill.audit import day_summary
from warcmill.audit.answers import attention, days, dues, jobs, status
from warcmill.audit.answers.days import DayOfJobs
from warcmill.audit.answers.line import AuditedLine
from warcmill.audit.progress_grid import LEGEND, Mark, grid
from warcmill.errors import BadInput
from warcmill.markers.locks import scans_at_work
from warcmill.markers.state import MarkerStore
from warcmill.model import Json, parse_job
from warcmill.web import queries
from warcmill.web.access import Role
from warcmill.web.rendering import in_grid
from warcmill.web.request import Answer, Asked, MovedTo, ShownPage
from warcmill.web.served import Served
from warcmill.web.views.launches.launch import Pager, cells, columns_of, heads, number_in, path_of
from warcmill.web.views.search import sign_in

LAUNCHES = 100  # on a page
LAST, LAST_BY_DAY = 7, 31  # days, where none is asked for
LONGEST = 366  # days
LONGEST_DUE = 31  # days for which due crawls without a launch are looked for
_DAY = re.compile(r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2}))?)?")
STATES = tuple(mark for mark in LEGEND if mark is not Mark.NOT_DUE)


def home(served: Served, asked: Asked) -> Answer:
    """Show what needs a person, running crawls, the newest launches, and the form of search.

    An archive in which nothing was crawled yet opens on "Archive a site", for who may do that.
    A token that is still in the address is changed for a cookie, and leaves the address also where it is used up.
    """
    if asked.fields.get("token"):
        signed = sign_in(served, asked)
        return signed if isinstance(signed, MovedTo) else MovedTo("/")
    line = served.line().state_alone()
    if asked.user.role >= Role.CURATOR and not asked.in_json and served.job_desk and not jobs.names(line):
        return MovedTo("/archive-a-site")
    found, crawls = attention.read(line), jobs.running_crawls(served.state)
    may_run = bool(crawls) or any(one.mark is Mark.RUNNING for one in found.states.values())
    if may_run:
        served.refresh()
    running: list[Json] = [one.json() for one in crawls]
    answer: dict[str, Json] = {**found.json(), "running": running, "missing": [*served.missing()]}
    shown = {
        "crawls": crawls,
        "may_run": may_run,
        "written": found.found.written,
        "found": found,
        "path_of": path_of,
        "search": queries.search_of({}),
    }
    return ShownPage(answer, shown)


class AskedDays(Struct, frozen=True):
    """The days, job and state that a request is about. `end` is not included; `job` and `state` are '' for all."""

    first: date
    end: date
    job: str
    state: str
    by_day: bool

    @property
    def fields(self) -> dict[str, str]:
        """The fields of the address that asks for these."""
        last = self.end - timedelta(days=1)
        fields = {"by": "day" if self.by_day else "launch", "from": str(self.first), "to": str(last)}
        return {**fields, **{name: text for name, text in (("job", self.job), ("state", self.state)) if text}}

    def path(self, **other: str) -> str:
        """The address of these days, with other fields."""
        return f"/status?{urlencode({**self.fields, **other})}"


def asked_days(fields: Mapping[str, str], today: date) -> AskedDays:
    """The days that are asked for, by `from` and `to`: a day, a month or a year each; BadInput for another text."""
    by = fields.get("by") or "launch"
    if by not in ("day", "launch"):
        raise BadInput("by", "it is neither 'day' nor 'launch'")
    state, job = fields.get("state", ""), fields.get("job", "").strip()
    if state not in ("", *STATES):
        raise BadInput("state", f"it is none of: {', '.join(STATES)}")
    begin, until = (fields.get(name, "").strip() for name in ("from", "to"))
    length = timedelta(days=LAST_BY_DAY if by == "day" else LAST)
    end = _days_of(until, "to")[1] if until else today + timedelta(days=1)
    first = _days_of(begin, "from")[0] if begin else end - length
    if begin and not until:
        end = max(min(end, first + timedelta(days=LONGEST)), first + timedelta(days=1))
    if not first < end:
        raise BadInput("from", "it is later than 'to'")
    if (end - first).days > LONGEST:
        raise BadInput("from", f"from there to 'to' are {(end - first).days:,} days, {LONGEST} are the most")
    return AskedDays(first, end, parse_job(job) if job else "", state, by == "day")


def _days_of(text: str, name: str) -> tuple[date, date]:
    """The first day of a day, month or year, and the first one after it."""
    try:
        match = _DAY.fullmatch(text)
        year, month, day = (int(part or 1) for part in match.groups()) if match else (0, 0, 0)
        first = date(year, month, day)
        after = first + timedelta(days=1 if match and match[3] else 31 if match and match[2] else 366)
        if match and not match[3]:
            after = after.replace(day=1) if match[2] else date(year + 1, 1, 1)
    except (ValueError, OverflowError) as error:
        raise BadInput(name, "it is not a year, a month or a day, such as 2016-10-19") from error
    return first, after


def line_status(served: Served, asked: Asked) -> Answer:
    """The launches of some days by their steps, or the days by their jobs.

    The first gives the answer of `warcmill status`.
    """
    line, wanted = served.line().state_alone(), asked_days(asked.fields, datetime.now(UTC).date())
    page = number_in(asked.fields, "page", 1)
    if wanted.by_day:
        rows = days.read(line.state, wanted.first, wanted.end, wanted.job, wanted.state)
        if asked.in_json:
            return ShownPage(days.answer(wanted.first, wanted.end, rows))
        return ShownPage({}, _by_day(line.state, wanted, rows))
    if asked.in_json:
        seen = status.read(line, wanted.first, wanted.end, wanted.job or None, looked=None)
        shown = [one for one in seen.grids if wanted.state in ("", one.mark)]
        return ShownPage(replace(seen, shown=shown).json())
    return ShownPage({}, _by_launch(line, wanted, page))


def _frame(wanted: AskedDays, marks: Iterable[Mark]) -> dict[str, object]:
    """The head of both pages: the form, and the numbers of launches by their state."""
    numbers = Counter(marks)
    counts = [(str(mark), numbers[mark], wanted.path(state=mark)) for mark in STATES if numbers[mark]]
    every = wanted.path(state="")
    return {
        "wanted": wanted,
        "last": wanted.end - timedelta(days=1),
        "launches": numbers.total(),
        "counts": counts,
        "every": every,
        "other": wanted.path(by="launch" if wanted.by_day else "day"),
        "choices": [("", "all"), *((str(mark), str(mark)) for mark in STATES)],
    }


def _by_day(state: MarkerStore, wanted: AskedDays, rows: list[DayOfJobs]) -> dict[str, object]:
    jobs = days.jobs_of(rows)
    marks = (one.mark for row in rows for launches in row.jobs.values() for one in launches)
    return {
        **_frame(wanted, marks),
        "written": max((row.written for row in rows), default=""),
        "jobs": jobs,
        "rows": [(row, [_cell(row, job, wanted.state) for job in jobs]) for row in rows],
        "away": [*map(str, attention.silent(state)), *dict.fromkeys(why for row in rows for why in row.away)],
    }


def _cell(row: DayOfJobs, job: str, state: str) -> tuple[str, str]:
    """The worst state of a job's launches of a day, with their number if they are several, and the way to them."""
    launches = row.jobs.get(job)
    if not launches:
        return "", ""
    if len(launches) == 1:
        return in_grid(launches[0].mark), f"/launches/{job}/{launches[0].id}"
    worst = next(mark for mark in Mark if any(one.mark is mark for one in launches))
    day = str(row.day)
    fields = {"from": day, "to": day, "job": job, **({"state": state} if state else {})}
    return in_grid(worst, str(len(launches))), f"/status?{urlencode(fields)}"


def _by_launch(line: AuditedLine, wanted: AskedDays, page: int) -> dict[str, object]:
    found = days.find(line, wanted.first, wanted.end, wanted.job, wanted.state)
    part = [*found.launches][(page - 1) * LAUNCHES : page * LAUNCHES]
    grids = [grid(line.state, None, one, line.wanted) for one in part]
    columns = columns_of(grids)
    rows = [
        (one.launch, path_of(one.launch), one, cells(one.cells, columns), found.launches[one.launch]) for one in grids
    ]
    by_day = [(day, [*group]) for day, group in groupby(rows, key=lambda row: row[0].day)]
    is_short = (wanted.end - wanted.first).days <= LONGEST_DUE
    due = dues.of_days(line, wanted.first, wanted.end).gaps if is_short else []
    live = {one.launch: one.mark for one in grids}
    marks = [live.get(one) or (summed.mark if summed else Mark.WAITING) for one, summed in found.launches.items()]
    return {
        **_frame(wanted, marks),
        "written": found.written,
        "away": [*map(str, attention.silent(line.state)), *found.away, *found.broken],
        "pager": Pager(page, LAUNCHES, len(found.launches), wanted.path()),
        "heads": heads(columns),
        "width": len(columns) + 5,
        "days": by_day,
        "due": [gap for gap in due if wanted.job in ("", gap.job)],
        "scans": scans_at_work(line.state),
        "newest": None if found.launches else next(iter(day_summary.known_days(line.state)[::-1]), None),
    }
