"""The views of one URL: all its captures by year, the header of a record, what hiding it would hit, and the rules that
hide it, with what is shown again without them.

They read the published CDX; the header of a record alone is read from the store.
"""

from __future__ import annotations

import calendar
from collections import Counter
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from itertools import islice
from urllib.parse import urlencode

from msgspec import Struct
from msgspec.structs import replace

from warcmill.base import clock
from warcmill.errors import BadInput
from warcmill.model import Json, parse_reason
from warcmill.versions import hidden_list
from warcmill.versions.hidden_list import AccessDecision
from warcmill.web import actions, queries
from warcmill.web.actions import ACTIONS, TakenAction
from warcmill.web.archive import HeldCapture, ShownCapture
from warcmill.web.request import Answer, Asked, MovedTo, RefusedRequest, ShownPage
from warcmill.web.served import Served
from warcmill.web.views.search import way_to_record

MOST = 100_000  # captures of a URL that are read
SHOWN = 200  # of a year, below its calendar
HIT = 20  # captures that are named before they are hidden, or shown again
RULES = 200  # on a page, the newest ones
NEW, SAME, ERROR = "new", "same", "error"


class _Seen(Struct, frozen=True):
    """A capture beside the one before it: new bytes, the same ones, or an answer that is an error."""

    capture: HeldCapture
    kind: str

    @property
    def name(self) -> str:
        """The name of its WARC."""
        return self.capture.warc.rpartition("/")[2]

    def record(self) -> str:
        """The fields that name its record."""
        return urlencode({"url": self.capture.url, "warc": self.name, "offset": self.capture.offset})

    def json(self) -> dict[str, Json]:
        """The capture for programs."""
        one = self.capture
        return {
            "capture": f"/{way_to_record(one.url, self.name, int(one.offset))}", "change": self.kind,
            "digest": one.digest, "length": one.length, "offset": one.offset, "status": one.status, "time": one.time,
            "type": one.type, "url": one.url, "warc": self.name,
        }  # fmt: skip


def history(served: Served, asked: Asked) -> Answer:
    """All captures of a URL: a calendar of a year, and those of the year or of a day, the newest first; without a URL
    the form that asks for one."""
    if not asked.fields.get("url", "").strip():
        return ShownPage({"captures": [], "found": 0, "url": "", "years": {}}, {"url": "", "rules": []})
    url = _url(asked)
    found, number = served.archive.history_of(url, MOST)
    seen = _seen(found)
    years = Counter(one.capture.time[:4] for one in seen)
    year = asked.fields.get("year", "") or max(years, default="")
    day = asked.fields.get("day", "")
    if (year and not (year.isdigit() and len(year) == 4)) or (day and not (day.isdigit() and len(day) == 8)):
        raise BadInput("year", "it is not four digits, or the day is not eight")
    those = [one for one in reversed(seen) if one.capture.time.startswith(day or year)]
    answer: dict[str, Json] = {
        "captures": [one.json() for one in those[:SHOWN]], "found": number, "url": url,
        "years": dict(sorted(years.items())),
    }  # fmt: skip
    here = f"/captures?{urlencode({'url': url})}"
    shown = {
        "url": url, "here": here, "year": year, "day": day, "years": sorted(years.items()), "number": number,
        "is_cut": number > len(found), "rows": those[:SHOWN], "more": len(those) - SHOWN,
        "months": _months(year, [one for one in seen if one.capture.time.startswith(year)]) if year in years else [],
        "hide": f"/hide?{urlencode({'entry': url})}",
        "rules": [*_rules(served, url)] if asked.sees_hidden else [],
    }  # fmt: skip
    return ShownPage(answer, shown)


def _url(asked: Asked) -> str:
    url = asked.fields.get("url", "").strip()
    if not 0 < len(url) <= queries.LONGEST_URL:
        raise BadInput("url", f"it has {len(url)} characters, not 1 to {queries.LONGEST_URL}")
    return url


def _seen(captures: Sequence[HeldCapture]) -> list[_Seen]:
    """Captures, each beside the good one before it."""
    found, before = list[_Seen](), ""
    for one in captures:
        if one.status.isdigit() and not one.status.startswith(("2", "3")):
            kind = ERROR
        elif before and before == one.digest:
            kind = SAME
        else:
            kind, before = NEW, one.digest
        found.append(_Seen(one, kind))
    return found


