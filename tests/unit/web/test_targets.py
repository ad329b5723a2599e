"""The pages of a feed's targets: by role, in two windows, with hostile lists; a feed that cannot be edited."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path

import pytest
from launches.engine import LAUNCH, Engine
from msgspec.structs import replace
from operating.job_desk import FolderDesk
from operating.web_client import WebAnswer, ask
from operating.web_site import WebSite

from warcmill import layout
from warcmill.audit.answers.line import JobEngine
from warcmill.base.schedule import DAILY
from warcmill.errors import NewerEdition
from warcmill.markers.claim import Claim
from warcmill.markers.editions import FEED as FEED_EDITIONS
from warcmill.markers.editions import jobs_in
from warcmill.markers.facts.reports import SeedFate, SeedState
from warcmill.pulse import feed, feed_edits
from warcmill.pulse.feed import Due, Source
from warcmill.pulse.target_list import EditRules
from warcmill.versions import hidden_list

JOB = LAUNCH.job
LIST = f"/jobs/{JOB}/targets"
_HIDDEN = re.compile(r'type="hidden" name="(\w+)" value="([^"]*)"')
BOUNDARY = "a-line-that-no-file-has"
FEED = (
    b'{"id": 7, "title": "Office <b>of</b> Things", "x": 1.10, "seeds": ["https://things.example/"],'
    b' "owner": "Ann", "schedules": [{"startDate": 1438246800000, "frequency": "DAILY", "y": null}]}\r\n'
    b"no JSON <script>\r\n"
    b'{"id": "b9", "title": "Bees \xe2\x80\xae", "seeds": ["bees.example"], "paused": true}'
)


class FeedSite(WebSite):
    file: Path
    desk: FolderDesk

    def hidden(self, path: str, role: str = "curator") -> dict[str, str]:
        """The hidden fields of a page's form."""
        return {name: unescape(value) for name, value in _HIDDEN.findall(self.get(path, role=role).text)}

    def save(self, path: str, begun: dict[str, str] | None = None, role: str = "curator", **fields: str) -> WebAnswer:
        return self.post(path, {**(begun or self.hidden(path, role)), **fields}, role=role)

    def send_list(self, data: bytes) -> WebAnswer:
        """Look at an import, as a browser sends it."""
        path = f"/jobs/{JOB}/import-targets"
        fields = {"form": self.hidden(path)["form"], "do": "look"}
        parts = [
            f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
            for name, value in fields.items()
        ]
        head = 'Content-Disposition: form-data; name="list"; filename="a.csv"\r\nContent-Type: text/csv'
        body = b"".join([*parts, f"--{BOUNDARY}\r\n{head}\r\n\r\n".encode(), data, f"\r\n--{BOUNDARY}--\r\n".encode()])
        headers = self.headers("curator", origin="http://127.0.0.1:8090")
        headers |= {"content-type": f"multipart/form-data; boundary={BOUNDARY}", "content-length": str(len(body))}
        return ask(self.app, path, method="POST", headers=headers, sent_form=body)

    def lines(self) -> list[bytes]:
        return self.file.read_bytes().splitlines()


@pytest.fixture
def site(tmp_path: Path) -> FeedSite:
    engine = Engine(tmp_path)
    desk = FolderDesk(engine, JOB)
    file = tmp_path / "targets.jsonl"
    file.write_bytes(FEED)
    desk.feed_file = str(file)
    engines = {JOB: JobEngine("engine.own", "warcmill", driven=True)}
    made = FeedSite(engine, replace(engine.audited, engines=engines), more={"job_desk": desk})
    made.file, made.desk = file, desk
    return made


def test_a_reader_sees_the_targets_and_can_do_nothing(site: FeedSite) -> None:
    page = site.get(LIST, role="reader").text
    assert "Office &lt;b&gt;of&lt;/b&gt; Things" in page
    assert "\u202e" not in page
    assert "line 2: <bdi>is no JSON" in page
    assert "daily from 2015-07-30T09:00:00Z" in page
    assert 'name="form"' not in page
    assert "new-target" not in page
    assert f'<a href="{LIST}">' in site.get(f"/jobs/{JOB}", role="reader").text
    for path in (f"{LIST}/7", f"/jobs/{JOB}/new-target", f"/jobs/{JOB}/import-targets", f"/jobs/{JOB}/export-targets"):
        assert site.get(path, role="reader").status == 403
    assert site.post(LIST, {"form": "", "do": "pause", "id": "7"}, role="reader").status == 403


