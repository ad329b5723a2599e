"""Decisions about documents: the status and the fields that people give to each. Pure.

    {"documents": [{"id": "9f86…", "status": "SAVED", "title": "A report", "doi": null}], "over": 41, "who": "anna"}

One decision rules many documents. It has what a person wrote, and nothing else: a field that is null is again as the
archive has it, "" leaves it empty, and one that is not there stays. `over`: the last decision that its author had seen
of these documents.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct, field
from msgspec.structs import replace

from warcmill.errors import BadInput
from warcmill.markers import decisions
from warcmill.markers.decisions import RecordedDecision
from warcmill.model import Json
from warcmill.versions.documents.entries import FIELDS, Candidate, Entry

NEW, SAVED, SUBMITTED, IGNORED, DELETED = STATUSES = ("NEW", "SAVED", "SUBMITTED", "IGNORED", "DELETED")
TARGET, NOTE = "target_id", "note"
WRITTEN = (*FIELDS, TARGET, NOTE)  # the fields that a person may write
PERSON = "person"  # as a candidate's `by`
LONGEST = 4_000  # characters of a field
ROOM = decisions.LARGEST - 8_192  # bytes of the documents of one decision
ID = re.compile(r"[0-9a-f]{64}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029]+")
_DATE = re.compile(r"[0-9]{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12][0-9]|3[01]))?)?")


class DocumentDecision(Struct, frozen=True):
    """The part of a decision that is about one document. `status`: '' leaves it. A field: None withdraws what a person
    wrote."""

    id: str
    status: str = ""
    fields: Mapping[str, str | None] = {}

    @property
    def words(self) -> str:
        """Its words, for people."""
        texts = ([self.status] if self.status else []) + [
            f"{name} withdrawn" if value is None else f"{name} “{value}”" for name, value in self.fields.items()
        ]
        return ", ".join(texts)

    def json(self) -> dict[str, Json]:
        """As its decision has it."""
        return {"id": self.id, **({"status": self.status} if self.status else {}), **self.fields}


class DecidedDocument(Struct, frozen=True):
    """All that is decided of a document so far: by which decision last, and when."""

    status: str = NEW
    fields: Mapping[str, str] = field(default_factory=dict)
    decision: int = 0
    time: str = ""

    def after(self, said: DocumentDecision, number: int = 0, time: str = "") -> DecidedDocument:
        """All that is decided once a person has said more."""
        fields = {**self.fields, **said.fields}
        kept = {name: value for name, value in fields.items() if value is not None}
        return replace(self, status=said.status or self.status, fields=kept, decision=number, time=time)

    def is_changed_by(self, said: DocumentDecision) -> bool:
        """True if a decision says something new."""
        then = self.after(said)
        return (then.status, then.fields) != (self.status, self.fields)

    def over(self, entry: Entry) -> Entry:
        """An entry with what a person wrote in front of what was extracted."""
        written = {name: self.fields[name] for name in FIELDS if name in self.fields}
        if not written:
            return entry
        ours = {name: (Candidate(value, PERSON), *entry.fields.get(name, ())) for name, value in written.items()}
        return replace(entry, fields={**entry.fields, **ours})


def parse(one: RecordedDecision) -> Iterator[DocumentDecision]:
    """The parts of a decision, each about a document. BadInput for one that says something else."""
    listed: Any = one.facts.get("documents")
    said: Any
    for said in listed if isinstance(listed, list) else [None]:
        match said:
            case {"id": str(name)} if ID.fullmatch(name):
                status, fields = said.get("status", ""), {key: said[key] for key in WRITTEN if key in said}
                is_text = all(value is None or isinstance(value, str) for value in fields.values())
                if status in ("", *STATUSES) and is_text:
                    yield DocumentDecision(name, status, fields)
                    continue
        raise BadInput(f"state:{one.path}", f"no decision about documents; {decisions.BACK}")


def author(one: RecordedDecision) -> str:
    """Who made a decision; '' if it does not say."""
    who = one.facts.get("who")
    return who if isinstance(who, str) else ""


def checked(said: DocumentDecision) -> DocumentDecision:
    """A person's words with each field as it is kept: one line. BadInput for what no field may have."""
    if said.status not in ("", *STATUSES):
        raise BadInput("status", f"it is not one of {', '.join(STATUSES)}")
    if unknown := said.fields.keys() - set(WRITTEN):
        raise BadInput(min(unknown), f"it is not one of {', '.join(WRITTEN)}")
    return replace(said, fields={name: _checked(name, value) for name, value in said.fields.items()})


def _checked(name: str, value: str | None) -> str | None:
    if value is None:
        return None
    line = one_line(value)
    if len(line) > LONGEST:
        raise BadInput(name, f"it has {len(line):,} characters, {LONGEST:,} are the most")
    if name == "landing_page_url" and line and not _is_url(line):
        raise BadInput(name, "it is not a URL that begins with http:// or https://")
    if name == "publication_date" and line and not _DATE.fullmatch(line):
        raise BadInput(name, "it is not a year, a month or a day, such as 2016-10-19")
    return line


def one_line(text: str) -> str:
    """A text without ends of lines and other control characters."""
    return " ".join(_CONTROL.sub(" ", text).split())


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and " " not in text


def in_parts(said: Sequence[DocumentDecision]) -> Iterator[list[DocumentDecision]]:
    """Documents in parts that one decision has room for."""
    part, size = list[DocumentDecision](), 0
    for one in said:
        length = len(json.dumps(one.json(), indent=1)) + 4 * (len(one.fields) + 4)  # of the lines of its file
        if part and size + length > ROOM:
            yield part
            part, size = [], 0
        part.append(one)
        size += length
    if part:
        yield part
