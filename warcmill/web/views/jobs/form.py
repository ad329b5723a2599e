"""The form of a job: new, copied, edited, tried; its papers as texts; its editions. It saves editions.

All that it decides is decided by the functions of `warcmill job NAME edit`, `try`, `history` and `undo`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from itertools import islice
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from warcmill.base.escapes import printable
from warcmill.crawl.job import address_list, file, form, rules
from warcmill.crawl.job.form import JobForm
from warcmill.crawl.job.rules import JudgedAddress
from warcmill.errors import BadConfig, BadInput, Busy, NewerEdition, NotReady, Unavailable, WarcmillError
from warcmill.markers import job_edits
from warcmill.markers.job_edits import Change, OpenedPapers, Papers
from warcmill.markers.papers import JobPapers
from warcmill.model import Json, parse_job
from warcmill.reports.rule_trial import RuleTrial
from warcmill.web.access import Role
from warcmill.web.request import Answer, Asked, MovedTo, RefusedRequest, ShownPage
from warcmill.web.served import JobDesk, Served
from warcmill.web.views.jobs import trial

EDITIONS = 100  # on a page
LONG = 2_000  # addresses: so many are not sent to a browser
LINES = 300_000  # of a crawl log that a page judges; the verb judges all
SHOWN = 50  # addresses of a rule
PAPERS = {paper.replace(".", "_"): paper for paper in form.PAPERS}
_NAMES = tuple(JobForm.__struct_fields__)
_PROSE = ("description", "addresses", "prefixes", "leave_out")
_LABELS = {
    "title": "Title", "description": "Description", "tags": "Tags", "owner": "Owner", "addresses": "Addresses",
    "keep": "What to keep", "prefixes": "Prefixes", "leave_out": "Leave out", "extensions": "File types",
    "hops": "Links", "documents": "Documents", "bytes": "Amount", "seconds": "Time", "render": "Browser",
    "workers": "Workers", "least": "Pace", "contact": "Contact", "robots": "robots.txt",
    "allow_private": "Inside addresses",
}  # fmt: skip
KEEPS = (
    (form.PAGES, "these pages alone, with their parts"), (form.LINKED, "these pages, and what they link to"),
    (form.FOLDER, "all below the folder of each"), (form.HOST, "all of their hosts"),
    (form.DOMAIN, "all of their domains"), (form.LISTED, "what the list of prefixes has"),
)  # fmt: skip
RENDERS = (("never", "no page"), ("seeds", "the addresses"), ("pages", "every page"))
ROBOTS = (("obey", "is obeyed"), ("ignore", "is left aside"))


class _Typed(Struct, frozen=True):
    """A form as it was typed: its fields, the schedule, and how it began."""

    fields: Mapping[str, str]
    schedule: str
    zone: str
    base: OpenedPapers
    kept: bool = False


class _Shown(Struct):
    """The parts of a page besides the fields of the form."""

    wrong: dict[str, str] = {}
    lines: Sequence[str] = ()
    judged: Sequence[JudgedAddress] | None = None
    trial: RuleTrial | None = None
    theirs: Sequence[tuple[str, str, str]] = ()
    newer: str = ""


def edit(served: Served, asked: Asked) -> Answer:
    """The form of a job; posted, it is judged, tried or saved."""
    try:
        desk, name = _desk(served), parse_job(asked.names["job"])
        papers = desk.papers(name)
    except (BadInput, NotReady, BadConfig) as error:
        return _no_job(error)
    opened = job_edits.opened(papers)
    try:
        opened.form  # noqa: B018 - a crawl.toml that the form cannot show is edited as a text
    except (BadConfig, BadInput) as error:
        return MovedTo(f"/jobs/{name}/papers") if asked.method != "POST" else _no_job(error)
    if asked.method != "POST":
        words, zone = desk.schedule(name)
        typed = _Typed(asdict(opened.form), words, zone, opened, _is_long(opened.form))
        return _page(served, asked, name, typed, _Shown())
    return _posted(served, asked, papers, opened, name)


def new(served: Served, asked: Asked) -> Answer:
    """The form of a job that is to be made, empty or of another job's; posted, it is judged or saved."""
    desk, copied = _desk(served), asked.fields.get("copy", "")
    base = OpenedPapers({}, 0, "")
    if copied:
        try:
            base = OpenedPapers(job_edits.opened(desk.papers(parse_job(copied))).files, 0, "")
        except (BadInput, NotReady, BadConfig) as error:
            return _no_job(error)
    if asked.method != "POST":
        begun = base.form if copied else JobForm(addresses=asked.fields.get("url", ""))
        return _page(served, asked, "", _Typed(asdict(begun), "", "", base, copied != "" and _is_long(begun)), _Shown())
    return _posted(served, asked, None, base, "")


