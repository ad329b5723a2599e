"""The targets of a feed as people see and edit them: listed, found, changed, added, line by line. Pure; hostile input.

A feed of ours is JSON Lines. A change leaves all other lines as they are, byte for byte; in its own line the other
fields and their order. A broken line stays, too: `formats/feed.py` names it.

A schedule in words: `monthly`, `daily from 2026-01-01T06:00:00Z to 2027-01-01`, `every 6 hours refresh`.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import asdict

from warcmill.base import clock, schedule
from warcmill.base.schedule import Frequency
from warcmill.crawl.fetch.addresses import Judge
from warcmill.crawl.job import address_list
from warcmill.errors import BadInput
from warcmill.formats import feed
from warcmill.formats.feed import Depth, TargetScope
from warcmill.markers.job_edits import OPERATOR

LONGEST: Final = {"title": 1_000, "owner": 200}  # letters
YES: Final = "yes"
JSON_NAMES: Final = {
    "title": "title", "addresses": "seeds", "schedules": "schedules", "owner": "owner", "scope": "scope",
    "depth": "depth", "ignore_robots": "ignoreRobotsTxt", "watched": "watched", "paused": "paused",
}  # fmt: skip
"""The fields of the form, and those of a feed."""
_TRUTHS = ("ignore_robots", "watched", "paused")
_NOT_HERE = ("NEVERCRAWL", "DOMAINCRAWL")  # frequencies that no job of ours has, and curators' lists do
_SCHEDULE = re.compile(r"(\S+(?: \S+){0,2}?)(?: from (\S+))?(?: to (\S+))?(?:,? (refresh))?", re.IGNORECASE)
_NUMBER = re.compile(r"[1-9][0-9]{0,14}")


class TargetFields(Struct, frozen=True):
    """A target in the form: each field a text. `addresses` and `schedules` are lines; `ignore_robots`, `watched` and
    `paused` are `yes` or ''."""

    title: str = ""
    addresses: str = ""
    schedules: str = ""
    owner: str = ""
    scope: str = str(TargetScope.ROOT)
    depth: str = str(Depth.CAPPED)
    ignore_robots: str = ""
    watched: str = ""
    paused: str = ""

    def changed(self, wanted: Mapping[str, str]) -> TargetFields:
        """These fields with other ones. BadInput for one that there is not, or that is too long."""
        for name, text in wanted.items():
            if name not in JSON_NAMES:
                raise BadInput(name, f"a target has no such field: {', '.join(JSON_NAMES)}")
            if len(text) > LONGEST.get(name, len(text)):
                raise BadInput(name, f"it has {len(text):,} letters; {LONGEST[name]:,} are the most")
        return msgspec.structs.replace(self, **{name: _plain(name, text) for name, text in wanted.items()})


class TargetLine(Struct, frozen=True):
    """A line that has a target, sound or not: its number, the target's id, its fields as the line has them."""

    number: int
    id: str
    raw: Mapping[str, Raw]

    @property
    def fields(self) -> TargetFields:
        """Its fields in the form. A value of another type than the feed's format has is empty there."""
        found = {name: self._text(name) for name in ("title", "owner")}
        found |= {"scope": self._text("scope").lower(), "depth": self._text("depth").upper()}
        return TargetFields(
            addresses="".join(f"{seed}\n" for seed in self.seeds),
            schedules="".join(f"{words_of(one)}\n" for one in self.value("schedules", list)),
            **{name: text for name, text in found.items() if text},
            **{name: YES for name in _TRUTHS if self.value(JSON_NAMES[name], bool)},
        )

    @property
    def owner(self) -> str:
        """Whose it is."""
        return self._text("owner")

    @property
    def seeds(self) -> list[str]:
        """Its addresses, as they are written."""
        return [one for one in self.value("seeds", list) if isinstance(one, str)]

    @property
    def seen(self) -> str:
        """A digest of the line: of two who edit one target, the second has another one."""
        return sha256(self.encode()).hexdigest()

    def encode(self) -> bytes:
        """The line, without its end."""
        return b"{%s}" % b", ".join(msgspec.json.encode(name) + b": " + bytes(raw) for name, raw in self.raw.items())

    def has(self, words: Sequence[str]) -> bool:
        """True if its id, title, owner or addresses have each of these words, in lower case."""
        if not words:
            return True
        text = "\n".join((self.id, self._text("title"), self.owner, *self.seeds)).lower()
        return all(word in text for word in words)

    def value(self, name: str, kind: Callable[[], Any]) -> Any:
        """A field, or the empty one of its type."""
        value = msgspec.json.decode(self.raw[name]) if name in self.raw else None
        return value if type(value) is kind else kind()

    def _text(self, name: str) -> str:
        return " ".join(self.value(name, str).split())

    def json(self) -> dict[str, Any]:
        """The target for programs."""
        fields = asdict(self.fields)
        lists = {name: fields[name].splitlines() for name in ("addresses", "schedules")}
        return {**fields, **lists, "id": self.id, "line": self.number, "seen": self.seen} | {
            name: fields[name] == YES for name in _TRUTHS
        }


