"""Reports of checks are sealed and numbered; a mark is a decision, and a patch a job of its own."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from launches.engine import LAUNCH, Engine
from msgspec.structs import replace

from warcmill.crawl import uri
from warcmill.crawl.job import file
from warcmill.errors import BadInput, NotReady
from warcmill.markers import decisions
from warcmill.model import Launch
from warcmill.quality import patch, reports
from warcmill.quality.judgement import FAILED, ROBOTS, SCOPE, SHOWN, CheckedPage, MissingPart
from warcmill.quality.reports import QualityReport

PARTS = (
    MissingPart(FAILED, "http://a.example/gone.png", "its server answered 404 Not Found"),
    MissingPart(ROBOTS, "http://a.example/private.png", "robots.txt forbids it"),
    MissingPart(SCOPE, "http://a.example/out.svg", "a rule of the job leaves it out: .svg"),
)
PAGE = CheckedPage(
    "http://a.example/", LAUNCH.id, "A <b>title", is_seed=True, state=SHOWN, parts=9, missing=PARTS, leaks=("http://x/",),
    words=8, common=7, thumbnail="/9j/",
)  # fmt: skip
REPORT = QualityReport(LAUNCH.job, LAUNCH.id, "2016-10-20T00:00:00Z", 3, 1, 40, ("x is not verified yet",), (PAGE,))


@pytest.fixture
def line(tmp_path: Path) -> Engine:
    return Engine(tmp_path)


def mark(line: Engine, word: str, note: str = "", who: str = "anna") -> int:
    return reports.mark(line.state.store, lambda: line.store, LAUNCH, word, note, who).number


def test_each_check_has_the_next_number_and_is_read_as_it_was_written(line: Engine) -> None:
    state = line.state.store
    assert reports.newest(state, LAUNCH) is None
    first, second = reports.publish(state, REPORT), reports.publish(state, replace(REPORT, version=4))
    other = reports.publish(state, replace(REPORT, launch_id="20161019234429"))
    assert (first.number, second.number, other.number) == (1, 2, 1)
    assert reports.read(state, LAUNCH, 1) == first == replace(REPORT, number=1)
    assert reports.newest(state, LAUNCH) == second
    assert reports.numbers(state, LAUNCH) == [1, 2]
    with pytest.raises(NotReady):
        reports.read(state, LAUNCH, 3)


def test_a_report_that_was_cut_or_renamed_is_refused(line: Engine) -> None:
    state = line.state.store
    path = state.real(reports.path_of(LAUNCH, reports.publish(state, REPORT).number))
    data = path.read_bytes()
    path.write_bytes(data[:-20])
    with pytest.raises(BadInput, match="cut or altered"):
        reports.newest(state, LAUNCH)
    path.write_bytes(data)
    path.rename(path.with_name(f"{LAUNCH.id}.0007.json"))
    with pytest.raises(BadInput, match="it is report 1"):
        reports.newest(state, LAUNCH)


def test_programs_get_sums_and_no_pictures() -> None:
    found = REPORT.json()
    assert found["kinds"] == {SCOPE: 1, ROBOTS: 1, FAILED: 1}
    assert found["pages"][0]["thumbnail"] is True  # type: ignore[index,call-overload]
    assert found["pages"][0]["missing"][0] == {  # type: ignore[index,call-overload]
        "kind": FAILED, "url": PARTS[0].url, "why": PARTS[0].why
    }  # fmt: skip


def test_a_mark_is_a_decision_with_its_author_and_the_last_one_counts(line: Engine) -> None:
    with pytest.raises(NotReady, match="was not checked yet"):
        mark(line, "good")
    reports.publish(line.state.store, REPORT)
    assert [mark(line, "poor", "no pictures"), mark(line, "poor", "no pictures"), mark(line, "bad", "", "bert")] == [
        1,
        1,
        2,
    ]
    made = reports.marks(line.state.store, LAUNCH)[0]
    assert [dict(one.facts) for one in made] == [
        {"job": LAUNCH.job, "launch_id": LAUNCH.id, "mark": word, "note": note, "report": 1, "who": who}
        for word, note, who in (("poor", "no pictures", "anna"), ("bad", "", "bert"))
    ]
    assert reports.marks(line.state.store, Launch("other", LAUNCH.id))[0] == []
    stored = line.store.real(f"state/_archive/{decisions.path_of(decisions.QUALITY, 2)}")  # type: ignore[attr-defined]
    assert stored.read_bytes() == line.state.store.real(made[-1].path).read_bytes()


@pytest.mark.parametrize(("word", "note", "where"), [("awful", "", "mark"), ("", "", "mark"), ("bad", "a\nb", "note"),
                                                     ("bad", "x" * 5_000, "note")])  # fmt: skip
def test_another_mark_and_a_note_of_two_lines_are_refused(line: Engine, word: str, note: str, where: str) -> None:
    reports.publish(line.state.store, REPORT)
    with pytest.raises(BadInput) as refused:
        mark(line, word, note)
    assert refused.value.path == where
    assert reports.marks(line.state.store, LAUNCH)[0] == []


def test_a_patch_has_the_manners_of_the_job_and_none_of_its_rules() -> None:
    of_job = {
        file.CONFIGURATION: b'contact = "https://library.example/"\nextensions = ["svg"]\npatterns = ["x"]\nhops = 3\n'
        b'endless = true\nallow_private = ["10.0.0.0/8"]\n[politeness]\nleast = 7\n[about]\ntitle = "Daily"\n',
        file.EXCLUDE: b"http://(example,a,)/out\n",
    }
    papers = patch.papers_of(replace(REPORT, number=2), of_job, ["10.0.0.0/8", "127.0.0.0/8"])
    found = tomllib.loads((papers[file.CONFIGURATION] or b"").decode())
    asked = [PARTS[0].url, PARTS[2].url]
    assert found == {
        "contact": "https://library.example/", "allow_private": ["10.0.0.0/8", "127.0.0.0/8"],
        "politeness": {"least": 7}, "pages": dict.fromkeys(asked, "resource"),
        "about": {"title": f"Patch of {LAUNCH}", "description": f"Asks for what {LAUNCH} lacks, by its check 2"},
    }  # fmt: skip
    assert (papers[file.SEEDS] or b"").decode().split() == asked
    assert papers[file.EXCLUDE] is None
    written = {name: text for name, text in papers.items() if text is not None}
    job = file.parse(written, patch.job_of(LAUNCH))
    assert job.scope.judge(uri.make(asked[0], source=asked[0])) is None
    assert patch.is_patch(written)
    assert not patch.is_patch(of_job)
    assert patch.papers_of(REPORT, {}, ()).keys() == papers.keys()


def test_a_patch_that_would_ask_for_nothing_is_refused_and_its_name_fits() -> None:
    with pytest.raises(BadInput, match="nothing that a crawl could bring"):
        patch.papers_of(replace(REPORT, pages=(replace(PAGE, missing=PARTS[1:2]),)), {}, ())
    assert patch.job_of(LAUNCH) == f"{LAUNCH.job}-patch"
    assert len(patch.job_of(Launch("a" * 63, LAUNCH.id))) == 63