def _posted(served: Served, asked: Asked, papers: JobPapers | None, now: OpenedPapers, name: str) -> Answer:
    desk, shown = _desk(served), _Shown()
    typed = _typed(asked, now)
    try:
        typed = _with_list(typed, asked)
        change = _change(typed, copied=None if papers else now.files)
        dates = desk.check_schedule(typed.schedule, typed.zone)
        match asked.fields.get("do", "save"):
            case "test":
                files = change(now.files if papers else {})
                shown.judged = rules.judged(file.described(files, name or "new"), asked.fields.get("paste", ""))
            case "try" if papers:
                shown.trial = desk.tried(name, change(now.files), most=LINES)
            case "crawl":
                before = now.files if papers else {}
                after, of = change(before), papers or desk.new(_new_name(desk, asked, typed))
                return trial.begin(served, asked, desk, of, before, after, _decoded(after), is_new=papers is None)
            case _:
                return _saved(served, asked, papers, typed, change, name)
        return _page(served, asked, name, typed, shown, dates)
    except NewerEdition as error:
        return _conflict(served, asked, papers, typed, error, name)
    except BadInput as error:
        shown.wrong = {_field_of(error): error.why if _field_of(error) else str(error)}
        shown.lines = _wrong_lines(typed) if error.path == "addresses" else ()
    except (BadConfig, NotReady, Unavailable, Busy) as error:
        shown.wrong = {"": str(error)}
    return _page(served, asked, name, typed, shown, status=HTTPStatus.BAD_REQUEST)


def _saved(
    served: Served, asked: Asked, papers: JobPapers | None, typed: _Typed, change: Change, name: str
) -> Answer:  # fmt: skip
    """Save the form as an edition, then the schedule; and move to the editions."""
    desk = _desk(served)
    is_new = papers is None
    if papers is None:
        name = _new_name(desk, asked, typed)
        papers = desk.new(name)
    may_all = asked.user.role >= Role.OPERATOR
    why = " ".join(asked.fields.get("why", "").split()) or ("new" if is_new else "")
    base = None if is_new else typed.base
    saved = job_edits.save(
        papers, change, who=asked.user.name, why=why, base=base, may_all=may_all, networks=desk.networks(name)
    )
    desk.list_job(name)
    if (typed.schedule, typed.zone) != desk.schedule(name):
        desk.set_schedule(name, typed.schedule, typed.zone)
    if asked.in_json:
        return ShownPage(saved.json(name))
    return MovedTo(f"/jobs/{name}/history?saved={saved.edition if saved.changed else 0}")


def _conflict(
    served: Served, asked: Asked, papers: JobPapers | None, typed: _Typed, error: NewerEdition, name: str
) -> Answer:
    """Both forms, field by field; and one to save that has yours where you have changed a field, else theirs."""
    if papers is None:
        return RefusedRequest(HTTPStatus.CONFLICT, str(error))
    now = job_edits.opened(papers)
    theirs = asdict(now.form)
    before = theirs
    if typed.base.edition:
        before = asdict(form.of_papers(job_edits.of_edition(papers, typed.base.edition)))
    mine = [one for one in _NAMES if typed.fields[one] != before[one]] if typed.base.edition else _NAMES
    both = [(_LABELS[one], theirs[one], typed.fields[one]) for one in mine if typed.fields[one] != theirs[one]]
    merged = {one: typed.fields[one] if one in mine else theirs[one] for one in _NAMES}
    shown = _Shown(theirs=both, newer=str(error))
    typed = _Typed(merged, typed.schedule, typed.zone, now)
    return _page(served, asked, name, typed, shown, status=HTTPStatus.CONFLICT)


