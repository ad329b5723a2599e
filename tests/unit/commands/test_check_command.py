"""warcmill check: a line a file, nothing of it lost to one bad file, and an exit code that tells."""

from __future__ import annotations

import argparse
import io
import json
import os
import pty
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from records.warcs import WEEKLY, chunked, http, member, record, sha1, warc_gz, warcinfo

from commands import check
from commands.console import progress
from warcmill.formats.warc.second_opinion import opinion

BODY = b"<p>Hello.</p>"
GOOD = warc_gz(warcinfo(), record(block=http(BODY), payload=sha1(BODY)))
CUT_AT = len(member(warcinfo()))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "good.warc.gz").write_bytes(GOOD)
    (tmp_path / "cut.warc.gz.open").write_bytes(GOOD[:-1])
    (tmp_path / "bare.warc").write_bytes(record(block=http(BODY), payload=sha1(BODY)))
    return tmp_path


def run(folder: Path, *words: str) -> int:
    parser = argparse.ArgumentParser()
    check.add_arguments(parser)
    files = [word if word.startswith("-") else str(folder / word) for word in words]
    return check.run(parser.parse_args(files))


def test_a_good_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder, "good.warc.gz") == 0
    out, err = capsys.readouterr()
    expected = f"2 records, {len(GOOD)} bytes; payload digests 1 as-transferred"
    assert out == f"ok         {folder}/good.warc.gz: {expected}\n"
    assert err == ""


def test_a_refused_file_is_named_with_offset_and_reason(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder, "cut.warc.gz.open") == 1
    assert capsys.readouterr().out == (
        f"refused    {folder}/cut.warc.gz.open at offset {CUT_AT}: the gzip member is cut short:"
        f" the file ends at {len(GOOD) - 1}; whole before it: 1 records, {CUT_AT} bytes\n"
    )


def test_a_warning_does_not_refuse(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder, "bare.warc") == 0
    assert "; warning: no warcinfo record" in capsys.readouterr().out


def test_what_cannot_be_read_does_not_stop_the_others(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder, "absent.warc.gz", "", "cut.warc.gz.open", "good.warc.gz") == 4
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["unreadable", "unreadable", "refused", "ok"]
    assert lines[0] == f"unreadable {folder}/absent.warc.gz: No such file or directory"
    assert lines[1] == f"unreadable {folder}: Is a directory"


def test_json_has_the_whole_verdict_a_line_a_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder, "--json", "good.warc.gz", "cut.warc.gz.open", "absent.warc") == 4
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line) for line in lines] == [
        {
            "file": f"{folder}/good.warc.gz",
            "result": "ok",
            "why": "",
            "offset": None,
            "whole": len(GOOD),
            "records": 2,
            "members": 2,
            "payload_digests": {"as-transferred": 1},
            "warnings": [],
        },
        {
            "file": f"{folder}/cut.warc.gz.open",
            "result": "refused",
            "why": f"the gzip member is cut short: the file ends at {len(GOOD) - 1}",
            "offset": CUT_AT,
            "whole": CUT_AT,
            "records": 1,
            "members": 1,
            "payload_digests": {},
            "warnings": [],
            "bad": [{"offset": CUT_AT, "why": f"the gzip member is cut short: the file ends at {len(GOOD) - 1}"}],
            "bad_records": 1,
            "odd": [],
            "odd_records": 0,
            "sound": 0,
        },
        {"file": f"{folder}/absent.warc", "result": "unreadable", "why": "No such file or directory"},
    ]
    assert all(list(json.loads(line)) == sorted(json.loads(line)) for line in lines)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("two\nlines.warc", r"two\nlines.warc"),
        ("\x1b[31mred.warc", r"\x1b[31mred.warc"),
        ("bücher.warc", "bücher.warc"),
        (os.fsdecode(b"latin-\xe9.warc"), r"latin-\xe9.warc"),
        ("a b.warc", "a b.warc"),
    ],
)
def test_names_stay_on_one_line(name: str, shown: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / name).write_bytes(b"")
    assert run(tmp_path, name) == 1
    assert run(tmp_path, "--json", name) == 1
    text, machine = capsys.readouterr().out.splitlines()
    assert text.startswith(f"refused    {tmp_path}/{shown} at offset 0: the file is empty")
    assert json.loads(machine)["file"] == str(tmp_path / name)


