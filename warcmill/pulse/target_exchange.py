"""Lists of targets for other programs: W3ACT's JSON Lines and CSV come in, a feed goes out. Pure; hostile input.

An import changes the targets whose id the feed has, in the fields that it names, and adds the others. Without an id a
target is that of its first address. W3ACT's `urls`, `crawl_frequency`, `crawl_start_date`, `crawl_end_date` and
`ignore_robots_txt`, also in JSON, are the seeds, the schedule and `ignoreRobotsTxt` of a feed. A line that cannot be
taken is refused, with its number and the reason; the others are imported.
"""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Raw, Struct

from warcmill.base.escapes import printable
from warcmill.crawl.job import address_list
from warcmill.crawl.job.address_list import MOST, WrongLine
from warcmill.errors import BadInput
from warcmill.formats import surt
from warcmill.model import Json
from warcmill.pulse import target_list
from warcmill.pulse.target_list import JSON_NAMES, YES, EditRules, TargetFields, TargetLine

LARGEST: Final = 24 << 20  # bytes of a list; 100,000 targets have 20 MiB
NAMED: Final = 50  # of the targets that are new, and that are changed
COLUMNS: Final = (
    "id", "title", "urls", "crawl_frequency", "crawl_start_date", "crawl_end_date", "more_schedules", "scope", "depth",
    "ignore_robots_txt", "watched", "paused", "owner",
)  # fmt: skip
_ALIASES: Final = {
    "nid": "id", "name": "title", "seeds": "addresses", "seed": "addresses", "urls": "addresses", "url": "addresses",
    "address": "addresses", "crawlfrequency": "frequency", "crawlstartdate": "start", "startdate": "start",
    "crawlenddate": "end", "enddate": "end", "moreschedules": "schedules", "schedule": "schedules",
    "ignorerobotstxt": "ignore_robots", "ignorerobots": "ignore_robots", "author": "owner",
}  # fmt: skip
_KNOWN: Final = {"id", "frequency", "start", "end", *JSON_NAMES}
_W3ACT: Final = ("urls", "crawl_frequency")  # fields of its own records, which a feed has under other names
_TRUTHS: Final = {
    "true": YES,
    "t": YES,
    "yes": YES,
    "y": YES,
    "1": YES,
    "false": "",
    "f": "",
    "no": "",
    "n": "",
    "0": "",
}
_FORMULA: Final = ("=", "+", "-", "@")
_PLAIN: Final = re.compile(r"(\S+(?: \S+){0,2}?)(?: from (\S+))?(?: to (\S+))?")


class ImportedTargets(Struct, frozen=True):
    """An import of targets into a feed, as it would be: `data` is the feed after it. `new` and `changed` are ids.
    `ignored`: columns that mean nothing here."""

    data: bytes
    new: tuple[str, ...]
    changed: tuple[str, ...]
    same: int
    refused: tuple[WrongLine, ...]
    ignored: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """Its numbers in words."""
        numbers = {
            "new": len(self.new),
            "changed": len(self.changed),
            "the same": self.same,
            "refused": len(self.refused),
        }
        return ", ".join(f"{number:,} {what}" for what, number in numbers.items())

    def json(self) -> dict[str, Json]:
        """The import for programs."""
        refused: list[Json] = [{"line": one.line, "text": one.text, "why": one.why} for one in self.refused]
        return {
            "changed": len(self.changed), "changed_ids": [*self.changed[:NAMED]], "ignored": [*self.ignored],
            "new": len(self.new), "new_ids": [*self.new[:NAMED]], "refused": refused, "same": self.same,
        }  # fmt: skip


class _Row(NamedTuple):
    """A target of a list: its line; its fields as a feed has them, or as texts of the form; or why it is refused."""

    line: int
    text: str
    raw: Mapping[str, Raw] = {}
    fields: Mapping[str, str] = {}
    why: str = ""