def test_readers_get_no_address_that_is_hidden(site: FeedSite) -> None:
    hidden_list.decide(site.state, lambda: site.roots.store, "example,things", "order of a court", hides=True)
    for fields in ({}, {"format": "json"}):
        assert "things.example" not in site.get(LIST, fields, role="reader").text
        assert "bees.example" in site.get(LIST, fields, role="reader").text
    assert "things.example" in site.get(LIST, role="curator").text


def test_targets_are_filtered_and_paged(site: FeedSite) -> None:
    found = site.get(LIST, {"words": "THINGS office", "format": "json"}, role="reader").document
    assert [one["id"] for one in found["targets"]] == ["7"]
    assert site.get(LIST, {"owner": "ann", "format": "json"}).document["total"] == 1
    assert [one["id"] for one in site.get(LIST, {"paused": "yes", "format": "json"}).document["targets"]] == ["b9"]
    many = (json.dumps({"id": number, "seeds": [f"http://{number}.example/"]}) for number in range(60))
    site.file.write_text("\n".join(many))
    second = site.get(LIST, {"page": "2", "format": "json"}).document
    assert (second["total"], second["targets"][0]["id"], len(second["targets"])) == (60, "50", 10)
    assert "51 to 60 of 60" in site.get(LIST, {"page": "2"}).text


def test_an_edit_leaves_all_else_as_it_was(site: FeedSite) -> None:
    first, second, third = FEED.splitlines()
    done = site.save(f"{LIST}/7", title="Things", addresses="https://things.example/\r\nmore.example\r\n", why=" a  b ")
    assert (done.status, done.header("Location")) == (303, f"{LIST}?saved=2")
    changed = first.replace(b"Office <b>of</b> Things", b"Things")
    changed = changed.replace(b'["https://things.example/"]', b'["https://things.example/","https://more.example/"]')
    assert site.file.read_bytes() == changed + b"\r\n" + second + b"\r\n" + third
    assert "Edition 2 of the feed is saved" in site.get(LIST, {"saved": "2"}).text
    assert jobs_in(site.state) == [FEED_EDITIONS], "backup, restore and reconcile see them"
    (newest, found) = site.desk.feed(JOB).editable().editions.all()
    assert (newest.who, newest.why, newest.made_from) == ("curator", "a b", 1)
    assert (found.who, found.why) == ("", "as it was found")
    assert site.save(f"{LIST}/7").header("Location") == f"{LIST}?saved=0"


def test_a_target_is_added_paused_and_resumed(site: FeedSite) -> None:
    done = site.save(f"/jobs/{JOB}/new-target", title="N", addresses="n.example", schedules="every 6 hours refresh")
    assert done.status == 303
    added = json.loads(site.lines()[-1])
    assert (added["id"], added["seeds"]) == (8, ["https://n.example/"])
    assert (added["schedules"][0]["frequency"], added["schedules"][0]["refresh"]) == ("EVERY 6 HOURS", True)
    before = site.file.read_bytes()
    assert site.save(LIST, do="pause", id="8").header("Location") == f"{LIST}?saved=3"
    assert json.loads(site.lines()[-1])["paused"] is True
    assert "It is paused" in site.get(f"{LIST}/8").text
    assert site.save(LIST, do="resume", id="8").status == 303
    assert site.file.read_bytes() == before
    assert site.save(LIST, do="pause", id="no").status == 409