def test_wrong_usage(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        run(folder)
    assert "FILE" in capsys.readouterr().err


def test_a_link_to_itself_is_unreadable(folder: Path) -> None:
    loop = folder / "loop.warc"
    loop.symlink_to(loop)
    assert run(folder, "loop.warc", "good.warc.gz") == 4


def test_the_salvage_that_the_help_promises(folder: Path) -> None:
    (folder / "salvaged.warc.gz").write_bytes(GOOD[:CUT_AT])
    assert run(folder, "salvaged.warc.gz") == 0


def test_progress_off_a_terminal_is_a_line_each_half_minute(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with progress.bytes_done("checking", 9_000_000) as advance:
        for now[0] in (1.0, 29.0, 31.0, 40.0, 62.0):
            advance(1_000_000)
    out, err = capsys.readouterr()
    assert err.splitlines() == [
        "checking: 3.0 of 9.0 MB, 0 MB/s, 62 s left",
        "checking: 5.0 of 9.0 MB, 0 MB/s, 50 s left",
    ]
    assert out == ""


def test_on_a_terminal_the_bar_is_on_stderr_and_the_results_on_stdout() -> None:
    leader, follower = pty.openpty()
    command = [sys.executable, "-c", "import sys; from commands.main import main; sys.exit(main())", "check", WEEKLY]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=follower, env=environment) as process:
        os.close(follower)
        bar = all_of(leader)
        out = process.communicate()[0].decode()
    os.close(leader)
    assert process.returncode == 0
    assert out.startswith(f"ok         {WEEKLY}: 797 records")
    assert b"checking" in bar
    assert b"797 records" not in bar


def all_of(terminal: int) -> bytes:
    """What is written to a terminal until nobody has it open, which reading then tells by EIO."""
    told = b""
    with suppress(OSError):
        while more := os.read(terminal, 1 << 16):
            told += more
    return told


@pytest.fixture
def doubtful(folder: Path) -> Path:
    """Beside the others: a digest of the body de-chunked, which warcio does not know; two records in a member."""
    sent = http(chunked(BODY), b"Transfer-Encoding: chunked")
    (folder / "chunks.warc.gz").write_bytes(warc_gz(warcinfo(), record(block=sent, payload=sha1(BODY))))
    (folder / "joined.warc.gz").write_bytes(member(warcinfo() + record(block=http(BODY))))
    (folder / "wrong.warc.gz").write_bytes(warc_gz(warcinfo(), record(block=http(BODY), payload=sha1(b"else"))))
    return folder


def test_a_second_opinion_that_agrees(doubtful: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(doubtful, "--second-opinion", "good.warc.gz") == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[1:] == [f"agrees     {doubtful}/good.warc.gz: warcio: 2 records, nothing wrong"]
    assert err == ""


def test_a_second_opinion_that_differs_on_a_record_that_passes(
    doubtful: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(doubtful, "chunks.warc.gz") == 0
    capsys.readouterr()
    assert run(doubtful, "--second-opinion", "chunks.warc.gz") == 1
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("ok ")
    begun = f"differs    {doubtful}/chunks.warc.gz at offset {CUT_AT}, response <urn:uuid:"
    assert second.startswith(begun)
    assert second.endswith(f">: the gate: nothing wrong; warcio: payload digest failed {sha1(BODY)}")


def test_a_second_opinion_that_does_not_see_a_cut(doubtful: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(doubtful, "--second-opinion", "cut.warc.gz.open") == 1
    assert capsys.readouterr().out.splitlines()[1] == (
        f"differs    {doubtful}/cut.warc.gz.open at offset {CUT_AT}: the gate: the gzip member is cut short:"
        f" the file ends at {len(GOOD) - 1}; warcio: nothing wrong"
    )


@pytest.mark.parametrize("name", ["joined.warc.gz", "wrong.warc.gz"])
def test_a_second_opinion_that_refuses_too(name: str, doubtful: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(doubtful, "--second-opinion", name) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["refused", "agrees"]
    assert lines[1].endswith(" 1 wrong, too")


def test_a_second_opinion_for_machines(doubtful: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(doubtful, "--second-opinion", "--json", "chunks.warc.gz") == 1
    found = json.loads(capsys.readouterr().out)["warcio"]
    (problem,), (difference,) = found["problems"], found["differences"]
    assert found["records"] == 2
    assert problem["offset"] == difference["offset"] == CUT_AT
    assert (difference["ours"], difference["theirs"]) == ("nothing wrong", problem["why"])


def test_the_opinions_on_the_sample_agree(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(WEEKLY.parent, "--second-opinion", WEEKLY.name) == 0
    assert "agrees" in capsys.readouterr().out


@given(st.binary(max_size=300), st.booleans())
def test_any_bytes_get_a_second_opinion(data: bytes, packed: bool) -> None:
    whole = member(b"WARC/1.0\r\n" + data) if packed else data
    told = opinion(io.BytesIO(whole))
    assert told.problems or told.records >= 0
