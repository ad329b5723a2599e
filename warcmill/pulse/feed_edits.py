"""A feed of ours as people edit it: the file that [feed] names, each saved change an edition, with who, when and why.

    FOLDER/targets.jsonl                     the feed
    FOLDER/.targets.jsonl.edition.json       the edition that it was at last
    state    editions/_feed/{number}/        its editions, in the store too

An edit by hand is an edition by the next verb that saves, or that begins a crawl. Of two who edit one target the
second gets NewerEdition, and nothing is written; two who edit different ones both save. Writes as `papers` does.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from warcmill.base import clock, disk
from warcmill.crawl.fetch.addresses import Judge
from warcmill.errors import BadConfig, BadInput, NewerEdition, NotReady, Unavailable
from warcmill.formats import feed
from warcmill.markers.editions import LARGEST_PAPER, Edition, JobEditions
from warcmill.markers.papers import JobPapers
from warcmill.model import Json
from warcmill.pulse import target_exchange, target_list
from warcmill.pulse.target_exchange import ImportedTargets
from warcmill.pulse.target_list import YES, EditRules, TargetFields, TargetLine

PAPER = "feed.jsonl"
_TRIES = 5


class FeedPapers(JobPapers):
    """The file of a feed, and its editions."""

    def __init__(self, file: Path, editions: JobEditions) -> None:
        self.file = file.resolve()  # of a link the file that it names is replaced
        super().__init__(self.file.parent, editions)
        self.mark = f".{self.file.name}.edition.json"

    def read(self) -> dict[str, bytes]:
        """The feed as it is; nothing where there is no file. Unavailable where its mark is missing too: nobody has
        removed the feed then, and its disk is not mounted."""
        try:
            if (size := self.file.stat().st_size) > LARGEST_PAPER:
                raise BadInput(
                    str(self.file), f"it has {size:,} bytes; {LARGEST_PAPER:,} are the most that are edited here"
                )
            return {PAPER: self.file.read_bytes()}
        except FileNotFoundError as error:
            newest = self.editions.newest()
            if newest and newest.digest(PAPER) and not (self.folder / self.mark).exists():
                why = f"it is missing, and {self.mark} beside it: mount the disk, or copy the newest text"
                kept = f"state:{self.editions.path(newest.number)}"
                raise Unavailable(str(self.file), f"{why} that {kept} or an edition before it has to here") from error
            return {}
        except OSError as error:
            raise Unavailable(str(self.file), disk.reason(error, self.file)) from error

    def path(self, name: str) -> Path:
        """Where it is."""
        return self.file if name == PAPER else super().path(name)

    def check(self, name: str, data: bytes | None) -> None:
        """Nothing: who makes the bytes has judged them."""


class JobFeed(Struct, frozen=True):
    """The feed of a job. `shown`: its source, without secrets. `papers`: None for one that cannot be edited here, as
    `why_fixed` says. `kept`: the newest good one, as a crawl has read it. `networks`: inside addresses that its
    engine lets in."""

    job: str
    shown: str
    papers: FeedPapers | None
    why_fixed: str
    kept: Callable[[], bytes | None]
    networks: Sequence[str] = ()

    def rules(self, *, may_all: bool) -> EditRules:
        """The rules for who edits it now; `may_all`: an operator."""
        return EditRules(may_all, Judge(self.networks), clock.now())

    def data(self) -> bytes:
        """The feed now: the file, or else what was kept. NotReady for one that no crawl has read yet."""
        if self.papers:
            return self.papers.read().get(PAPER, b"")
        data = self.kept()
        if data is None:
            raise NotReady(f"the feed of {self.job}", f"no crawl has read {self.shown} yet, and pages do not ask it")
        return data

    def editable(self) -> FeedPapers:
        """Its papers; BadConfig for a feed that cannot be edited here."""
        if self.papers is None:
            raise BadConfig("[feed] source", self.why_fixed)
        return self.papers


class SavedTargets(Struct, frozen=True):
    """A saved edit of a feed: its edition, and the targets that it is about. `is_new`: something has changed."""

    edition: int
    targets: tuple[str, ...]
    is_new: bool

    def json(self, job: str) -> dict[str, Json]:
        """The edit for programs."""
        return {"changed": self.is_new, "edition": self.edition, "job": job, "targets": [*self.targets]}


def of_source(
    job: str,
    source: str,
    shown: str,
    editions: JobEditions,
    kept: Callable[[], bytes | None],
    networks: Sequence[str] = (),
) -> JobFeed:
    """The feed that [feed] source names, and whether it is ours: a file of JSON Lines that this process may write."""
    file = Path(source)
    why = _why_fixed(file, source)
    return JobFeed(job, shown, None if why else FeedPapers(file, editions), why, kept, networks)


def _why_fixed(file: Path, source: str) -> str:
    if "://" in source or source.startswith("command:") or not file.is_absolute():
        return "this feed is another program's; change its targets there. A file is edited here"
    folder = file.resolve().parent
    if not folder.is_dir():
        return f"the folder of {file} is not there"
    if not os.access(folder, os.W_OK) or (file.exists() and not os.access(file, os.W_OK)):
        return f"{file} or its folder may not be written by this user; change its targets where it is made"
    try:
        if file.exists() and file.stat().st_size > LARGEST_PAPER:
            return f"{file} has more than {LARGEST_PAPER:,} bytes, the most that are edited here"
        with file.open("rb") as stream:
            if target_list.is_list(stream.read(1 << 16)):
                return f"{file} is one JSON list, which has no lines to change; save it as JSON Lines"
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"{file}: {disk.reason(error, file)}"
    return ""


def found(feed_of_job: JobFeed, target_id: str) -> TargetLine:
    """A target of a feed. NotReady if it has none of this id."""
    line = target_list.find(feed_of_job.data(), target_id)
    if line is None:
        raise _no_target(feed_of_job, target_id)
    return line


def faults(data: bytes, targets: Iterable[TargetLine]) -> Iterator[BadInput]:
    """The lines of a feed that are none of its targets, each by its number. They stay."""
    if target_list.is_list(data):
        return
    known = {one.number for one in targets}
    for number, line in enumerate(data.splitlines(), start=1):
        if line.strip() and number not in known:
            why = next((one.why for one in feed.read(line, "").left_out), "it has no id")
            yield BadInput(f"line {number}", why)


def why_faulty(line: TargetLine) -> str:
    """The parts of a target that a crawl would leave out, with the reason; '' for a sound one."""
    return "; ".join(one.why for one in feed.read(line.encode(), "").left_out)


def add(feed_of_job: JobFeed, wanted: Mapping[str, str], rules: EditRules, *, who: str, why: str) -> SavedTargets:
    """Add a target. BadInput, and nothing is written, for one that no crawl could take."""
    made = list[TargetLine]()

    def change(before: bytes, _: Edition | None) -> bytes:
        target_id = str(target_list.next_id(one.id for one in target_list.read(before)))
        made[:] = [target_list.new(target_id, TargetFields().changed(wanted), rules)]
        return target_list.with_lines(before, {}, made)

    return _saved(feed_of_job, change, lambda: tuple(one.id for one in made), who, why or "a target more")


def edit(
    feed_of_job: JobFeed,
    target_id: str,
    wanted: Mapping[str, str],
    rules: EditRules,
    *,
    who: str,
    why: str,
    seen: str = "",
) -> SavedTargets:
    """Change fields of a target; `seen` is what its line was when the edit began. NewerEdition if it is another one."""
    return _edited(feed_of_job, {target_id: seen}, wanted, rules, who, why or f"target {target_id}")


def pause(
    feed_of_job: JobFeed, target_ids: Sequence[str], rules: EditRules, *, who: str, why: str, paused: bool = True
) -> SavedTargets:
    """Pause targets, which are never due from then on, or resume them: all of these, or none."""
    wanted, many = {"paused": YES if paused else ""}, "" if len(target_ids) == 1 else "s"
    named = ", ".join(target_ids[:20]) + (", ..." if len(target_ids) > 20 else "")
    why = why or f"target{many} {named} {'paused' if paused else 'resumed'}"
    return _edited(feed_of_job, dict.fromkeys(target_ids, ""), wanted, rules, who, why)


def _edited(
    feed_of_job: JobFeed, seen: Mapping[str, str], wanted: Mapping[str, str], rules: EditRules, who: str, why: str
) -> SavedTargets:
    def change(before: bytes, newest: Edition | None) -> bytes:
        lines = dict[int, TargetLine]()
        known = {one.id: one for one in reversed([*target_list.read(before)]) if one.id in seen}
        for target_id, digest_before in seen.items():
            line = known.get(target_id)
            if digest_before and newest and (line is None or line.seen != digest_before):
                raise NewerEdition(f"target {target_id} of {feed_of_job.job}", newest.number, newest.who, newest.time)
            if line is None:
                raise _no_target(feed_of_job, target_id)
            made = target_list.edited(line, line.fields.changed(wanted), rules)
            lines |= {line.number: made} if made.raw != line.raw else {}
        return target_list.with_lines(before, lines) if lines else before

    return _saved(feed_of_job, change, lambda: (*seen,), who, why)


def _no_target(feed_of_job: JobFeed, target_id: str) -> NotReady:
    return NotReady(f"target {target_id[:80]}", f"the feed of {feed_of_job.job} has no target of this id")


def look_at_import(feed_of_job: JobFeed, data: bytes, rules: EditRules) -> ImportedTargets:
    """An import as it would be. Nothing is written."""
    feed_of_job.editable()
    return target_exchange.imported(feed_of_job.data(), data, rules)


def save_import(
    feed_of_job: JobFeed, data: bytes, rules: EditRules, *, who: str, why: str, seen: str = ""
) -> tuple[SavedTargets, ImportedTargets]:
    """Import targets. NewerEdition if the feed is another one than was `seen`."""
    made = list[ImportedTargets]()

    def change(before: bytes, newest: Edition | None) -> bytes:
        if seen and newest and digest(before) != seen:
            raise NewerEdition(f"the feed of {feed_of_job.job}", newest.number, newest.who, newest.time)
        made[:] = [target_exchange.imported(before, data, rules)]
        return made[0].data

    saved = _saved(feed_of_job, change, lambda: (*made[0].new, *made[0].changed), who, why or "an import")
    return saved, made[0]


def digest(data: bytes) -> str:
    """The SHA-256 of a feed."""
    return sha256(data).hexdigest()


def _saved(
    feed_of_job: JobFeed, change: Callable[[bytes, Edition | None], bytes], targets: Callable[[], tuple[str, ...]],
    who: str, why: str,
) -> SavedTargets:  # fmt: skip
    """Save a change of the feed as it is now, once more where others save meanwhile."""
    papers = feed_of_job.editable()
    for _ in range(_TRIES):
        newest = papers.settle()
        number, before = newest.number if newest else 0, papers.read().get(PAPER, b"")
        after = change(before, newest)
        if after == before:
            return SavedTargets(number, targets(), is_new=False)
        try:
            edition = papers.save({PAPER: after}, who=who, why=why, made_from=number)
        except NewerEdition:
            continue  # others have saved another target meanwhile; or this one, which `change` refuses then
        return SavedTargets(edition.number, targets(), is_new=True)
    raise Unavailable(f"the feed of {feed_of_job.job}", "others save it all the time; try again")
