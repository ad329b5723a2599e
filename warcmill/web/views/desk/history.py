"""The view of who did what and when: a page at a time, filtered, and all of it as CSV. Reads the state alone."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import urlencode

from warcmill.base.escapes import table_cell
from warcmill.errors import BadInput
from warcmill.model import Json
from warcmill.web import actions, history
from warcmill.web.access import Role
from warcmill.web.actions import ACTIONS
from warcmill.web.history import COLUMNS, Deed, DeedFilter
from warcmill.web.request import Answer, Asked, SentBytes, ShownPage
from warcmill.web.served import Served
from warcmill.web.views.line import days_of

ON_A_PAGE = 100
LONGEST = 200  # characters of a field
_FIELDS = ("who", "what", "job", "from", "to")


def shown(served: Served, asked: Asked) -> Answer:
    """Who did what, the newest first: the list of `warcmill history`, by who, what, job and days."""
    state, given = served.state.store, {name: asked.fields.get(name, "").strip() for name in _FIELDS}
    wanted = _wanted(given, asked.fields.get("before", ""))
    if asked.fields.get("format") == "csv":
        name = {"Content-Disposition": 'attachment; filename="history.csv"'}
        return SentBytes(_csv(history.deeds(state, wanted)), "text/csv; charset=utf-8", more=name)
    page, fields = history.page(state, wanted, ON_A_PAGE), {name: text for name, text in given.items() if text}
    after = " ".join(page.next) if page.next else ""
    days = [f"{wanted.first[:10]}-{wanted.end[:10]}"] if wanted.first and wanted.end else []
    words = [f"--{name}={text}" for name, text in given.items() if text and name not in ("from", "to")]
    answer: dict[str, Json] = {"deeds": [one.json() for one in page.deeds], "next": after}
    kinds = history.kinds(state)
    more = {
        "command": actions.command(("history", *days, *words)),
        "csv": f"/history?{urlencode({**fields, 'format': 'csv'})}",
        "given": given, "next": f"/history?{urlencode({**fields, 'before': after})}" if after else "",
        "first": f"/history?{urlencode(fields)}" if wanted.before else "",
        "choices": [("", "all"), *((one, one) for one in dict.fromkeys((*kinds, *ACTIONS, given["what"])) if one)],
        "page": page, "rows": [(one, _path(one, asked)) for one in page.deeds],
    }  # fmt: skip
    return ShownPage(answer, more)


def _wanted(given: Mapping[str, str], before: str) -> DeedFilter:
    """The filter that fields ask for; BadInput for an invalid one."""
    if long := next((name for name, text in given.items() if len(text) > LONGEST), ""):
        raise BadInput(long, f"it has more than {LONGEST} characters")
    time, is_place, id_ = before.partition(" ")
    if before and not (is_place and len(before) <= LONGEST):
        raise BadInput("before", "it is not a place of this list")
    first, end = (f"{days_of(given[name], name)[at]}T00:00:00Z" if given[name] else ""
                  for at, name in enumerate(("from", "to")))  # fmt: skip
    return DeedFilter(given["who"], given["what"], given["job"], first, end, (time, id_) if before else None)


def _path(one: Deed, asked: Asked) -> str:
    """The page of a deed, for who may see it; '' without one."""
    kind, _, rest = one.id.partition(":")
    if kind == history.ACTION and (asked.user.role is Role.OPERATOR or one.who == asked.user.name):
        return f"/actions/{rest}"
    return f"/jobs/{one.job}/history" if kind == history.EDITION else ""


def _csv(deeds: Iterable[Deed]) -> Iterator[bytes]:
    yield _row(COLUMNS)
    for one in deeds:
        yield _row(one.row())


def _row(cells: Iterable[str]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerow(map(table_cell, cells))
    return text.getvalue().encode("utf-8", "replace")
