"""The notice, sent to a real mail server and a real web server on loopback."""

from __future__ import annotations

from dataclasses import replace
from email import message_from_bytes, policy
from pathlib import Path
from typing import Any

import pytest
from luigi.configuration import get_config
from receivers import mail_server, web_server

from tasks.settings import notice_channels
from warcmill.errors import BadConfig, Unavailable
from warcmill.notice import SHOWN, Channels, Notice, Trouble, document, send_mail, send_webhook, subject, text

REFUSED = Trouble("daily/20161019234428", "refused", "warcs/a b\x1b[2J\nc.warc.gz", "at offset 7: cut short")
FAILED = Trouble("daily/20161019234428", "failed", "files.copied.daily.20161019234428.final", "the disk is full")
NOTICE = Notice("files.ScanForOutputFiles", "2016-10", "host1", (REFUSED, FAILED), "warcmill reconcile 2016-10")


def mail(port: int) -> Channels:
    return Channels("a@lib.example, b@lib.example", "warcmill@lib.example", "127.0.0.1", port)


def test_a_mail_reaches_everybody_with_all_that_is_to_be_looked_at() -> None:
    with mail_server() as received:
        send_mail(mail(received.port), NOTICE)
    ((sender, to, data),) = received.mails
    assert (sender, to) == ("warcmill@lib.example", ["a@lib.example", "b@lib.example"])
    read = message_from_bytes(data, policy=policy.default)
    assert read["Subject"] == "warcmill: files.ScanForOutputFiles 2016-10: 1 failed, 1 refused"
    body = read.get_content()
    assert "daily/20161019234428: refused: warcs/a b\\x1b[2J\\nc.warc.gz" in body
    assert "the disk is full" in body
    assert "warcmill reconcile 2016-10" in body


def test_a_webhook_gets_json() -> None:
    with web_server() as received:
        send_webhook(Channels(webhook=f"http://127.0.0.1:{received.port}/hook?token=s3cret"), NOTICE)
    ((path, kind, told),) = received.posts
    assert path == "/hook?token=s3cret"
    assert kind == "application/json; charset=utf-8"
    assert told["counts"] == {"failed": 1, "refused": 1}
    assert told["troubles"][0]["name"] == REFUSED.name
    assert (told["scan"], told["interval"], told["host"]) == (NOTICE.scan, NOTICE.interval, NOTICE.host)


def test_a_redirect_is_not_followed_and_the_url_is_not_told() -> None:
    with web_server() as received:
        for path, answer in (("away", "302"), ("elsewhere?token=s3cret", "500")):
            with pytest.raises(Unavailable, match=f"webhook on 127.0.0.1 .*it answered {answer}") as raised:
                send_webhook(Channels(webhook=f"http://127.0.0.1:{received.port}/{path}"), NOTICE)
            assert "s3cret" not in str(raised.value)
    assert [path for path, _, _ in received.posts] == ["/away", "/elsewhere?token=s3cret"]


def test_a_server_that_is_not_there_or_refuses_is_unavailable(closed_port: int) -> None:
    with pytest.raises(Unavailable, match=f"mail server 127.0.0.1:{closed_port}"):
        send_mail(mail(closed_port), NOTICE)
    with pytest.raises(Unavailable, match=r"webhook on 127\.0\.0\.1"):
        send_webhook(Channels(webhook=f"http://127.0.0.1:{closed_port}/hook"), NOTICE)
    with mail_server(b"550 no such user") as received, pytest.raises(Unavailable, match="no such user"):
        send_mail(mail(received.port), NOTICE)
    assert received.mails == []


def test_a_long_notice_is_cut_and_counts_the_rest() -> None:
    many = replace(NOTICE, troubles=(REFUSED,) * (SHOWN + 7))
    assert "and 7 more" in text(many)
    assert text(many).count("refused:") == SHOWN
    assert len(document(many)["troubles"]) == SHOWN
    assert document(many)["counts"] == {"refused": SHOWN + 7}
    assert subject(many).endswith(f"{SHOWN + 7} refused")


@pytest.mark.parametrize(
    ("channels", "key"),
    [
        (Channels(mail_to="a@lib.example"), "mail_from"),
        (Channels(mail_to="a@lib.example\nBcc: x@y", mail_from="w@lib.example"), "mail_to"),
        (Channels(webhook="ftp://lib.example/hook"), "webhook"),
        (Channels(webhook="file:///etc/passwd"), "webhook"),
        (Channels(webhook="https:///hook"), "webhook"),
        (Channels(webhook="https://lib.example/hook\r\nX: y"), "webhook"),
    ],
)
def test_what_cannot_be_sent_to_is_bad_configuration(channels: Channels, key: str) -> None:
    with pytest.raises(BadConfig, match=key):
        channels.check()


@pytest.fixture
def section() -> Any:
    """Luigi's configuration with an empty [notice], and without it afterwards."""
    config = get_config()
    config.add_section("notice")
    yield lambda **keys: [config.set("notice", name, value) for name, value in keys.items()]
    config.remove_section("notice")


def test_without_a_section_nothing_is_sent() -> None:
    assert notice_channels() == Channels()


def test_a_secret_comes_from_the_environment_or_from_a_file(
    section: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    section(webhook="${WARCMILL_TEST_HOOK}")
    with pytest.raises(BadConfig, match="WARCMILL_TEST_HOOK"):
        notice_channels()
    monkeypatch.setenv("WARCMILL_TEST_HOOK", "https://lib.example/%2Fs3cret")
    assert notice_channels().webhook == "https://lib.example/%2Fs3cret"
    file = tmp_path / "hook"
    file.write_text("https://lib.example/other\n")
    section(webhook_file=str(file))
    with pytest.raises(BadConfig, match="keep one"):
        notice_channels()
    section(webhook="")
    assert notice_channels().webhook == "https://lib.example/other"
    file.unlink()
    with pytest.raises(BadConfig, match="webhook_file"):
        notice_channels()


def test_a_port_that_is_no_number_is_bad_configuration(section: Any) -> None:
    section(smtp_port="smtp")
    with pytest.raises(BadConfig, match=r"\[notice\].*smtp"):
        notice_channels()
