"""The pages of a job's form: by role, in two windows, with hostile lists; and "Archive a site"."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from launches.engine import LAUNCH, Engine
from msgspec.structs import replace
from operating.job_desk import FolderDesk
from operating.web_client import WebAnswer, ask
from operating.web_site import WebSite

from warcmill.audit.answers.line import JobEngine

JOB = LAUNCH.job
_HIDDEN = re.compile(r'type="hidden" name="(\w+)" value="([^"]*)"')
BOUNDARY = "a-line-that-no-file-has"


class DeskSite(WebSite):
    desk: FolderDesk

    def page(self, path: str, role: str = "curator") -> dict[str, str]:
        """The hidden fields of a page's form."""
        return {name: unescape(value) for name, value in _HIDDEN.findall(self.get(path, role=role).text)}

    def save(self, path: str, hidden: dict[str, str], role: str = "curator", **fields: str) -> WebAnswer:
        return self.post(path, {**hidden, "do": "save", **fields}, role=role)

    def send(self, path: str, data: bytes, **fields: str) -> WebAnswer:
        """Send the form with a file, as a browser does."""
        parts = [
            f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
            for name, value in {**self.page(path), **fields}.items()
        ]
        head = 'Content-Disposition: form-data; name="list"; filename="a.csv"\r\nContent-Type: text/csv'
        body = b"".join([*parts, f"--{BOUNDARY}\r\n{head}\r\n\r\n".encode(), data, f"\r\n--{BOUNDARY}--\r\n".encode()])
        headers = self.headers("curator", origin="http://127.0.0.1:8090")
        headers |= {"content-type": f"multipart/form-data; boundary={BOUNDARY}", "content-length": str(len(body))}
        return ask(self.app, path, method="POST", headers=headers, sent_form=body)


@pytest.fixture
def site(tmp_path: Path) -> DeskSite:
    engine = Engine(tmp_path)
    folder = engine.folders["jobs"] / JOB
    folder.mkdir(exist_ok=True)
    (folder / "crawl.toml").write_text("# ours\nhops = 3\n")
    (folder / "seeds.txt").write_text("http://a.example/\n")
    engines = {JOB: JobEngine("engine.own", "warcmill", driven=True)}
    desk = FolderDesk(engine, JOB)
    made = DeskSite(engine, replace(engine.audited, engines=engines), more={"job_desk": desk})
    made.desk = desk
    return made


def read(site: DeskSite, name: str = "crawl.toml", job: str = JOB) -> str:
    return (site.roots.folders["jobs"] / job / name).read_text()


def test_a_form_is_saved_by_its_curator(site: DeskSite) -> None:
    done = site.save(f"/jobs/{JOB}/edit", site.page(f"/jobs/{JOB}/edit"), title="News", schedule="daily", why="a  b")
    assert (done.status, done.header("Location")) == (303, f"/jobs/{JOB}/history?saved=2")
    assert read(site) == '# ours\nhops = 3\n\n[about]\ntitle = "News"\n'
    assert site.desk.schedules == {JOB: ("daily", "")}
    page = site.get(f"/jobs/{JOB}/history", {"saved": "2"}, role="curator").text
    assert "Edition 2 is saved." in page
    (newest, _) = site.get(f"/jobs/{JOB}/history", {"format": "json"}, role="curator").document["editions"]
    assert (newest["who"], newest["why"]) == ("curator", "a b")


def test_in_two_windows_the_second_sees_both_and_nothing_is_written(site: DeskSite) -> None:
    path = f"/jobs/{JOB}/edit"
    site.save(path, site.page(path), hops="4")
    first, second = site.page(path), site.page(path, "operator")
    assert site.save(path, first, hops="5", title="A").status == 303
    refused = site.save(path, second, role="operator", hops="6", owner="<b>ben</b>")
    assert (refused.status, "<b>ben" in refused.text) == (409, False)
    assert "curator has saved it meanwhile, as edition 3" in refused.text
    assert ">Saved meanwhile<" in refused.text
    assert 'name="hops" type="text" value="6"' in refused.text
    assert 'name="title" type="text" value="A"' in refused.text, "what only the first has changed stays"
    assert "hops = 5" in read(site)
    merged = {name: unescape(value) for name, value in _HIDDEN.findall(refused.text)}
    assert site.save(path, merged, role="operator", hops="6", title="A").status == 303
    assert "hops = 6" in read(site)


