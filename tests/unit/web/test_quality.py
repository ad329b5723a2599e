"""The page of a launch's quality: the newest report, worst first; a curator marks, a reader looks and sees nothing
hidden."""

from __future__ import annotations

import base64
import shutil
from pathlib import Path

import pytest
from launches import states
from launches.states import WHOLE, ArchiveOfStates
from msgspec.structs import replace
from operating.web_site import WebSite

from warcmill.model import Launch
from warcmill.quality import reports
from warcmill.quality.judgement import MISSING, ROBOTS, SCOPE, SHOWN, CheckedPage, MissingPart
from warcmill.quality.reports import QualityReport
from warcmill.versions import hidden_list
from warcmill.web.views.launches.launch import path_of
from warcmill.web.views.launches.quality import PARTS

PAGE = f"{path_of(WHOLE)}/quality"
MARKUP = "<script>alert(1)</script>"
JPEG = b"\xff\xd8\xff\xe0 a picture"
SECRET = "http://hidden.example/page"
PICTURE = base64.b64encode(JPEG).decode()
MANY = tuple(MissingPart(SCOPE, f"http://a.example/{n}?{MARKUP}", MARKUP) for n in range(PARTS + 3))
ODD = ({"mark": "awful"}, {}, {"mark": "bad", "note": "a\nb"}, {"mark": "bad", "note": "\0"})
REPORT = QualityReport(
    WHOLE.job, WHOLE.id, "2016-10-20T00:00:00Z", 3, 1, 40, (),
    (
        CheckedPage("http://b.example/", WHOLE.id, "", is_seed=True, state=MISSING, why="robots.txt forbids it",
                    parts=1, missing=(MissingPart(ROBOTS, "http://b.example/", "robots.txt forbids it"),)),
        CheckedPage("http://a.example/", WHOLE.id, MARKUP, is_seed=False, state=SHOWN, parts=40, words=8, common=7,
                    missing=MANY, leaks=(f"http://live.example/{MARKUP}",), thumbnail=PICTURE),
        CheckedPage(SECRET, WHOLE.id, "Its words", is_seed=False, state=SHOWN, thumbnail=PICTURE),
    ),
)  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> ArchiveOfStates:
    return states.made(tmp_path_factory.mktemp("states"))


@pytest.fixture
def own(made: ArchiveOfStates, tmp_path: Path) -> ArchiveOfStates:
    shutil.copytree(made.base, tmp_path / "own")
    return ArchiveOfStates(tmp_path / "own")


@pytest.fixture
def site(own: ArchiveOfStates) -> WebSite:
    site = own.site()
    reports.publish(site.state, replace(REPORT, version=2))
    reports.publish(site.state, REPORT)
    return site


def test_a_launch_that_was_not_checked_has_the_button_alone(own: ArchiveOfStates) -> None:
    text = own.site().get(PAGE).text
    assert "was not checked yet" in text
    assert f'href="{path_of(WHOLE)}/check"' in text
    assert f'href="{path_of(WHOLE)}/patch"' not in text
    assert 'name="mark"' not in text
    assert f'href="{PAGE}"' in own.site().get(path_of(WHOLE)).text
    assert own.site().get(f"/launches/{WHOLE.job}/20010101000000/quality").status == 404


def test_the_newest_report_is_shown_worst_first_and_escaped(site: WebSite) -> None:
    text = site.get(PAGE).text
    assert "in version 3 of the index" in text
    assert "in version 2 of the index" in site.get(PAGE, {"report": "1"}).text
    assert site.get(PAGE, {"report": "9"}).status == 404
    assert text.index("http://b.example/") < text.index("http://a.example/")
    assert MARKUP not in text
    assert f"Missing: {PARTS + 3} scope, 1 robots." in text
    assert f"{PARTS + 3} of 40 parts" in text
    assert "And 3 more" in text
    assert "7 of 8" in text
    assert "leak: " in text
    assert f"warcmill quality {WHOLE.job} {WHOLE.id} --last" in text
    document = site.get(PAGE, {"format": "json"}).document
    assert document["report"]["kinds"] == {"scope": PARTS + 3, "robots": 1}
    assert document["report"]["number"] == 2


def test_a_thumbnail_is_a_jpeg_and_nothing_else_is_one(site: WebSite) -> None:
    assert f'src="{PAGE}/2-1.jpg"' in site.get(PAGE).text
    found = site.get(f"{PAGE}/2-1.jpg", role="reader")
    assert (found.status, found.header("content-type"), found.body) == (200, "image/jpeg", JPEG)
    for name in ("2-0.jpg", "2-7.jpg", "9-1.jpg", "2-1.png", "0-1.jpg", "2-1.jpg.json"):
        assert site.get(f"{PAGE}/{name}").status == 404, name


def test_a_reader_gets_no_page_that_is_hidden_nor_its_picture(site: WebSite) -> None:
    hidden_list.decide(site.state, lambda: site.roots.store, "example,hidden", "order of a court", hides=True)
    assert "hidden.example" not in site.get(PAGE, role="reader").text
    assert "Its words" not in site.get(PAGE, role="reader").text
    assert "hidden.example" not in str(site.get(PAGE, {"format": "json"}, role="reader").document)
    assert site.get(f"{PAGE}/2-2.jpg", role="reader").status == 404
    assert site.get(f"{PAGE}/2-2.jpg", role="curator").status == 200
    assert site.get(f"{PAGE}/2-1.jpg", role="reader").status == 200


def test_a_curator_marks_once_however_often_he_posts(site: WebSite) -> None:
    for _ in range(2):
        done = site.post(PAGE, {"mark": "poor", "note": f"no pictures {MARKUP}"}, role="curator")
        assert (done.status, done.header("location")) == (303, PAGE)
    (mark,) = reports.marks(site.state, WHOLE)[0]
    assert (mark.facts["who"], mark.facts["mark"], mark.facts["report"]) == ("curator", "poor", 2)
    text = site.get(PAGE, role="reader").text
    assert "no pictures &lt;script&gt;" in text
    assert "curator" in text
    assert 'name="mark"' not in text, "a reader has no form"
    assert site.get(PAGE, {"format": "json"}).document["marks"][0]["note"] == f"no pictures {MARKUP}"
    assert reports.marks(site.state, Launch(WHOLE.job, "20161019234429"))[0] == []


def test_a_mark_that_cannot_be_read_is_named(site: WebSite) -> None:
    site.post(PAGE, {"mark": "poor", "note": "no pictures"}, role="curator")
    ((mark,), _) = reports.marks(site.state, WHOLE)
    path = site.state.real(mark.path)
    path.chmod(0o644)
    path.write_bytes(path.read_bytes().replace(b"poor", b"good"))
    assert "A mark cannot be read, so another one may count" in site.get(PAGE, role="reader").text
    assert mark.path in str(site.get(PAGE, {"format": "json"}).document["unread"])


@pytest.mark.parametrize("fields", ODD)
def test_an_invalid_mark_is_refused_and_what_was_typed_stays(site: WebSite, fields: dict[str, str]) -> None:
    answer = site.post(PAGE, fields, role="curator")
    assert answer.status == 400
    assert 'class="wrong"' in answer.text
    assert reports.marks(site.state, WHOLE)[0] == []


def test_readers_mark_nothing_and_a_damaged_report_is_named(site: WebSite) -> None:
    assert site.post(PAGE, {"mark": "good"}, role="reader").status == 403
    path = site.state.real(reports.path_of(WHOLE, 2))
    path.write_bytes(path.read_bytes()[:-9])
    answer = site.get(PAGE)
    assert answer.status == 503
    assert "cut or altered" in answer.text
