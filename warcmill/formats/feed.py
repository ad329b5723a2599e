"""A crawl feed: which targets to crawl, how deep, how often; JSON Lines or a JSON list, an object a target. Pure.

    {"id": 1, "title": "...", "seeds": ["http://..."], "depth": "CAPPED", "scope": "subdomains",
     "ignoreRobotsTxt": false, "watched": false, "documentUrlScheme": null, "loginPageUrl": null,
     "logoutUrl": null, "secretId": null,
     "schedules": [{"startDate": 1438246800000, "endDate": null, "frequency": "MONTHLY"}],
     "paused": false, "owner": "..."}

Dates are milliseconds since 1970, or ISO 8601 (without an offset: UTC). Words may be in upper or lower case. `owner`
is for people alone; other fields are ignored. Two mistakes are accepted and noted, as their meaning is clear: a seed
without a scheme (crawled by https and http), and a schedule of an unknown frequency (skipped). A seed or a schedule
that is invalid is left out of its target, which keeps the others.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, TypeVar

from msgspec import Struct, field

from warcmill.base import schedule
from warcmill.base.schedule import Frequency, Schedule
from warcmill.errors import BadInput
from warcmill.formats import surt

T = TypeVar("T")
LARGEST = 256 << 20  # bytes of a feed; reading one takes six times its size in memory; 50,000 targets are a twentieth
LONGEST_URL = 2_083
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_YEARS = range(1990, 2200)
_UNSAFE = re.compile(r"[\x00-\x20\x7f]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?![0-9])")  # RFC 3986, 3.1; a number after it is a port
_HOST_FIRST = re.compile(r"(?://)?([^/?#]*\.[^/?#]*(?:[/?#].*)?)", re.DOTALL)
NEVER = "NEVERCRAWL"


class Depth(StrEnum):
    """The part of a target that is crawled: up to a cap of bytes, up to a larger one, or all of it."""

    CAPPED = "CAPPED"
    CAPPED_LARGE = "CAPPED_LARGE"
    DEEP = "DEEP"


class TargetScope(StrEnum):
    """The reach of a target from its seeds: the page with its parts, the pages that it links to, the site, or its
    subdomains too."""

    RESOURCE = "resource"
    PLUS1 = "plus1"
    ROOT = "root"
    SUBDOMAINS = "subdomains"


class Target(Struct, frozen=True):
    """One target of the feed. `watched` and `document_url_scheme` do not change its crawl: they are kept for later.

    `refresh`: crawl only the seeds now, with their parts. `paused`: it is never due, whatever its schedules.
    """

    id: str
    title: str
    seeds: tuple[str, ...]
    depth: Depth = Depth.CAPPED
    scope: TargetScope = TargetScope.ROOT
    ignore_robots: bool = False
    watched: bool = False
    schedules: tuple[Schedule, ...] = ()
    document_url_scheme: str | None = None
    login_page_url: str | None = None
    logout_url: str | None = None
    secret_id: str | None = None
    refresh: bool = False
    paused: bool = False

    @property
    def needs_login(self) -> bool:
        """True if its crawl must log in first."""
        return bool(self.login_page_url or self.secret_id)

    def logout_prefixes(self) -> set[str]:
        """The SURT prefixes that its crawl must avoid, so that it does not log itself out."""
        if not self.logout_url:
            return set()
        return {surt.surt(url) for url in surt.with_and_without_www(surt.canonical(self.logout_url))}


class Feed(Struct, frozen=True):
    """The sound targets, a fault for each other one, and notes of mistakes that were accepted.

    `parts` are the faults of seeds and schedules that were left out of targets whose others are sound.
    """

    targets: list[Target] = field(default_factory=list)
    faults: list[BadInput] = field(default_factory=list)
    notes: list[BadInput] = field(default_factory=list)
    parts: list[BadInput] = field(default_factory=list)

    @property
    def left_out(self) -> list[BadInput]:
        """All that is not crawled though the feed has it."""
        return [*self.faults, *self.parts]

    def refuse_faulty(self, path: str, most: int) -> None:
        """Raise BadInput if more than `most` percent of the targets are faulty."""
        faults, total = len(self.faults), len(self.faults) + len(self.targets)
        if faults * 100 > most * total:
            why = f"{faults} of its {total} targets are faulty, more than {most} percent"
            raise BadInput(path, f"{why}; the first: {self.faults[0]}")


def read(data: bytes, path: str) -> Feed:
    """Read a whole feed. Raises nothing: each fault and note names its line, or its place in the list."""
    feed = Feed()
    seen: dict[str, str] = {}
    try:
        for where, raw in _entries(data, path):
            try:
                parts = list[BadInput]()
                target = _target(_object(raw, f"{path}, {where}"), f"{path}, {where}", feed.notes, parts)
                feed.targets.append(_refuse_twice(target, seen, path, where))
                feed.parts.extend(parts)
            except BadInput as fault:
                feed.faults.append(fault)
    except BadInput as fault:
        feed.faults.append(fault)
    return feed


def _refuse_twice(target: Target, seen: dict[str, str], path: str, where: str) -> Target:
    """The target, unless its id was seen before; `seen` maps ids to places."""
    if target.id in seen:
        raise BadInput(f"{path}, {where}", f"target {target.id} is in the feed already, at {seen[target.id]}")
    seen[target.id] = where
    return target


def _entries(data: bytes, path: str) -> Iterator[tuple[str, Any]]:
    """Each target's place, with its bytes (JSON Lines) or its parsed value (a list)."""
    if len(data) > LARGEST:
        raise BadInput(path, f"the feed has more than {LARGEST:,} bytes")
    data = data.removeprefix(codecs.BOM_UTF8)  # editors on Windows write one
    if data.lstrip().startswith(b"["):
        yield from ((f"target {number}", raw) for number, raw in enumerate(_json(data, path), 1))
        return
    for number, line in enumerate(data.splitlines(), 1):
        if line.strip():
            yield f"line {number}", line


