"""The receipt that the operator's guide has written by hand, as it prints it, on a configuration that was edited."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from line import DAY, Line
from sample import JOB, LAUNCH_ID

from warcmill import layout

GUIDE = Path(__file__).parents[2] / "docs" / "operate" / "publishing.md"
NAME = f"{JOB}.{LAUNCH_ID}.final.tar"
RECEIPT, SENDING = layout.receipt_path(NAME), layout.sending_path(NAME)
MARKER = f"06.submitted.{JOB}.{LAUNCH_ID}.final"
SECTION = """
; SIPs, since the new agreement
[package]
since = 2016-01-01
organisation = {organisation}
destination = {destination}/
"""


def block() -> str:
    """The fenced block that writes the receipt, with the sample's launch in place of the guide's."""
    section = re.search(r"\n### When a submission stands\n(.*?)\n## ", GUIDE.read_text(), re.DOTALL)
    assert section
    (found,) = re.findall(r"^```\n(.*?)^```$", section[1], re.DOTALL | re.MULTILINE)
    text = found.replace("daily/20261121081844", f"{JOB}/{LAUNCH_ID}")
    return text.replace("daily.20261121081844", f"{JOB}.{LAUNCH_ID}")


def write(line: Line, organisation: str) -> None:
    """As an operator edits it: comments, blanks, a slash at the end, and another name of the archive."""
    text = line.config.read_text().partition("\n; SIPs")[0].replace("state=", "state = ")
    line.config.write_text(text + SECTION.format(organisation=organisation, destination=place(line)))


def place(line: Line, path: str = "") -> Path:
    return line.config.parent / "a destination" / path


def scan(line: Line) -> subprocess.CompletedProcess[str]:
    return line.luigi("--module", "tasks.package", "package.ScanForPackages", "--date-interval", DAY)


def why(line: Line) -> str:
    """Why the submission stands."""
    (launch,) = json.loads(line.warcmill("reconcile", DAY, "--json").stdout)["launches"]
    (gap,) = launch["gaps"]
    assert gap["name"] == MARKER
    return str(gap["why"])


@pytest.fixture
def submitted(done: Line) -> Line:
    """A line whose SIP was handed over, and lies in the watched folder."""
    write(done, "National Library")
    assert done.warcmill("init", "--adopt", "package", "--create").returncode == 0
    assert scan(done).returncode == 0
    return done


def gone(line: Line) -> None:
    """Somebody moved the slips away too early."""
    for path in (RECEIPT, SENDING):
        place(line, path).unlink()


def anothers(line: Line) -> None:
    """As a SIP of the same file, that was built from other markers, has left it."""
    for path in (RECEIPT, SENDING):
        slip = json.loads(place(line, path).read_text())
        place(line, path).write_text(json.dumps(slip | {"key": "b" * 128}) + "\n")


def torn(line: Line) -> None:
    text = place(line, RECEIPT).read_text()
    place(line, RECEIPT).write_text(text[: len(text) // 2])


def test_the_guide_s_receipt_is_that_of_warcmill_and_nothing_is_sent_again(submitted: Line) -> None:
    line = submitted
    own, sip = place(line, RECEIPT).read_bytes(), place(line, layout.ingest_path(NAME))
    before = sip.stat()
    write(line, "National Library & Archive")  # nothing in a receipt follows from the configuration
    for damage, told in ((gone, "a file is there already"), (anothers, "is of another SIP"), (torn, "cannot be read")):
        redone = line.warcmill("redo", JOB, LAUNCH_ID, "submit", "final", "--downstream", "--also", MARKER)
        assert redone.returncode == 0, redone.stderr
        damage(line)
        assert scan(line).returncode == 30
        assert told in why(line)
        for path in (RECEIPT, SENDING):
            place(line, path).unlink(missing_ok=True)  # "move both slips away"
        command = block().replace("STATE", str(line.folders["state"])).replace("DESTINATION", f"'{place(line)}'")
        subprocess.run(["sh", "-ec", command], check=True)
        assert place(line, RECEIPT).read_bytes() == own
        done = scan(line)
        assert done.returncode == 0, done.stdout + done.stderr
        assert (sip.stat().st_ino, sip.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
        assert not place(line, SENDING).exists(), "nothing was sent"
        place(line, SENDING).write_bytes(own)  # as before, for the next one
