"""What a scan leaves behind: the day's summary, and a notice of what a person must look at."""

from __future__ import annotations

import json
from typing import Any

from launches.bundled import LAUNCH, REASON
from line import DAY, Line
from sample import JOB, LAUNCH_ID
from sites.receivers import mail_server, web_server

from warcmill import layout


def summary(line: Line) -> dict[str, dict[str, Any]]:
    path = line.folders["state"] / DAY[:7] / f"status.{DAY}.json"
    return {one["job"]: one for one in json.loads(path.read_text())["launches"]}


def test_a_scan_with_a_failed_step_leaves_its_summary_all_the_same(line: Line) -> None:
    assert line.luigi("--module", "tasks.output", "output.ScanForOutputs", "--date-interval", DAY).returncode == 0
    assert summary(line)[JOB]["steps"] == {"stop": "done", "process": "done", "seeds": "waiting"}
    warc = next((line.folders["output"] / "warcs" / JOB / LAUNCH_ID).iterdir())
    warc.write_bytes(warc.read_bytes() + b"\n")
    assert line.scan() == [0, 30]
    assert summary(line)[JOB]["counts"]["failed"] == 1
    warc.write_bytes(warc.read_bytes()[:-1])
    assert line.scan() == [0, 0]
    assert set(summary(line)[JOB]["counts"].values()) == {0}


def test_nothing_to_look_at_sends_nothing(line: Line) -> None:
    with mail_server() as mails, web_server() as posts:
        configure(line, mails.port, f"http://127.0.0.1:{posts.port}/hook?token=s3cret")
        assert line.scan() == [0, 0]
    assert (mails.mails, posts.posts) == ([], [])


def configure(line: Line, smtp_port: int, webhook: str) -> None:
    """A [notice] section in the line's luigi.cfg."""
    keys = (
        "mail_to=archivist@lib.example",
        "mail_from=warcmill@lib.example",
        "smtp_host=127.0.0.1",
        f"smtp_port={smtp_port}",
        f"webhook={webhook}",
    )
    with line.config.open("a") as file:
        file.write("\n".join(["[notice]", *keys, ""]))


def test_one_notice_a_run_by_the_scan_whose_step_it_is(line: Line) -> None:
    warc = next((line.folders["output"] / "warcs" / JOB / LAUNCH_ID).iterdir())
    warc.write_bytes(warc.read_bytes()[:-1])
    with mail_server() as mails, web_server() as posts:
        configure(line, mails.port, f"http://127.0.0.1:{posts.port}/hook?token=s3cret")
        assert line.scan() == [0, 0]
        ((_, _, mail),) = mails.mails
        ((_, _, told),) = posts.posts
        assert f"Subject: warcmill: files.ScanForOutputFiles {DAY}: 1 refused".encode() in mail.replace(b"\r\n ", b" ")
        assert [(one["kind"], one["launch"]) for one in told["troubles"]] == [("refused", f"{JOB}/{LAUNCH_ID}")]
        assert line.scan() == [0, 0]
        assert len(mails.mails) == 1, "what lasts is not told again"
        assert line.warcmill("accept", warc.name, *REASON).returncode == 0
        assert line.scan() == [0, 0]
        assert line.scan() == [0, 0]
        assert len(mails.mails) == len(posts.posts) == 2, "its end is told once"
        assert b": 1 ended" in mails.mails[1][2].replace(b"\r\n ", b" ")
        _, _, told = posts.posts[1]
        assert (told["troubles"], told["counts"]) == ([], {})
        assert [(one["kind"], one["launch"]) for one in told["ended"]] == [("refused", f"{JOB}/{LAUNCH_ID}")]


def test_a_damaged_list_of_what_was_named_is_replaced_by_the_next_notice(line: Line) -> None:
    warc = next((line.folders["output"] / "warcs" / JOB / LAUNCH_ID).iterdir())
    warc.write_bytes(warc.read_bytes()[:-1])
    with mail_server() as mails, web_server() as posts:
        configure(line, mails.port, f"http://127.0.0.1:{posts.port}/hook?token=s3cret")
        assert line.scan() == [0, 0]
        for channel in ("mail", "webhook"):
            (line.folders["state"] / f"status/notified.files.ScanForOutputFiles.{channel}.json").write_text("cut")
        assert line.scan() == [0, 0]
        assert line.scan() == [0, 0]
        assert len(mails.mails) == len(posts.posts) == 2, "once more, and then no more"


def test_an_outage_is_reported_too(line: Line) -> None:
    with mail_server() as mails, web_server() as posts:
        configure(line, mails.port, f"http://127.0.0.1:{posts.port}/hook?token=s3cret")
        (line.folders["state"] / layout.SENTINEL).unlink()
        assert line.scan() == [35, 35]
        assert [told["counts"] for _, _, told in posts.posts] == [{"unreadable": 1}] * 2
        assert len(mails.mails) == 2


def test_a_notice_that_cannot_be_sent_is_an_error_line_and_no_exit_code(line: Line, closed_port: int) -> None:
    warc = next((line.folders["output"] / "warcs" / JOB / LAUNCH_ID).iterdir())
    warc.write_bytes(warc.read_bytes()[:-1])
    configure(line, closed_port, f"http://127.0.0.1:{closed_port}/hook?token=s3cret")
    assert line.scan()[0] == 0
    done = line.luigi("--module", "tasks.files", "files.ScanForOutputFiles", "--date-interval", DAY)
    assert done.returncode == 0
    assert done.stderr.count("the notice was not sent: mail server") == 1
    assert "the notice was not sent: webhook on 127.0.0.1 is unavailable: Connection refused" in done.stderr
    assert "s3cret" not in done.stderr


def test_a_channel_that_is_down_has_the_notice_later_and_the_other_no_second_time(line: Line, closed_port: int) -> None:
    warc = next((line.folders["output"] / "warcs" / JOB / LAUNCH_ID).iterdir())
    warc.write_bytes(warc.read_bytes()[:-1])
    plain = line.config.read_text()
    with mail_server() as mails, web_server() as posts:
        configure(line, mails.port, f"http://127.0.0.1:{closed_port}/hook?token=s3cret")
        assert line.scan() == [0, 0]
        assert line.scan() == [0, 0]
        assert len(mails.mails) == 1
        line.config.write_text(plain)
        configure(line, mails.port, f"http://127.0.0.1:{posts.port}/hook?token=s3cret")
        assert line.scan() == [0, 0]
        assert line.scan() == [0, 0]
        assert (len(mails.mails), [told["counts"] for _, _, told in posts.posts]) == (1, [{"refused": 1}])


def test_a_wrong_notice_section_is_reported_before_any_step(line: Line) -> None:
    configure(line, 25, "ftp://lib.example/hook")
    done = line.luigi("--module", "tasks.output", "output.ScanForOutputs", "--date-interval", DAY)
    assert done.returncode == 35
    assert "[notice] webhook" in done.stderr
    assert line.state.folder(LAUNCH) == {}