def test_texts_of_two_are_both_shown(site: DeskSite) -> None:
    path = f"/jobs/{JOB}/papers"
    site.save(path, site.page(path), crawl_toml="hops = 4\n", seeds_txt="http://a.example/\n")
    first, second = site.page(path), site.page(path)
    assert site.save(path, first, crawl_toml="hops = 5\n", seeds_txt="http://a.example/\n").status == 303
    refused = site.save(path, second, crawl_toml="hops = 6\n", seeds_txt="http://a.example/\n")
    assert refused.status == 409
    assert ("hops = 5\n</textarea>" in refused.text, "hops = 6\n</textarea>" in refused.text) == (True, True)
    assert read(site) == "hops = 5\n"
    wrong = site.save(path, site.page(path), crawl_toml="hops = 5\nx = 1\n", seeds_txt="http://a.example/\n")
    assert (wrong.status, "crawl.toml, line 2: x: there is no such key" in wrong.text) == (400, True)


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("edit", {"robots": "ignore"}),
        ("edit", {"allow_private": "10.0.0.0/8"}),
        ("edit", {"addresses": "http://10.0.0.1/\n"}),
        ("papers", {"crawl_toml": "robots = 'ignore'\n", "seeds_txt": "http://a.example/\n"}),
        ("papers", {"crawl_toml": "[render]\nbehaviors = '/etc/passwd'\n", "seeds_txt": "http://a.example/\n"}),
    ],
)
def test_what_reaches_further_needs_an_operator(site: DeskSite, path: str, fields: dict[str, str]) -> None:
    refused = site.save(f"/jobs/{JOB}/{path}", site.page(f"/jobs/{JOB}/{path}"), **fields)
    assert (refused.status, "operator" in refused.text) == (400, True)
    assert read(site) == "# ours\nhops = 3\n"


def test_an_operator_may(site: DeskSite) -> None:
    path = f"/jobs/{JOB}/edit"
    assert site.save(path, site.page(path, "operator"), role="operator", robots="ignore").status == 303
    assert 'robots = "ignore"' in read(site)
    undone = site.page(f"/jobs/{JOB}/history", "operator")
    assert site.post(f"/jobs/{JOB}/history", {**undone, "to": "1"}, role="operator").status == 303
    refused = site.post(f"/jobs/{JOB}/history", {**site.page(f"/jobs/{JOB}/history"), "to": "2"}, role="curator")
    assert (refused.status, "needs the role operator" in refused.text) == (409, True)


def test_a_new_job_and_a_copy(site: DeskSite) -> None:
    made = site.save("/new-job", site.page("/new-job"), addresses="b.example\r\n# note\r\n", keep="host")
    assert made.header("Location") == "/jobs/b-example/history?saved=1"
    assert read(site, "seeds.txt", "b-example") == "https://b.example/\n# note\n"
    page = site.get("/new-job", {"copy": JOB}, role="curator").text
    copied = {name: unescape(value) for name, value in _HIDDEN.findall(page)}
    assert site.save("/new-job", copied, name="other", addresses="http://a.example/").status == 303
    assert read(site, "crawl.toml", "other") == "# ours\nhops = 3\n"
    taken = site.save("/new-job", copied, name=JOB, addresses="http://a.example/")
    assert (taken.status, f"there is a job {JOB}" in taken.text) == (400, True)
    assert site.save("/new-job", site.page("/new-job"), name="../x", addresses="a.example").status == 400


@pytest.mark.parametrize("coding", ["utf-8", "utf-16"])
def test_a_list_is_uploaded(site: DeskSite, coding: str) -> None:
    lines = ["url,title", *(f"https://h{number}.example/,Title {number}" for number in range(3_000))]
    done = site.send(f"/jobs/{JOB}/edit", "\r\n".join(lines).encode(coding), addresses="http://a.example/", do="save")
    assert done.status == 303, done.text
    assert len(read(site, "seeds.txt").splitlines()) == 3_001
    page = site.get(f"/jobs/{JOB}/edit", role="curator").text
    assert ("Keep the 3,001 addresses that it has" in page, "h2999.example" in page) == (True, False)
    more = site.save(f"/jobs/{JOB}/edit", site.page(f"/jobs/{JOB}/edit"), kept="1", addresses="https://c.example/")
    assert (more.status, len(read(site, "seeds.txt").splitlines())) == (303, 3_002)


def test_a_hostile_list_is_named_by_line_and_nothing_is_saved(site: DeskSite) -> None:
    data = b"https://a.example/\njavascript:alert(1)\n<script>alert(1)</script>\n\xe2\x80\xaegpj.exe\n"
    refused = site.send(f"/jobs/{JOB}/edit", data, do="save")
    assert refused.status == 400
    assert "line 2: javascript:alert(1): javascript: is not fetched" in unescape(refused.text)
    assert ("<script>alert" in refused.text, "\u202e" in refused.text) == (False, False)
    pasted = site.save(f"/jobs/{JOB}/edit", site.page(f"/jobs/{JOB}/edit"), addresses=data.decode())
    assert "line 3: &lt;script&gt;" in pasted.text
    assert read(site, "seeds.txt") == "http://a.example/\n"
    broken = site.send(f"/jobs/{JOB}/edit", b"https://a.example/\xff", do="save")
    assert "it is not UTF-8" in broken.text


