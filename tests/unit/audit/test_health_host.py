"""What doctor asks of the host: several workers, files of secrets, servers that take notices."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import pytest
from sites.receivers import mail_server, web_server

from warcmill.audit import health
from warcmill.audit.health import Level
from warcmill.clients.notice import Channels


def channels(smtp_port: int, webhook: str) -> Channels:
    return Channels(
        mail_to="a@lib.example", mail_from="b@lib.example", smtp_host="127.0.0.1", smtp_port=smtp_port, webhook=webhook
    )


def test_several_workers_can_run_here() -> None:
    assert health.check_workers().level is Level.OK


def test_without_shared_semaphores_it_reports_what_to_mount(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_lock() -> None:
        raise OSError(2, os.strerror(2))

    monkeypatch.setattr(multiprocessing, "Lock", no_lock)
    found = health.check_workers()
    assert found.level is Level.FAIL
    assert "/dev/shm" in found.text
    assert "tmpfs" in found.todo


@pytest.mark.parametrize(
    ("mode", "level"), [(0o600, Level.OK), (0o400, Level.OK), (0o644, Level.WARN), (0o620, Level.WARN)]
)
def test_a_secret_is_its_owner_s_alone(tmp_path: Path, mode: int, level: Level) -> None:
    path = tmp_path / "password"
    path.write_text("secret")
    path.chmod(mode)
    found = health.check_secret("[engine.first] password_file", str(path))
    assert (found.level, found.todo) == (level, "" if level is Level.OK else f"chmod 600 {path}")


def test_a_secret_that_is_not_there_fails(tmp_path: Path) -> None:
    assert health.check_secret("x", str(tmp_path / "password")).level is Level.FAIL


def test_servers_that_answer_are_reachable_and_get_nothing_unasked() -> None:
    with mail_server() as mails, web_server() as posts:
        found = list(health.check_channels(channels(mails.port, f"http://127.0.0.1:{posts.port}/hook"), send=False))
    assert [(one.name, one.level) for one in found] == [("mail", Level.OK), ("webhook", Level.OK)]
    assert (mails.mails, posts.posts) == ([], [])


def test_a_test_notice_reports_that_it_is_one() -> None:
    with mail_server() as mails, web_server() as posts:
        url = f"http://127.0.0.1:{posts.port}/hook?token=s3cret"
        found = list(health.check_channels(channels(mails.port, url), send=True))
    assert {one.level for one in found} == {Level.OK}
    ((_, _, mail),) = mails.mails
    assert b"nothing is wrong" in mail
    ((_, _, told),) = posts.posts
    assert told["counts"] == {"test": 1}
    assert not any("s3cret" in one.text + one.todo for one in found)


def test_servers_that_are_gone_or_refuse_fail_without_the_secret(closed_port: int) -> None:
    url = f"http://127.0.0.1:{closed_port}/hook?token=s3cret"
    for send in (False, True):
        found = list(health.check_channels(channels(closed_port, url), send))
        assert {one.level for one in found} == {Level.FAIL}
        assert not any("s3cret" in one.text + one.todo for one in found)
    with web_server() as posts, mail_server(b"550 no") as mails:
        found = list(health.check_channels(channels(mails.port, f"http://127.0.0.1:{posts.port}/no"), send=True))
    assert {one.level for one in found} == {Level.FAIL}
