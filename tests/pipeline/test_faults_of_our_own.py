"""A fault in Warcmill itself, if there is one: it is reported where an operator looks, and hides nothing else."""

from __future__ import annotations

import os
import subprocess
from typing import Any

import preloaded
import pytest
from launches.bundled import LAUNCH
from line import DAY, Line
from sample import JOB, LAUNCH_ID
from sites.receivers import web_server

FAULTS = {
    "KeyError": "KeyError('size')",
    "UnicodeDecodeError": "UnicodeDecodeError('utf-8', b'\\xff', 0, 1, 'invalid start byte')",
    "MemoryError": "MemoryError()",
    "SystemExit": "SystemExit(3)",
}
BROKEN = """
import sys
from pkgutil import resolve_name
from luigi.cmdline import luigi_run
def fault(*_, **__):
    raise {error}
setattr(resolve_name("{place}"), "{name}", fault)
luigi_run(sys.argv[1:])
"""


def scan(line: Line, place: str, name: str, error: str) -> subprocess.CompletedProcess[str]:
    """A scan of the transfer by a Warcmill one of whose functions raises what it never should."""
    code = BROKEN.format(place=place, name=name, error=error)
    words = ["--module", "tasks.files", "files.ScanForOutputFiles", "--date-interval", DAY]
    environment = {**os.environ, "LUIGI_CONFIG_PATH": str(line.config)}
    return preloaded.run("-c", code, *words, env=environment)


@pytest.fixture
def told(line: Line) -> Any:
    """What the line's webhook is sent; the launch is assembled."""
    assert line.luigi("--module", "tasks.output", "output.ScanForOutputs", "--date-interval", DAY).returncode == 0
    with web_server() as received:
        with line.config.open("a") as file:
            file.write(f"[notice]\nwebhook=http://127.0.0.1:{received.port}/hook?token=s3cret\n")
        yield lambda: [one for _, _, told in received.posts for one in told["troubles"]]


@pytest.mark.parametrize("kind", FAULTS)
def test_one_in_a_step_is_in_its_attempt_in_why_and_in_the_notice(line: Line, told: Any, kind: str) -> None:
    done = scan(line, "warcmill.files.checksum", "checksum", FAULTS[kind])
    assert done.returncode == 30, done.stderr
    assert "Traceback" in done.stderr
    why = line.warcmill("why", JOB, LAUNCH_ID)
    assert f"unexpected {kind}" in why.stdout.replace("\n", " ")
    assert "was not run yet" not in why.stdout.partition("files.copied")[0]
    ((task, trouble),) = [(one["name"], one["why"]) for one in told()]
    assert task.startswith("files.checksums.")
    assert trouble.startswith(f"unexpected {kind}: ")


def test_one_at_a_single_warc_names_it(line: Line, told: Any) -> None:
    done = scan(line, "warcmill.files.checksum:_Reading", "item", "KeyError('size')")
    assert done.returncode == 30, done.stderr
    names = [path.name for path in (line.folders["output"] / "warcs" / JOB / LAUNCH_ID).iterdir()]
    why = line.warcmill("why", JOB, LAUNCH_ID).stdout
    assert all(f"failed: warcs/{JOB}/{LAUNCH_ID}/{name}: unexpected KeyError" in why for name in names)
    assert [one["kind"] for one in told()] == ["failed"], done.stderr
    assert line.scan() == [0, 0], "the next run finds nothing in its way"


def test_one_while_a_scan_lists_is_reported_and_ends_it(line: Line, told: Any) -> None:
    done = scan(line, "warcmill.launches.discovery", "find", "KeyError('size')")
    assert done.returncode == 35
    assert [(one["kind"], one["why"].partition(",")[0]) for one in told()] == [
        ("unreadable", "unexpected KeyError: 'size'")
    ]


def test_one_at_a_launch_is_reported_and_holds_up_no_other(line: Line, told: Any) -> None:
    done = scan(line, "tasks.files:ScanForOutputFiles", "missing", "KeyError('size')")
    assert done.returncode == 30
    assert [(one["kind"], one["launch"]) for one in told()] == [("unreadable", str(LAUNCH))]


@pytest.mark.parametrize(
    ("place", "name"),
    [
        ("warcmill.audit.day_summary", "rewrite"),
        ("warcmill.audit.day_summary", "of_survey"),
        ("tasks.summary", "_of_launch"),
    ],
)
def test_one_in_the_summary_still_sends_the_notice(line: Line, told: Any, place: str, name: str) -> None:
    done = scan(line, place, name, "KeyError('size')")
    assert done.returncode == 0, "the steps are done"
    assert [one["kind"] for one in told()] == ["unreadable"]
    assert "unexpected KeyError" in told()[0]["why"]
