"""The table of steps: what its rows have to keep, and what is derived from rows that are a test's own."""

from __future__ import annotations

import ast
import re
from itertools import count
from pathlib import Path

import pytest

from warcmill import chain
from warcmill.chain import ALWAYS, ROWS, Row

ROOT = Path(__file__).parent.parent.parent
# Beside the table and the steps: what reads how a launch ended, and the command that says again that it has.
FACTS = {"warcmill/markers/facts/readers.py", "warcmill/markers/facts/files.py"}  # which class reads a step's facts
CHAINS = (
    "warcmill/backup/",
    "warcmill/decisions/",
    "warcmill/files/",
    "warcmill/index/",
    "warcmill/output/",
    "warcmill/package/",
    "warcmill/pulse/",
    "warcmill/pypi/",
)
READ_MARKERS = {"warcmill/chain.py", "warcmill/launches/view.py", "warcmill/audit/remedies.py"} | FACTS


def test_tasks_words_markers_and_columns_are_each_one_row_s() -> None:
    for names in (
        [row.task for row in ROWS],
        [row.marker for row in ROWS],
        [row.word for row in ROWS if row.word],
        [row.files for row in ROWS if row.files],
        [row.column for row in ROWS if row.done],
    ):
        assert len(names) == len(set(names))


def test_a_row_works_on_one_before_it() -> None:
    place = {row.word: number for number, row in enumerate(ROWS)}
    assert all(place[row.after] < place[row.word] for row in ROWS if row.after)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.task)
def test_a_row_s_scope_is_that_of_its_marker_s_name(row: Row) -> None:
    fields = set(re.findall(r"{(\w+)}", row.marker))
    assert {"due": {"due"}, "launch": {"launch_id"}, "stage": {"stage"}, "finding": {"finding"}}[row.scope] <= fields
    assert not row.head or row.word
    assert not row.files or row.head
    assert row.due != ALWAYS or row.scan


def test_what_is_derived_is_of_the_rows_that_are_given() -> None:
    number = count()

    def row(word: str, after: str = "", **fields: object) -> Row:
        return Row(f"a.{word}", f"{next(number)}", "stage", word, f"_{word}", after, files=word, **fields)  # type: ignore[arg-type]

    rows = row("listed"), row("kept", "listed", stored=True), row("seen", "kept", stored=True), row("read", "kept")
    listed, kept, seen, read = rows
    assert chain.after_list(rows) == (kept, seen, read)
    assert chain.storing(rows) == (kept,)
    assert chain.below(rows, kept) == (seen, read)
    assert chain.ends(rows) == (seen, read)
    assert chain.by_word(rows)["listed"] is chain.by_task(rows)["a.listed"] is listed
    assert chain.scans(ROWS) == (
        "output.ScanForOutputs",
        "files.ScanForOutputFiles",
        "package.ScanForPackages",
        "index.ScanForIndexing",
        "reports.ScanForReports",
        "pypi.ScanForDistributions",
        "documents.ScanForDocuments",
    )


def test_a_step_s_task_is_spelled_in_its_row_its_module_and_by_the_steps_that_read_its_marker() -> None:
    tasks = {row.task for row in ROWS if row.word}
    spelled = {
        path.relative_to(ROOT).as_posix()
        for folder in ("warcmill", "targets", "tasks", "commands")
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and node.value in tasks
    }
    assert {path for path in spelled if not path.startswith(CHAINS)} == READ_MARKERS