def _json(data: bytes, where: str) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BadInput(where, f"is no JSON: {error}") from error


def _object(raw: Any, where: str) -> dict[str, Any]:
    if isinstance(raw, bytes):
        raw = _json(raw, where)
    if not isinstance(raw, dict):
        raise BadInput(where, f"is no JSON object, but {json.dumps(raw, ensure_ascii=False)[:60]}")
    return raw


def _target(raw: dict[str, Any], where: str, notes: list[BadInput], parts: list[BadInput]) -> Target:
    read = _Fields(raw, where, notes)
    seeds = _each(read.list("seeds"), read.seed, parts)
    if not seeds:
        raise BadInput(where, "seeds: a target needs at least one")
    schedules = _each(read.list("schedules"), lambda one: _schedules(read, one), parts)
    target = _read_target(read, seeds, schedules)
    _refuse_hidden_seeds(target, where)
    return target


def _each(values: Sequence[Any], read: Callable[[Any], Iterable[T]], parts: list[BadInput]) -> tuple[T, ...]:
    """The parts that are read from the values; the faults of some are added to `parts`. BadInput if all are faulty."""
    found, faults = list[T](), list[BadInput]()
    for value in values:
        try:
            found += read(value)
        except BadInput as fault:
            faults.append(fault)
    if faults and len(faults) == len(values):
        raise faults[0]
    parts += faults
    return tuple(found)


def _read_target(read: _Fields, seeds: tuple[str, ...], schedules: tuple[Schedule, ...]) -> Target:
    return Target(
        id=read.id(),
        title=read.text("title") or "",
        seeds=seeds,
        depth=Depth(read.choice("depth", Depth, Depth.CAPPED)),
        scope=TargetScope(read.choice("scope", TargetScope, TargetScope.ROOT)),
        ignore_robots=read.truth("ignoreRobotsTxt"),
        watched=read.truth("watched"),
        schedules=schedules,
        document_url_scheme=read.text("documentUrlScheme"),
        login_page_url=read.optional_url("loginPageUrl"),
        logout_url=read.optional_url("logoutUrl"),
        secret_id=read.number_or_text("secretId"),
        paused=read.truth("paused"),
    )


def _refuse_hidden_seeds(target: Target, where: str) -> None:
    """Raise BadInput if a seed begins with the logout URL: it would never be crawled."""
    hidden = tuple(target.logout_prefixes())
    for seed in target.seeds if hidden else ():
        if surt.surt(surt.canonical(seed)).startswith(hidden):
            raise BadInput(where, f"logoutUrl: nothing that begins with it is crawled, and so does the seed {seed}")


def _schedules(target: _Fields, raw: Any) -> list[Schedule]:
    """The schedule; none for one that never crawls."""
    read = target.nested(raw, f"{target.where}, schedules")
    frequency = read.frequency()
    return [_schedule(read, frequency)] if frequency else []


def _schedule(read: _Fields, frequency: Frequency) -> Schedule:
    start, end = read.date("startDate"), read.date("endDate")
    if start is None:
        raise BadInput(read.where, "startDate: a schedule needs one")
    if end is not None and end <= start:
        raise BadInput(read.where, f"endDate {end.isoformat()} is not after startDate {start.isoformat()}")
    return Schedule(start, frequency, end, read.truth("refresh"))