@pytest.mark.parametrize(
    ("field", "text", "why"),
    [
        ("addresses", "javascript:alert(1)", "javascript: is not fetched"),
        ("addresses", "http://127.0.0.1:8090/", "an inside address: loopback"),
        ("addresses", " \r\n", "needs at least one"),
        ("schedules", "sometimes", "is not one of hourly, daily"),
        ("schedules", "daily from 2026-12-01 to 2026-11-01", "is not after startDate"),
        ("scope", "everything", "is not one of resource"),
        ("title", "t" * 1001, "1,000 are the most"),
    ],
)
def test_what_cannot_be_taken_is_named_and_nothing_is_written(site: FeedSite, field: str, text: str, why: str) -> None:
    answer = site.save(f"{LIST}/7", **{field: text})
    assert answer.status == 400
    assert why in unescape(answer.text)
    assert site.file.read_bytes() == FEED


def test_what_needs_an_operator_an_operator_may(site: FeedSite) -> None:
    assert site.save(f"{LIST}/7", ignore_robots="yes").status == 400
    assert site.save(f"{LIST}/7", role="operator", ignore_robots="yes", addresses="http://127.0.0.1/").status == 303
    assert site.save(f"{LIST}/7", title="a curator keeps it").status == 303
    assert b'"ignoreRobotsTxt": true' in site.file.read_bytes()


def test_in_two_windows_the_second_sees_both_and_nothing_is_written(site: FeedSite) -> None:
    site.save(LIST, do="pause", id="7")  # from now on there is an edition
    first, second, other = site.hidden(f"{LIST}/7"), site.hidden(f"{LIST}/7", "operator"), site.hidden(f"{LIST}/b9")
    assert site.save(f"{LIST}/7", first, title="Mine", owner="Bea").status == 303
    assert site.save(f"{LIST}/b9", other, title="Another target is no conflict").status == 303
    before = site.file.read_bytes()
    answer = site.save(f"{LIST}/7", second, role="operator", title="Yours")
    assert answer.status == 409
    assert site.file.read_bytes() == before
    assert "curator has saved it meanwhile" in answer.text
    assert re.search(r"<th scope=\"row\">Title</th>.*Mine.*Yours", answer.text)
    assert 'value="Bea"' in answer.text, "what was not changed is as it was saved"
    again = {name: unescape(value) for name, value in _HIDDEN.findall(answer.text)}
    assert site.save(f"{LIST}/7", again, role="operator", title="Yours").status == 303
    assert (json.loads(site.lines()[0])["title"], json.loads(site.lines()[0])["owner"]) == ("Yours", "Bea")


def test_what_was_edited_by_hand_meanwhile_is_an_edition_and_a_conflict(site: FeedSite) -> None:
    begun = site.hidden(f"{LIST}/7")
    site.save(LIST, do="resume", id="b9")
    site.file.write_bytes(site.file.read_bytes().replace(b"Ann", b"By hand"))
    answer = site.save(f"{LIST}/7", begun, title="T")
    assert (answer.status, "edited by hand meanwhile" in answer.text) == (409, True)
    assert next(site.desk.feed(JOB).editable().editions.all()).why == "edited by hand"


def test_an_import_says_what_it_would_be_before_it_writes(site: FeedSite) -> None:
    table = 'id;title;urls;crawl_frequency;odd\r\n7;"=Things; ""new""";;;\r\n;N;n.example;MONTHLY;1\r\n'
    table += "9;x;javascript:alert(1);;\r\nb9;;;;\r\n;again;n.example;;\r\n10;in;http://127.0.0.1/;;\r\n"
    looked = site.send_list(table.encode("utf-16"))
    assert looked.status == 200
    assert "1 new, 1 changed, 1 the same, 3 refused. Nothing is written yet" in looked.text
    assert site.file.read_bytes() == FEED
    assert '<td class="number">4</td>' in looked.text
    assert "Columns that say nothing here: <bdi>odd</bdi>" in looked.text
    hidden = {name: unescape(value) for name, value in _HIDDEN.findall(looked.text)}
    path = f"/jobs/{JOB}/import-targets"
    assert site.save(path, {**hidden, "form": site.form(path, "curator")}, do="save", why="a list").status == 303
    first, *_, last = site.lines()
    assert json.loads(first)["title"] == '=Things; "new"'
    assert (json.loads(last)["id"], json.loads(last)["seeds"]) == (8, ["https://n.example/"])
    again = site.save(path, {**hidden, "form": site.form(path, "curator")}, do="save")
    assert (again.status, "0 new, 0 changed, 3 the same" in again.text) == (409, True), "the feed is another one now"
    assert site.save(path, {"kept": "../../luigi", "form": site.form(path, "curator")}, do="save").status == 400


