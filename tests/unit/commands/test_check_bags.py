"""warcmill check on bags: lines for people, objects for machines, and an exit code that tells."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest
from packing import bags
from records.warcs import http, member, record, sha1, warc_gz, warcinfo

from commands import check
from warcmill.formats.bagit import containers

BODY = b"<p>Hello.</p>"
GOOD = warc_gz(warcinfo(), record(block=http(BODY), payload=sha1(BODY)))
CUT_AT = len(member(warcinfo()))

URL = "http://store.example/hello.txt"


def run(folder: Path, *words: str) -> int:
    parser = argparse.ArgumentParser()
    check.add_arguments(parser)
    return check.run(parser.parse_args([word if word.startswith("-") else str(folder / word) for word in words]))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    payload = {"data/good.warc.gz": GOOD, "data/hello.txt": b"hello\n"}
    whole = bags.make(payload)
    bags.as_folder(whole, tmp_path / "whole")
    (tmp_path / "whole.tar").write_bytes(bags.tar_bytes(whole))
    changed = bags.make(payload, info=b"") | {"data/hello.txt": b"hellO\n", "data/more": b""}
    (tmp_path / "changed.zip").write_bytes(bags.zip_bytes(changed))
    holey = bags.make(payload, tags={"fetch.txt": f"{URL} 6 data/hello.txt\n".encode()})
    del holey["data/hello.txt"]
    (tmp_path / "holey.tar.gz").write_bytes(bags.tar_bytes(holey, compression="gz"))
    (tmp_path / "cut.tgz").write_bytes(bags.tar_bytes(bags.make({"data/cut.warc.gz": GOOD[:-1]}), compression="gz"))
    return tmp_path


def test_a_valid_bag_and_the_warcs_in_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder, "whole", "whole.tar") == 0
    bag = f"BagIt 1.0, sha512; 2 payload files, {len(GOOD) + 6} bytes"
    warc = f"2 records, {len(GOOD)} bytes; payload digests 1 as-transferred"
    assert capsys.readouterr().out.splitlines() == [
        f"ok         {folder}/whole: {bag}",
        f"ok         {folder}/whole/data/good.warc.gz: {warc}",
        f"ok         {folder}/whole.tar: {bag}",
        f"ok         {folder}/whole.tar:data/good.warc.gz: {warc}",
    ]


def test_a_bag_that_is_wrong(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder, "changed.zip") == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["refused", "fault", "fault", "ok"]
    assert lines[0].endswith("bytes; 2 faults")
    assert lines[1].startswith(f"fault      {folder}/changed.zip: data/hello.txt: its sha512 is ")
    assert lines[2] == f"fault      {folder}/changed.zip: data/more: manifest-sha512.txt does not list it"


def test_a_bag_that_is_incomplete_is_not_broken_and_not_valid(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder, "holey.tar.gz") == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == (
        f"incomplete {folder}/holey.tar.gz: BagIt 1.0, sha512; 1 payload files, {len(GOOD)} bytes;"
        " 1 files to be fetched"
    )
    assert lines[1] == f"to fetch   {folder}/holey.tar.gz: data/hello.txt, from {URL}"
    assert lines[2].startswith("ok ")


def test_a_cut_warc_in_a_valid_bag(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder, "cut.tgz") == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("ok         ")
    assert lines[1].startswith(
        f"refused    {folder}/cut.tgz:data/cut.warc.gz at offset {CUT_AT}: the gzip member is cut"
    )


def test_the_second_opinion_reads_the_warcs_of_a_bag(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder, "--second-opinion", "whole", "whole.tar", "cut.tgz") == 1
    words = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert words == ["ok", "ok", "agrees", "ok", "ok", "agrees", "ok", "refused", "differs"]


def test_json_has_the_whole_verdict_on_a_bag(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder, "--json", "holey.tar.gz", "changed.zip") == 1
    holey, warc, changed, _ = map(json.loads, capsys.readouterr().out.splitlines())
    assert holey == {
        "file": f"{folder}/holey.tar.gz",
        "result": "incomplete",
        "bagit": "1.0",
        "encoding": "UTF-8",
        "manifests": ["manifest-sha512.txt", "tagmanifest-sha512.txt"],
        "files": 1,
        "bytes": len(GOOD),
        "faults": [],
        "warnings": [],
        "to_fetch": [{"url": URL, "length": 6, "path": "data/hello.txt"}],
    }
    assert (warc["file"], warc["result"]) == (f"{folder}/holey.tar.gz:data/good.warc.gz", "ok")
    assert [fault["path"] for fault in changed["faults"]] == ["data/hello.txt", "data/more"]


def test_an_archive_that_is_none_or_cannot_be_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "none.tar").write_bytes(b"no tar")
    (folder / "bare").mkdir()
    assert run(folder, "none.tar", "absent.zip", "bare") == 4
    assert capsys.readouterr().out.splitlines() == [
        f"refused    {folder}/none.tar: 1 faults",
        f"fault      {folder}/none.tar: not a whole tar: at offset 0: truncated header",
        f"unreadable {folder}/absent.zip: No such file or directory",
        f"unreadable {folder}/bare: Is a directory",
    ]


def test_a_file_of_a_folder_that_cannot_be_read_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = folder / "whole/data/hello.txt"
    opened = containers.Folder._open

    def gone(self: containers.Folder, path: str) -> object:
        if path == str(lost):
            lost.unlink()
        return opened(self, path)

    monkeypatch.setattr(containers.Folder, "_open", gone)
    assert run(folder, "whole") == 4
    assert capsys.readouterr().out == f"unreadable {folder}/whole: {lost}: No such file or directory\n"


def test_a_long_list_of_faults_is_cut_for_people(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = bags.make(info=b"") | {f"data/{number}": b"" for number in range(60)}
    (folder / "many.tar").write_bytes(bags.tar_bytes(files))
    assert run(folder, "many.tar") == 1
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + check.SHOWN + 1
    assert lines[-1] == f"fault      {folder}/many.tar: and 10 more; --json lists them all"


def test_a_name_that_would_act_on_a_terminal(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "red.tar").write_bytes(bags.tar_bytes(bags.make() | {"data/\x1b[31m": b""}))
    assert run(folder, "red.tar") == 1
    assert "\x1b" not in capsys.readouterr().out
