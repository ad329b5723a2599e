"""What was handed over, looked at again: each loss made on purpose, and named with the command that repairs it."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from line import DAY, Line
from sample import JOB, LAUNCH_ID

from warcmill import layout

NAME = f"{JOB}.{LAUNCH_ID}.final.tar"
MARKER = f"06.submitted.{JOB}.{LAUNCH_ID}.final"
REDO = f"warcmill redo {JOB} {LAUNCH_ID} submit final --downstream --also {MARKER} && warcmill scan {DAY}"
SIP, RECEIPT, SENDING = layout.ingest_path(NAME), layout.receipt_path(NAME), layout.sending_path(NAME)


@pytest.fixture
def line(done: Line) -> Line:
    """A line whose SIP was handed over, and is in the watched folder."""
    with done.config.open("a") as config:
        config.write(f"\n[package]\nsince=2016-01-01\norganisation=Library\ndestination={place(done)}\n")
    assert done.warcmill("init", "--adopt", "package", "--create").returncode == 0
    assert scan(done).returncode == 0
    return done


def place(line: Line, path: str = "") -> Path:
    return line.config.parent / "destination" / path


def scan(line: Line) -> subprocess.CompletedProcess[str]:
    return line.luigi("--module", "tasks.package", "package.ScanForPackages", "--date-interval", DAY)


def look(line: Line, *words: str) -> tuple[int, str]:
    done = line.warcmill("verify", "--outside", DAY, *words)
    return done.returncode, done.stdout + done.stderr


def last_look(line: Line) -> str:
    found = [row for row in line.warcmill("status", DAY).stdout.splitlines() if row.startswith("copies outside")]
    return found[0] if found else ""


def hand_over_again(line: Line, printed: str) -> None:
    """Do what the printed line says: move files away, redo, scan."""
    (todo,) = re.findall(r"^    -> (.*)$", printed, re.MULTILINE)
    first, _, commands = todo.rpartition("; then: ")
    for path in first.removeprefix("move away ").split(", ") if first else ():
        Path(path).unlink(missing_ok=True)
    assert commands == REDO
    assert line.warcmill(*commands.partition(" && ")[0].split()[1:]).returncode == 0
    assert scan(line).returncode == 0


def test_a_sip_that_is_there_is_looked_at_and_status_has_the_date(line: Line) -> None:
    assert last_look(line) == "copies outside: never looked at again since they were handed over"
    code, printed = look(line)
    assert (code, printed.splitlines()) == (
        0,
        [
            "[index] cdx_server is not set: nothing of it was looked at",
            "[text] solr is not set: nothing of it was looked at",
            "1 launch: 1 SIP, 1 receipt looked at: all as they were handed over",
        ],
    )
    pattern = rf"copies outside: last looked at 20\d\d-\d\d-\d\dT\S+Z, {DAY} to {DAY}: 1 SIP, 1 receipt looked at: all"
    assert re.match(pattern, last_look(line))
    record = line.folders["state"] / "status/outside.json"
    record.write_bytes(record.read_bytes()[:-9])
    assert "run warcmill verify --outside again" in last_look(line)
    assert look(line)[0] == 0
    assert re.match(pattern, last_look(line))


def gone(sip: Path) -> None:
    sip.unlink()


def truncated(sip: Path) -> None:
    sip.write_bytes(sip.read_bytes()[:-1])


def changed(sip: Path) -> None:
    data = bytearray(sip.read_bytes())
    data[len(data) // 2] ^= 1
    sip.write_bytes(data)


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (gone, "    it is missing; if the ingesting system took it away, set [package] verified_at to where"),
        (truncated, "bytes, and the SIP that was submitted"),
        (changed, "and that of the SIP that was submitted"),
    ],
)
def test_a_sip_that_is_gone_or_differs_is_named_and_the_command_hands_it_over_again(
    line: Line, damage: object, why: str
) -> None:
    before = place(line, SIP).read_bytes()
    assert callable(damage)
    damage(place(line, SIP))
    code, printed = look(line)
    rows = printed.splitlines()
    assert (code, rows[0]) == (1, f"{JOB}/{LAUNCH_ID}: {place(line, SIP)}")
    assert why in rows[1]
    assert rows[-1] == "1 launch: 1 SIP, 1 receipt looked at: 1 missing or different"
    assert last_look(line).endswith("1 missing or different")
    hand_over_again(line, printed)
    assert (look(line)[0], place(line, SIP).read_bytes()) == (0, before)


def test_a_receipt_that_is_gone_or_damaged_is_written_again_and_the_sip_is_not(line: Line) -> None:
    own, inode = place(line, RECEIPT).read_bytes(), place(line, SIP).stat().st_ino
    for damage, why in (
        (None, "the receipt is missing"),
        (own[:9], "the receipt cannot be read"),
        (own.replace(b'"key": "', b'"key": "x'), "the receipt is of another SIP"),
    ):
        place(line, RECEIPT).unlink()
        if damage is not None:
            place(line, RECEIPT).write_bytes(damage)
        code, printed = look(line)
        assert (code, f"{JOB}/{LAUNCH_ID}: {place(line, RECEIPT)}\n    {why}" in printed) == (1, True), printed
        hand_over_again(line, printed)
        assert (place(line, RECEIPT).read_bytes(), place(line, SIP).stat().st_ino) == (own, inode)
    for path in (RECEIPT, SENDING):
        place(line, path).unlink()
    assert "    -> write it by hand: 'When a submission stands' in docs/operate/publishing.md" in look(line)[1]


def test_a_place_that_does_not_answer_or_is_not_configured_is_never_green(line: Line) -> None:
    """The receipts are looked at although the place of the SIPs is away."""
    config, ingested = line.config.read_text(), line.config.parent / "ingested"
    line.config.write_text(f"{config}verified_at={ingested}\n")
    code, printed = look(line)
    assert (code, printed.splitlines()[-1]) == (4, "1 launch: 1 receipt looked at: 1 place does not answer")
    assert f"{ingested}\n" in printed
    assert last_look(line).endswith("1 receipt looked at: 1 place does not answer")
    place(line).rename(away := line.config.parent / "away")
    assert look(line)[1].endswith("1 launch: nothing looked at: 2 places do not answer\n")
    away.rename(place(line))
    line.config.write_text(config.replace(f"destination={place(line)}", ""))
    code, printed = look(line, "--json")
    found = json.loads(printed)
    assert (code, found["findings"][0]["name"], found["findings"][0]["why"]) == (
        1,
        NAME,
        "[package] destination is not set",
    )
    assert found["not_set"] == ["[package] destination", "[index] cdx_server", "[text] solr"]
