"""Pages rendered by Jinja2: its environment, and the filters that templates write values with. Reads templates only.

Each text that a template writes is escaped twice over: markup becomes text, and control, invisible and right-to-left
characters become `\\u202e` and the like, as in a terminal. So no host, title or reason changes the page around it.
"""

from __future__ import annotations

import re
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from warcmill import __version__
from warcmill.audit.progress_grid import LEGEND, Mark
from warcmill.base.escapes import printable
from warcmill.web.hidden import HiddenNames

STATIC = Path(__file__).with_name("static")
STYLE = STATIC / "warcmill.css"
LONGEST = 500  # characters of a text from outside that a page shows
LONGEST_LINE = 8000  # of a log or a document
_DAY, _SECOND = "2016-10-19", "20161019234428"
_TIME = re.compile(r"\d{4}-?\d\d-?\d\d|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)
_SHAPES: dict[str, str] = {mark: mark.shape for mark in Mark}
_UNITS = ("kB", "MB", "GB", "TB", "PB")
_marked: ContextVar[HiddenNames] = ContextVar("_marked", default=HiddenNames())  # noqa: B039 - it does not change


@cache
def environment() -> Environment:
    """The environment of all pages."""
    made = Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "age": age,
        "cut": cut,
        "exact": exact,
        "plain_text": plain_text,
        "search_for": search_for,
        "shape": _SHAPES.__getitem__,
        "size": size,
        "time": time,
    }
    made.tests["hidden"] = lambda text: _marked.get().are_in(str(text))
    made.globals |= {"states": tuple(map(str, LEGEND)), "version": __version__}
    return made


def render(template: str, marked: HiddenNames, /, **values: object) -> str:
    """A page as HTML. Each text from outside in which `marked` names are has a mark."""
    token = _marked.set(marked)
    try:
        return environment().get_template(template).render(**values)
    finally:
        _marked.reset(token)


def _finalize(value: Any) -> Any:
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def cut(text: str, longest: int = LONGEST) -> str:
    """A text from outside, cut where it is too long for a page; then its end is its length."""
    return text if len(text) <= longest else f"{text[:longest]}… ({len(text):,} characters)"


def exact(text: str) -> Markup:
    """A text as it is, for <textarea>: who edits it must get each character. HTML drops a line end at its begin."""
    return Markup("\n") + escape(text)


def plain_text(text: str) -> Markup:
    """The lines of a log or a document, for <pre>: all but the ends of lines is escaped, and long lines are cut."""
    text = text.replace("\r\n", "\n").expandtabs(4).removesuffix("\n")
    lines = _marked.get().marked(text).split("\n")
    return Markup("\n").join(escape(printable(cut(line, LONGEST_LINE))) for line in lines)


@lru_cache
def in_grid(word: str, note: str = "") -> Markup:
    """A state in a cell of a grid, drawn by its macro once: a year has thousands of them."""
    drawn = environment().get_template("parts.html").module.state(word, note, grid=True)  # type: ignore[attr-defined]
    return Markup(drawn)  # noqa: S704 - of our own template


def search_for(url: str) -> str:
    """The address of the search for the captures of a URL."""
    return f"/search?{urlencode({'q': url})}"


def size(number: int) -> str:
    """Bytes for people, with three digits: `812 B`, `1.09 MB`, `52.4 GB`."""
    if number < 1000:
        return f"{number} B"
    value, power = float(number), 0
    while value >= 999.5 and power < len(_UNITS):
        value, power = value / 1000, power + 1
    return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f} {_UNITS[power - 1]}"


def time(utc: str) -> Markup:
    """A day, or a time, `2016-10-19T23:44:28Z` or 14 digits, as <time>; a text that is neither as it is."""
    try:
        then = _moment(utc)
    except ValueError:
        return Markup("<bdi>{}</bdi>").format(printable(cut(utc))) if utc else Markup()
    if len(utc) <= len(_DAY):
        return Markup('<time datetime="{0}">{0}</time>').format(then.date())
    return Markup('<time datetime="{}Z">{} UTC</time>').format(then.isoformat(), then)


def _moment(utc: str) -> datetime:
    """A time as UTC, without a zone; ValueError for another text."""
    if len(utc) == len(_SECOND) and utc.isdecimal():
        return datetime.fromisoformat(f"{utc[:8]}T{utc[8:]}")
    if _TIME.fullmatch(utc):
        return datetime.fromisoformat(utc.removesuffix("Z"))
    raise ValueError(utc)


def age(utc: str, now: datetime | None = None) -> str:
    """The time since then, in its largest unit: `3 minutes ago`; '' for a text that is not a time."""
    try:
        then = _moment(utc).replace(tzinfo=UTC)
    except ValueError:
        return ""
    passed = (now or datetime.now(UTC)) - then
    for unit, length in (("day", 86_400), ("hour", 3600), ("minute", 60), ("second", 1)):
        number = passed // timedelta(seconds=length)
        if number >= (1 if unit == "second" else 2):
            return f"{number:,} {unit}{'' if number == 1 else 's'} ago"
    return "just now"
