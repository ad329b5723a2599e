"""What `warcmill scan` makes of luigi's exit codes and messages, and which command it names."""

from __future__ import annotations

import logging
import sys
from datetime import date

import pytest
from luigi.rpc import RPCError

from commands.console.arguments import Interval
from commands.console.scanner import ours
from commands.scan import _worst, next_command, sums
from tasks import logs
from tasks.visualiser import Visualiser
from warcmill.audit.gaps import Gap
from warcmill.audit.reconciliation import LaunchReport, StageRow
from warcmill.base.progress import Snapshot
from warcmill.errors import Unsettled
from warcmill.model import FINAL, Launch

DAYS = Interval("2016-10", date(2016, 10, 1), date(2016, 11, 1))
LAUNCH = Launch("daily", "20161019234428")
BAD = LaunchReport(LAUNCH, "finished", (), (Gap(LAUNCH, "final", "refused", "a.warc.gz", "cut", "look"),))
GOOD = LaunchReport(LAUNCH, "finished", (), ())
LATER = Launch("daily", "20161020234428")
LACKS = LaunchReport(LATER, "finished", (), (Gap(LATER, "final", "lacking", "files.copied", "disk full", "scan"),))


def test_luigi_s_exit_codes_are_ours() -> None:
    known = {0: 0, 4: 3, 10: 5, 20: 1, 25: 5, 30: 1, 35: 1, 40: 70, -9: 1}
    assert {code: ours(code) for code in known} == known
    assert [_worst(codes) for codes in ([0, 5], [5, 1], [1, 4], [4, 3], [3, 70], [0])] == [5, 1, 4, 3, 70, 0]


@pytest.mark.parametrize(
    ("code", "not_planned", "reports", "told"),
    [
        (0, False, [GOOD], ""),
        (1, False, [GOOD, BAD], "warcmill why daily 20161019234428"),
        (1, False, [BAD, LACKS], "warcmill why daily 20161020234428"),  # first what is repaired, last what is accepted
        (1, False, [GOOD], "warcmill doctor"),
        (1, True, [BAD], "warcmill plan 2016-10"),
        (4, True, [BAD], "warcmill doctor"),
    ],
)
def test_the_command_to_type_next(code: int, not_planned: bool, reports: list[LaunchReport], told: str) -> None:
    assert next_command(code, not_planned, DAYS, reports) == told


def test_the_last_line_counts_what_makes_it_end_with_1() -> None:
    assert sums([GOOD]) == "1 launch, 0 WARCs, 0 refused, 0 failed"
    gap = Gap(LAUNCH, "final", "absent log", "final/reports/", "gone", "accept")
    absent = LaunchReport(LAUNCH, "finished", (StageRow(FINAL, True, {"on_disk": 1, "assembled": 1}),), (gap,))
    assert sums([absent]) == "1 launch, 1 WARC, 0 refused, 0 failed, 1 gap"


def of_luigi(message: str, *args: object, error: Exception | None = None) -> logging.LogRecord:
    info = None
    if error:
        try:
            raise error
        except Exception:  # noqa: BLE001 any that a test gives
            info = sys.exc_info()
    return logging.LogRecord("luigi-interface", logging.WARNING, "", 1, message, args, info)


NOT_PLANNED = "Will not run output.ScanForOutputs() or any dependencies due to error in deps() method"
FAILED = ("[pid %s] Worker %s failed    %s", 1, "Worker(host=a)", "files.Copy(job=daily)")


@pytest.mark.parametrize(
    ("record", "told"),
    [
        (of_luigi(*FAILED, error=Unsettled("files.Copy(job=daily)", ["a: b"])), "files.Copy(job=daily): 1 item(s) "),
        (of_luigi(*FAILED, error=OSError(28, "No space")), "files.Copy(job=daily): [Errno 28] No space"),
        (of_luigi(*FAILED, error=KeyError("x")), "files.Copy(job=daily): KeyError: 'x'"),
        (
            of_luigi(
                f"{NOT_PLANNED}:\n%s",
                "Traceback (most recent call last):\n  File 'a'\nwarcmill.errors.Unavailable: root 'output': gone\n",
            ),
            f"{NOT_PLANNED}: root 'output': gone",
        ),
    ],
)
def test_an_error_of_luigi_s_is_one_line(record: logging.LogRecord, told: str) -> None:
    assert logs.has_traceback(record)
    line = logs.in_one_line(record)
    assert line.getMessage().startswith(told)
    assert "\n" not in line.getMessage()
    assert (line.levelno, line.exc_info) == (logging.ERROR, None)


def test_a_warning_without_a_traceback_stays_as_it_is() -> None:
    line = logs.in_one_line(of_luigi("Task %s is not granted run permission", "a"))
    assert (line.getMessage(), line.levelno) == ("Task a is not granted run permission", logging.WARNING)


def test_a_luigid_that_is_gone_is_sent_no_more(caplog: pytest.LogCaptureFixture) -> None:
    asked = []

    class Task:
        """As Luigi runs one: these two are set for as long as it runs."""

        def set_status_message(self, text: str) -> None:
            asked.append(text)
            raise RPCError("no luigid")

        def set_progress_percentage(self, _: int) -> None:
            raise AssertionError("it was asked again")

    page = Visualiser(Task())  # type: ignore[arg-type]
    for _ in "12":
        page.show(Snapshot("a step", "a.warc.gz", 5_000_000, 10_000_000, 1))
    assert asked == ["5.0 of 10.0 MB, 5 MB/s, 1 s left, at a.warc.gz"]
    assert caplog.text.count("no more progress of this step is sent to luigid: no luigid") == 1
