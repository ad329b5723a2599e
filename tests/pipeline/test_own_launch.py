"""A launch of the built-in crawler goes through the line as one of Heritrix does; markers and SIPs have one shape."""

from __future__ import annotations

import pytest
import sample
from crawls import own_launch
from launches.shapes import document, markers, of_marker, of_sip
from line import DAY, Line, line_at, without_dead_seed

from warcmill.layout import ENGINE_LOGS, RESULTS_LOG, OutputLayout
from warcmill.model import Launch

OWN = Launch("daily", "20261121093000")
THEIRS = Launch(sample.JOB, sample.LAUNCH_ID)
PACKAGES = "\n[package]\nsince=2016-01-01\norganisation=National Library\nnaan=12345\n"


@pytest.fixture(scope="module", params=list(OutputLayout))
def line(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Line:
    """A line with a launch of ours, and in the layout of the sample one of Heritrix too, after the scans."""
    base = tmp_path_factory.mktemp("line")
    if request.param is OutputLayout.KIND_FIRST:
        without_dead_seed(sample.lay_out(base / "output"))
    made = line_at(base, request.param)
    own_launch.write(made.folders["output"], made.folders["jobs"], made.layout, OWN)
    made.config.write_text(made.config.read_text() + PACKAGES)
    assert made.scan() == [0, 0]
    packages = made.luigi("--module", "tasks.package", "package.ScanForPackages", "--date-interval", DAY)
    assert packages.returncode == 0, packages.stderr
    return made


def test_it_comes_to_files_verified_and_reconcile_finds_nothing(line: Line) -> None:
    found = markers(line.folders["state"], OWN)
    assert len(found["files.Verify"]) == len(found["output.AssembleOutput"]) == 2
    report = line.warcmill("reconcile", "2026-11-21")
    assert report.returncode == 0, report.stdout
    assert "no gap" in report.stdout


def test_all_that_it_left_is_packed_and_nothing_is_missing(line: Line) -> None:
    (final,) = (path for path in markers(line.folders["state"], OWN)["output.PackageLogs"] if ".final." in path.name)
    claim = document(final)["claim"]
    members = {item["facts"]["member"] for item in claim["items"]}
    assert claim["facts"]["absent"] == []
    assert {f"logs/{name}" for name in (*ENGINE_LOGS, RESULTS_LOG, "scope.log")} <= members
    assert {"jobs/crawl.toml", "jobs/seeds.txt", "jobs/job.log", "jobs/surts.txt"} <= members
    assert len([name for name in members if name.startswith("reports/")]) == 10


def test_each_line_of_its_logs_is_counted_and_each_warc_is_named(line: Line) -> None:
    claims = [document(path)["claim"] for path in markers(line.folders["state"], OWN)["output.AssembleOutput"]]
    assert sum(claim["counts"]["lines"] for claim in claims) == own_launch.PAGES
    assert all(claim["counts"]["unread"] == 0 and claim["counts"]["warcs"] == 1 for claim in claims)
    assert all(claim["facts"][name] == [] for claim in claims for name in ("absent", "unnamed", "odd", "named_again"))


@pytest.mark.parametrize("line", [OutputLayout.KIND_FIRST], indirect=True)
def test_its_markers_have_the_shape_of_heritrix_s(line: Line) -> None:
    ours, theirs = markers(line.folders["state"], OWN), markers(line.folders["state"], THEIRS)
    assert ours.keys() == theirs.keys()
    for task, paths in theirs.items():
        if task.startswith("reports."):
            continue  # what they name follows from what was crawled
        (final,) = (path for path in ours[task] if ".cp0" not in path.name)
        assert set(of_marker(document(final))) == set(of_marker(document(paths[0]))), task


def sip(line: Line, launch: Launch) -> dict[str, set[str]]:
    """What a launch's SIP is made of."""
    (path,) = (line.folders["store"] / "sips" / launch.job / launch.id).glob("final.tar")
    return of_sip(path, launch)


@pytest.mark.parametrize("line", [OutputLayout.KIND_FIRST], indirect=True)
def test_its_sip_has_the_shape_of_heritrix_s(line: Line) -> None:
    ours, theirs = sip(line, OWN), sip(line, THEIRS)
    viral = "/representations/viral/"  # ours had nothing infected
    without = {kind: {one for one in found if viral not in one} for kind, found in theirs.items() if viral not in kind}
    assert ours == without