def texts(served: Served, asked: Asked) -> Answer:
    """The papers of a job as texts; posted, they are checked by line, and saved."""
    try:
        desk, name = _desk(served), parse_job(asked.names["job"])
        papers = desk.papers(name)
    except (BadInput, NotReady, BadConfig) as error:
        return _no_job(error)
    now = job_edits.opened(papers)
    typed, wrong, theirs, status = _decoded(now.files), "", dict[str, str](), HTTPStatus.OK
    begun = now
    if asked.method == "POST":
        typed = {key: asked.fields.get(key, "").replace("\r\n", "\n") for key in PAPERS}
        begun = _begun(asked, now)
        try:
            saved = job_edits.save(
                papers, job_edits.of_texts({PAPERS[key]: text for key, text in typed.items()}),
                who=asked.user.name, why=" ".join(asked.fields.get("why", "").split()), base=begun,
                may_all=asked.user.role >= Role.OPERATOR, networks=desk.networks(name),
            )  # fmt: skip
            return MovedTo(f"/jobs/{name}/history?saved={saved.edition if saved.changed else 0}")
        except NewerEdition as error:
            wrong, status, begun = str(error), HTTPStatus.CONFLICT, job_edits.opened(papers)
            ours = _decoded(begun.files)
            theirs = {key: ours[key] for key in PAPERS if ours[key] != typed[key]}
        except (BadInput, BadConfig, Unavailable) as error:
            wrong, status = str(error), HTTPStatus.BAD_REQUEST
    answer: dict[str, Json] = {
        "edition": begun.edition, "error": printable(wrong), "form": served.forms.new(asked.user, asked.path),
        "job": name, "papers": {**typed}, "seen": begun.seen, "theirs": {**theirs},
    }  # fmt: skip
    shown = {"papers": PAPERS, "typed": typed, "theirs": theirs, "wrong": wrong, "why": asked.fields.get("why", "")}
    return ShownPage(answer, shown, status)


def history(served: Served, asked: Asked) -> Answer:
    """The editions of a job; posted, it goes back to one, as a new one."""
    try:
        desk, name = _desk(served), parse_job(asked.names["job"])
        papers = desk.papers(name)
    except (BadInput, NotReady, BadConfig) as error:
        return _no_job(error)
    wrong, status = "", HTTPStatus.OK
    if asked.method == "POST":
        try:
            _check_undo(papers, asked)
            made = job_edits.undo(
                papers, who=asked.user.name, why="", to=_whole(asked.fields.get("to", "")),
                seen=_whole(asked.fields.get("newest", "")),
            )  # fmt: skip
            return MovedTo(f"/jobs/{name}/history?saved={made.number}")
        except (BadInput, NotReady, NewerEdition, Unavailable) as error:
            wrong, status = str(error), HTTPStatus.CONFLICT
    newest = papers.editions.newest()
    found = [*islice(papers.editions.all(), EDITIONS)]
    saved = _whole(asked.fields.get("saved", ""))
    at_once, waits = _taken(papers, saved) if newest and 0 < saved <= newest.number else ([], [])
    answer: dict[str, Json] = {
        **job_edits.history(name, found), "at_once": [*at_once], "error": printable(wrong),
        "form": served.forms.new(asked.user, asked.path), "waits": [*waits],
    }  # fmt: skip
    shown = {
        "editions": found, "saved": asked.fields.get("saved", ""), "wrong": wrong, "runs": desk.is_running(name),
        "total": newest.number if newest else 0,
    }  # fmt: skip
    return ShownPage(answer, shown, status)


# The parts of a request


def _desk(served: Served) -> JobDesk:
    if served.job_desk is None:
        raise NotReady("the desk", "this server has none")
    return served.job_desk


def _no_job(error: WarcmillError) -> RefusedRequest:
    status = HTTPStatus.CONFLICT if isinstance(error, BadConfig) else HTTPStatus.NOT_FOUND
    return RefusedRequest(status, str(error))


def _typed(asked: Asked, now: OpenedPapers) -> _Typed:
    """The fields that were posted; one that is not there is as it was."""
    known = asdict(now.form) if now.files else asdict(JobForm())
    fields = {name: _text(name, asked.fields.get(name, known[name])) for name in _NAMES}
    kept = bool(asked.fields.get("kept"))
    if kept:
        more = fields["addresses"]
        fields["addresses"] = f"{known['addresses'].rstrip()}\n{more}" if more.strip() else known["addresses"]
    schedule, zone = (" ".join(asked.fields.get(name, "").split()) for name in ("schedule", "zone"))
    return _Typed(fields, schedule, zone, _begun(asked, now), kept)


def _begun(asked: Asked, now: OpenedPapers) -> OpenedPapers:
    seen = asked.fields.get("seen", "")
    return now if seen == now.seen else OpenedPapers({}, _whole(asked.fields.get("edition", "")), seen)


def _text(name: str, typed: str) -> str:
    """A text that was typed; browsers send the ends of lines as CR LF."""
    text = typed.replace("\r\n", "\n").replace("\r", "\n")
    return text if name in _PROSE else " ".join(text.split())


def _with_list(typed: _Typed, asked: Asked) -> _Typed:
    """The form with the addresses of the list that was sent, after those that were typed."""
    data = asked.files.get("list", b"")
    if not data:
        return typed
    found = address_list.read(address_list.decoded(data, "list"))
    if found.wrong:
        raise BadInput("list", "; ".join(one.words for one in found.wrong[: form.SHOWN]))
    before = typed.fields["addresses"]
    end = "" if not before or before.endswith("\n") else "\n"
    addresses = before + end + "".join(f"{url}\n" for url in found.urls)
    return _Typed({**typed.fields, "addresses": addresses}, typed.schedule, typed.zone, typed.base, typed.kept)


