"""The notice, sent to a real mail server and a real web server on loopback."""

from __future__ import annotations

import ssl
import traceback
from base64 import b64encode
from collections.abc import Iterator
from email import message_from_bytes, policy
from pathlib import Path
from typing import Any

import pytest
from configured import configured
from msgspec.structs import replace
from sites.receivers import Received, certificate, mail_server, proxy_server, web_server

from tasks.config.settings import notice_channels
from warcmill.clients.notice import (
    SHOWN,
    Channels,
    Notice,
    Trouble,
    document,
    send,
    send_mail,
    send_webhook,
    subject,
    text,
)
from warcmill.errors import BadConfig, Unavailable

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
        (Channels(webhook="https://[lib.example/hook"), "webhook"),
        (Channels(proxy="https://proxy.example:3128"), "proxy"),
        (Channels(proxy="proxy.example:3128"), "proxy"),
        (Channels(proxy="http://proxy.example:port"), "proxy"),
        (Channels(smtp_tls="ssl"), "smtp_tls.*is ssl; one of none, starttls, tls"),
        (Channels(smtp_user="warcmill", smtp_password="s3cret"), "smtp_tls.*must be starttls or tls"),
        (Channels(smtp_user="warcmill", smtp_tls="tls"), "smtp_user.*needs smtp_password"),
        (Channels(smtp_password="s3cret", smtp_tls="tls"), "smtp_user"),
        (Channels(smtp_user="warcmill", smtp_password="s3crét", smtp_tls="tls"), "smtp_password"),
        (Channels(webhook="file:///etc/passwd"), "webhook"),
        (Channels(webhook="https:///hook"), "webhook"),
        (Channels(webhook="https://lib.example/hook\r\nX: y"), "webhook"),
    ],
)
def test_what_cannot_be_sent_to_is_bad_configuration(channels: Channels, key: str) -> None:
    with pytest.raises(BadConfig, match=key):
        channels.check()


def test_no_secret_is_in_what_a_log_may_show() -> None:
    shown = repr(Channels(smtp_password="s3cret", webhook="https://lib.example/s3cret", proxy="http://u:s3cret@h:1"))
    assert "s3cret" not in shown


STARTTLS, AUTH = b"STARTTLS", b"AUTH PLAIN"


@pytest.fixture
def trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """A server's certificate for 127.0.0.1 that this machine trusts."""
    context, file = certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    return context


def with_login(port: int, tls: str, password: str = "s3cret") -> Channels:
    return replace(mail(port), smtp_tls=tls, smtp_user="warcmill", smtp_password=password)


@pytest.mark.parametrize(("tls", "offers"), [("starttls", (STARTTLS, AUTH)), ("tls", ())])
def test_a_mail_server_that_asks_for_a_login_is_given_it_by_tls(
    trusted: ssl.SSLContext, tls: str, offers: tuple[bytes, ...]
) -> None:
    at_once = tls == "tls"
    with mail_server(tls=trusted, offers=offers, at_once=at_once) as received:
        send_mail(replace(mail(received.port), smtp_tls=tls), NOTICE)
        assert received.logins == []
    with mail_server(tls=trusted, offers=offers or (AUTH,), at_once=at_once) as received:
        send_mail(with_login(received.port, tls), NOTICE)
    assert received.logins == [(True, b"\0warcmill\0s3cret")]
    assert len(received.mails) == 1


def test_a_login_that_is_refused_is_reported_without_the_password(trusted: ssl.SSLContext) -> None:
    password = "wr" + "0ng"
    refused = pytest.raises(Unavailable, match="refused the login of warcmill with 535")
    with mail_server(tls=trusted, offers=(STARTTLS, AUTH)) as received, refused as raised:
        send_mail(with_login(received.port, "starttls", password), NOTICE)
    told = "".join(traceback.format_exception(raised.value))
    assert password not in told
    assert b64encode(f"\0warcmill\0{password}".encode()).decode() not in told
    assert received.mails == []


def test_no_word_of_a_login_or_a_mail_goes_to_a_server_without_tls(trusted: ssl.SSLContext) -> None:
    with mail_server(offers=(AUTH,)) as received, pytest.raises(Unavailable, match="STARTTLS"):
        send_mail(with_login(received.port, "starttls"), NOTICE)
    assert (received.logins, received.mails) == ([], [])


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2"])
@pytest.mark.parametrize("tls", ["starttls", "tls"])
def test_a_certificate_that_is_not_good_gets_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str, tls: str
) -> None:
    """Of nobody that the machine trusts; or of one it trusts, for another host."""
    context, file = certificate(tmp_path, host)
    if host != "127.0.0.1":
        monkeypatch.setenv("SSL_CERT_FILE", str(file))
    refused = pytest.raises(Unavailable, match="certificate verify failed")
    with mail_server(tls=context, offers=(STARTTLS, AUTH), at_once=tls == "tls") as received, refused:
        send_mail(with_login(received.port, tls), NOTICE)
    assert (received.logins, received.mails) == ([], [])
    with web_server(tls=context) as posts, pytest.raises(Unavailable, match=r"on 127.0.0.1 .*certificate is not good"):
        send_webhook(Channels(webhook=hook(posts, "https")), NOTICE)
    assert posts.posts == []