def imported(before: bytes, data: bytes, rules: EditRules, name: str = "the list") -> ImportedTargets:
    """Import a list into a feed. BadInput for a file that cannot be read as one, or that is too long."""
    text = address_list.decoded(data, name, LARGEST)
    if text.lstrip().startswith("["):
        raise BadInput(name, "it is one JSON list; JSON Lines have an object a line")
    ignored = list[str]()
    rows = _json_rows(text) if text.lstrip().startswith("{") else _csv_rows(text, ignored)
    feed_now = _Targets(before)
    new, changed, refused, same = dict[str, TargetLine](), dict[int, TargetLine](), list[WrongLine](), 0
    seen = dict[str, int]()
    for row in rows:
        try:
            if row.why:
                raise BadInput("", row.why)
            known = feed_now.target_of(row)
            target_id = known.id if known else _id_of(row) or feed_now.new_id()
            if target_id in seen:
                raise BadInput("", f"line {seen[target_id]} has this target, {target_id}, already")
            made = _made(known, target_id, row, rules)
        except BadInput as error:
            why = f"{error.path}: {error.why}" if error.path else error.why
            refused.append(WrongLine(row.line, printable(row.text)[:200], why))
            continue
        seen[target_id] = row.line
        if known is None:
            new[target_id] = made
            feed_now.add(made)
        elif made.raw == known.raw:
            same += 1
        else:
            changed[known.number] = made
    after = target_list.with_lines(before, changed, new.values()) if new or changed else before
    ids = tuple(one.id for one in changed.values())
    return ImportedTargets(after, tuple(new), ids, same, tuple(refused), tuple(ignored))


class _Targets:
    """The targets of a feed by id and by first address, with those that an import adds."""

    def __init__(self, data: bytes) -> None:
        self._by_id = dict[str, TargetLine]()
        for one in target_list.read(data):
            self._by_id.setdefault(one.id, one)
        self._next = target_list.next_id(self._by_id)

    def add(self, one: TargetLine) -> None:
        """Add a target that is new."""
        self._by_id[one.id] = one
        self._by_address.setdefault(_address_of(one.seeds), one)

    def target_of(self, row: _Row) -> TargetLine | None:
        """The target that a row is about; None for a new one."""
        if target_id := _id_of(row):
            return self._by_id.get(target_id)
        return self._by_address.get(_address_of(row.fields.get("addresses", "").splitlines()))

    def new_id(self) -> str:
        """An id that no target has."""
        while str(self._next) in self._by_id:
            self._next += 1
        return str(self._next)

    @cached_property
    def _by_address(self) -> dict[str, TargetLine]:
        return {_address_of(one.seeds): one for one in reversed(self._by_id.values()) if one.seeds}


def _address_of(seeds: Sequence[str]) -> str:
    """The first address of a target as it is compared: canonical, whatever the scheme; ' ' without one."""
    first = seeds[0].strip() if seeds else " "
    try:
        return surt.canonical(first if "://" in first else f"http://{first}").partition("://")[2]
    except ValueError:
        return first


def _id_of(row: _Row) -> str:
    return row.fields.get("id", "")


def _made(known: TargetLine | None, target_id: str, row: _Row, rules: EditRules) -> TargetLine:
    """The target that a row makes of a known one, or of none; the same one if it says nothing else."""
    if not row.raw:
        wanted = {name: text for name, text in row.fields.items() if name != "id"}
        if known is None:
            return target_list.new(target_id, TargetFields().changed(wanted), rules)
        before, after = known.fields, known.fields.changed(wanted)
        return target_list.edited(known, after, rules) if after != before else known
    old = known.raw if known else {}
    given = {name: raw for name, raw in row.raw.items() if not _is_same(old.get(name), raw)}
    if known and not given:
        return known
    made = TargetLine(known.number if known else 0, target_id, {**old, **given} if known else row.raw)
    rules.check(known, made)
    return made


def _is_same(old: Raw | None, new: Raw) -> bool:
    """True for the same value, however it is written; null is the same as none."""
    before = None if old is None else msgspec.json.decode(old)
    return bool(before == msgspec.json.decode(new)) and type(before) is type(msgspec.json.decode(new))


def _json_rows(text: str) -> Iterator[_Row]:
    lines = text.encode().splitlines()  # a text has more ends of lines, which may stand in a title
    _check_number(len(lines))
    for number, data in enumerate(lines, start=1):
        line = data.decode()
        if not line.strip():
            continue
        try:
            raw = msgspec.json.decode(line, type=dict[str, Raw])
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            yield _Row(number, line, why=f"it cannot be read as a JSON object: {error}")
            continue
        if any(name in raw for name in _W3ACT):
            yield _of_cells(number, line, {name: _cell(msgspec.json.decode(one)) for name, one in raw.items()}, [])
        elif target := target_list.parse(line.encode()):
            yield _Row(number, line, target.raw, {"id": target.id})
        else:
            yield _Row(number, line, why="it has no id")


def _cell(value: Any) -> str:
    """A value of W3ACT's JSON as its CSV has it."""
    if isinstance(value, list):
        return "\n".join(str(one) for one in value if isinstance(one, str))
    return "" if value is None or isinstance(value, dict) else str(value)