def test_a_form_without_files_takes_none(site: DeskSite) -> None:
    assert site.send(f"/jobs/{JOB}/papers", b"x").status == 400


def test_addresses_are_in_or_out_by_a_rule_and_a_bad_rule_is_named(site: DeskSite) -> None:
    path = f"/jobs/{JOB}/edit"
    fields = {"do": "test", "keep": "host", "leave_out": "re: (a+)+$\ncalendar\n"}
    paste = f"http://a.example/calendar\nhttp://a.example/{'a' * 5_000}\nhttp://b.example/\n"
    shown = site.post(path, {**site.page(path), **fields, "paste": paste}, role="curator")
    assert shown.status == 200
    rules = site.post(f"{path}", {**site.page(path), **fields, "paste": paste, "format": "json"}, role="curator")
    assert [one[2] for one in rules.document["tested"]] == ["calendar", "[traps] length 2083", "what to keep"]
    bad = site.post(path, {**site.page(path), **fields, "leave_out": "x\nre: (\n"}, role="curator")
    assert (bad.status, "line 2: " in bad.text, 'aria-invalid="true"' in bad.text) == (400, True, True)
    assert read(site) == "# ours\nhops = 3\n"


def test_the_rules_are_tried_on_the_newest_launch(site: DeskSite) -> None:
    path = f"/jobs/{JOB}/edit"
    none = site.post(path, {**site.page(path), "do": "try"}, role="curator")
    assert (none.status, "it was never launched" in none.text) == (400, True)
    site.desk.launch = LAUNCH
    log = site.roots.folders["output"] / "logs" / JOB / LAUNCH.id / "crawl.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    for one in log.parent.iterdir():
        one.unlink()
    row = "2016-10-19T23:44:28.003Z 200 9 {} L http://a.example/ text/html #001 20161019234428000+9 - - - {{}}\n"
    log.write_text("".join(row.format(f"http://a.example/{name}") for name in ("calendar", "<b>", "x")))
    shown = site.post(path, {**site.page(path), "do": "try", "keep": "host", "leave_out": "calendar"}, role="curator")
    assert "would leave out 1 of 3: 1 by calendar" in shown.text
    assert read(site) == "# ours\nhops = 3\n"


def test_a_schedule_that_is_none_is_named(site: DeskSite) -> None:
    path = f"/jobs/{JOB}/edit"
    refused = site.save(path, site.page(path), hops="4", schedule="never")
    assert (refused.status, "is not one of hourly" in refused.text, read(site)) == (400, True, "# ours\nhops = 3\n")


def test_an_address_is_archived_by_one_button(site: DeskSite) -> None:
    done = site.post("/archive-a-site", {"url": "c.example"}, role="curator")
    assert (done.status, done.header("Location")) == (
        303,
        "/jobs/c-example/watch?action=" + site.actions.newest(site.state, 9)[0].id,
    )
    (action,) = site.actions.newest(site.state, 9)
    assert (action.words, action.who) == (("crawl", "--job=c-example", "--", "https://c.example/"), "curator")


@pytest.mark.parametrize(
    ("looked", "why"),
    [
        ({"status": 0, "why": "no such name"}, "It did not answer: no such name"),
        ({"status": 404}, "It answered with 404"),
        ({"to": "https://elsewhere.example/"}, "It leads to another host"),
        ({"forbidden": True, "robots": "robots.txt forbids all of it: Disallow: /"}, "forbids all of it"),
    ],
)
def test_what_speaks_against_a_crawl_is_shown_first(site: DeskSite, looked: dict[str, Any], why: str) -> None:
    site.desk.looked |= looked
    shown = site.post("/archive-a-site", {"url": "c.example"}, role="curator")
    assert (shown.status, why in shown.text, site.actions.newest(site.state, 9)) == (200, True, [])
    assert site.post("/archive-a-site", {"url": "c.example", "anyway": "1"}, role="curator").status == 303
    assert len(site.actions.newest(site.state, 9)) == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"url": ""}, {"url": "javascript:alert(1)"}, {"url": "http://127.0.0.1/"}, {"url": "a.example\nb.example"},
        {"url": "c.example", "allow_private": "10.0.0.0/8"}, {"url": "--help"},
    ],
)  # fmt: skip
def test_an_address_that_may_not_be_archived_is_refused(site: DeskSite, fields: dict[str, str]) -> None:
    refused = site.post("/archive-a-site", fields, role="curator")
    assert (refused.status, site.actions.newest(site.state, 9)) == (400, [])


def test_the_bookmarklet_leads_back_here(site: DeskSite) -> None:
    page = site.get("/archive-a-site", {"url": 'https://c.example/"><script>'}, role="curator").text
    assert "javascript:location.href=&#39;http://127.0.0.1:8090/archive-a-site?url=&#39;" in page
    assert "<script>" not in page.partition("<main")[2]
