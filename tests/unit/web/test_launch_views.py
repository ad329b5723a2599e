"""The pages of the line: drawn from the state alone, whatever is away, broken or hostile."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest
from launches import launch_sorts, states
from launches.engine import Engine
from launches.states import BARE, BROKEN, EVERY, FAILED, REFUSED, RUNNING, STALE, WHOLE, ArchiveOfStates
from msgspec.structs import replace
from operating.web_client import WebAnswer
from operating.web_site import WebSite
from packing import built_sips

from warcmill import chain, layout
from warcmill.audit import day_summary
from warcmill.audit.answers import explanation, files, health, status
from warcmill.base import clock
from warcmill.chain import Row
from warcmill.extracts.extracts import Extracts
from warcmill.launches import packed_logs
from warcmill.model import FINAL, Launch
from warcmill.reports import comparison
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore
from warcmill.stores.opening import open_folder
from warcmill.web.views.launches.launch import ON_A_PAGE, path_of

OCTOBER = {"from": "2016-10", "to": "2016-10"}
OVERVIEWS = (("/", {}), ("/status", OCTOBER), ("/status", {**OCTOBER, "by": "day"}), (path_of(WHOLE), {}))
LOG = "logs/crawl.log"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> ArchiveOfStates:
    """The archive that no test changes."""
    return states.made(tmp_path_factory.mktemp("states"))


@pytest.fixture
def own(made: ArchiveOfStates, tmp_path: Path) -> ArchiveOfStates:
    """A copy of it, to be changed."""
    shutil.copytree(made.base, tmp_path / "own")
    return ArchiveOfStates(tmp_path / "own")


@pytest.fixture
def site(made: ArchiveOfStates) -> WebSite:
    return made.site()


def get(site: WebSite, path: str, **fields: str) -> WebAnswer:
    return site.get(path, fields, role="reader")


def shown(site: WebSite, path: str, **fields: str) -> str:
    """The content of a page."""
    answer = get(site, path, **fields)
    assert answer.status == 200, answer.text
    return answer.text.partition("<main")[2].partition("</main>")[0]


def every_page(archive: ArchiveOfStates) -> Iterator[tuple[str, dict[str, str]]]:
    """The address of each page, with its fields."""
    yield "/", {}
    yield "/status", OCTOBER
    yield "/status", {**OCTOBER, "by": "day"}
    for launch in EVERY[:-1]:
        yield path_of(launch), {}
        yield f"{path_of(launch)}/files", {}
    yield f"{path_of(WHOLE)}/reports/final/{LOG}", {}


def test_every_page_answers_with_all_but_the_state_away(own: ArchiveOfStates) -> None:
    site = own.site()
    before = {path + str(fields): shown(site, path, **fields) for path, fields in every_page(own)}
    for root in ("output", "jobs", "store"):
        (own.base / root).rename(own.base / f"{root}.away")
    for path, fields in every_page(own):
        assert shown(site, path, **fields) == before[path + str(fields)]


def test_what_did_not_answer_the_last_scan_is_named(own: ArchiveOfStates) -> None:
    site, engine = own.site(), own.engine()
    (own.base / "output").rename(own.base / "output.away")
    states.sum_up(engine)
    for path, fields in OVERVIEWS:
        assert f"{own.base}/output" in shown(site, path, **fields), path


def test_what_did_not_answer_the_last_look_at_health_is_named(own: ArchiveOfStates) -> None:
    asked = {"kind": "engine", "name": "heritrix", "answered": False, "why": "<b>silent", "todo": "start it"}
    full = {"root": "store", "level": "fail", "bytes_free": 7}
    written = "2017-01-02T03:04:05Z"
    path = own.state.store.real(health.PATH)
    path.parent.mkdir()
    for found in ({"asked": [asked, 1], "roots": [full], "written": written}, {"asked": 1, "roots": {}}, [], "{"):
        path.write_text(found if isinstance(found, str) else json.dumps(found))
        for page, fields in (
            ("/", {}),
            ("/status", OCTOBER),
            ("/status", {**OCTOBER, "by": "day"}),
            (path_of(WHOLE), {}),
        ):
            text = shown(own.site(), page, **fields)
            is_there = isinstance(found, dict) and found["asked"] != 1
            assert ("&lt;b&gt;silent" in text) is is_there
            assert ("7 bytes are free on its disk" in text) is is_there
            assert ("2017-01-02" in text) is is_there


@pytest.mark.parametrize(
    ("launch", "word"), [(REFUSED, "refused"), (FAILED, "failed"), (STALE, "stale"), (BROKEN, "failed")]
)
def test_a_launch_in_trouble_needs_a_person_and_has_its_command(site: WebSite, launch: Launch, word: str) -> None:
    home, page = shown(site, "/"), shown(site, path_of(launch))
    document = get(site, path_of(launch), format="json").document
    first = document["gaps"][0]
    for text in (home, page):
        assert f'<h3><span class="state {word}"' in text
        assert first["todo"].partition(" ")[0] in text
    assert f'href="{path_of(launch)}"' in home
    assert page.index('id="gaps"') < page.index('id="steps"')


def test_a_whole_launch_lacks_nothing_and_is_among_the_newest(site: WebSite) -> None:
    assert "Of what was fetched, nothing is missing in the archive." in shown(site, path_of(WHOLE))
    document = get(site, "/", format="json").document
    assert [one["launch_id"] for one in document["launches"]] == [BROKEN.id, STALE.id, FAILED.id, REFUSED.id]
    assert {one["launch_id"]: one["state"] for one in document["newest"]}[WHOLE.id] == "done"


def test_a_launch_that_runs_says_what_it_waits_for(site: WebSite) -> None:
    page = shown(site, path_of(RUNNING))
    assert '<span class="state running"' in page
    assert "no marker says that it has ended" in page
    assert str(states.CHECKPOINT) in page


def test_pages_are_the_documents_of_their_verbs(made: ArchiveOfStates, site: WebSite) -> None:
    line = made.line.state_alone()
    for launch in EVERY[:-1]:
        assert get(site, path_of(launch), format="json").document == explanation.read(line, launch).json()
        listed = files.answer([files.read(line, launch)])
        assert get(site, f"{path_of(launch)}/files", format="json").document == listed
    whole = status.read(line, date(2016, 10, 1), date(2016, 11, 1), looked=None).json()
    assert get(site, "/status", **OCTOBER, format="json").document == whole


def test_status_filters_by_job_and_state(site: WebSite) -> None:
    refused = shown(site, "/status", **OCTOBER, state="refused")
    assert path_of(REFUSED) in refused
    assert path_of(WHOLE) not in refused
    assert path_of(BARE) not in shown(site, "/status", **OCTOBER, job="daily")
    found = get(site, "/status", **OCTOBER, state="refused", format="json").document["launches"]
    assert [one["launch_id"] for one in found] == [REFUSED.id]
    days = get(site, "/status", **OCTOBER, by="day", state="refused", format="json").document["days"]
    assert [day["day"] for day in days if day["jobs"]] == ["2016-10-20"]


def test_a_long_list_is_shown_a_page_at_a_time(site: WebSite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warcmill.web.views.line.LAUNCHES", 3)
    pages = [shown(site, "/status", **OCTOBER, page=str(page)) for page in (1, 2, 3, 4)]
    assert [sum(path_of(launch) + '"' in page for launch in EVERY) for page in pages] == [3, 3, 1, 0]
    assert "page=2" in pages[0]
    assert path_of(WHOLE) in pages[2]
    assert "No launch is on this page" in pages[3]


def test_a_launch_that_only_a_scan_saw_is_in_the_list(site: WebSite) -> None:
    assert path_of(BARE) in shown(site, "/status", **OCTOBER)
    answer = get(site, path_of(BARE))
    assert answer.status == 404
    assert "warcmill scan 2016-10-24" in answer.text


def test_a_step_more_is_a_column_more(made: ArchiveOfStates, monkeypatch: pytest.MonkeyPatch) -> None:
    row = Row(
        "files.Pretend", "files.pretended.{job}.{launch_id}.{stage}", "stage", word="pretend", head="pre-_tend",
        after="verify", due=chain.ALWAYS, scan="files.ScanForOutputFiles", files="pre", done="pre-_tended",
    )  # fmt: skip
    paths = ("/status", path_of(WHOLE), f"{path_of(WHOLE)}/files")
    site = made.site()
    assert all("pre&shy;tend" not in shown(site, path, **OCTOBER) for path in paths)
    monkeypatch.setattr(chain, "ROWS", (*chain.ROWS, row))
    for path in paths:
        assert "pre&shy;tend" in shown(site, path, **OCTOBER), path


def test_no_text_from_outside_is_markup(site: WebSite) -> None:
    for path, fields in (("/", {}), (path_of(FAILED), {}), (f"{path_of(WHOLE)}/reports/final/{LOG}", {})):
        page = shown(site, path, **fields)
        assert not re.search("<script|\u202e|<b>", page), path
    assert "&lt;script&gt;alert(1)&lt;/script&gt; \\u202egpj.exe" in shown(site, path_of(FAILED))
    assert "?&lt;b&gt;" in shown(site, f"{path_of(WHOLE)}/reports/final/{LOG}")


BAD = ["../../etc/passwd", "..", "a\r\nSet-Cookie: b=1", "\0", "x" * 1_000_000, "\u202edaily", "<b>", "-", "²"]


@pytest.mark.parametrize("bad", BAD, ids=lambda text: repr(text[:9]))
def test_bad_input_in_each_parameter_gets_a_clear_refusal(site: WebSite, bad: str) -> None:
    whole = path_of(WHOLE)
    parts = [
        (f"/launches/{bad}/{WHOLE.id}", {}), (f"/launches/daily/{bad}", {}), (f"/launches/{bad}/{WHOLE.id}/files", {}),
        (f"{whole}/files", {"lacking": bad}), (f"{whole}/files", {"page": bad}), (whole, {"page": bad}),
        (f"{whole}/reports/{bad}/{LOG}", {}), (f"{whole}/reports/final/{bad}", {}),
        (f"{whole}/reports/final/{LOG}", {"begin": bad}),
        *(("/status", {name: bad}) for name in ("by", "from", "to", "job", "state")), ("/status", {"page": bad}),
    ]  # fmt: skip
    for path, fields in parts:
        for more in ({}, {"format": "json"}):
            answer = get(site, path, **fields, **more)
            assert answer.status in (400, 404), (path[:80], fields and list(fields), answer.status)
            assert len(answer.body) < 10_000
            assert not [name for name, _ in answer.headers if name == "set-cookie"]
            assert "\u202e" not in answer.text
            assert more or "<b>" not in answer.text


@pytest.mark.parametrize(
    "fields", [{"from": "2016-13"}, {"from": "2016-02-30"}, {"from": "0000"}, {"to": "9999"}, {"from": "9999-12-31"},
               {"from": "2016-10-20", "to": "2016-10-19"}, {"from": "2010", "to": "2016"}, {"page": "0"}]
)  # fmt: skip
def test_days_that_are_none_are_refused_by_name(site: WebSite, fields: dict[str, str]) -> None:
    answer = get(site, "/status", **fields)
    assert answer.status == 400
    assert next(iter(fields)) in answer.text


def test_a_launch_a_stage_and_a_log_that_are_not_there(site: WebSite) -> None:
    for path in (
        "/launches/daily/20161018234428", "/launches/other/20161019234428", "/launches/daily/20161018234428/files",
        f"{path_of(WHOLE)}/reports/cp00001-20161024004428/{LOG}", f"{path_of(WHOLE)}/reports/final/logs/none.log",
        f"/launches/daily/20161018234428/reports/final/{LOG}",
    ):  # fmt: skip
        assert get(site, path).status == 404, path


@pytest.mark.parametrize("data", [b"", b"{", b"[1]", b'{"launches": 1}', b'{"day": "2016-10-20", "launches": [1, {}]}'])
def test_a_summary_that_is_torn_hides_no_launch(own: ArchiveOfStates, data: bytes) -> None:
    path = day_summary.path(REFUSED.day)
    own.state.store.real(path).write_bytes(data)
    site = own.site()
    assert path_of(REFUSED) in shown(site, "/status", **OCTOBER)
    assert path_of(REFUSED) in shown(site, "/")
    assert path_of(STALE) in shown(site, "/status", **OCTOBER, by="day")
    if b"day" not in data:
        assert path in shown(site, "/")


def test_a_stray_file_that_is_of_no_day_changes_nothing(own: ArchiveOfStates) -> None:
    before = shown(own.site(), "/")
    for name in ("2016-10/status.2016-13-45.json", "9999-99/status.9999-99-99.json"):
        own.state.store.real(name).parent.mkdir(exist_ok=True)
        own.state.store.real(name).write_bytes(b"{}")
    assert shown(own.site(), "/") == before


def test_without_any_summary_the_markers_are_shown(own: ArchiveOfStates) -> None:
    for launch in EVERY:
        own.state.store.real(day_summary.path(launch.day)).unlink(missing_ok=True)
    site = own.site()
    for path, fields in (("/", {}), ("/status", OCTOBER)):
        page = shown(site, path, **fields)
        assert path_of(REFUSED) in page
        assert path_of(WHOLE) in page
    assert "No scan has summed up" in shown(site, "/status", **OCTOBER, by="day")


def test_an_old_summary_shows_its_age(own: ArchiveOfStates) -> None:
    for launch in EVERY:
        path = own.state.store.real(day_summary.path(launch.day))
        path.write_text(json.dumps({**json.loads(path.read_text()), "written": "2017-01-02T03:04:05Z"}))
    site = own.site()
    assert "2017-01-02 03:04:05 UTC" in shown(site, "/status", **OCTOBER, by="day")
    for fields in (OCTOBER, {**OCTOBER, "by": "day"}):
        assert re.search("State written .*2017-01-02.* days ago", get(site, "/status", **fields).text)


def test_a_broken_marker_hides_nothing_else(site: WebSite) -> None:
    page = shown(site, path_of(BROKEN)).partition('id="markers"')[2]
    assert len(re.findall(r'class="state failed"', page)) == 1
    assert f"files.verified.daily.{BROKEN.id}.final" in page
    assert f"files.copied.daily.{BROKEN.id}.final" in page


def test_a_broken_zip_of_logs_is_a_page_with_the_reason(own: ArchiveOfStates) -> None:
    path = states.marker(own.engine(WHOLE), "output.PackageLogs")
    path.write_bytes(path.read_bytes()[:-40])
    assert "warcmill make 02.logs.daily" in shown(own.site(), path_of(WHOLE))
    answer = get(own.site(), f"{path_of(WHOLE)}/reports/final/{LOG}")
    assert answer.status == 404
    assert "not packed" in answer.text


def test_a_damaged_log_in_a_sound_zip_is_a_page_with_the_reason(own: ArchiveOfStates) -> None:
    path = states.marker(own.engine(WHOLE), "output.PackageLogs")
    data = bytearray(path.read_bytes())
    place = data.index(b"logs/crawl.log") + len(LOG) + 20
    data[place : place + 8] = b"\xff" * 8
    path.write_bytes(data)
    address = f"{path_of(WHOLE)}/reports/final/{LOG}"
    answer = get(own.site(), address)
    assert answer.status == 503
    assert "damaged" in answer.text
    assert get(own.site(), address, begin=str(packed_logs.REACH + 1)).status == 400
    assert "Of what was fetched, nothing is missing in the archive." in shown(own.site(), path_of(WHOLE))


def test_logs_are_listed_and_shown_whole_in_slices(
    made: ArchiveOfStates, site: WebSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = shown(site, path_of(WHOLE))
    assert f'href="{path_of(WHOLE)}/reports/final/{LOG}"' in page
    path = f"{path_of(WHOLE)}/reports/final/{LOG}"
    whole = get(site, path, format="json").document
    assert whole["size"] == len(whole["text"])
    assert whole["after"] is None
    monkeypatch.setattr(packed_logs, "SLICE", 300)
    parts, begin = [], 0
    while begin is not None:
        part = get(site, path, format="json", begin=str(begin)).document
        assert part["text"].endswith("\n")
        parts.append(part["text"])
        begin = part["after"]
    assert len(parts) > 1
    assert "".join(parts) == whole["text"]
    assert f"{path}?begin=" in shown(site, path)
    assert packed_logs.read(made.state, WHOLE, FINAL, LOG, 10_000) is not None


def test_seeds_lead_to_their_captures(site: WebSite) -> None:
    page = shown(site, path_of(REFUSED))
    assert "/search?q=http%3A%2F%2Fgone.example%2F" in page
    assert page.index("http%3A%2F%2Fgone.example") < page.index("http%3A%2F%2Fa.example")


def test_requests_without_a_page_are_listed_with_the_reason(own: ArchiveOfStates) -> None:
    state, key = own.state, layout.step("crawl-report", WHOLE, FINAL)
    claim = state.require(key).claim
    state.store.real(layout.marker_path(key)).unlink()
    hostile = {"appid": "<b>app", "crawlid": "c1", "url": "http://gone.example/<i>", "why": "its crawl was stopped"}
    facts = {**claim.facts, "requests_lost": 25, "requests_without_page": [hostile] * 25}
    state.publish(key, replace(claim, facts=facts))
    page = shown(own.site(), path_of(WHOLE)).partition('id="requests"')[2].partition("<h2")[0]
    assert "25 requests of applications got no page" in page
    assert page.count("http://gone.example/&lt;i&gt;") == page.count("&lt;b&gt;app") == 20
    assert "The first 20" in page
    assert 'id="requests"' not in shown(own.site(), path_of(REFUSED))


def test_what_bounds_left_out_is_shown_with_its_key_number_and_example(own: ArchiveOfStates) -> None:
    state, key = own.state, layout.step("crawl-report", WHOLE, FINAL)
    claim = state.require(key).claim
    state.store.real(layout.marker_path(key)).unlink()
    hostile = "http://a.example/<script>\x1b[31m\u202e"
    cut = {"bound": "queries", "value": 20_000, "is_set": False, "number": 1_300, "first": hostile}
    later = {**cut, "bound": "of a later version"}
    state.publish(key, replace(claim, facts={**claim.facts, "bounds": [cut, later]}))
    whole = shown(own.site(), path_of(WHOLE))
    page = whole.partition('id="bounds"')[2].partition("<h2")[0]
    assert ("[traps] queries = 20000" in page, "left out 1,300 links" in page, "by default" in page) == (True,) * 3
    assert ("&lt;script&gt;" in page, "<script>" in page, "\x1b" in page, "\u202e" in page) == (True, *(False,) * 3)
    assert "accept bound:queries" in whole, "it is a gap"
    assert 'id="bounds"' not in shown(own.site(), path_of(REFUSED))


def test_pages_that_were_not_rendered_are_named(own: ArchiveOfStates) -> None:
    state, key = own.state, layout.step("crawl-report", WHOLE, FINAL)
    claim = state.require(key).claim
    state.store.real(layout.marker_path(key)).unlink()
    hostile = {"why": "hung", "number": 1200, "first": "http://a.example/<b>"}
    state.publish(key, replace(claim, facts={**claim.facts, "unrendered": [hostile]}))
    page = shown(own.site(), path_of(WHOLE))
    assert "1,200 pages were not rendered: it hangs (render:failed:hung), first http://a.example/&lt;b&gt;" in page


def test_files_are_shown_a_page_at_a_time(site: WebSite, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ON_A_PAGE == 100
    monkeypatch.setattr("warcmill.web.views.launches.launch.ON_A_PAGE", 3)
    first, second = (shown(site, f"{path_of(REFUSED)}/files", page=str(page)) for page in (1, 2))
    assert "1 to 3 of 4" in first
    assert "4 to 4 of 4" in second
    assert "the file ends at" in first + second
    monkeypatch.setattr("warcmill.web.views.launches.launch.ON_A_PAGE", 2)
    lacking = shown(site, f"{path_of(FAILED)}/files", lacking="copy")
    assert "lacking=copy&amp;page=2" in lacking
    assert "No file is on this page" in shown(site, f"{path_of(REFUSED)}/files", page="99")


def test_a_refused_warc_leads_to_its_files_row(site: WebSite) -> None:
    name = get(site, path_of(REFUSED), format="json").document["gaps"][0]["name"]
    assert f'{path_of(REFUSED)}/files?name={name}"' in shown(site, path_of(REFUSED))
    found = get(site, f"{path_of(REFUSED)}/files", name=name, format="json").document["files"]
    assert [one["path"] for one in found] == [name]
    assert "1 file of the name" in shown(site, f"{path_of(REFUSED)}/files", name=name)
    for bad in BAD:
        assert get(site, f"{path_of(REFUSED)}/files", name=bad, format="json").document["files"] == []
        assert len(shown(site, f"{path_of(REFUSED)}/files", name=bad)) < 10_000


def test_a_launch_of_any_sort_has_its_pages(tmp_path: Path) -> None:
    engine = Engine(tmp_path)
    jobs = launch_sorts.leave_all(engine)
    site = WebSite(engine, engine.audited)
    launches = [Launch(job, engine.launch.id) for job in jobs]
    with_markers = [one for one in launches if engine.state.store.names(layout.state_folder(one))]
    assert len(with_markers) > 15
    status_page, day = shown(site, "/status", **OCTOBER), shown(site, "/status", **OCTOBER, by="day")
    for launch in with_markers:
        assert path_of(launch) in status_page
        if launch.job == "a-link-for-a-marker":  # its disk does not say what is in it
            assert get(site, path_of(launch)).status == 503
        else:
            assert "<h1>" in shown(site, path_of(launch))
            assert "<h1>" in shown(site, f"{path_of(launch)}/files")
    assert "No scan has summed up" in day
    assert "What needs a person" in shown(site, "/")


def test_what_changed_is_shown_once_it_was_compared(own: ArchiveOfStates) -> None:
    sentinel.adopt({"index": own.base / "index"})
    engine, index = own.engine(), FileStore("index", own.base / "index")
    site = WebSite(engine, replace(engine.audited, open_index=lambda: index))
    assert f"warcmill report daily {STALE.id}" in shown(site, path_of(STALE))
    found = comparison.compare(engine.state, engine.store, index, STALE)
    assert found
    page = shown(site, path_of(STALE)).partition('id="changed"')[2].partition("<h2")[0]
    assert path_of(found.before) in page
    for kind, number in found.counts.items():
        assert f"<b>{number}</b> {kind}" in page
    (own.base / "index").rename(own.base / "index.away")
    away = replace(engine.audited, open_index=lambda: open_folder("index", f"{own.base}/index"))
    lost = shown(WebSite(engine, away), path_of(STALE))
    assert "Not compared yet" in lost
    assert "A comparison that is kept cannot be read now: " in lost


def test_nothing_is_called_well_where_no_scan_has_looked_for_days(own: ArchiveOfStates) -> None:
    engine = Engine(own.base / "empty")
    site = WebSite(engine, engine.audited)
    assert "No scan has looked at this archive yet." in shown(site, "/")
    old = {"ended": "2016-10-19T23:44:28Z", "name": "output.ScanForOutputs"}
    site.state.replace("status/ended.output.ScanForOutputs.json", json.dumps(old).encode())
    page = shown(site, "/")
    assert "The last scan ended" in page
    assert "Nothing needs a person" not in page
    site.state.replace("status/ended.output.ScanForOutputs.json", json.dumps({**old, "ended": clock.now()}).encode())
    page = shown(site, "/")
    assert "Nothing needs a person" in page
    assert "The last scan" not in page


def test_packages_and_their_arks_are_shown(own: ArchiveOfStates) -> None:
    sentinel.adopt({"index": own.base / "index"})
    engine, extracts = own.engine(), Extracts(FileStore("index", own.base / "index"))
    terms = built_sips.terms_of(engine.store, "value")
    [packaged] = built_sips.of_launch(engine.state, engine.store, extracts, WHOLE, terms, "final")
    page = shown(own.site(), path_of(WHOLE)).partition('id="sips"')[2].partition("<h2")[0]
    assert packaged.ark.startswith("ark:")
    for text in (packaged.ark, packaged.sip.path, "final"):
        assert text in page


def test_an_empty_archive_has_its_pages(tmp_path: Path) -> None:
    site = ArchiveOfStates(tmp_path).site()
    assert "There is no launch yet." in shown(site, "/")
    assert "No launch is of these days" in shown(site, "/status")
    assert "No scan has summed up" in shown(site, "/status", by="day")