def _months(year: str, seen: Sequence[_Seen]) -> list[tuple[str, list[tuple[int, str, int, str]]]]:
    """The months of a year with a capture: their days, each with its digits, the number of captures, and the most
    notable kind of them."""
    days: dict[str, list[str]] = {}
    for one in seen:
        days.setdefault(one.capture.time[:8], []).append(one.kind)
    months = []
    for month in range(1, 13):
        _, last = calendar.monthrange(int(year), month)
        digits = [f"{year}{month:02}{day:02}" for day in range(1, last + 1)]
        if any(one in days for one in digits):
            row = [(int(one[6:]), one, len(kinds), _notable(kinds)) for one in digits for kinds in [days.get(one, [])]]
            months.append((calendar.month_abbr[month], row))
    return months


def _notable(kinds: Sequence[str]) -> str:
    return next((one for one in (NEW, ERROR, SAME) if one in kinds), "")


def record(served: Served, asked: Asked) -> Answer:
    """The header of a record, and that of HTTP in it; 404 for one that is hidden, or in no index."""
    url, (warc, offset) = _url(asked), queries.record_of(asked.fields)
    found, _ = served.archive.history_of(url, MOST)
    one = next((one for one in found if one.warc.rpartition("/")[2] == warc and one.offset == str(offset)), None)
    if one is None:
        why = "the archive shows no capture of this record: it is hidden, or 'warcmill scan' has not indexed it yet"
        return RefusedRequest(HTTPStatus.NOT_FOUND, why)
    head = served.archive.record_head(one.warc, offset)
    answer: dict[str, Json] = {"head": head, "length": one.length, "offset": one.offset, "url": url, "warc": warc}
    return ShownPage(answer, {"one": one, "head": head, "here": f"/captures?{urlencode({'url': url})}"})


def hide(served: Served, asked: Asked) -> Answer:
    """The form that hides a URL, or what a SURT means: first the captures that it would hit; a post has it done."""
    text = asked.fields.get("entry", "").strip()
    if not text:
        return _all_rules(served)
    entry = hidden_list.entry_of(text)
    return _decided(served, asked, "hide", text, entry, served.archive.hit_by(entry, HIT))


def unhide(served: Served, asked: Asked) -> Answer:
    """The form that lifts a rule: first the captures that are shown again; a post has it done. 404 if no rule hides
    that."""
    entry = asked.fields.get("entry", "")  # its blank at the end belongs to it
    if not entry:
        return _all_rules(served)
    rule = served.archive.rules().get(entry)
    if rule is None:
        return RefusedRequest(HTTPStatus.NOT_FOUND, "no rule hides this; /hide lists the rules that hold")
    return _decided(served, asked, "unhide", entry, entry, served.archive.shown_without(entry, HIT), rule)


def _all_rules(served: Served) -> ShownPage:
    """The form that asks what to hide, and the rules that hold, which may be lifted."""
    rules = [*_rules(served)]
    answer: dict[str, Json] = {"entry": "", "found": 0, "rules": [one.surt for one in rules]}
    return ShownPage(answer, {"about": ACTIONS["hide"].about, "entry": "", "text": "", "rules": rules})


def _rules(served: Served, url: str = "") -> Iterator[AccessDecision]:
    """The rules that hide a URL, or all, the newest first."""
    rules = served.archive.rules().values()
    yield from islice((one for one in reversed(rules) if not url or hidden_list.is_about(one.surt, url)), RULES)


def _decided(
    served: Served, asked: Asked, action: str, text: str, entry: str, hit: tuple[list[ShownCapture], int],
    rule: AccessDecision | None = None,
) -> Answer:  # fmt: skip
    """The form of a decision on what is shown, with what it hits; posted, the verb that makes the decision begins."""
    verb, (found, number), wrong = ACTIONS[action], hit, None
    words = verb.filled(entry=text, reason="TEXT")
    if asked.method == "POST":
        try:
            filled = verb.filled(entry=text, reason=parse_reason(asked.fields.get("reason", "")))
            wanted = replace(TakenAction("", action, who=asked.user.name), words=filled, started=clock.now())
            served.actions.start(served.state.store, replace(wanted, id=asked.form))
            return MovedTo(f"/actions/{asked.form}")
        except BadInput as error:
            wrong = error
    answer: dict[str, Json] = {
        "entry": entry, "error": str(wrong) if wrong else "", "form": served.forms.new(asked.user, asked.path),
        "found": number, "first": [one.url for one in found],
    }  # fmt: skip
    shown = {
        "about": verb.about, "text": text, "entry": entry, "number": number, "first": found, "wrong": wrong,
        "typed": asked.fields.get("reason", ""), "command": actions.command(words), "rule": rule, "rules": [],
        "label": verb.label,
    }  # fmt: skip
    return ShownPage(answer, shown, HTTPStatus.BAD_REQUEST if wrong else HTTPStatus.OK)
