"""Actions of operators: a form shows what will happen, acts once, and its record outlives the server."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from launches.engine import LAUNCH, Engine
from operating.web_client import WebAnswer
from operating.web_site import WebSite

from warcmill.audit.answers.line import AuditedLine, JobEngine
from warcmill.base.schedule import DAILY, Schedule
from warcmill.web.actions import ACTIONS, FOLDER, SHOWN

JOB = "daily"
PRINTS = ("sh", "-c", 'printf "%s\\n" "$0" "$@"; echo and stderr >&2; exit 1')
WAITS = ("sh", "-c", 'echo it begins; while [ ! -e "$0/go" ]; do sleep 0.02; done; echo it ends')
ACTS = ("/jobs/daily/start", "/jobs/daily/checkpoint", "/jobs/daily/stop", "/scan")


def site_of(base: Path, program: tuple[str, ...], **more: Any) -> WebSite:
    """The pages of a line with a job that our crawler crawls, one of Heritrix's that is not controlled, and one that no
    engine crawls."""
    engine = Engine(base)
    engines = {JOB: JobEngine("engine.own", "warcmill", driven=True), "foreign": JobEngine("engine.other")}
    line = AuditedLine(engine.state, engine.rootmap, {}, lambda: engine.store, engines=engines, **more)
    return WebSite(engine, line, program)


def until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + 300
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def ended(site: WebSite, answer: WebAnswer) -> Any:
    """The document of the action that a post has moved to, once it has ended."""
    assert answer.status == 303, answer.text
    page = answer.header("location")
    until(lambda: site.get(page, {"format": "json"}).document["exit_code"] is not None)
    return site.get(page, {"format": "json"}).document


@pytest.mark.parametrize("path", ACTS)
def test_a_form_shows_the_command_and_runs_exactly_that(tmp_path: Path, path: str) -> None:
    site = site_of(tmp_path, PRINTS)
    asked = site.get(path, {"format": "json"}).document
    assert f'<code class="command">warcmill {" ".join(asked["words"])}</code>' in site.get(path).text
    done = ended(site, site.post(path))
    assert done["words"] == asked["words"]
    assert done["output"].splitlines() == [*asked["words"], "and stderr"]
    assert (done["exit_code"], done["who"], done["action"]) == (1, "operator", path.rpartition("/")[2])
    assert done["started"] <= done["finished"]
    record = json.loads((tmp_path / "state" / FOLDER / f"{done['id']}.json").read_text())
    assert record == {name: value for name, value in done.items() if name in record}
    page = site.get(f"/actions/{done['id']}").text
    assert "the answer is no" in page
    assert ('href="/jobs/daily/watch"' in page) == (path == "/jobs/daily/start"), "a crawl that began can be watched"


def test_a_start_is_of_the_due_crawl_and_else_one_more(tmp_path: Path) -> None:
    def words(**schedules: Schedule) -> list[str]:
        site = site_of(tmp_path, PRINTS, schedules=schedules)
        return list(site.get("/jobs/daily/start", {"format": "json"}).document["words"])

    now = datetime.now(UTC)
    assert words(daily=Schedule(now - timedelta(hours=1), DAILY)) == ["pulse", "start", JOB]
    assert words(daily=Schedule(now + timedelta(hours=1), DAILY)) == ["pulse", "start", JOB, "--again"]
    assert words() == ["pulse", "start", JOB, "--again"]


def test_a_form_that_is_posted_twice_acts_once(tmp_path: Path) -> None:
    site = site_of(tmp_path, (*WAITS[:2], WAITS[2].replace("$0", str(tmp_path)), "-"))
    form = site.form("/scan")
    pages = {site.post("/scan", {"form": form}).header("location") for _ in range(3)}
    assert len(pages) == 1
    (tmp_path / "go").touch()
    ended(site, site.post("/scan", {"form": form}))
    site.post("/scan", {"form": form})
    assert len(list((tmp_path / "state" / FOLDER).glob("*.json"))) == 1
    assert (tmp_path / "state" / FOLDER / f"{pages.pop().rpartition('/')[2]}.log").read_text() == "it begins\nit ends\n"


@pytest.mark.parametrize(
    ("posted", "more"),
    [({"form": ""}, {}), ({"form": "20161019234428-0123456789ab." + "0" * 64}, {}), ({}, {"origin": "http://evil.example"}),
     ({}, {"origin": "null"}), ({}, {"origin": ""})],
)  # fmt: skip
@pytest.mark.parametrize("path", ACTS)
def test_without_its_token_or_from_elsewhere_nothing_is_done(
    tmp_path: Path, path: str, posted: dict[str, str], more: dict[str, str]
) -> None:
    site = site_of(tmp_path, PRINTS)
    assert site.post(path, posted, **more).status == 400
    assert not (tmp_path / "state" / FOLDER).exists()


def test_the_token_of_one_page_or_person_is_none_of_another(tmp_path: Path) -> None:
    site = site_of(tmp_path, PRINTS)
    assert site.post("/jobs/daily/stop", {"form": site.form("/jobs/daily/start")}).status == 400
    for role in ("reader", "curator", ""):
        assert site.post("/scan", {"form": site.form("/scan")}, role=role).status == 403
        assert site.get("/scan", role=role).status == 403
    assert not (tmp_path / "state" / FOLDER).exists()


@pytest.mark.parametrize(("path", "status", "said"), [
    ("/jobs/nowhere/start", 404, "no engine"), ("/jobs/foreign/stop", 404, "engine.other"),
    ("/jobs/..%2f/start", 404, ""), ("/jobs/<b>/stop", 404, "no engine"), ("/jobs/\u202e/stop", 404, "no engine"),
    ("/launches/daily/20161399999999/close", 404, "there is no such launch"),
    ("/launches/-x/20161019234428/close", 404, "there is no such launch"),
    ("/launches/daily/20161019234428/accept", 409, "no finding"),
    ("/actions/20161019234428-0123456789ab", 404, "no action"), ("/actions/x", 404, "no action"),
])  # fmt: skip
def test_what_there_is_not_is_refused_by_name(tmp_path: Path, path: str, status: int, said: str) -> None:
    answer = site_of(tmp_path, PRINTS).get(path)
    assert answer.status == status
    assert said in answer.text
    assert "<b>" not in answer.text
    assert "\u202e" not in answer.text


@pytest.mark.parametrize("reason", ["", "  ", "a\r\nb", "a\0b", "\u202eevil", "x" * 1_001, "x" * 10_000])
def test_a_reason_that_is_none_is_asked_for_again(tmp_path: Path, reason: str) -> None:
    site = site_of(tmp_path, PRINTS)
    answer = site.post(f"/launches/{JOB}/{LAUNCH.id}/close", {"reason": reason})
    assert answer.status == 400
    assert "a reason is one line of 1 to 1000 characters" in answer.text
    assert "\u202e" not in answer.text
    assert 'name="form"' in answer.text, "the form is there, to be sent again"
    assert not (tmp_path / "state" / FOLDER).exists()


def test_a_form_of_a_megabyte_is_refused(tmp_path: Path) -> None:
    site = site_of(tmp_path, PRINTS)
    assert site.post(f"/launches/{JOB}/{LAUNCH.id}/close", {"reason": "x" * 1_000_000}).status == 400


@pytest.mark.parametrize("reason", [
    "--help", "-x y", "$(id) `id` ; id", "<script>alert(1)</script>", "it's {job} gone",
])  # fmt: skip
def test_a_reason_stays_one_value_whatever_is_in_it(tmp_path: Path, reason: str) -> None:
    site = site_of(tmp_path, PRINTS)
    done = ended(site, site.post(f"/launches/{JOB}/{LAUNCH.id}/close", {"reason": reason}))
    assert done["output"].splitlines()[:-1] == ["close", JOB, LAUNCH.id, f"--reason={reason}"]
    page = site.get(f"/actions/{done['id']}").text
    assert "<script>" not in page
    assert "launches/daily/20161019234428" in page


def test_the_end_of_an_action_whose_server_was_killed_is_unknown(tmp_path: Path) -> None:
    site = site_of(tmp_path, (*WAITS[:2], WAITS[2].replace("$0", str(tmp_path)), "-"))
    page = site.post("/scan").header("location")
    shown = site.get(page).text
    assert "running" in shown
    assert 'data-refresh="2"' in shown
    another = site_of(tmp_path, PRINTS)
    shown = another.get(page).text
    assert "its end is unknown" in shown
    assert "data-refresh" not in shown
    assert another.get(page, {"format": "json"}).document["exit_code"] is None
    (tmp_path / "go").touch()
    until(lambda: site.get(page, {"format": "json"}).document["exit_code"] == 0)


def test_a_program_that_is_not_there_or_is_killed_has_an_end(tmp_path: Path) -> None:
    done = ended(site := site_of(tmp_path / "one", ("/nowhere/warcmill",)), site.post("/scan"))
    assert done["exit_code"] == 4
    assert "/nowhere/warcmill does not run" in done["output"]
    killed = site_of(tmp_path / "two", ("sh", "-c", "kill -TERM $$"))
    assert ended(killed, killed.post("/scan"))["exit_code"] == 128 + signal.SIGTERM


def test_the_child_is_no_longer_of_this_session_and_reads_nothing(tmp_path: Path) -> None:
    site = site_of(tmp_path, ("sh", "-c", "cat; ps -o sid= -p $$"))
    assert int(ended(site, site.post("/scan"))["output"]) != os.getsid(0)


def test_a_long_output_is_shown_from_its_end(tmp_path: Path) -> None:
    site = site_of(tmp_path, ("sh", "-c", "seq 1 100000; printf '\\033[31m<i>\\377'"))
    done = ended(site, site.post("/scan"))
    assert done["size"] > SHOWN >= len(done["output"])
    assert done["output"].splitlines()[-2] == "100000"
    page = site.get(f"/actions/{done['id']}").text
    assert "\\x1b[31m&lt;i&gt;" in page
    assert "The end of" in page


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"{}", b"\xff", b'{"words": 1}', b"[" * 100_000])
def test_a_broken_record_is_named_and_hides_nothing(tmp_path: Path, data: bytes) -> None:
    site = site_of(tmp_path, PRINTS)
    whole = ended(site, site.post("/scan"))
    broken = "20990101000000-0123456789ab"
    (tmp_path / "state" / FOLDER / f"{broken}.json").write_bytes(data)
    answer = site.get(f"/actions/{broken}")
    assert answer.status == 200
    assert "its record is broken" in answer.text
    assert [one.id for one in site.actions.newest(site.state, 5)] == [broken, whole["id"]]


def test_each_action_has_the_words_of_a_verb() -> None:
    from commands.console.parser import parser_of  # noqa: PLC0415

    for row in ACTIONS.values():
        names = {
            "entry": "a",
            "job": JOB,
            "launch_id": LAUNCH.id,
            "name": "shop",
            "url": "a.example",
            "begins": "--help",
            "file": "a.wacz",
            "id": "20161019234428-0123456789ab",
            "step": "cdx",
            "day": "2016-10-19",
        }
        verb, *words = row.filled(**names, reason="--help", key="--help")
        parsed = parser_of(verb).parse_args([*words, *(["--", "-a-name"] if verb == "accept" else [])])
        assert getattr(parsed, "reason", "--help") == "--help"
