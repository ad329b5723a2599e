"""The sealed reports of checks, and a person's marks. Writes to the state; a mark is in the store, too.

    state   quality/{job}/{launch}.{number}.json     a check of a launch, numbered from 1; never changed
            decisions/quality/{number}.json          {"job", "launch_id", "mark", "note", "report", "who"}

It makes no marker: what replay shows depends on the index version, which a report names.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable
from hashlib import sha512

import msgspec
from msgspec import Struct

from warcmill.errors import BadInput, NotReady
from warcmill.formats.seal import seal, unseal
from warcmill.markers import decisions
from warcmill.markers.decisions import RecordedDecision
from warcmill.model import Json, Launch, parse_reason
from warcmill.quality import MARKS
from warcmill.quality.judgement import CheckedPage, counts
from warcmill.stores import LocalStore, Store

FOLDER = "quality"
LARGEST = 1 << 27  # bytes of a report
SCHEMA = 1
_NAME = re.compile(r"([0-9]{14})\.([0-9]{4,})\.json")


class QualityReport(Struct, frozen=True):
    """A check of a launch, its pages worst first. `version`: of the index that replay read. `seeds`, `others`: how many
    the launch has to choose from. `lacking`: what the list of its pages lacks."""

    job: str
    launch_id: str
    made: str
    version: int
    seeds: int
    others: int
    lacking: tuple[str, ...]
    pages: tuple[CheckedPage, ...]
    number: int = 0
    schema: int = SCHEMA

    @property
    def launch(self) -> Launch:
        """The launch that was checked."""
        return Launch(self.job, self.launch_id)

    def json(self) -> dict[str, Json]:
        """The report for programs: the thumbnails are left out."""
        found: dict[str, Json] = msgspec.to_builtins(self)
        pages: list[Json] = []
        for page in self.pages:
            fields: dict[str, Json] = {**msgspec.to_builtins(page), "thumbnail": bool(page.thumbnail)}
            pages.append(fields)
        return {**found, "kinds": dict(counts(self.pages)), "pages": pages}


def publish(state: LocalStore, report: QualityReport) -> QualityReport:
    """Keep a report under the next number; it is in the state whole, or not at all."""
    while True:
        numbered = msgspec.structs.replace(report, number=max(numbers(state, report.launch), default=0) + 1)
        data = seal(msgspec.json.format(msgspec.json.encode(numbered, order="sorted"), indent=1) + b"\n")
        path = path_of(report.launch, numbered.number)
        if state.commit_new(path, io.BytesIO(data), len(data), sha512(data).hexdigest()):
            return numbered


def newest(state: LocalStore, launch: Launch) -> QualityReport | None:
    """The last report of a launch; None without one."""
    found = numbers(state, launch)
    return read(state, launch, max(found)) if found else None


def numbers(state: LocalStore, launch: Launch) -> list[int]:
    """The numbers of the reports of a launch."""
    names = map(_NAME.fullmatch, state.names(f"{FOLDER}/{launch.job}"))
    return sorted(int(match[2]) for match in names if match and match[1] == launch.id)


def read(state: LocalStore, launch: Launch, number: int) -> QualityReport:
    """A report. NotReady if there is none of this number; BadInput for a damaged one."""
    path = path_of(launch, number)
    body = unseal(state.read(path, LARGEST), f"state:{path}")
    try:
        found = msgspec.json.decode(body, type=QualityReport)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BadInput(f"state:{path}", f"soundly sealed, but no report: {error}") from error
    if (found.launch, found.number) != (launch, number):
        raise BadInput(f"state:{path}", f"it is report {found.number} of {found.launch}")
    return found


def path_of(launch: Launch, number: int) -> str:
    """The path of a report in the state root."""
    return f"{FOLDER}/{launch.job}/{launch.id}.{number:04}.json"


def mark(
    state: LocalStore, open_store: Callable[[], Store], launch: Launch, word: str, note: str, who: str
) -> RecordedDecision:
    """Decide that a launch is good, poor or bad. Saying again what was said last makes no new decision.

    NotReady before its first check: who marks has looked. BadInput for an invalid mark or note; else as `make`.
    """
    if word not in MARKS:
        raise BadInput("mark", f"it is not one of {', '.join(MARKS)}")
    try:
        note = parse_reason(note) if note.strip() else ""
    except BadInput as error:
        raise BadInput("note", error.why.replace("a reason", "a note")) from error
    report = max(numbers(state, launch), default=0)
    if not report:
        raise NotReady(str(launch), f"it was not checked yet; first run: warcmill quality {launch.job} {launch.id}")
    facts = _facts(launch, word, note, report, who)

    def same(made: Iterable[RecordedDecision]) -> RecordedDecision | None:
        last = _of(made, launch)[-1:]
        return last[0] if last and dict(last[0].facts) == facts else None

    return decisions.make(state, open_store, decisions.QUALITY, facts, unless=same)


def _facts(launch: Launch, word: str, note: str, report: int, who: str) -> dict[str, Json]:
    return {
        "job": launch.job, "launch_id": launch.id, "mark": word, "note": note, "report": report, "who": who,
    }  # fmt: skip


def marks(state: LocalStore, launch: Launch) -> tuple[list[RecordedDecision], list[BadInput]]:
    """The marks of a launch, of which the last one counts; and an error for each mark, of whichever launch, that is
    damaged or missing."""
    made, wrong = decisions.readable(state, decisions.QUALITY)
    return _of(made, launch), wrong


def _of(made: Iterable[RecordedDecision], launch: Launch) -> list[RecordedDecision]:
    return [one for one in made if (one.facts.get("job"), one.facts.get("launch_id")) == (launch.job, launch.id)]


def marked(one: RecordedDecision) -> dict[str, Json]:
    """A mark for programs."""
    return {**one.facts, "number": one.number, "time": one.time}
