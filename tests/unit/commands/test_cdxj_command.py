"""warcmill cdxj and surt: lines on stdout, troubles on stderr, an exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from records.captures import capture, response
from records.warcs import warc_gz, warcinfo

from commands.main import main

GOOD = warc_gz(warcinfo(), response("http://e.x/1"), response("http://e.x/2"))


def keys(text: str) -> list[str]:
    return [line.split(" ")[0] for line in text.splitlines()]


def test_the_lines_of_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [tmp_path / "a.warc.gz", tmp_path / "b.warc.gz"]
    for file in files:
        file.write_bytes(GOOD)
    assert main(["cdxj", *map(str, files)]) == 0
    out, err = capsys.readouterr()
    assert (keys(out), err) == (["x,e)/1", "x,e)/2"] * 2, "")
    names = [json.loads(line.split(" ", 2)[2])["filename"] for line in out.splitlines()]
    assert names == ["a.warc.gz"] * 2 + ["b.warc.gz"] * 2


def test_a_damaged_one_an_unreadable_one_and_the_rest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "cut.warc.gz").write_bytes(GOOD[:-1])
    (tmp_path / "good.warc.gz").write_bytes(GOOD)
    assert main(["cdxj", f"{tmp_path}/cut.warc.gz", f"{tmp_path}/good.warc.gz"]) == 1
    out, err = capsys.readouterr()
    assert keys(out) == ["x,e)/1", "x,e)/1", "x,e)/2"]
    assert "cut.warc.gz at offset" in err
    assert "no line for this record" in err
    assert main(["cdxj", f"{tmp_path}/none.warc.gz", f"{tmp_path}/good.warc.gz"]) == 4
    out, err = capsys.readouterr()
    assert (keys(out), err) == (["x,e)/1", "x,e)/2"], f"warcmill: {tmp_path}/none.warc.gz: No such file or directory\n")


def test_captures_without_a_line_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.warc").write_bytes(response("http://e.x/", WARC_Date="bad") + capture("resource", None, b"x"))
    assert main(["cdxj", f"{tmp_path}/x.warc"]) == 0
    assert capsys.readouterr().err.splitlines() == [
        f"warcmill: {tmp_path}/x.warc: 1 captures without a line: no URL",
        f"warcmill: {tmp_path}/x.warc: 1 captures without a line: no date",
    ]


def test_a_reader_that_goes_away_ends_it(tmp_path: Path) -> None:
    (tmp_path / "x.warc").write_bytes(b"".join(response(f"http://e.x/{at}") for at in range(3000)))
    code = "from commands.main import main; import sys; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "cdxj", tmp_path / "x.warc"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stderr
        os.read(process.stdout.fileno(), 1)
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_a_key_per_url(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["surt", "https://www.gov.example/News/?b=2&A=1", "http://e.x:abc/ü\x1b"]) == 0
    assert capsys.readouterr().out == "example,gov)/news?a=1&b=2\nhttp://e.x:abc/%c3%bc%1b\n"
