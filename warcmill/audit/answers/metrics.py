"""The answer of `warcmill health` in Prometheus's text format. Reads only; asks nothing.

A figure that the answer has not is left out: nothing is made up, and an alert sees that it is absent. Times are those
of the answer, in seconds since 1970: so an age grows also while nothing writes it. No value of a label comes from a
site: it is a word of ours, or an operator's name of a job, an engine or a root; anything else is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

from warcmill import __version__
from warcmill.audit import day_summary
from warcmill.audit.answers import health as answers
from warcmill.audit.day_summary import DaySummary
from warcmill.markers.state import MarkerStore
from warcmill.model import Json, JsonObject

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
DAYS = 60  # that scans reach; the newest WARC is looked for in their summaries
Labels = tuple[tuple[str, str], ...]
_WORD = re.compile(r"[A-Za-z0-9][][A-Za-z0-9 ._-]{0,99}", re.ASCII)
_STAMP = re.compile(r"[0-9]{14}", re.ASCII)


class Family:
    """A metric: its name, its help, and a value for each set of labels."""

    def __init__(self, name: str, about: str) -> None:
        self.name, self.about = f"warcmill_{name}", about
        self._values: dict[Labels, int] = {}

    def set(self, value: Json, **labels: Json) -> None:
        """Set a value; nothing for what is not a whole number, nor for a label that is not a word."""
        words = tuple((name, word) for name, word in labels.items() if isinstance(word, str) and _WORD.fullmatch(word))
        if isinstance(value, int) and len(words) == len(labels):
            self._values[words] = int(value)

    def text(self) -> str:
        """Its lines; '' without a value."""
        lines = [f"{self.name}{_braces(labels)} {value}\n" for labels, value in sorted(self._values.items())]
        return "".join([f"# HELP {self.name} {self.about}\n# TYPE {self.name} gauge\n", *lines]) if lines else ""


def _braces(labels: Labels) -> str:
    """Labels as text. A word has no character that needs an escape."""
    words = ",".join(f'{name}="{word}"' for name, word in labels)
    return f"{{{words}}}" if words else ""


def read(state: MarkerStore) -> str:
    """The metrics of an archive, by its state folder; Unavailable when that is away."""
    today = datetime.now(UTC).date()
    days = day_summary.days(state, today - timedelta(days=DAYS), today + timedelta(days=1))
    return text(answers.read(state), newest_warc(days))


def text(health: JsonObject, newest: int = 0) -> str:
    """All that is known. `health` is empty where there is none; `newest`: see `newest_warc`. Pure."""
    build = Family("build_info", "The version of Warcmill that writes this.")
    build.set(1, version=__version__)
    last = Family("newest_warc_timestamp_seconds", "When the newest launch or checkpoint with a WARC began.")
    last.set(newest or None)
    families = (build, *_asked(health), *_crawls(health), *_ends(health), *_totals(health), last)
    return "".join(family.text() for family in families)


def newest_warc(days: Iterable[DaySummary]) -> int:
    """When the newest launch or checkpoint with a WARC began, in seconds since 1970; 0 if no day has one. Pure."""
    return max((_began(launch) for day in days for launch in day.launches if launch.get("warcs")), default=0)


def _began(launch: JsonObject) -> int:
    names = (str(launch.get("launch_id")), *(name.rpartition("-")[2] for name in _object(launch.get("stages"))))
    stamps = (f"{name[:8]}T{name[8:]}" for name in names if _STAMP.fullmatch(name))
    return max((_seconds(stamp) or 0 for stamp in stamps), default=0)


def _asked(health: JsonObject) -> Iterator[Family]:
    """The answers, and the room on disks."""
    up = Family("up", "1 for what answered when it was last asked, by kind (engine, root, server, scheduler) and name.")
    for one in _objects(health.get("asked")):
        up.set(one.get("answered"), kind=one.get("kind"), name=one.get("name"))
    free = Family("free_bytes", "Bytes free on the disk of a root.")
    size = Family("size_bytes", "Bytes of the disk of a root.")
    for one in _objects(health.get("roots")):
        free.set(one.get("bytes_free"), root=one.get("root"))
        size.set(one.get("bytes"), root=one.get("root"))
    yield from (up, free, size)


def _crawls(health: JsonObject) -> Iterator[Family]:
    figures = {
        "done": Family("crawl_done", "URIs that a running crawl has done."),
        "queued": Family("crawl_queued", "URIs that wait in a running crawl."),
        "per_minute": Family("crawl_per_minute", "URIs that a running crawl does in a minute."),
    }
    for one in _objects(health.get("crawls")):
        for name, family in figures.items():
            family.set(one.get(name), job=one.get("job"))
    yield from figures.values()


def _ends(health: JsonObject) -> Iterator[Family]:
    written = Family("health_written_timestamp_seconds", "When the health was last looked at.")
    written.set(_seconds(health.get("written")))
    scan = Family("scan_end_timestamp_seconds", "When a scan last ended.")
    troubles = Family("scan_troubles", "Troubles of a scan that ended.")
    for one in _objects(health.get("scans")):
        scan.set(_seconds(one.get("ended")), scan=one.get("name"))
        troubles.set(one.get("troubles"), scan=one.get("name"))
    backup = Family("backup_end_timestamp_seconds", "When the backup of the state last ended.")
    backup.set(_seconds(_object(health.get("backup")).get("ended")))
    yield from (written, scan, troubles, backup)


def _totals(health: JsonObject) -> Iterator[Family]:
    """The totals of all days that have a summary."""
    launches = Family("launches", "Launches by state.")
    for state, number in _object(health.get("launches")).items():
        launches.set(number, state=state)
    gaps = Family("gaps", "What launches lack and a person has to look at, by kind.")
    for kind, number in _object(health.get("gaps")).items():
        gaps.set(number, kind=kind)
    warcs = Family("warcs", "WARCs that a step has done, by step.")
    size = Family("warc_bytes", "Bytes of the WARCs that a step has done, by step.")
    for step, done in _object(health.get("files")).items():
        warcs.set(_object(done).get("warcs"), step=step)
        size.set(_object(done).get("bytes"), step=step)
    backlog = Family("backlog", "Launches of which a due step is not done, by step.")
    for step, waiting in _object(health.get("backlog")).items():
        backlog.set(_object(waiting).get("launches"), step=step)
    yield from (launches, gaps, warcs, size, backlog)


def _seconds(time: Json) -> int | None:
    """A time of an answer in seconds since 1970; None for an invalid one."""
    try:
        return int(datetime.fromisoformat(str(time).removesuffix("Z")).replace(tzinfo=UTC).timestamp())
    except (ValueError, OverflowError):
        return None


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _objects(value: Json) -> Iterator[JsonObject]:
    return (one for one in (value if isinstance(value, list) else []) if isinstance(one, dict))
