"""The targets of a job's feed: their list, the form of one, pause, import and export. It saves the feed as editions.

All that it decides is decided by the functions of `warcmill feed targets`, `add`, `edit`, `pause`, `import`, `export`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from itertools import islice
from urllib.parse import quote, urlencode

from msgspec import Struct
from msgspec.structs import asdict

from warcmill.base.escapes import printable
from warcmill.errors import BadConfig, BadInput, NewerEdition, NotReady, Unavailable, WarcmillError
from warcmill.formats.feed import Depth, TargetScope
from warcmill.model import Json, parse_job
from warcmill.pulse import feed_edits, target_exchange, target_list
from warcmill.pulse.feed_edits import PAPER, JobFeed
from warcmill.pulse.target_exchange import ImportedTargets
from warcmill.pulse.target_fates import ListedTargets, listed
from warcmill.pulse.target_list import JSON_NAMES, YES, EditRules, TargetFields, TargetFilter
from warcmill.web.access import Role
from warcmill.web.actions import command
from warcmill.web.handover import files
from warcmill.web.request import Answer, Asked, MovedTo, RefusedRequest, SentBytes, ShownPage
from warcmill.web.served import Served
from warcmill.web.views.launches.launch import Pager, number_in

ON_A_PAGE = 50
EDITIONS = 10  # on a page
REFUSED = 200  # lines of an import on a page
LONGEST = 2_000  # characters of a field of the filter
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_LABELS = {
    "title": "Title", "addresses": "Addresses", "schedules": "Schedules", "owner": "Owner", "scope": "Scope",
    "depth": "Depth", "watched": "Documents", "ignore_robots": "robots.txt",
}  # fmt: skip
SCOPES = (
    (TargetScope.RESOURCE, "the page, with its parts"), (TargetScope.PLUS1, "the page, and what it links to"),
    (TargetScope.ROOT, "all below the folder of each"), (TargetScope.SUBDOMAINS, "all of the host, and its subdomains"),
)  # fmt: skip
DEPTHS = ((Depth.CAPPED, "up to the cap"), (Depth.CAPPED_LARGE, "up to the larger cap"), (Depth.DEEP, "all of it"))
WATCHED = (("", "are not looked for"), (YES, "are looked for"))
ROBOTS = (("", "is obeyed"), (YES, "is left aside"))
TYPES = {"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson"}


class _Typed(Struct):
    """The form of a target as it was typed, and how it began; what is wrong with it."""

    fields: Mapping[str, str]
    seen: str = ""
    edition: int = 0
    wrong: Mapping[str, str] = {}
    theirs: tuple[tuple[str, str, str], ...] = ()
    newer: str = ""


def page(served: Served, asked: Asked) -> Answer:
    """The list of targets, by words and owner; posted, some are paused or resumed."""
    try:
        feed = _feed(served, asked)
    except (BadInput, NotReady, BadConfig) as error:
        return _no_feed(error)
    wrong, status = "", HTTPStatus.OK
    if asked.method == "POST":
        try:
            do, rules = asked.fields.get("do", ""), _rules(feed, asked)
            ids = [asked.fields.get("id", "")]
            saved = feed_edits.pause(feed, ids, rules, who=asked.user.name, why="", paused=do == "pause")
            return MovedTo(f"{quote(asked.path)}?saved={saved.edition if saved.is_new else 0}")
        except (BadInput, BadConfig, NotReady, NewerEdition, Unavailable) as error:
            wrong, status = str(error), HTTPStatus.CONFLICT
    fields = {name: asked.fields.get(name, "") for name in ("words", "owner", "paused")}
    if long := next((name for name, text in fields.items() if len(text) > LONGEST), ""):
        raise BadInput(long, f"it has more than {LONGEST:,} characters")
    number = number_in(asked.fields, "page", 1)
    wanted = TargetFilter(fields["words"], fields["owner"], is_paused=fields["paused"] == YES)
    try:
        found = listed(served.state, feed, wanted, after=(number - 1) * ON_A_PAGE, most=ON_A_PAGE)
    except NotReady as error:
        found, wrong = ListedTargets(feed, (), 0, (), ()), wrong or str(error)
    may_edit = asked.user.role >= Role.CURATOR and feed.papers is not None
    answer: dict[str, Json] = {
        **found.json(), "error": printable(wrong), "form": served.forms.new(asked.user, asked.path) if may_edit else "",
        "page": number,
    }  # fmt: skip
    words = ["feed", "targets", feed.job]
    words += [f"--{name}={text}" for name, text in fields.items() if text and name != "paused"]
    kept = {name: text for name, text in fields.items() if text}
    shown: dict[str, object] = {
        "fields": fields, "may_edit": may_edit, "wrong": wrong,
        "owners": [("", "anybody"), *((one, one) for one in found.owners)],
        "command": command([*words, *(["--paused"] if wanted.is_paused else [])]),
        "pager": Pager(number, ON_A_PAGE, found.total, f"{quote(asked.path)}?{urlencode(kept)}"),
        "editable": {one.line.id for one in found.rows if _ID.fullmatch(one.line.id)},
        "editions": [*_editions(feed)] if may_edit else [], "saved": asked.fields.get("saved", ""),
    }  # fmt: skip
    return ShownPage(answer, shown, status)


def new(served: Served, asked: Asked) -> Answer:
    """The form of a target that is to be added; posted, it is."""
    try:
        feed = _feed(served, asked)
        feed.editable()
    except (BadInput, NotReady, BadConfig) as error:
        return _no_feed(error)
    if asked.method != "POST":
        return _form(served, asked, feed, "", _Typed(asdict(TargetFields())))
    typed = _typed(asked, TargetFields())
    try:
        wanted = _wanted(typed)
        saved = feed_edits.add(feed, wanted, _rules(feed, asked), who=asked.user.name, why=_why(asked))
        return _moved(feed, saved.edition)
    except (BadInput, NotReady, Unavailable) as error:
        return _form(served, asked, feed, "", _with_wrong(typed, error))


def edit(served: Served, asked: Asked) -> Answer:
    """The form of a target; posted, it is saved."""
    target_id = asked.names["target"]
    try:
        feed = _feed(served, asked)
        feed.editable()
        line = feed_edits.found(feed, target_id)
    except (BadInput, NotReady, BadConfig) as error:
        return _no_feed(error)
    if asked.method != "POST":
        begun = _Typed(asdict(line.fields), line.seen, _number(feed))
        return _form(served, asked, feed, target_id, begun)
    typed = _typed(asked, line.fields)
    try:
        saved = feed_edits.edit(
            feed, target_id, _wanted(typed), _rules(feed, asked), who=asked.user.name, why=_why(asked), seen=typed.seen
        )
        return _moved(feed, saved.edition if saved.is_new else 0)
    except NewerEdition as error:
        return _form(served, asked, feed, target_id, _conflict(feed, target_id, typed, error))
    except (BadInput, NotReady, Unavailable) as error:
        return _form(served, asked, feed, target_id, _with_wrong(typed, error))


def import_list(served: Served, asked: Asked) -> Answer:
    """The form of an import; posted, it says what it would be, and once more posted, it is written."""
    try:
        feed = _feed(served, asked)
        feed.editable()
    except (BadInput, NotReady, BadConfig) as error:
        return _no_feed(error)
    found, kept, wrong, status = None, asked.fields.get("kept", ""), "", HTTPStatus.OK
    seen = asked.fields.get("seen", "")
    if asked.method == "POST":
        try:
            data = asked.files.get("list", b"") or files.kept_list(served.state.store, kept)
            if asked.fields.get("do") == "save":
                saved, found = feed_edits.save_import(
                    feed, data, _rules(feed, asked), who=asked.user.name, why=_why(asked), seen=seen
                )
                return _moved(feed, saved.edition if saved.is_new else 0)
            kept, seen, found = _look(served, asked, feed, data)
        except NewerEdition as error:
            wrong, status = str(error), HTTPStatus.CONFLICT
            kept, seen, found = _look(served, asked, feed, data)
        except (BadInput, NotReady, Unavailable) as error:
            wrong, status = str(error), HTTPStatus.BAD_REQUEST
    answer: dict[str, Json] = {
        "error": printable(wrong), "form": served.forms.new(asked.user, asked.path), "found": _shown(found),
        "job": feed.job, "kept": kept if found else "", "seen": seen,
    }  # fmt: skip
    shown = {"found": found, "wrong": wrong, "why": _why(asked), "refused": found.refused[:REFUSED] if found else ()}
    return ShownPage(answer, shown, status)


def export(served: Served, asked: Asked) -> Answer:
    """The feed as CSV or JSON Lines, for another program."""
    kind = asked.fields.get("as", "csv")
    if kind not in TYPES:
        raise BadInput("as", f"it is not one of {', '.join(TYPES)}")
    try:
        feed = _feed(served, asked)
        data = feed.data()
    except (BadInput, NotReady, BadConfig) as error:
        return _no_feed(error)
    more = {"Content-Disposition": f'attachment; filename="targets-{feed.job}.{kind}"'}
    if asked.method == "HEAD":
        return SentBytes(b"", TYPES[kind], more=more)
    whole = target_exchange.json_lines(data) if kind == "jsonl" else "".join(target_exchange.csv_lines(data)).encode()
    return SentBytes(whole, TYPES[kind], len(whole), more=more)


# The parts of a request


def _feed(served: Served, asked: Asked) -> JobFeed:
    if served.job_desk is None:
        raise NotReady("the desk", "this server has none")
    return served.job_desk.feed(parse_job(asked.names["job"]))


def has_feed(served: Served, job: str) -> bool:
    """True for a job whose targets can be looked at."""
    try:
        return bool(served.job_desk and served.job_desk.feed(job))
    except (BadConfig, NotReady):
        return False


def _no_feed(error: WarcmillError) -> RefusedRequest:
    status = HTTPStatus.CONFLICT if isinstance(error, BadConfig) else HTTPStatus.NOT_FOUND
    return RefusedRequest(status, str(error))


def _rules(feed: JobFeed, asked: Asked) -> EditRules:
    return feed.rules(may_all=asked.user.role >= Role.OPERATOR)


def _why(asked: Asked) -> str:
    return " ".join(asked.fields.get("why", "").split())


def _typed(asked: Asked, known: TargetFields) -> _Typed:
    """The fields that were posted; one that is not there is as it was."""
    fields = {name: asked.fields.get(name, text) for name, text in asdict(known).items()}
    edition = asked.fields.get("edition", "")
    return _Typed(fields, asked.fields.get("seen", ""), int(edition) if re.fullmatch("[0-9]{1,9}", edition) else 0)


def _wanted(typed: _Typed) -> dict[str, str]:
    """The fields to be saved: pausing has buttons of its own."""
    return {name: text for name, text in typed.fields.items() if name in _LABELS}


def _with_wrong(typed: _Typed, error: WarcmillError) -> _Typed:
    field = error.path if isinstance(error, BadInput) and error.path in _LABELS else ""
    typed.wrong = {field: error.why if field and isinstance(error, BadInput) else str(error)}
    return typed


def _moved(feed: JobFeed, edition: int) -> MovedTo:
    return MovedTo(f"/jobs/{feed.job}/targets?saved={edition}")


def _look(served: Served, asked: Asked, feed: JobFeed, data: bytes) -> tuple[str, str, ImportedTargets]:
    """The import as it would be; the list is kept for who then writes it, under the name of the form."""
    if not data:
        raise BadInput("list", "choose a file")
    before = feed_edits.digest(feed.data())
    found = feed_edits.look_at_import(feed, data, _rules(feed, asked))
    files.keep_list(served.state.store, asked.form, data)
    return asked.form, before, found


# The parts of a page


def _form(served: Served, asked: Asked, feed: JobFeed, target_id: str, typed: _Typed) -> ShownPage:
    fields, words = {**typed.fields}, ["edit", feed.job, target_id] if target_id else ["add", feed.job]
    answer: dict[str, Json] = {
        "edition": typed.edition, "fields": {**fields}, "form": served.forms.new(asked.user, asked.path),
        "id": target_id, "job": feed.job, "newer": printable(typed.newer), "seen": typed.seen,
        "wrong": {name: printable(why) for name, why in typed.wrong.items()},
    }  # fmt: skip
    shown: dict[str, object] = {
        "fields": fields, "wrong": typed.wrong, "theirs": typed.theirs, "newer": typed.newer, "scopes": SCOPES,
        "depths": DEPTHS, "watched": WATCHED, "robots": ROBOTS, "is_operator": asked.user.role >= Role.OPERATOR,
        "why": _why(asked), "command": command(["feed", *words]),
    }  # fmt: skip
    status = HTTPStatus.CONFLICT if typed.newer else HTTPStatus.BAD_REQUEST if typed.wrong else HTTPStatus.OK
    return ShownPage(answer, shown, status)


def _conflict(feed: JobFeed, target_id: str, typed: _Typed, error: NewerEdition) -> _Typed:
    """Both forms, field by field; and one to save that has yours where you have changed a field, else theirs."""
    line = target_list.find(feed.data(), target_id)
    if line is None:
        return _with_wrong(typed, error)
    theirs, before = asdict(line.fields), _before(feed, target_id, typed)
    plain = asdict(TargetFields().changed(_wanted(typed)))
    mine = [name for name in _LABELS if not before or plain[name] != before[name]]
    both = tuple((_LABELS[name], theirs[name], plain[name]) for name in mine if plain[name] != theirs[name])
    merged = {name: plain[name] if name in mine else theirs[name] for name in JSON_NAMES}
    return _Typed(merged, line.seen, _number(feed), theirs=both, newer=str(error))


def _before(feed: JobFeed, target_id: str, typed: _Typed) -> dict[str, str]:
    """The fields of a target as a form began with them; empty if no edition has them."""
    try:
        line = target_list.find(feed.editable().editions.text(typed.edition, PAPER), target_id)
    except (BadInput, NotReady):
        return {}
    return asdict(line.fields) if line and line.seen == typed.seen else {}


def _number(feed: JobFeed) -> int:
    newest = feed.editable().editions.newest()
    return newest.number if newest else 0


def _editions(feed: JobFeed) -> Iterator[Json]:
    for one in islice(feed.editable().editions.all(), EDITIONS):
        yield {"number": one.number, "time": one.time, "who": one.who, "why": one.why}


def _shown(found: ImportedTargets | None) -> Json:
    return {**found.json(), "words": found.words} if found else None
