"""warcmill versions: what an operator types, and what is printed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from indexing.indexed import Archive
from indexing.text_archive import TextArchive, warc
from records.captures import response
from records.warcs import warc_gz, warcinfo

from commands.main import main
from warcmill.extracts.text_workers import TextWorkers
from warcmill.layout import archived_path

ONE, TWO = "20161019234428", "20161020234428"


class Operator:
    """Types commands about an archive."""

    def __init__(self, archive: Archive, capsys: pytest.CaptureFixture[str]) -> None:
        self.archive, self._capsys = archive, capsys

    def types(self, *words: str) -> tuple[int, str]:
        """Exit code and stdout."""
        code = main(["versions", *words])
        return code, self._capsys.readouterr().out

    def add(self, launch_id: str, *urls: str) -> None:
        """One more launch, indexed, and a fold."""
        records = (response(f"http://{url}") for url in urls)
        self.archive.add(launch_id, {"a.warc.gz": warc_gz(warcinfo(), *records)})
        self.archive.fold()


@pytest.fixture
def operator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Operator:
    archive = Archive(tmp_path)
    archive.configure(monkeypatch)
    return Operator(archive, capsys)


def test_without_a_version_it_names_what_makes_one(operator: Operator) -> None:
    assert operator.types("list") == (
        0,
        "no version of cdx yet: 'warcmill scan' publishes the first, where [index] is on\n",
    )
    assert operator.types("verify")[0] == 1
    assert operator.types("retire") == (0, "nothing to retire\n")
    assert operator.types("diff", "1", "2")[0] == 1


def test_list_shows_every_version_and_what_is_hidden(operator: Operator) -> None:
    operator.add(ONE, "a.example/", "b.example/")
    operator.add(TWO, "c.example/")
    operator.types("hide", "example,b", "--reason", "order of a court")
    code, text = operator.types("list")
    rows = text.splitlines()
    assert (code, [row.split()[0] for row in rows]) == (0, ["cdx", "1", "2", "hidden:"])
    assert rows[2].endswith("current")
    assert rows[3] == "hidden: example,b  order of a court"
    document = json.loads(operator.types("list", "--json")[1])
    assert [(one["number"], one["warcs"], one["lines"], one["current"]) for one in document["versions"]] == [
        (1, 1, 2, False), (2, 2, 3, True),
    ]  # fmt: skip
    assert document["hidden"] == [{"reason": "order of a court", "surt": "example,b"}]


def test_diff_names_warcs_and_what_was_hidden(operator: Operator) -> None:
    operator.add(ONE, "a.example/")
    operator.types("hide", "example,b", "--reason", "order of a court")
    operator.add(TWO, "b.example/", "c.example/")
    sums = "1 WARC added, 0 removed, 0 changed\n", "0 WARCs added, 1 removed, 0 changed\n"
    assert operator.types("diff", "1", "2") == (
        0,
        f"+ daily/{TWO}/a.warc.gz\nhidden: example,b  (version 1 shows 0 captures of it)\n" + sums[0],
    )
    assert operator.types("diff", "2", "1") == (
        0,
        f"- daily/{TWO}/a.warc.gz\nshown again: example,b  (version 1 shows 0 captures of it)\n" + sums[1],
    )


def test_verify_reads_all_and_names_what_is_wrong(operator: Operator) -> None:
    operator.add(ONE, "a.example/", "b.example/")
    operator.add(TWO, "c.example/")
    said = "version 2 of cdx: 3 captures of 2 WARCs read again, nothing is wrong\n"
    assert operator.types("verify") == (0, said)
    assert operator.types("verify", "1")[0] == 0
    published = operator.archive.payloads.current()
    assert published
    for end in (".cdx.gz", ".idx", ".inputs", ".counts", ".loc"):
        path = operator.archive.base / "index" / published.segments[0].files[end].path
        sound = path.read_bytes()
        path.chmod(0o644)
        path.write_bytes(sound[:11] + bytes([sound[11] ^ 1]) + sound[12:])
        code, text = operator.types("verify")
        assert code == 1, end
        assert path.name in text, end
        assert text.endswith("wrong\n")
        path.write_bytes(sound)
    assert operator.types("verify") == (0, said)


def test_verify_finds_a_line_that_should_be_hidden(operator: Operator) -> None:
    operator.add(ONE, "a.example/")
    operator.types("hide", "example,zzz", "--reason", "order of a court")
    operator.archive.fold()
    path = "decisions/access/000001.json"
    operator.archive.state.store.real(path).unlink()
    operator.archive.store.real(archived_path(path)).unlink()
    operator.types("hide", "example,a", "--reason", "another")
    code, text = operator.types("verify")
    assert code == 1
    assert "the first 1 decisions differ from those that version 2 names" in text
    assert "example,a is hidden, and index:" in text


def test_retire_removes_files_and_keeps_lists(operator: Operator) -> None:
    for day in range(1, 5):
        operator.add(f"201610{day:02}000000", f"e{day}.example/")
    stray = operator.archive.base / "index/versions/cdx/000009-abcdefabcdef"
    stray.mkdir()
    (stray / "x.idx").write_bytes(b"half")
    code, text = operator.types("retire", "--keep", "2")
    assert (code, text.splitlines()) == (0, [
        "version 1 of cdx: its files are removed, its list stays",
        "version 2 of cdx: its files are removed, its list stays",
        "1 folder of folds that were broken off removed",
    ])  # fmt: skip
    assert [one.number for one in operator.archive.payloads.all()] == [3, 4]
    assert operator.archive.lists.numbers() == [1, 2, 3, 4]
    assert len(operator.archive.keys()) == 4
    assert operator.types("verify")[0] == 0
    assert "retired: only its list" in operator.types("list")[1]
    assert operator.types("verify", "1")[0] == 1


def test_hide_counts_what_it_means_and_repeats_nothing(operator: Operator) -> None:
    operator.add(ONE, "a.example/", "www.b.example/", "b.example/x")
    code, text = operator.types("hide", "example,b", "--reason", "order of a court")
    assert (code, text.splitlines()[:2]) == (0, [
        "example,b: hidden (decision 1)",
        "  version 1, the current one, shows 2 captures of it",
    ])  # fmt: skip
    assert operator.types("hide", "example,b", "--reason", "again") == (
        1,
        "example,b: hidden already: order of a court\n",
    )
    assert operator.types("unhide", "example,c", "--reason", "x")[0] == 1
    code, text = operator.types("unhide", "example,b", "--reason", "the order was lifted")
    assert (code, text.splitlines()[0]) == (0, "example,b: shown again (decision 2)")
    for wrong in ("b.example", "www.b.example/x", "127.0.0.1:80/x", "http://"):  # they would hide nothing
        assert operator.types("hide", wrong, "--reason", "x")[0] == 1


def test_hide_of_a_url_means_this_page_alone(operator: Operator) -> None:
    operator.add(ONE, "b.example/1", "b.example/10", "b.example/1/x", "b.example/1?y=z")
    pages = {"https://www.b.example/1#top": "example,b)/1 ", "http://b.example/1?y=z": "example,b)/1?y=z "}
    for url, entry in pages.items():
        code, text = operator.types("hide", url, "--reason", "asked for")
        assert (code, f"{entry}: hidden" in text, "shows 1 capture of it" in text) == (0, True, True), text
        assert operator.types("hide", url, "--reason", "asked for")[0] == 1
    operator.archive.fold()
    assert operator.archive.keys() == ["example,b)/1/x", "example,b)/10"]
    assert operator.types("unhide", "http://b.example/1", "--reason", "over")[0] == 0


@pytest.mark.parametrize("words", [["diff", "0", "1"], ["diff", "1"], ["hide", "a"], ["retire", "--keep", "0"], []])
def test_wrong_usage_is_exit_2(operator: Operator, words: list[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        operator.types(*words)


def test_hide_with_the_store_away_says_what_stands_and_again_copies_it(
    operator: Operator, capsys: pytest.CaptureFixture[str]
) -> None:
    operator.add(ONE, "a.example/", "b.example/")
    store, path = operator.archive.store.base, "decisions/access/000001.json"
    store.rename(store.with_name("away"))
    assert main(["versions", "hide", "example,b", "--reason", "order of a court"]) == 4
    told = capsys.readouterr().err
    assert "root 'store'" in told
    assert "Decision 1 stands in the state (decisions/access/) and counts from the next scan on" in told
    assert main(["versions", "hide", "example,b", "--reason", "again"]) == 4
    told = capsys.readouterr()
    assert told.out == "example,b: hidden already: order of a court\n"
    assert "Decision 1 stands in the state" in told.err
    store.with_name("away").rename(store)
    assert operator.types("hide", "example,b", "--reason", "order of a court") == (
        0,
        "example,b: hidden already: order of a court\ndecision 1 was in the state alone: it is in the store now\n",
    )
    assert operator.archive.store.stat(archived_path(path))
    assert operator.types("hide", "example,b", "--reason", "order of a court")[0] == 1


def test_hide_in_a_lost_state_asks_for_restore_and_writes_nothing(
    operator: Operator, capsys: pytest.CaptureFixture[str]
) -> None:
    operator.add(ONE, "a.example/", "b.example/")
    operator.types("hide", "example,b", "--reason", "order of a court")
    operator.archive.state.store.real("decisions/access/000001.json").unlink()
    assert main(["versions", "hide", "example,a", "--reason", "another"]) == 1
    assert "the state lacks this decision: run 'warcmill restore', then this again" in capsys.readouterr().err
    assert operator.archive.state.store.names("decisions/access") == frozenset()


def test_diff_counts_what_is_hidden_and_shown_again(operator: Operator) -> None:
    operator.add(ONE, "a.example/", "b.example/", "b.example/x")
    operator.types("hide", "example,b", "--reason", "order of a court")
    operator.archive.fold()
    assert "hidden: example,b  (version 1 shows 2 captures of it)" in operator.types("diff", "1", "2")[1]
    operator.types("unhide", "example,b", "--reason", "lifted")
    operator.archive.fold()
    told = operator.types("diff", "2", "3")[1]
    assert "shown again: example,b  (version 3 shows 2 captures of it)" in told
    operator.types("retire", "--keep", "1")
    told = operator.types("diff", "1", "2")[1]
    assert "hidden: example,b  (not counted: the files of version 1 are not there)" in told


def test_hidden_documents_are_counted_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    archive = TextArchive(tmp_path)
    archive.configure(monkeypatch)
    operator = Operator(archive, capsys)
    with TextWorkers(1) as archive.workers:
        archive.add(ONE, {"a.warc.gz": warc({"a.example/": "x", "b.example/": "x", "b.example/y": "x"})})
        archive.fold()
    rows = operator.types("list", "--of", "text")[1].splitlines()
    assert [row.split()[2:6] for row in rows] == [["WARCs", "documents", "hidden", "segments"], ["1", "3", "0", "1"]]
    operator.types("hide", "example,b", "--reason", "order of a court")
    rows = operator.types("list", "--of", "text")[1].splitlines()
    assert rows[1].split()[2:6] == ["1", "1", "2", "1"]
    (version,) = json.loads(operator.types("list", "--of", "text", "--json")[1])["versions"]
    assert (version["lines"], version["hidden"]) == (3, 2)
    (segment,) = archive.payloads.current().segments  # type: ignore[union-attr]
    path = archive.index.real(segment.files[".sqlite"].path)
    path.chmod(0o644)
    path.write_bytes(b"no database")
    code = main(["versions", "list", "--of", "text"])
    told = capsys.readouterr()
    assert (code, told.out.splitlines()[1].split()[2:6]) == (0, ["1", "?", "?", "1"])
    assert "SQLite cannot read it" in told.err