def _change(typed: _Typed, copied: Papers | None) -> Change:
    """The change of the papers that the form is. Of a new job, those that it is a copy of are what it changes."""
    if copied is None:
        return job_edits.of_form(typed.fields)
    return lambda _: job_edits.of_form(typed.fields)(copied)


def _new_name(desk: JobDesk, asked: Asked, typed: _Typed) -> str:
    """The name of a new job: as it was typed, or of the first address."""
    if given := asked.fields.get("name", "").strip():
        try:
            return parse_job(given)
        except BadInput as error:
            raise BadInput("name", error.why) from error
    urls = form.check_addresses(JobForm(**typed.fields)).urls
    if not urls:
        raise BadInput("addresses", "there is none")
    return desk.name_of(urls[0])


def _check_undo(papers: JobPapers, asked: Asked) -> None:
    """BadInput for an edition that only an operator may bring back."""
    number = _whole(asked.fields.get("to", ""))
    if number and asked.user.role < Role.OPERATOR:
        now = job_edits.opened(papers).files
        if keys := form.needs_operator(now, job_edits.of_edition(papers, number)):
            raise BadInput(keys[0], job_edits.OPERATOR)


def _whole(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


# The parts of a page


def _page(
    served: Served, asked: Asked, name: str, typed: _Typed, shown: _Shown, dates: Sequence[str] | None = None,
    status: HTTPStatus = HTTPStatus.OK,
) -> ShownPage:  # fmt: skip
    desk = _desk(served)
    if dates is None:
        try:
            dates = desk.check_schedule(typed.schedule, typed.zone)
        except BadInput as error:
            dates, shown.wrong = [], {**shown.wrong, "schedule": error.why}
    fields: dict[str, str] = {**typed.fields}
    number = _number(fields["addresses"])
    is_long = number > LONG
    if is_long and name:
        fields["addresses"] = ""
    answer: dict[str, Json] = {
        "dates": [*dates], "edition": typed.base.edition, "fields": {**fields}, "job": name, "newer": shown.newer,
        "form": served.forms.new(asked.user, asked.path), "schedule": typed.schedule, "seen": typed.base.seen,
        "tested": [[one.line, one.address, one.rule] for one in shown.judged or ()], "zone": typed.zone,
        "tried": shown.trial.json() if shown.trial else None,
        "wrong": {key: printable(why) for key, why in shown.wrong.items()},
    }  # fmt: skip
    more: dict[str, object] = {
        **_parts(shown), "fields": fields, "keeps": KEEPS, "renders": RENDERS, "robots": ROBOTS,
        "is_long": is_long and bool(name), "number": number, "kept": typed.kept or is_long,
        "copy": asked.fields.get("copy", ""), "name": asked.fields.get("name", ""), "why": asked.fields.get("why", ""),
        "paste": asked.fields.get("paste", "").replace("\r\n", "\n"), "shown_addresses": SHOWN,
        "is_operator": asked.user.role >= Role.OPERATOR, "labels": _LABELS,
    }  # fmt: skip
    return ShownPage(answer, more, status)


def _parts(shown: _Shown) -> dict[str, Any]:
    """The parts of a page besides its fields, by name."""
    return {name: getattr(shown, name) for name in shown.__struct_fields__}


def _field_of(error: BadInput) -> str:
    """The field of the form that an error is about; '' for one of the whole."""
    return error.path if error.path in (*_NAMES, "schedule", "zone", "name", "list") else ""


def _wrong_lines(typed: _Typed) -> list[str]:
    try:
        found = form.check_addresses(JobForm(**typed.fields))
    except BadInput:
        return []
    return [one.words for one in (*found.wrong, *found.inside)[:LONG]]


def _is_long(one: JobForm) -> bool:
    return _number(one.addresses) > LONG


def _number(addresses: str) -> int:
    return sum(1 for line in addresses.splitlines() if line.strip() and not line.lstrip().startswith("#"))


def _decoded(files: Papers) -> dict[str, str]:
    return {key: address_list.decoded(files.get(paper, b""), paper) for key, paper in PAPERS.items()}


def _taken(papers: JobPapers, number: int) -> tuple[list[str], list[str]]:
    """The papers and keys of an edition that a running crawl takes at once, and that wait for its next launch."""
    edition = papers.editions.read(number)
    before = job_edits.of_edition(papers, edition.made_from) if edition.made_from else {}
    return form.taken(before, job_edits.of_edition(papers, number))
