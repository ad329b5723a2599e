"""Questions to the desk: documents by status, target, prefix, type, time, publisher and words. Reads only.

The answer is a page, the newest publication first. SQLite would look up a million rows of one condition to find the
few of another, so at most FEW rows of each condition are counted first. The condition with the fewest leads; where all
have more, the documents are taken in their order, and the page is full soon.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from msgspec import Struct
from msgspec.structs import asdict, replace

from warcmill.base import clock
from warcmill.documents import decided
from warcmill.documents.decided import STATUSES, DocumentDecision
from warcmill.documents.desk import FAMILIES, LONGEST, OTHER, Desk, DeskDocument
from warcmill.errors import BadInput
from warcmill.formats import hosts
from warcmill.formats.index.urlkey import urlkey
from warcmill.markers.decisions import RecordedDecision
from warcmill.model import Json
from warcmill.versions import hidden_list, text

FEW, SLOWER = 10_000, 100
MOST = 50  # documents of a page
WATCHED = "watched"  # as a target: any
FAMILY_WORDS = (*FAMILIES, OTHER)
FIELDS = ("status", "target", "prefix", "type", "days", "words", "publisher", "after")  # of a request
_PLACE = re.compile(r"([0-9-]{0,10})_([0-9]{14})_([0-9]{1,15})")
_WORD = re.compile(r'"([^"]*)"?|([^\s"]+)')
_ORDER = "ORDER BY published DESC, first_seen DESC, number DESC"
_ROWS = "SELECT number, published, first_seen FROM"


class DeskQuery(Struct, frozen=True):
    """A question; '' and 0: anything. `target`: an id, or WATCHED. `prefix`: a SURT, a URL or a host. `days`: first
    seen in so many. `changed`: decided, or first seen, since this day. `after`: the place after which a page begins."""

    status: str = ""
    target: str = ""
    prefix: str = ""
    type: str = ""
    days: int = 0
    words: str = ""
    publisher: str = ""
    changed: str = ""
    after: str = ""


class DeskPage(Struct, frozen=True):
    """A part of an answer. `found`: how many there are; None if more than FEW, or to count them would take long.
    `after`: the place of the next page, '' after the last one. `decision`: the last decision that is in it."""

    documents: tuple[DeskDocument, ...]
    found: int | None
    after: str
    decision: int

    def json(self) -> dict[str, Json]:
        """As --json has it."""
        return {"after": self.after, "decision": self.decision, "documents": [one.json() for one in self.documents]}


class DocumentReport(Struct, frozen=True):
    """All that is known of a document. `versions`: other bodies at its URL. `history`: the decisions about it, the last
    one first. `decision`: the last decision of the desk."""

    document: DeskDocument
    versions: tuple[DeskDocument, ...]
    history: tuple[tuple[RecordedDecision, DocumentDecision], ...]
    decision: int

    def json(self) -> dict[str, Json]:
        """As --json has it."""
        entry = self.document.entry
        candidates: dict[str, Json] = {
            name: [{**asdict(one), "value": one.value[:LONGEST]} for one in found]
            for name, found in entry.fields.items()
        }
        captures: list[Json] = [asdict(one) for one in entry.captures]
        history: list[Json] = [
            {"decision": one.number, "fields": dict(said.fields), "status": said.status, "time": one.time,
             "who": decided.author(one)}
            for one, said in self.history
        ]  # fmt: skip
        return {
            "candidates": candidates, "captures": captures, "decision": self.decision, "document": self.document.json(),
            "fault": entry.fault, "history": history, "versions": [one.entry.id for one in self.versions],
        }  # fmt: skip


class _Condition(Struct, frozen=True):
    """A condition: the rows that it means, by an index of their own, and the test of one row. `is_slow`: to test a row
    takes as long as to find many."""

    rows: str
    test: str
    values: tuple[str, ...]
    is_slow: bool = False


def query_of(fields: Mapping[str, str]) -> DeskQuery:
    """The question of a request, or BadInput."""
    texts = {name: fields.get(name, "").strip() for name in FIELDS}
    for name, known in (("status", STATUSES), ("type", FAMILY_WORDS)):
        if texts[name] and texts[name] not in known:
            raise BadInput(name, f"it is not one of {', '.join(known)}")
    days = texts.pop("days")
    if not re.fullmatch("[0-9]{0,5}", days):
        raise BadInput("days", "it is not a number up to 99999")
    if longest := next((name for name, value in texts.items() if len(value) > 1_000), ""):
        raise BadInput(longest, "it has more than 1,000 characters")
    if texts["after"] and not _PLACE.fullmatch(texts["after"]):
        raise BadInput("after", "it is not a place in this list")
    return DeskQuery(days=int(days or 0), **texts)


def ask(desk: Desk, query: DeskQuery, most: int = MOST) -> DeskPage:
    """The documents that fit, the newest publication first."""
    conditions = list(_conditions(query))
    counts = {one: _count(desk, one.rows, one.values) for one in conditions}
    slow = next((one for one in conditions if one.is_slow), None)
    few = [one for one in conditions if counts[one] <= FEW]
    leading = min(few, key=lambda one: counts[one] * (SLOWER if slow and one is not slow else 1), default=None)
    last = slow if slow is not leading else None
    others = [one for one in conditions if one is not leading and one is not last]
    values = [value for one in (*([leading] if leading else []), *others) for value in one.values]
    source = f"({leading.rows}) CROSS JOIN document USING (number)" if leading else "document INDEXED BY by_publication"
    asked = f"{_ROWS} {source} WHERE true{''.join(f' AND {one.test}' for one in others)}"
    found = None
    if leading and len(conditions) == 1:
        found = counts[leading]
    elif not conditions:
        found = _count(desk, "SELECT number FROM document", ())
    elif leading and (not last or counts[leading] <= FEW // SLOWER):
        whole = f"SELECT 1 FROM ({asked}) AS document" + (f" WHERE {last.test}" if last else "")  # noqa: S608
        found = _count(desk, whole, (*values, *(last.values if last else ())))
    if match := _PLACE.fullmatch(query.after):
        asked += " AND (published, first_seen, number) < (?, ?, CAST(? AS INTEGER))"
        values += match.groups()
    asked = f"{asked} {_ORDER}"
    if last:  # of rows in their order, until the page is full
        asked = f"SELECT * FROM ({asked} LIMIT -1) AS document WHERE {last.test}"  # noqa: S608
        values += last.values
    rows = desk.database.execute(f"{asked} LIMIT {most + 1}", values).fetchall()
    after = "_".join(map(str, (rows[most - 1][1], rows[most - 1][2], rows[most - 1][0]))) if len(rows) > most else ""
    documents = tuple(desk.numbered(number) for number, _, _ in rows[:most])
    return DeskPage(documents, found if found is not None and found <= FEW else None, after, desk.number)


def about(desk: Desk, document_id: str) -> DocumentReport:
    """All that is known of a document, by its whole id. BadInput if the version has no such."""
    if found := desk.document(document_id):
        others, history = desk.versions(found.entry), desk.history(document_id)
        return DocumentReport(found, tuple(others), tuple(history), desk.number)
    raise BadInput(document_id, "the version of documents has no such; 'warcmill documents list' has the ids")


def each(desk: Desk, query: DeskQuery) -> Iterator[DeskDocument]:
    """All documents that fit, in the same order."""
    while True:
        page = ask(desk, query, 1_000)
        yield from page.documents
        if not page.after:
            return
        query = replace(query, after=page.after)


def _count(desk: Desk, asked: str, values: Sequence[str]) -> int:
    """The number of rows, up to FEW and one."""
    counted = f"SELECT count(*) FROM (SELECT 1 FROM ({asked}) LIMIT {FEW + 1})"  # noqa: S608 - of our own texts
    return int(desk.database.execute(counted, values).fetchone()[0])


def _conditions(query: DeskQuery) -> Iterator[_Condition]:
    of_document = "SELECT number FROM document INDEXED BY {} WHERE {}"
    if query.status:
        yield _Condition(of_document.format("by_status", "status = ?"), "status = ?", (query.status,))
    if query.changed:
        digits = "".join(filter(str.isdecimal, query.changed))
        yield _Condition("SELECT number FROM document WHERE changed >= ?", "changed >= ?", (digits,))
    if query.target == WATCHED:
        yield _Condition(of_document.format("by_target", "target > ''"), "target > ''", ())
    elif query.target:
        yield _Condition(of_document.format("by_target", "target = ?"), "target = ?", (query.target,))
    if query.type:
        yield _Condition(of_document.format("by_family", "family = ?"), "family = ?", (query.type,))
    if query.days:
        first = clock.digits(datetime.now(UTC) - timedelta(days=query.days))
        yield _Condition(of_document.format("by_seen", "first_seen >= ?"), "first_seen >= ?", (first,))
    if query.prefix:
        spans = _spans(query.prefix)
        rows = " UNION ALL ".join([of_document.format("by_key", "key >= ? AND key < ?")] * len(spans))
        test = " OR ".join(["key >= ? AND key < ?"] * len(spans))
        yield _Condition(rows, f"({test})", tuple(end for span in spans for end in span))
    if words := _expression(query):
        rows = (
            "SELECT rowid AS number FROM words WHERE words MATCH ?"  # as a list it would be made whole: half a second
        )
        yield _Condition(rows, f"EXISTS ({rows} AND rowid = document.number)", (words,), is_slow=True)


def _spans(typed: str) -> list[tuple[str, str]]:
    """The keys that begin with a SURT prefix, a URL, or a host and its subdomains: from the first to the one after."""
    if "://" in typed:
        key = urlkey(hosts.in_url(typed))
        prefixes = (key.partition(")")[0] + ")/" if key.endswith(")/") else key,)
        return [(one, f"{one[:-1]}{chr(ord(one[-1]) + 1)}") for one in prefixes]
    if "," not in typed and ")" not in typed and "." in typed:
        typed = urlkey(f"http://{hosts.in_url(typed)}/").partition(")")[0]
    found = [one.decode() for one in hidden_list.prefixes_of(typed)]
    return [(one, f"{one[:-1]}{chr(ord(one[-1]) + 1)}") for one in found]


def _expression(query: DeskQuery) -> str:
    """The words in the syntax of FTS5: strings, which must all be there; each has no operators in it."""
    terms = [_quoted(phrase or word) for phrase, word in _WORD.findall(query.words)]
    terms += [
        f"publisher : {_quoted(word)}" for phrase, word in _WORD.findall(query.publisher) for word in [phrase or word]
    ]
    if (query.words or query.publisher) and not any(map(str.isalnum, query.words + query.publisher)):
        raise BadInput("words", "there is no letter and no digit in them")
    return " AND ".join(terms)


def _quoted(word: str) -> str:
    printable = "".join(char if char.isprintable() else " " for char in word)
    return '"{}"'.format(text.part(printable).replace('"', '""'))
