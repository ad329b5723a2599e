"""The grid as it is drawn: totals, names folded at their `/`, colours on a terminal alone; and what totals count."""

from __future__ import annotations

import io
import re

from rich.console import Console

from commands.status import sign, table
from warcmill import chain
from warcmill.audit.progress_grid import Cell, LaunchGrid, Mark, Totals, totals
from warcmill.model import FINAL, Launch

STEPS = [row.word for row in chain.steps(chain.unswitched(chain.ROWS))]
DONE, NOT_DUE = Cell(Mark.DONE, 1, 1), Cell(Mark.NOT_DUE)
LONG = "a" * 63
ANSI = re.compile(r"\x1b\[[0-9;]*m")


def launch(job: str = "daily", ended: str = "finished", error: str = "", **cells: Cell) -> LaunchGrid:
    """A launch whose steps are all done, but for those given."""
    named = {step.replace("_", "-"): cell for step, cell in cells.items()}
    made = {step: NOT_DUE if step in ("read-back", "retire") else DONE for step in STEPS} | named
    return LaunchGrid(Launch(job, "20161019234428"), ended, {} if error else made, ((FINAL, made),), error)


def drawn(*grids: LaunchGrid, width: int = 100, colours: bool = False) -> list[str]:
    target = Console(
        file=io.StringIO(), width=width, force_terminal=colours, color_system="standard" if colours else None
    )
    return list(table(target, list(grids), totals(grids)))


def test_a_launch_is_one_line_and_the_last_counts_the_stages() -> None:
    half = launch(verify=Cell(Mark.PARTIAL, 1, 2), copy=Cell(Mark.DONE, 2, 2))
    lines = drawn(launch(), half)
    assert lines[2] == "2016-10-19 Wed"
    assert lines[3].split() == ["daily/20161019234428", "finished", "1", *"✔" * 9]
    assert lines[4].split()[-4:] == ["◐", "1/2", "✔", "✔"]
    assert lines[5].split() == ["total", "2", "2", "2", "2", "2", "2", "3", "2/3", "2", "2"]
    assert len({line.index("✔") for line in lines[3:5]}) == 1


def test_a_long_name_is_folded_at_its_slash_and_only_when_it_must_be() -> None:
    folded = drawn(launch(LONG), launch(), width=92)
    assert folded[3] == f" {LONG}/"
    assert folded[4].startswith("   20161019234428")
    assert folded[4].index("finished") == folded[5].index("finished")
    assert max(map(len, folded)) <= 92
    assert f" {LONG}/20161019234428" in drawn(launch(LONG), width=160)[3]


def test_colours_change_no_column() -> None:
    some = launch(), launch(checksum=Cell(Mark.REFUSED, 1, 1)), launch(ended=""), launch(error="unreadable")
    coloured = drawn(*some, colours=True)
    assert "\x1b[" in "".join(coloured)
    assert [ANSI.sub("", line).rstrip() for line in coloured] == drawn(*some)


def test_an_ending_from_a_marker_cannot_move_the_cursor() -> None:
    assert "\x1b" not in "".join(drawn(launch(ended="\x1b[2J")))


def test_every_launch_is_counted_under_one_word() -> None:
    waits = launch(verify=Cell(Mark.WAITING, 0, 1))
    some = launch(), waits, launch(ended=""), launch(error="gone"), launch(ended="", copy=Cell(Mark.FAILED, 0, 1))
    assert [one.word for one in some] == ["done", "waiting", "running", "in trouble", "in trouble"]
    found = totals(some)
    assert dict(found.launches) == {"done": 1, "waiting": 1, "running": 1, "in trouble": 2}
    assert found.stages == 5
    assert found.cells["verify"] == (3, 4), "the launch that cannot be read has no cells"
    assert found.cells["retire"] == (0, 0)
    assert totals([]) == Totals(dict.fromkeys(found.launches, 0), 0, dict.fromkeys(STEPS, (0, 0)))


def test_a_sign_has_numbers_only_where_some_are_done() -> None:
    assert sign(Cell(Mark.PARTIAL, 1, 3)) == ("◐ 1/3", "yellow")
    assert sign(DONE) == ("✔", "green")
    assert sign(None) == ("", "")
