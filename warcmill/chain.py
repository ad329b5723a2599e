"""The steps of the line, one row for each marker, in order. Pure data: every list of steps derives from it.

A new step is one row here, one module with its work, and one task class. Derive a table by a function of the rows,
and call it with `chain.ROWS` when it is needed: a test can then pass its own rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from functools import cache
from typing import Literal

from msgspec import Struct

from warcmill.model import Launch

ALWAYS, ASKED = "always", "asked"


class Row(Struct, frozen=True, eq=False):
    """One step: its task, the marker that it leaves, and what other code needs to know about it."""

    task: str
    marker: str  # the marker's name
    scope: Literal["due", "launch", "stage", "finding"]
    word: str = ""  # what operators type; without one it is redone by the marker's name alone
    head: str = ""  # head of its column in `status`, `_` where it may break; without one it has no column
    after: str = ""  # the word of the step whose files it works on
    due: str = ASKED  # or ALWAYS, or a switch of the configuration
    # The step of a SIP: it is done at one stage for all stages that the SIP covers, and their files. It has no items.
    by_sip: bool = False
    scan: str = ""  # the scan that schedules it
    files: str = ""  # its items are files: the head of its column in `files`
    done: str = ""  # the head of its column in `reconcile`, which counts WARCs
    judges: bool = False  # it may refuse a file
    stored: bool = False  # the files that its items made are in the store: `verify` reads them again
    reads: Literal["file", "stored file", "made"] = "file"  # the file of each item that a redo needs
    outward: bool = False  # it changes something outside the state: a redo has to name it
    warcs_only: bool = False  # it does not process the zip of logs
    logs_only: bool = False  # it takes nothing of the WARCs
    remembered: bool = False  # its attempts are kept when it is redone

    @property
    def column(self) -> str:
        """The name of its column in `reconcile`."""
        return self.done.replace("-_", "").replace("_", "")


Rows = tuple[Row, ...]


class Switch(Struct, frozen=True):
    """A switch that is on: for launches since a day, by their ids, of some jobs. `jobs` None: of all jobs.

    `final_only` is for the steps of SIPs: one SIP a launch, at its final stage; otherwise one at each stage.
    """

    since: date
    jobs: frozenset[str] | None = None
    final_only: bool = False


Wanted = Mapping[str, Switch]  # the switches that are on in the configuration, by the name in `Row.due`
_OUTPUTS, _FILES = "output.ScanForOutputs", "files.ScanForOutputFiles"
_DISTRIBUTIONS = "pypi.ScanForDistributions"
_DOCUMENTS = "documents.ScanForDocuments"
_PACKAGES, _INDEX, _REPORTS = "package.ScanForPackages", "index.ScanForIndexing", "reports.ScanForReports"
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
        "files.VirusScan", "files.scanned.{job}.{launch_id}.{stage}", "stage",
        word="viruses", head="vi-_ruses", after="verify", due="viruses", scan=_FILES,
        files="vir", done="_scanned", reads="made", warcs_only=True,
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
    Row("package.GiveArks", "arks.{job}.{launch_id}.{stage}", "stage"),
    Row(
        "package.BuildSip", "05.packaged.{job}.{launch_id}.{stage}", "stage",
        word="package", head="pack-_age", after="verify", due="package", by_sip=True, scan=_PACKAGES,
        files="sip", done="pack-_aged", stored=True,
    ),
    Row(
        "package.SubmitSip", "06.submitted.{job}.{launch_id}.{stage}", "stage",
        word="submit", head="sub-_mit", after="package", due="destination", by_sip=True, scan=_PACKAGES, outward=True,
    ),
    Row(
        "package.VerifySip", "07.verified.{job}.{launch_id}.{stage}", "stage",
        word="verify-sip", head="verify-_sip", after="submit", due="destination", by_sip=True, scan=_PACKAGES,
    ),
    Row(
        "package.IndexSip", "08.indexed.{job}.{launch_id}.{stage}", "stage",
        word="catalogue", head="cata-_logue", after="verify-sip", due="catalogue", by_sip=True, scan=_PACKAGES,
    ),
    Row(
        "index.CdxIndex", "index.cdx.{job}.{launch_id}.{stage}", "stage",
        word="cdx", head="_cdx", after="verify", due="index", scan=_INDEX,
    ),
    Row(
        "index.VerifyCdx", "index.cdx-verified.{job}.{launch_id}.{stage}", "stage",
        word="verify-cdx", head="verify-_cdx", after="cdx", due="index", scan=_INDEX,
    ),
    Row(
        "index.SolrIndex", "index.text.{job}.{launch_id}.{stage}", "stage",
        word="text", head="_text", after="verify", due="text", scan=_INDEX,
    ),
    Row(
        "index.VerifySolr", "index.text-verified.{job}.{launch_id}.{stage}", "stage",
        word="verify-text", head="verify-_text", after="text", due="text", scan=_INDEX,
    ),
    Row(
        "index.Columns", "index.columns.{job}.{launch_id}.{stage}", "stage",
        word="columns", head="col-_umns", after="cdx", due="columns", scan=_INDEX,
    ),
    Row(
        "reports.GenerateCrawlLogReports", "reports.crawl.{job}.{launch_id}.{stage}", "stage",
        word="crawl-report", head="re-_port", after="verify", due=ALWAYS, scan=_REPORTS, logs_only=True,
    ),
    Row(
        "reports.ListDeadSeeds", "reports.seeds.{job}.{launch_id}", "launch",
        word="seeds", head="_seeds", after="verify", due=ALWAYS, scan=_REPORTS, logs_only=True,
    ),
    Row(
        "pypi.ProcessDistributions", "pypi.processed.{job}.{launch_id}.{stage}", "stage",
        word="distributions", head="distri-_butions", after="verify", due="pypi", scan=_DISTRIBUTIONS,
    ),
    Row(
        "pypi.DumpDistributionData", "pypi.dumped.{job}.{launch_id}", "launch",
        word="dump", head="_dump", after="distributions", due="pypi", scan=_DISTRIBUTIONS,
    ),
    Row(
        "pypi.VerifyDump", "pypi.dump-verified.{job}.{launch_id}", "launch",
        word="verify-dump", head="verify-_dump", after="dump", due="pypi", scan=_DISTRIBUTIONS,
    ),
    Row("pypi.DumpFull", "pypi.full.{job}.{launch_id}.{number}", "launch", scan=_DISTRIBUTIONS),
    Row(
        "documents.ExtractDocuments", "documents.extracted.{job}.{launch_id}.{stage}", "stage",
        word="documents", head="docu-_ments", after="verify", due="documents", scan=_DOCUMENTS,
    ),
    Row(
        "documents.VerifyDocuments", "documents.verified.{job}.{launch_id}.{stage}", "stage",
        word="verify-documents", head="verify-_docs", after="documents", due="documents", scan=_DOCUMENTS,
    ),
    Row("operator.Close", "01.jobs.{job}.{launch_id}.closed", "launch", word="close"),
    Row("operator.Import", "01.jobs.{job}.{launch_id}.imported", "launch", word="import"),
    Row("operator.Accept", "accepted.{job}.{launch_id}.{finding}", "finding"),
    Row("state.Backup", "state.backup.{job}.{launch_id}", "launch"),
    Row("state.BackupDue", "state.backup.due.{job}.{due}", "due"),
)  # fmt: skip


def is_wanted(row: Row, launch: Launch, wanted: Wanted) -> bool:
    """True if a launch goes through a step without an operator asking for it."""
    if row.due in (ALWAYS, ASKED):
        return row.due == ALWAYS
    switch = wanted.get(row.due)
    return switch is not None and switch.since <= launch.day and (switch.jobs is None or launch.job in switch.jobs)


@cache
def unswitched(rows: Rows) -> Rows:
    """The steps without a switch: they have their columns under every configuration."""
    return tuple(row for row in rows if row.due in (ALWAYS, ASKED))


def switched_on(rows: Rows, wanted: Wanted) -> Rows:
    """The steps without those whose switch is off."""
    return tuple(row for row in rows if row.due in (ALWAYS, ASKED) or row.due in wanted)


@cache
def by_task(rows: Rows) -> Mapping[str, Row]:
    """The rows by task."""
    return {row.task: row for row in rows}


@cache
def by_word(rows: Rows) -> Mapping[str, Row]:
    """The rows that have a word, by word."""
    return {row.word: row for row in rows if row.word}


@cache
def steps(rows: Rows) -> Rows:
    """The steps of launches and of stages: those with a column in `status`."""
    return tuple(row for row in rows if row.head)


@cache
def of_stage(rows: Rows) -> Rows:
    """The steps that each stage goes through."""
    return tuple(row for row in steps(rows) if row.scope == "stage")


@cache
def of_files(rows: Rows) -> Rows:
    """The steps that process the files of a stage; the first one lists them."""
    return tuple(row for row in of_stage(rows) if row.files)


@cache
def after_list(rows: Rows) -> Rows:
    """The steps whose items are all files of a stage's list."""
    return tuple(row for row in of_files(rows) if row.after and not row.by_sip)


@cache
def storing(rows: Rows) -> Rows:
    """The steps that put files into the store: their own input is not in the store."""
    return tuple(row for row in rows if row.stored and not (row.after and by_word(rows)[row.after].stored))


@cache
def scans(rows: Rows) -> tuple[str, ...]:
    """The scans that schedule the steps, in the order they are run in. Steps asked for alone make none run."""
    return tuple(dict.fromkeys(row.scan for row in rows if row.scan and row.due != ASKED))


@cache
def ends(rows: Rows) -> Rows:
    """The last steps among some: asking for these asks for all of them."""
    return tuple(row for row in rows if row.word not in {other.after for other in rows})


@cache
def below(rows: Rows, row: Row) -> Rows:
    """The steps of a stage that come after a step, directly or indirectly."""
    words, later = {row.word}, list[Row]()
    for step in of_stage(rows):
        if step.after in words:
            words.add(step.word)
            later.append(step)
    return tuple(later)
