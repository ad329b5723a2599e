"""docs/markers.md is enough to read markers by: a second reader, written from that page alone, reads a real line's.

Nothing of Warcmill is imported here but what runs the line.
"""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from line import DAY, Line, new_line

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "markers.md").read_text("utf-8")
GOLDEN = ROOT / "tests" / "data" / "markers" / "schema-1"
FIELDS = {
    "job": r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}",
    "launch_id": r"[0-9]{14}",
    "stage": r"final|cp[0-9]{5}-[0-9]{14}",
    "finding": r"[0-9a-f]{16}",
    "due": r"[0-9]{14}",
    "number": r"[0-9]{5}",
}


def section(heading: str) -> str:
    """The page from a heading to the next one of its rank or above."""
    rank = heading.partition(" ")[0]
    begin = PAGE.index(f"\n{heading}\n") + 1
    ends = [found.start() for found in re.finditer(rf"\n#{{1,{len(rank)}}} ", PAGE[begin:])]
    return PAGE[begin:][: ends[0]] if ends else PAGE[begin:]


def rows(text: str) -> list[list[str]]:
    """The cells of all table rows whose first cell has code in it; of an item of a list, what is before its colon."""
    lines = [line.strip("|").split(" | ") for line in text.splitlines() if line.startswith("|")]
    lines += [line.removeprefix("- ").split(": ", 1) for line in text.splitlines() if line.startswith("- `")]
    return [[cell.strip() for cell in cells] for cells in lines if code(cells[0])]


