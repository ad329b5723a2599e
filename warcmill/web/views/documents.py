"""The pages of documents: what is new of the watched targets, and one document with all that is known of it.

A reader looks. A curator's form is decided by the view, by the function that the verb calls: a process of its own would
take a second for each click. Of two who decide over one state the second gets the page anew, with what was typed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from hashlib import sha256
from http import HTTPStatus
from urllib.parse import parse_qsl, urlencode

from msgspec import Struct
from msgspec.structs import replace

from warcmill.documents import looking
from warcmill.documents.decided import NEW, NOTE, PERSON, STATUSES, WRITTEN, DocumentDecision
from warcmill.documents.desk import Desk, DeskDocument
from warcmill.documents.looking import DeskPage, DocumentReport
from warcmill.errors import BadInput, Conflict, NotReady
from warcmill.versions.documents.entries import Candidate, DocumentCapture
from warcmill.web.access import Role
from warcmill.web.request import Answer, Asked, MovedTo, RefusedRequest, ShownPage
from warcmill.web.served import Served
from warcmill.web.views.search import way_to

OF_A_PROGRAM = 1_000  # documents of an answer in JSON
DEFAULT = {"status": NEW, "target": looking.WATCHED, "days": "7"}  # what a person sees first
KEEP, AGAIN, EMPTY = "keep", "again", "empty"
LABELS: Mapping[str, str] = {
    "title": "Title", "landing_page_url": "Landing page", "publisher": "Publisher", "publication_date": "Date",
    "authors": "Authors", "isbn": "ISBN", "doi": "DOI", "target_id": "Target",
}  # fmt: skip
TYPE_NAMES = {"pdf": "PDF", "epub": "EPUB", "text": "Text", "sheet": "Tables", "slides": "Slides", "other": "Other"}


class FieldChoice(Struct, frozen=True):
    """A field of the form: what is shown now, the candidates by their keys, and what was typed."""

    name: str
    label: str
    value: str
    is_written: bool
    candidates: tuple[tuple[str, Candidate], ...]
    typed: str = ""


def documents(served: Served, asked: Asked) -> Answer:
    """The documents that fit the fields. A person who asks for nothing gets what is new. A form decides many."""
    if asked.method == "POST":
        return _decide_many(served, asked)
    if asked.in_json:
        with _desk(served) as desk:
            return ShownPage(looking.ask(desk, looking.query_of(asked.fields), OF_A_PROGRAM).json())
    fields = asked.fields if asked.fields.keys() & set(looking.FIELDS) else DEFAULT
    query = looking.query_of(fields)
    with _desk(served) as desk:
        page, missing = looking.ask(desk, query), desk.missing
        if not asked.sees_hidden:  # what `without` leaves of a document without its URL is not one
            visible = (one for one in page.documents if not asked.hidden.are_in(one.entry.urls[0]))
            page = replace(page, documents=tuple(visible))
        titles = {one.target: desk.target_title(one.target) for one in page.documents if one.target}
    same = {name: value for name in looking.FIELDS if (value := fields.get(name, "").strip()) and name != "after"}
    done = asked.fields.get("done", "")
    shown: dict[str, object] = {
        "page": page, "query": query, "titles": titles, "statuses": [(one, one) for one in STATUSES],
        "types": [*TYPE_NAMES.items()], "count": _count(page), "missing": missing,
        "back": urlencode({**same, "after": query.after} if query.after else same or {"status": ""}),
        "first": _way(same) if query.after else "", "next": _way({**same, "after": page.after}) if page.after else "",
        "done": int(done) if done.isascii() and done.isdigit() and len(done) < 7 else None,
        "form": served.forms.new(asked.user, "/documents") if asked.user.role >= Role.CURATOR else "",
    }  # fmt: skip
    return ShownPage(page.json(), shown)


def _decide_many(served: Served, asked: Asked) -> Answer:
    """Give one status to the documents that were ticked, or to all of the page."""
    fields, lists = asked.fields, asked.lists
    ids = lists.get("shown" if fields.get("which") == "all" else "id", ())
    if not ids or not fields.get("to"):
        raise BadInput("the form", "no document is ticked, or no status chosen; go back, and choose both")
    said = [DocumentDecision(one, fields["to"]) for one in dict.fromkeys(ids)]
    try:
        with _desk(served) as desk:
            for one in said:
                looking.about(desk, one.id)
            done = desk.decide(served.archive.open_store, asked.user.name, said, _whole(fields.get("over", "")))
    except Conflict as error:
        return RefusedRequest(HTTPStatus.CONFLICT, str(error))
    back = {name: value for name, value in parse_qsl(fields.get("back", "")) if name in looking.FIELDS}
    return MovedTo(_way({**(back or {"status": ""}), "done": str(done)}))


def document(served: Served, asked: Asked) -> Answer:
    """A document: its fields with their candidates, its captures, its versions, and the decisions about it. Its form
    decides it."""
    if asked.method == "POST":
        return _decide(served, asked)
    with _desk(served) as desk:
        report = _report(desk, asked)
        if isinstance(report, DocumentReport) and not asked.sees_hidden:
            if asked.hidden.are_in(report.document.entry.urls[0]):
                return RefusedRequest(HTTPStatus.NOT_FOUND, "the archive does not show this document")
            others = (one for one in report.versions if not asked.hidden.are_in(one.entry.urls[0]))
            report = replace(report, versions=tuple(others))
        return _page(served, asked, report)


def _decide(served: Served, asked: Asked) -> Answer:
    """Decide what the form has: a status, and each field that is picked or typed."""
    with _desk(served) as desk:
        report = _report(desk, asked)
        if isinstance(report, RefusedRequest):
            return report
        name = report.document.entry.id
        try:
            said = DocumentDecision(name, asked.fields.get("status", ""), dict(_picked(report.document, asked.fields)))
            over = _whole(asked.fields.get("over", ""))
            desk.decide(served.archive.open_store, asked.user.name, [said], over)
        except BadInput as error:
            return _page(served, asked, report, f"Nothing was written: {error}", HTTPStatus.BAD_REQUEST)
        except Conflict as error:
            newest = looking.about(desk, name)
            return _page(served, asked, newest, f"Nothing was written: {error.why}", HTTPStatus.CONFLICT)
    return MovedTo(f"/documents/{name}")


def _desk(served: Served) -> AbstractContextManager[Desk]:
    if served.desk is None:
        raise NotReady("the documents", "luigi.cfg has no [documents] since, so no crawl is searched for documents")
    return served.desk()


def _report(desk: Desk, asked: Asked) -> DocumentReport | RefusedRequest:
    try:
        return looking.about(desk, desk.id_of(asked.names["id"]))
    except BadInput as error:
        return RefusedRequest(HTTPStatus.NOT_FOUND, str(error))


def _page(
    served: Served, asked: Asked, report: DocumentReport | RefusedRequest, wrong: str = "",
    status: HTTPStatus = HTTPStatus.OK,
) -> Answer:  # fmt: skip
    """The page of a document; `wrong`: why what was posted is not decided."""
    if isinstance(report, RefusedRequest):
        return report
    one, typed = report.document, asked.fields if wrong else {}
    may_decide = asked.user.role >= Role.CURATOR
    shown: dict[str, object] = {
        "one": one, "report": report, "wrong": wrong, "statuses": [(one, one) for one in STATUSES],
        "may_decide": may_decide,
        "fields": [_choice(one, name, typed.get(f"own_{name}", "")) for name in LABELS],
        "note": typed.get(f"own_{NOTE}", one.decided.fields.get(NOTE, "")),
        "captures": [(each, *_ways(each)) for each in one.entry.captures[:100]],
        "form": served.forms.new(asked.user, f"/documents/{one.entry.id}") if may_decide else "",
        "facts": [(LABELS[name], _choice(one, name, "").value or "-") for name in LABELS],
    }  # fmt: skip
    return ShownPage(report.json(), shown, status)


def _choice(one: DeskDocument, name: str, typed: str) -> FieldChoice:
    of_entry = [each for each in one.entry.fields.get(name, ()) if each.by != PERSON]
    different = {each.value: each for each in reversed(of_entry)}  # the best of each value
    candidates = tuple((_key(value), each) for value, each in reversed(different.items()))
    value = one.target if name == "target_id" else one.text(name)
    return FieldChoice(name, LABELS[name], value, name in one.decided.fields, candidates, typed)


def _key(value: str) -> str:
    """A candidate in a form: its text may have what no form keeps."""
    return sha256(value.encode("utf-8", "replace")).hexdigest()[:20]


def _picked(one: DeskDocument, fields: Mapping[str, str]) -> Iterator[tuple[str, str | None]]:
    """The fields that a form changes. A text that was typed counts before a candidate that was picked."""
    for name in WRITTEN:
        own, picked = fields.get(f"own_{name}", "").strip(), fields.get(name, KEEP)
        if name == NOTE:
            if f"own_{NOTE}" in fields:
                yield name, own or None
        elif own:
            yield name, own
        elif picked == AGAIN:
            yield name, None
        elif picked == EMPTY:
            yield name, ""
        elif picked != KEEP:
            values = (each.value for each in one.entry.fields.get(name, ()) if _key(each.value) == picked)
            if (value := next(values, None)) is None:
                raise BadInput(name, "what was picked is not there any more; choose again")
            yield name, value


def _ways(one: DocumentCapture) -> tuple[str, str]:
    """The addresses of a capture: in replay, and of its file."""
    way = way_to(one.date, one.url)
    return f"/{way}", f"/{way}&file=1"


def _count(page: DeskPage) -> str:
    if page.found is None:
        return "Many documents, the newest publication first."
    if not page.found:
        return "No document fits. Ask for more days, for all targets, or for another status."
    many = "1 document" if page.found == 1 else f"{page.found:,} documents"
    return f"{many}, the newest publication first."


def _way(fields: Mapping[str, str]) -> str:
    return f"/documents?{urlencode(fields)}"


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