def test_an_export_is_imported_as_the_same(site: FeedSite) -> None:
    path = f"/jobs/{JOB}/export-targets"
    table = site.get(path, {"as": "csv"}, role="curator")
    assert table.header("content-disposition") == f'attachment; filename="targets-{JOB}.csv"'
    assert "0 new, 0 changed, 2 the same, 0 refused" in site.send_list(table.body).text
    assert site.get(path, {"as": "jsonl"}, role="curator").body == FEED
    assert site.get(path, {"as": "odd"}, role="curator").status == 400


def test_a_feed_that_is_not_ours_is_shown_and_says_why_it_cannot_be_edited(site: FeedSite) -> None:
    site.desk.feed_file = "https://curators.example/feed"
    page = site.get(LIST, role="curator").text
    assert "no crawl has read https://curators.example/feed yet" in page
    due = Due(JOB, "20261019000000", DAILY)
    kept = Source(lambda: FEED, "https://curators.example/feed", most_faulty=50)
    site.roots.state.publish(due.key, feed.crawl(site.roots.state, due, kept))
    page = site.get(LIST, role="curator").text
    assert "It cannot be edited here: this feed is another program" in page
    assert "Office &lt;b&gt;" in page
    assert (site.get(f"{LIST}/7").status, site.get(f"/jobs/{JOB}/new-target").status) == (409, 409)
    site.file.write_text('[{"id": 1, "seeds": ["http://a.example/"]}]')
    site.desk.feed_file = str(site.file)
    assert "is one JSON list, which has no lines to change" in site.get(LIST, role="curator").text
    site.desk.feed_file = None
    assert site.get(LIST).status == 404


def test_the_last_fate_is_that_of_the_newest_launch_that_asked(site: FeedSite) -> None:
    fates = [
        SeedFate("https://things.example/", SeedState.ALIVE, 200, target="7"),
        SeedFate("https://bees.example/", SeedState.DEAD, 404, why="404 not found"),
    ]
    numbers = {"seeds": 2, "dead": 1, "untried": 0, "redirected": 0, "alive": 1}
    facts = {"seeds": [one.facts() for one in fates], "list": "seeds.txt", "end": "", "untried_as": ""}
    claim = Claim(layout.step("seeds", LAUNCH), counts=numbers, facts={**facts, "without_page": [], "unread": []})
    site.roots.state.publish(claim.key, claim)
    first, second = site.get(LIST, {"format": "json"}).document["targets"]
    assert first["fate"] == {"asked": 1, "got": 1, "launch_id": LAUNCH.id, "why": ""}
    assert second["fate"]["why"] == "https://bees.example/: 404 not found"


def test_of_two_at_once_both_edits_of_different_targets_are_kept(site: FeedSite) -> None:
    mine, theirs = site.desk.feed(JOB), site.desk.feed(JOB)
    rules = mine.rules(may_all=False)
    line = feed_edits.found(mine, "7")

    class Slow(EditRules, frozen=True):
        """Rules that let the other one save first."""

        def check(self, before: object, after: object) -> None:
            if not told:
                told.append("")
                feed_edits.edit(theirs, "b9", {"title": "Theirs"}, rules, who="b", why="")

    told = list[str]()
    slow = Slow(may_all=False, judge=rules.judge, now=rules.now)
    feed_edits.edit(mine, "7", {"title": "Mine"}, slow, who="a", why="", seen=line.seen)
    assert [json.loads(one)["title"] for one in (site.lines()[0], site.lines()[2])] == ["Mine", "Theirs"]
    with pytest.raises(NewerEdition):
        feed_edits.edit(mine, "7", {"title": "Late"}, rules, who="c", why="", seen=line.seen)
