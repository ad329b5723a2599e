"""Which steps there are: a row a marker, in the order of the line. Pure data; what lists steps derives from it.

A new step is one row here, one module with its work, and one task class. Derive a table by a function of the rows,
and call it with `chain.ROWS` when it is needed: a test can then give rows of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Literal

from warcmill.model import Launch

ALWAYS, ASKED = "always", "asked"


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """One step: its task and the marker that it leaves, and what whoever lists steps has to know of it."""

    task: str
    marker: str  # the marker's name
    scope: Literal["due", "launch", "stage", "finding"]
    word: str = ""  # what operators type; without one it is redone by the marker's name alone
    head: str = ""  # over its column of `status`, `_` where it may break; without one it has no column
    after: str = ""  # the word of the step whose files it works on
    due: str = ASKED  # or ALWAYS, or a switch of the configuration
    scan: str = ""  # the scan that brings it about
    files: str = ""  # its items are files: the head of its column of `files`
    done: str = ""  # the head of its column of `reconcile`, which counts WARCs
    judges: bool = False  # it may refuse a file
    stored: bool = False  # what its items made is in the store: `verify` reads it again
    reads: Literal["file", "stored file", "made"] = "file"  # what a redo must still find, of every item
    outward: bool = False  # it changes something outside the state: a redo has to name it
    remembered: bool = False  # its attempts stay when it is redone

    @property
    def column(self) -> str:
        """The name of its column of `reconcile`."""
        return self.done.replace("-_", "").replace("_", "")


Rows = tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Switch:
    """A switch that is on: from which day on, by launch id, and for which jobs. None: for all."""

    since: date
    jobs: frozenset[str] | None = None


Wanted = Mapping[str, Switch]  # the switches of the configuration that are on, by the name that rows have in `due`
_OUTPUTS, _FILES = "output.ScanForOutputs", "files.ScanForOutputFiles"
ROWS: Rows = (
    Row("pulse.CrawlFeed", "00.feed.{job}.{due}", "due"),
    Row("pulse.StartJob", "00.due.{job}.{due}", "due", outward=True),
    Row("pulse.Started", "01.jobs.{job}.{launch_id}.started", "launch", outward=True),
    Row("pulse.CheckpointJob", "01.jobs.{job}.{launch_id}.checkpointed.{number}", "launch", outward=True),
    Row("pulse.StopJob", "01.jobs.{job}.{launch_id}.confirmed", "launch", outward=True),
    Row(
        "output.CheckJobStopped", "01.jobs.{job}.{launch_id}.stopped", "launch",
        word="stop", head="_stop", due=ALWAYS, scan=_OUTPUTS,
    ),
    Row(
        "output.PackageLogs", "02.logs.{job}.{launch_id}.{stage}.zip", "stage",
        word="pack", head="_pack", due=ALWAYS, scan=_OUTPUTS, done="_packed",
    ),
    Row(
        "output.AssembleOutput", "03.outputs.{job}.{launch_id}.{stage}", "stage",
        word="assemble", head="assem-_ble", due=ALWAYS, scan=_OUTPUTS,
        files="asm", done="assem-_bled", judges=True, reads="stored file",
    ),
    Row(
        "output.ProcessOutputs", "04.assembled.{job}.{launch_id}.complete", "launch",
        word="process", head="pro-_cess", after="assemble", due=ALWAYS, scan=_OUTPUTS,
    ),
    Row(
        "files.Checksum", "files.checksums.{job}.{launch_id}.{stage}", "stage",
        word="checksum", head="check-_sum", after="assemble", due=ALWAYS, scan=_FILES,
        files="chk", done="check-_summed", judges=True,
    ),
    Row(
        "files.Copy", "files.copied.{job}.{launch_id}.{stage}", "stage",
        word="copy", head="_copy", after="checksum", due=ALWAYS, scan=_FILES,
        files="cpy", done="_stored", stored=True,
    ),
    Row(
        "files.Verify", "files.verified.{job}.{launch_id}.{stage}", "stage",
        word="verify", head="veri-_fy", after="copy", due=ALWAYS, scan=_FILES,
        files="ver", done="veri-_fied", stored=True, reads="made",
    ),
    Row(
        "files.ReadBack", "files.read-back.{job}.{launch_id}.{stage}", "stage",
        word="read-back", head="read-_back", after="verify", scan=_FILES, files="rbk", reads="made",
    ),
    Row(
        "files.Retire", "files.retired.{job}.{launch_id}.{stage}", "stage",
        word="retire", head="re-_tire", after="read-back", scan=_FILES, files="ret", reads="made",
        outward=True, remembered=True,
    ),
    Row("operator.Close", "01.jobs.{job}.{launch_id}.closed", "launch", word="close"),
    Row("operator.Accept", "accepted.{job}.{launch_id}.{finding}", "finding"),
    Row("state.Backup", "state.backup.{job}.{launch_id}", "launch"),
    Row("state.BackupDue", "state.backup.due.{job}.{due}", "due"),
)  # fmt: skip


def is_wanted(row: Row, launch: Launch, wanted: Wanted) -> bool:
    """Whether a launch goes through a step without being asked to."""
    if row.due in (ALWAYS, ASKED):
        return row.due == ALWAYS
    switch = wanted.get(row.due)
    return switch is not None and switch.since <= launch.day and (switch.jobs is None or launch.job in switch.jobs)


@cache
def unswitched(rows: Rows) -> Rows:
    """The steps that no switch turns off: they have their columns whatever the configuration says."""
    return tuple(row for row in rows if row.due in (ALWAYS, ASKED))


@cache
def by_task(rows: Rows) -> Mapping[str, Row]:
    """The rows by their tasks."""
    return {row.task: row for row in rows}


@cache
def by_word(rows: Rows) -> Mapping[str, Row]:
    """The rows that have a word, by it."""
    return {row.word: row for row in rows if row.word}


@cache
def steps(rows: Rows) -> Rows:
    """The steps of the line: those that have a column in `status`, of launches and of stages."""
    return tuple(row for row in rows if row.head)


@cache
def of_stage(rows: Rows) -> Rows:
    """The steps that each stage goes through."""
    return tuple(row for row in steps(rows) if row.scope == "stage")


@cache
def of_files(rows: Rows) -> Rows:
    """The steps that go over the files of a stage, the one that lists them first."""
    return tuple(row for row in of_stage(rows) if row.files)


@cache
def after_list(rows: Rows) -> Rows:
    """The steps that work on the files of a stage's list: each has all of them."""
    return tuple(row for row in of_files(rows) if row.after)


@cache
def storing(rows: Rows) -> Rows:
    """The steps that put files into the store: they work on none that lies there already."""
    return tuple(row for row in rows if row.stored and not (row.after and by_word(rows)[row.after].stored))


@cache
def scans(rows: Rows) -> tuple[str, ...]:
    """The scans that bring the steps about, in the order they are run in."""
    return tuple(dict.fromkeys(row.scan for row in rows if row.scan))


@cache
def ends(rows: Rows) -> Rows:
    """Those of some steps on which no other of them works: whoever asks for them asks for all."""
    return tuple(row for row in rows if row.word not in {one.after for one in rows})


@cache
def below(rows: Rows, row: Row) -> Rows:
    """The steps that work on what a step left, or on what one of those left."""
    words, found = {row.word}, list[Row]()
    for one in of_stage(rows):
        if one.after in words:
            words.add(one.word)
            found.append(one)
    return tuple(found)