class _Fields:
    """The fields of one JSON object, each read as its type; BadInput names the field. Adds to `notes`."""

    def __init__(self, raw: dict[str, Any], where: str, notes: list[BadInput]) -> None:
        self._raw, self.where, self._notes = raw, where, notes

    def nested(self, raw: Any, where: str) -> _Fields:
        """The fields of an object inside this one, with the same notes."""
        return _Fields(_object(raw, where), where, self._notes)

    def id(self) -> str:
        """A number or a word; it becomes part of the engine's configuration."""
        value = self._raw.get("id")
        text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", text):
            raise self._bad("id", value, "a number, or a word of at most 100 letters, digits, '.', '_' and '-'")
        return text

    def text(self, name: str) -> str | None:
        value = self._raw.get(name)
        if value is not None and not isinstance(value, str):
            raise self._bad(name, value, "text, or null")
        return value or None

    def number_or_text(self, name: str) -> str | None:
        value = self._raw.get(name)
        return str(value) if isinstance(value, int) and not isinstance(value, bool) else self.text(name)

    def truth(self, name: str) -> bool:
        """True or false; null is false: a curators' tool writes null for a box that is not ticked."""
        value = self._raw.get(name)
        value = False if value is None else value
        if not isinstance(value, bool):
            raise self._bad(name, value, "true or false")
        return value

    def list(self, name: str) -> list[Any]:
        value = self._raw.get(name)
        if value is not None and not isinstance(value, list):
            raise self._bad(name, value, "a list")
        return value or []

    def choice(self, name: str, words: type[StrEnum], default: StrEnum) -> str:
        """One of `words`, in upper or lower case."""
        value = self._raw.get(name) or default
        chosen = next((word for word in words if isinstance(value, str) and word.lower() == value.lower()), None)
        if chosen is None:
            raise self._bad(name, value, f"one of {', '.join(words)}")
        return str(chosen)

    def frequency(self) -> Frequency | None:
        """The frequency; None for NEVER, and, with a note, for one that is unknown here."""
        value = self._raw.get("frequency") or ""
        if not isinstance(value, str):
            raise self._bad("frequency", value, schedule.KNOWN)
        if value.upper() == NEVER:
            return None
        try:
            return Frequency.parse(value)
        except ValueError as error:
            self._note(f"frequency: {error}; this schedule is passed over")
            return None

    def seed(self, value: Any) -> tuple[str, ...]:
        """The URLs of a seed: one, or two (https and http) for a seed without a scheme."""
        text = value.strip() if isinstance(value, str) else ""
        bare = None if _SCHEME.match(text) else _HOST_FIRST.fullmatch(text)
        if not bare:
            return (self.url(value, "seeds"),)
        urls = tuple(self.url(f"{scheme}://{bare[1]}", "seeds") for scheme in ("https", "http"))
        self._note(f"seeds: {text[:80]!r} has no scheme; it is crawled by https, then by http")
        return urls

    def url(self, value: Any, name: str) -> str:
        """An absolute http or https URL without blanks, credentials or control characters; trims blanks around it."""
        url = value.strip() if isinstance(value, str) else ""
        if not url or _UNSAFE.search(url):
            raise self._bad(name, value, "an http or https URL without blanks")
        try:
            longest = max(len(url), len(surt.canonical(url)))
        except ValueError as error:
            raise BadInput(self.where, f"{name}: {error}"[:300]) from error
        if longest > LONGEST_URL:
            raise self._bad(name, value, f"of at most {LONGEST_URL} characters")
        return url

    def optional_url(self, name: str) -> str | None:
        value = self._raw.get(name)
        return self.url(value, name) if value else None

    def date(self, name: str) -> datetime | None:
        value = self._raw.get(name)
        if value is None or value == "":
            return None
        try:
            date = moment(value)
        except (ValueError, OverflowError):
            date = None
        if date is None or date.year not in _YEARS:
            raise self._bad(
                name, value, f"milliseconds since 1970 or ISO 8601, from {_YEARS.start} to {_YEARS.stop - 1}"
            )
        return date

    def _note(self, text: str) -> None:
        self._notes.append(BadInput(self.where, text))

    def _bad(self, name: str, value: Any, wanted: str) -> BadInput:
        return BadInput(self.where, f"{name}: {str(value)[:80]!r} is not {wanted}")


def moment(value: Any) -> datetime | None:
    """The time that a date of a feed is; None for another value. ValueError, OverflowError for an invalid one."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return _EPOCH + timedelta(seconds=value // 1000)
    if not isinstance(value, str):
        return None
    date = datetime.fromisoformat(value).replace(microsecond=0)
    return date.astimezone(UTC) if date.tzinfo else date.replace(tzinfo=UTC)


def why_shrunken(new: int, old: int) -> str:
    """Return why a feed of `new` targets may not replace one of `old` targets; '' if it may.

    A feed that is empty, or has lost more than half of its targets, is most
    likely a fault at its source: crawls that should run would not.
    """
    if new == 0:
        return "the feed is empty"
    return f"the feed has {new} targets, less than half of the {old} it had" if new * 2 < old else ""