def _csv_rows(text: str, ignored: list[str]) -> Iterator[_Row]:
    head = text.lstrip("\r\n").partition("\n")[0]
    separator = max("\t;,", key=head.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    names = list[str]()
    while True:
        first = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            break
        except csv.Error as error:
            yield _Row(first, "", why=f"it cannot be read as CSV: {error}; the rest is not read")
            break
        _check_number(reader.line_num)
        if not any(map(str.strip, cells)):
            continue
        if not names:
            names = [cell.strip() for cell in cells]
            if not {_name(one) for one in names} & {"id", "addresses"}:
                raise BadInput(
                    "list", "its first line is neither JSON nor the head of a CSV with a column 'id' or 'urls'"
                )
            continue
        if len(cells) > len(names):
            yield _Row(
                first, separator.join(cells), why=f"it has {len(cells)} cells; the first line names {len(names)}"
            )
            continue
        yield _of_cells(first, separator.join(cells), dict(zip(names, cells, strict=False)), ignored)


def _check_number(lines: int) -> None:
    if lines > MOST + 1:
        raise BadInput("list", f"it has more than {MOST:,} lines; cut it in pieces")


def _name(heading: str) -> str:
    """The field that a heading names, as `crawl_frequency` or `field_url`; itself if it names none."""
    plain = "".join(filter(str.isalnum, heading.lower()))
    plain = plain.removeprefix("field")
    return _ALIASES.get(plain, plain)


def _of_cells(number: int, text: str, cells: Mapping[str, str], ignored: list[str]) -> _Row:
    """The row that cells make; one that is empty says nothing."""
    found = dict[str, str]()
    for heading, cell in cells.items():
        name = _name(heading)
        value = cell.strip()
        if name not in _KNOWN:
            if heading not in ignored:
                ignored.append(heading)
        elif value:
            found[name] = value.removeprefix("'") if value[1:2] and value[1] in _FORMULA else value
    if schedules := _schedules(found):
        found["schedules"] = schedules
    if "addresses" in found:
        found["addresses"] = "\n".join(found["addresses"].replace("|", " ").split())
    for name in ("ignore_robots", "watched", "paused"):
        if name in found:
            if found[name].lower() not in _TRUTHS:
                return _Row(number, text, why=f"{name}: {found[name][:40]!r} is neither true nor false")
            found[name] = _TRUTHS[found[name].lower()]
    return _Row(number, text, fields=found)


def _schedules(found: dict[str, str]) -> str:
    """The schedules of a row in words; takes W3ACT's parts of one out of it."""
    frequency, start, end = (found.pop(name, "") for name in ("frequency", "start", "end"))
    dates = [f"{word} {'T'.join(date.split())}" for word, date in (("from", start), ("to", end)) if date]
    first = [" ".join([frequency.lower(), *dates])] if frequency else []
    return "\n".join([*first, *filter(None, found.get("schedules", "").split(";"))])


def json_lines(data: bytes) -> bytes:
    """A feed as JSON Lines: as it is, or a line for each target of a list."""
    if not target_list.is_list(data):
        return data
    return b"".join(one.encode() + b"\n" for one in target_list.read(data))


def csv_lines(data: bytes) -> Iterator[str]:
    """A feed as CSV, with W3ACT's names of columns. No cell is a formula of a spreadsheet."""
    yield _line(COLUMNS)
    for one in target_list.read(data):
        fields = one.fields
        words = fields.schedules.splitlines()
        first = _PLAIN.fullmatch(words[0]) if words else None
        dated = [part or "" for part in first.groups()] if first and not words[0].endswith(" refresh") else ["", "", ""]
        more = "; ".join(words[1:] if dated[0] else words)
        truths = ["true" if text else "false" for text in (fields.ignore_robots, fields.watched, fields.paused)]
        dated[0] = dated[0].upper()
        cells = (
            one.id, fields.title, " ".join(one.seeds), *dated, more, fields.scope, fields.depth, *truths, fields.owner,
        )  # fmt: skip
        yield _line(f"'{cell}" if cell.startswith(_FORMULA) else cell for cell in map(_plain, cells))


def _plain(cell: str) -> str:
    """A cell without control characters, which are commands of a terminal."""
    return "".join(letter for letter in cell if unicodedata.category(letter) != "Cc")


def _line(cells: Iterable[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\r\n").writerow(cells)
    return line.getvalue()