def hook(received: Received, scheme: str = "http") -> str:
    return f"{scheme}://127.0.0.1:{received.port}/hook?token=s3cret"


@pytest.fixture
def proxied(monkeypatch: pytest.MonkeyPatch) -> Iterator[Received]:
    """A proxy that the environment names, in each of the ways."""
    with proxy_server() as received:
        for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{received.port}")
        yield received


def test_a_proxy_of_the_environment_learns_nothing(proxied: Received, trusted: ssl.SSLContext) -> None:
    with web_server() as plain, web_server(tls=trusted) as secure:
        send_webhook(Channels(webhook=hook(plain)), NOTICE)
        send_webhook(Channels(webhook=hook(secure, "https")), NOTICE)
    assert (proxied.proxied, len(plain.posts), len(secure.posts)) == ([], 1, 1)


def test_a_proxy_that_is_configured_is_used_whatever_the_environment_says(
    trusted: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "*")
    with proxy_server() as proxy, web_server(tls=trusted) as secure:
        by = f"http://us%20er:s3cret@127.0.0.1:{proxy.port}"
        send_webhook(Channels(webhook=hook(secure, "https"), proxy=by), NOTICE)
        send_webhook(Channels(webhook="http://lib.example/hook?token=s3cret", proxy=by), NOTICE)
    user = f"Basic {b64encode(b'us er:s3cret').decode()}"
    assert proxy.proxied == [(f"127.0.0.1:{secure.port}", user), ("http://lib.example/hook?token=s3cret", user)]
    assert len(secure.posts) == 1, "through the tunnel, of which the proxy knows the host alone"


def test_a_proxy_that_is_not_there_is_reported_without_a_secret(closed_port: int) -> None:
    channels = Channels(webhook="https://lib.example/s3cret", proxy=f"http://u:s3cret@127.0.0.1:{closed_port}")
    with pytest.raises(Unavailable, match=r"webhook on lib\.example is unavailable: Connection refused") as raised:
        send_webhook(channels, NOTICE)
    assert "s3cret" not in "".join(traceback.format_exception(raised.value))


def test_one_channel_that_fails_does_not_keep_the_other_from_being_told(closed_port: int) -> None:
    with web_server() as received:
        both = replace(mail(closed_port), webhook=hook(received))
        with pytest.raises(Unavailable, match=f"^mail server 127.0.0.1:{closed_port} is unavailable: .*refused$"):
            send(both, NOTICE)
        assert len(received.posts) == 1
    with pytest.raises(Unavailable, match=r"^mail server .* is unavailable: .*; webhook on 127.0.0.1 is unavailable: "):
        send(replace(both, webhook=f"http://127.0.0.1:{closed_port}/s3cret"), NOTICE)
    send(Channels(), NOTICE)


def test_a_name_that_is_not_utf8_is_sent_as_json_has_it() -> None:
    odd = replace(NOTICE, troubles=(replace(REFUSED, name="a\udcff\ud800.warc.gz"),))
    with web_server() as received, mail_server() as mails:
        send(replace(mail(mails.port), webhook=hook(received)), odd)
    assert received.posts[0][2]["troubles"][0]["name"] == "a\udcff\ud800.warc.gz"
    assert b"a\\xff\\ud800.warc.gz" in mails.mails[0][2]


@pytest.fixture
def section(monkeypatch: pytest.MonkeyPatch) -> Any:
    """An empty [notice], whose keys are then set."""
    config = configured(monkeypatch)
    config.add_section("notice")
    return lambda **keys: [config.set("notice", name, value) for name, value in keys.items()]


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


def test_a_mail_password_is_in_the_environment_or_in_a_file(
    section: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    section(smtp_tls="starttls", smtp_user="warcmill", smtp_password="s3cret")
    with pytest.raises(BadConfig, match=r"smtp_password: may not be in luigi\.cfg") as raised:
        notice_channels()
    assert "s3cret" not in str(raised.value)
    monkeypatch.setenv("WARCMILL_TEST_PASSWORD", "s3%cret")
    section(smtp_password="${WARCMILL_TEST_PASSWORD}")
    assert notice_channels().smtp_password == "s3%cret"
    file = tmp_path / "password"
    file.write_text("other\n")
    section(smtp_password_file=str(file))
    with pytest.raises(BadConfig, match="smtp_password_file: is set beside smtp_password"):
        notice_channels()
    section(smtp_password="")
    assert notice_channels().smtp_password == "other"