class TargetFilter(Struct, frozen=True):
    """The targets that are wanted: with all these words in the title, the id or an address; of this owner; paused."""

    words: str = ""
    owner: str = ""
    is_paused: bool = False

    def chosen(self, lines: Iterable[TargetLine]) -> list[TargetLine]:
        """Those of some targets that are wanted."""
        words = self.words.lower().split()
        return [
            one
            for one in lines
            if one.has(words)
            and (not self.is_paused or one.value("paused", bool))
            and (not self.owner or self.owner.lower() == one.owner.lower())
        ]


class EditRules(Struct, frozen=True):
    """The rules by which a person's targets are judged. Without `may_all` what needs an operator is refused: inside
    addresses, but for those that `judge` lets in, and leaving robots.txt aside. `now`: the start of a schedule that has
    none."""

    may_all: bool
    judge: Judge
    now: str

    def check(self, before: TargetLine | None, after: TargetLine) -> None:
        """BadInput for a target that no crawl could take whole, or that only an operator may make; not for what it had
        before."""
        if wrong := [*self._wrong(after)]:
            known = {str(one) for one in self._wrong(before)} if before else set()
            for one in wrong:
                if str(one) not in known:
                    raise one

    def _wrong(self, line: TargetLine) -> Iterator[BadInput]:
        found = feed.read(line.encode(), "")
        for fault in found.left_out:
            field = _field_of(fault.why)
            yield BadInput(field, fault.why.removeprefix(f"{JSON_NAMES.get(field, '')}: "))
        for target in found.targets if not self.may_all else ():
            if target.ignore_robots:
                yield BadInput("ignore_robots", OPERATOR)
            for url in target.seeds:
                if why := address_list.why_inside(url, self.judge):
                    yield BadInput("addresses", f"{url}: {why}; an operator lets it in by 'allow_private'")


def is_list(data: bytes) -> bool:
    """True for a feed that is one JSON list, which has no lines to change."""
    return data.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"[")


def read(data: bytes) -> Iterator[TargetLine]:
    """The targets of a feed, sound or not, in its order; not what has no id. Of a JSON list the number is the place.
    BadInput for a JSON list that cannot be read."""
    if is_list(data):
        try:
            found: Sequence[bytes | Raw] = msgspec.json.decode(data.removeprefix(codecs.BOM_UTF8), type=list[Raw])
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise BadInput("the feed", f"it begins as a JSON list, and is not one: {error}") from error
    else:
        found = data.removeprefix(codecs.BOM_UTF8).splitlines()
    for number, line in enumerate(found, start=1):
        if target := parse(line, number):
            yield target


def parse(line: bytes | Raw, number: int = 0) -> TargetLine | None:
    """The target of a line; None for a line without one."""
    try:
        raw = msgspec.json.decode(line, type=dict[str, Raw])
        value = msgspec.json.decode(raw["id"]) if "id" in raw else None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    is_id = isinstance(value, int | str) and not isinstance(value, bool) and str(value)
    return TargetLine(number, str(value), raw) if is_id else None


def find(data: bytes, target_id: str) -> TargetLine | None:
    """The target of an id; None if the feed has none. Of several the first."""
    return next((one for one in read(data) if one.id == target_id), None)


def edited(line: TargetLine, wanted: TargetFields, rules: EditRules) -> TargetLine:
    """A target with the fields that a person wants; those that are as they were keep their bytes."""
    before, found = line.fields, dict(line.raw)
    for name, text in asdict(wanted).items():
        if text == getattr(before, name):
            continue
        key = JSON_NAMES[name]
        if name == "addresses":
            found[key] = _raw(_seeds(text, line.seeds))
        elif name == "schedules":
            found[key] = _raw(_schedules(text, line.value(key, list), rules.now))
        elif name in _TRUTHS and text:
            found[key] = _raw(True)
        elif text and name not in _TRUTHS:
            found[key] = _raw(text)
        else:
            found.pop(key, None)
    made = TargetLine(line.number, line.id, found)
    rules.check(line if len(line.raw) > 1 else None, made)
    return made