def code(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


NAMES = dict(re.findall(r"^\| `([^`]+)` \| `([^`]+)` \|$", section("## Names and paths"), re.MULTILINE))


# The reader.


def body_of(data: bytes) -> bytes:
    """BODY, once LAST has been found to be its digest."""
    cut = data.rindex(b"\n", 0, -1) + 1
    body, last = data[:cut], data[cut:]
    assert last == hashlib.sha512(body).hexdigest().encode() + b"\n"
    return body


def claim_digest(claim: dict[str, Any]) -> str:
    canonical = json.dumps(claim, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha512(canonical.encode("utf-8")).hexdigest()


def document(path: Path) -> dict[str, Any]:
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            last = archive.infolist()[-1]
            assert last.filename == "warcmill-evidence.json"
            data = archive.read(last)
    else:
        data = path.read_bytes()
    found: dict[str, Any] = json.loads(body_of(data), parse_float=no_float, parse_constant=no_float)
    return found


def no_float(text: str) -> None:
    raise AssertionError(f"{text} in a marker")


def parse_name(name: str) -> tuple[str, dict[str, str]] | None:
    """Task and parameters, by the page's table of names."""
    for pattern, task in NAMES.items():
        text = re.escape(pattern).replace(r"\{", "{").replace(r"\}", "}")
        for field, rule in FIELDS.items():
            text = text.replace(f"{{{field}}}", f"(?P<{field}>{rule})")
        if found := re.fullmatch(text, name):
            return task, found.groupdict()
    return None


def markers(state: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every marker of a state root: its path, its document."""
    for path in sorted(state.glob("*/*/*/*")):
        if path.is_file() and (named := parse_name(path.name)):
            found = document(path)
            task, params = named
            month = f"{params['launch_id'][:4]}-{params['launch_id'][4:6]}"
            where = f"{month}/{params['job']}/{params['launch_id']}/{path.name}"
            assert path.relative_to(state).as_posix() == where
            assert (found["claim"]["task"], found["claim"]["params"]) == (task, params)
            yield where, found


# What it finds.


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> Line:
    """The bundled launch through the whole line, ReadBack and Retire included; findings accepted; another writer."""
    made = new_line(tmp_path_factory.mktemp("line"))
    made.config.write_text(made.config.read_text().replace("retire=false", "retire=true"))
    warc = next((made.folders["output"] / "warcs").rglob("*.warc.gz"))
    (warc.parent / "unnamed.warc.gz").write_bytes(warc.read_bytes())
    beside = made.folders["writer.second"] = tmp_path_factory.mktemp("second")
    folder = beside / warc.parent.relative_to(made.folders["output"])
    folder.mkdir(parents=True)
    (folder / "another.warc.gz").write_bytes(warc.read_bytes())
    with made.config.open("a") as config:
        config.write(f"[writer.second]\nroot={beside}\njobs={warc.parent.parent.name}\nlayout=kind-first\n")
    assert made.warcmill("init", "--adopt", "writer.second").returncode == 0
    assert made.scan() == [0, 0]
    accepted = made.warcmill("accept", "unnamed.warc.gz", "another.warc.gz", "--reason", "a copy, made by hand")
    assert accepted.returncode == 0, accepted.stderr
    return made


@pytest.fixture(scope="module")
def found(line: Line) -> dict[str, dict[str, Any]]:
    return dict(markers(line.folders["state"]))


def test_a_writer_s_files_are_named_by_its_root(found: dict[str, dict[str, Any]]) -> None:
    roots = {item["file"]["root"] for one in found.values() for item in one["claim"]["items"]}
    assert roots == {"output", "jobs", "state", "writer.second"}


def test_the_example_is_the_golden_file() -> None:
    example = re.search(r"```json\n(.*?)```", section("## An example"), re.DOTALL)
    assert example
    assert example[1].encode("utf-8") == GOLDEN.read_bytes()


def test_the_example_s_claim_digest_is_the_page_s() -> None:
    claim = json.loads(body_of(GOLDEN.read_bytes()))["claim"]
    assert claim_digest(claim) in section("## An example")
    canonical = json.dumps(claim, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode("utf-8")
    assert f"one line of {len(canonical):,} bytes" in section("## An example")


def test_every_step_of_the_line_left_a_marker_that_reads(found: dict[str, dict[str, Any]]) -> None:
    tasks = {one["claim"]["task"] for one in found.values()}
    elsewhere = {"operator.Close", "operator.Import", "state.Backup", "state.BackupDue"}
    off = ("index.", "pypi.", "documents.")
    switched_off = {"files.VirusScan"} | {task for task in NAMES.values() if task.startswith(off)}
    expected = {task for task in NAMES.values() if not task.startswith(("pulse.", "package."))}
    assert tasks == expected - elsewhere - switched_off


def test_every_input_is_there_with_the_claim_digest_that_is_named(found: dict[str, dict[str, Any]]) -> None:
    inputs = [(path, one) for path, marker in found.items() for one in marker["claim"]["inputs"]]
    assert inputs
    for path, one in inputs:
        assert claim_digest(found[one["marker"]]["claim"]) == one["claim"], path


def test_the_files_that_are_claimed_have_the_bytes_that_are_claimed(
    line: Line, found: dict[str, dict[str, Any]]
) -> None:
    files = [item["made"] for marker in found.values() for item in marker["claim"]["items"] if "made" in item]
    assert files
    for file in files:
        data = (line.folders[file["root"]] / file["path"]).read_bytes()
        assert (len(data), hashlib.sha512(data).hexdigest()) == (file["size"], file["sha512"])


def test_the_members_of_a_zip_are_those_of_its_claim(line: Line, found: dict[str, dict[str, Any]]) -> None:
    ((path, marker),) = ((path, one) for path, one in found.items() if path.endswith(".zip"))
    with zipfile.ZipFile(line.folders["state"] / path) as archive:
        names = [item["facts"]["member"] for item in marker["claim"]["items"]]
        assert sorted(names) == archive.namelist()[:-1]
        for item in marker["claim"]["items"]:
            data = archive.read(item["facts"]["member"])
            assert (len(data), hashlib.sha512(data).hexdigest()) == (item["file"]["size"], item["file"]["sha512"])


def test_lists_are_in_the_page_s_order(found: dict[str, dict[str, Any]]) -> None:
    def place(item: dict[str, Any]) -> tuple[str, ...]:
        files = [item["file"], *([item["made"]] if "made" in item else [])]
        return tuple(text for file in files for text in (file["root"], file["path"]))

    for marker in found.values():
        claim = marker["claim"]
        assert claim["inputs"] == sorted(claim["inputs"], key=lambda one: one["marker"])
        assert claim["outputs"] == sorted(claim["outputs"], key=lambda one: (one["root"], one["path"]))
        assert claim["items"] == sorted(claim["items"], key=place)


def test_every_member_that_occurs_is_on_the_page(found: dict[str, dict[str, Any]]) -> None:
    known = {name for cells in rows(section("## Fields")) for name in code(cells[0])}
    for marker in found.values():
        assert set(marker) == {"schema", "claim", "run"}
        claim = marker["claim"]
        files = [one for item in claim["items"] for one in (item["file"], item.get("made", {}))]
        for part in (claim, marker["run"], *claim["outputs"], *claim["items"], *files):
            assert set(part) <= known


def test_every_count_and_fact_that_occurs_is_documented_for_its_task(found: dict[str, dict[str, Any]]) -> None:
    for marker in found.values():
        claim = marker["claim"]
        facts = {*claim["facts"], *(name for item in claim["items"] for name in item.get("facts", {}))}
        assert facts | set(claim["counts"]) <= told_of(claim["task"]), claim["task"]


def told_of(task: str) -> set[str]:
    """The counts and facts in a task's section. What the transfer's tasks share is listed at the first."""
    tasks = [task, "files.Checksum"] if task.startswith("files.") else [task]
    return {name for one in tasks for cells in rows(section(f"### {one}")) for name in code(cells[0])}


def test_the_reports_hold_the_keys_that_the_page_gives(line: Line) -> None:
    told = {name for cells in rows(section("### info.json and package.json")) for name in code(cells[0])}
    reports = [*line.folders["state"].rglob("*.info.json"), *line.folders["state"].rglob("*.package.json")]
    assert len(reports) == 2
    for path in reports:
        assert set(json.loads(path.read_bytes())) == told


def test_the_summary_of_a_day_holds_the_keys_that_the_page_gives(line: Line) -> None:
    told = {name for cells in rows(section("### status.{YYYY-MM-DD}.json")) for name in code(cells[0])}
    summary = json.loads((line.folders["state"] / DAY[:7] / f"status.{DAY}.json").read_bytes())
    assert summary["launches"]
    assert set(summary).union(*summary["launches"]) | {"error"} == told


def test_the_day_of_the_line_is_reconciled(line: Line) -> None:
    assert line.warcmill("reconcile", DAY).returncode == 0