def new(target_id: str, wanted: TargetFields, rules: EditRules) -> TargetLine:
    """A new target. Its scope and depth are written even where they are the usual ones."""
    number = int(target_id) if _NUMBER.fullmatch(target_id) else target_id
    made = edited(TargetLine(0, target_id, {"id": _raw(number)}), wanted, rules)
    more = {name: _raw(getattr(wanted, name)) for name in ("scope", "depth")}
    return TargetLine(0, target_id, {**made.raw, **more})


def next_id(ids: Iterable[str]) -> int:
    """The number after the highest id that is one."""
    return max((int(one) for one in ids if _NUMBER.fullmatch(one)), default=0) + 1


def with_lines(data: bytes, changed: Mapping[int, TargetLine], added: Iterable[TargetLine] = ()) -> bytes:
    """A feed with some lines changed, by number, and some added at its end."""
    lines = data.splitlines(keepends=True)
    for number, line in changed.items():
        old = lines[number - 1]
        mark = codecs.BOM_UTF8 if old.startswith(codecs.BOM_UTF8) else b""
        lines[number - 1] = mark + line.encode() + old[len(old.rstrip(b"\r\n")) :]
    more = b"".join(line.encode() + b"\n" for line in added)
    if more and lines and not lines[-1].endswith((b"\n", b"\r")):
        lines.append(b"\n")
    return b"".join(lines) + more


def words_of(one: Any) -> str:
    """A schedule of a feed in words."""
    if not isinstance(one, dict):
        return "invalid"
    frequency = " ".join(str(one.get("frequency") or "none").lower().split())
    parts = [frequency]
    parts += [
        f"{word} {_date_text(one[name])}" for word, name in (("from", "startDate"), ("to", "endDate")) if one.get(name)
    ]
    return " ".join([*parts, *(["refresh"] if one.get("refresh") is True else [])])


def _date_text(value: Any) -> str:
    try:
        moment = feed.moment(value)
    except (ValueError, OverflowError):
        moment = None
    return clock.text(moment) if moment else "".join(str(value).split())[:40]


def _schedules(text: str, old: Sequence[Any], now: str) -> list[Any]:
    """The schedules of lines in words; one that is as it was stays."""
    known = {words_of(one): one for one in old}
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = " ".join(line.split())
        if words:
            found.append(known[words] if words in known else _schedule(words, number, now))
    return found


def _schedule(words: str, number: int, now: str) -> dict[str, Any]:
    match = _SCHEDULE.fullmatch(words)
    frequency = match[1].upper() if match else ""
    if frequency not in _NOT_HERE:
        try:
            frequency = str(Frequency.parse(frequency))
        except ValueError:
            known = f"{schedule.KNOWN.lower()}, with 'from' and 'to' and a date"
            raise BadInput("schedules", f"line {number}: {words[:80]!r} is not {known}") from None
    assert match
    made: dict[str, Any] = {"startDate": match[2] or now, "endDate": match[3], "frequency": frequency}
    return {**made, "refresh": True} if match[4] else made


def _seeds(text: str, old: Sequence[str]) -> list[str]:
    """The seeds of lines of addresses; one that is as it was stays as it is written."""
    lines, known = text.splitlines(), {one.strip() for one in old}
    new_ones = "\n".join("#" if line.strip() in known else line for line in lines)
    found = address_list.read(new_ones)
    if found.wrong:
        raise BadInput("addresses", "; ".join(one.words for one in found.wrong[:50]))
    urls = {one.line: one.url for one in found.found}
    seeds = [urls.get(number, line.strip() if line.strip() in known else "") for number, line in enumerate(lines, 1)]
    return list(dict.fromkeys(filter(None, seeds)))


def _plain(name: str, text: str) -> str:
    """A text as it is kept: blanks are one, but for the ends of lines of a field that has several."""
    whole = text.encode("utf-8", "replace").decode()
    lines = (" ".join(line.split()) for line in whole.splitlines())
    if name in ("addresses", "schedules"):
        return "".join(f"{line}\n" for line in lines if line)
    return " ".join(lines).strip()


def _raw(value: Any) -> Raw:
    return Raw(msgspec.json.encode(value))


def _field_of(why: str) -> str:
    """The field of the form that a fault of the feed's reader is about; '' for none."""
    name = why.partition(":")[0].partition(" ")[0]
    by_json = {json: field for field, json in JSON_NAMES.items()}
    return "schedules" if name in ("startDate", "endDate", "frequency", "refresh") else by_json.get(name, "")
