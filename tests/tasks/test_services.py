"""The table of services: each key of luigi.cfg that names one has its row, and a row is all that a new one needs."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from configured import configured
from operating.documented import PAGES
from operating.web_client import ask

from commands.main import main
from tasks.audited import audited
from tasks.config import services
from tasks.config.services import SERVICES, Service
from tasks.line import open_line
from warcmill.audit.answers.health import HealthReply
from warcmill.audit.health import Check, Level
from warcmill.errors import Unavailable
from warcmill.replay.pywb import NoReplay
from warcmill.web.access import WebAccess
from warcmill.web.app import application
from warcmill.web.archive import Archive
from warcmill.web.served import Served

SECRET = "a-token-of-this-test"
# Words of a key that names a server, a disk or a program.
NAMES_ONE = re.compile(r"://|\bURL\b|\bHOST\b|\bserver\b|\bprogram\b|\bjar\b|listens|\bsource\b|the folder\b|luigid")
# Keys with such a word that name none.
NO_SERVICE = {
    "[sftp] known_hosts": "how a root is reached",
    "[sftp] key_file": "how a root is reached",
    "[serve] replay_listen": "an address of ours",
    "[serve] replay_url": "an address of ours",
    "[serve] url": "an address of ours",
    "[requests] rest_listen": "an address of ours",
    "[group.NAME] rules": "a file that updaters read, and name a fault of",
    "[scripts] proxies": "asked only for what a script fetches by one",
    "[package] locate": "a text in packages",
    "[feed] contact": "a page for people",
    "[feed] exclude": "read by doctor with the files of the jobs",
    "[feed] fallback": "a switch",
    "[pypi] contact": "a page for people",
    "[pypi] projects": "read by doctor with the files of the jobs",
    "[notice] smtp_port": "goes with smtp_host",
    "[notice] smtp_tls": "goes with smtp_host",
    "[notice] smtp_user": "goes with smtp_host",
    "[notice] webhook_file": "goes with webhook",
    "[core] scheduler_port": "goes with scheduler_host",
    "[core] local_scheduler": "a switch",
}


def documented_keys() -> Iterator[tuple[str, str]]:
    """Each key that docs/configuration.md has, as `[section] key`, and its text."""
    section = ""
    for block in re.split(r"\n(?=#{2,} |- |\| `|\n)", PAGES["configuration.md"]):
        if heading := re.match(r"#{2,} (?:\[(.+)\])?", block):
            section = heading[1] or ""
        head = re.match(r"(?:- |\| )(?:`\[(\w+)\]` )?((?:`\w+`(?: \([^)]*\))?(?:, )?)+)", block)
        if head and (section or head[1]):
            for key in re.findall(r"`(\w+)`(?! ?\))", head[2]):
                yield f"[{head[1] or section}] {key}", block[head.end() :]


def test_each_key_that_names_a_service_has_its_row() -> None:
    texts = dict(documented_keys())
    rows = {key for row in SERVICES for key in row.keys}
    assert len(texts) > 100
    named = {key for key, text in texts.items() if NAMES_ONE.search(text)}
    assert not named - rows - set(NO_SERVICE), "give it a row in tasks/config/services.py"
    assert not rows - set(texts), "no page has this key"
    assert not set(NO_SERVICE) - named, "it names nothing, or has a row"


def test_a_row_is_asked_or_proved_and_names_what_to_do() -> None:
    for row in SERVICES:
        assert row.ask or row.prove, row.name
        assert bool(row.ask) == bool(row.remedy), row.name


@pytest.fixture
def here(line: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The line, read by this process; its luigi.cfg."""
    read_again(line / "luigi.cfg", monkeypatch)
    return line / "luigi.cfg"


def read_again(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configured(monkeypatch, config)


def printed(capsys: pytest.CaptureFixture[str], verb: str) -> tuple[int, dict[str, dict[str, object]]]:
    """The exit code of doctor or health, and what it has of each service by its name."""
    capsys.readouterr()
    code = main([verb, "--json"])
    found = json.loads(capsys.readouterr().out)
    return code, {one["name"]: one for one in found["checks" if verb == "doctor" else "asked"]}


def home() -> str:
    """The first page of `warcmill serve`."""
    line = open_line()
    access = WebAccess(line.state.store, "warcmill-8090", SECRET)
    archive = Archive(line.state.store, None, line.settings.open_store)
    served = Served(
        line.state, archive, NoReplay("there is none", "http://localhost:8091/"), access, lambda: audited(line)
    )
    answer = ask(application(served), "/", headers={"authorization": f"Bearer {SECRET}"})
    assert answer.status == 200, answer.text
    return answer.text


def test_one_row_is_seen_in_doctor_in_health_and_on_the_page(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = list[str]()

    def ask_oracle(*_: object) -> HealthReply:
        if not answers:
            raise Unavailable("oracle at delphi:1", "it is silent")
        return HealthReply(answers[-1])

    row = Service("server", "oracle", ("[warcmill] state",), "bring it honey", lambda _: ["warcmill"], ask_oracle)
    monkeypatch.setattr(services, "SERVICES", (*SERVICES, row))
    code, checks = printed(capsys, "doctor")
    why = "oracle at delphi:1 is unavailable: it is silent"
    assert (code, checks["oracle"]) == (1, {"level": "fail", "name": "oracle", "text": why, "todo": "bring it honey"})
    code, asked = printed(capsys, "health")
    assert (code, asked["oracle"]["why"], asked["oracle"]["todo"]) == (1, why, "bring it honey")
    assert "bring it honey" in home()
    answers.append("know thyself")
    code, checks = printed(capsys, "doctor")
    assert checks["oracle"] == {"level": "ok", "name": "oracle", "text": "know thyself", "todo": ""}
    assert printed(capsys, "health")[1]["oracle"]["text"] == "know thyself"
    assert "bring it honey" not in home()


def test_a_proof_of_its_own_takes_the_place_of_asking_and_rows_share_it(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = list[str]()

    def prove(_: object) -> Iterator[Check]:
        made.append("proof")
        yield Check("oracle", Level.OK, "it speaks")

    def refuse(*_: object) -> HealthReply:
        raise AssertionError("doctor asks none that it proves")

    rows = [Service("server", name, (), "-", lambda _: ["x"], refuse, prove) for name in ("oracle", "pythia")]
    monkeypatch.setattr(services, "SERVICES", tuple(rows))
    found = services.proved(open_line().settings)
    assert (found["server"], made) == ([Check("oracle", Level.OK, "it speaks")], ["proof"])


CRAWL = "\n[engine.crawl]\nkind=warcmill\njobs=api\n"
FED = "[job.api]\nfrequency=daily\nstart=2026-11-21\n[feed]\njobs=api\ncontact=http://x.example/\n"
INDEX = "[pypi]\njobs=api\ncontact=http://x.example/\n"
REQUESTS, KAFKA = "[requests]\njob=api\n", "start Kafka, or correct [requests] bus or [kafka]"
REDIS = "redis://127.0.0.1:PORT/0"
UNREAD = "Config refers to a nonexisting environment variable NOT_SET"
# The keys, and the name, text and advice of doctor's check. Nobody listens at PORT.
DOWN = [
    (f"{REQUESTS}bus=kafka://127.0.0.1:PORT", "bus", "Kafka at 127.0.0.1:PORT is unavailable: ", KAFKA),
    (f"{REQUESTS}bus=${{NOT_SET}}", "bus", UNREAD, KAFKA),
    (f"frontier={REDIS}", "redis [engine.crawl]", f"{REDIS} is unavailable", "start it, or correct [engine.crawl]"),
    ("frontier=${NOT_SET}", "redis", UNREAD, "correct luigi.cfg"),
    (f"{FED}source=http://127.0.0.1:PORT/feed?secret", "feed source", "http://127.0.0.1:PORT/feed is unavailable",
     "make it reachable, or correct [feed] source; until then no crawl of the feed starts"),
    (f"{FED}source=command:no-such-program secret", "feed source", "command:no-such-program is unavailable",
     "make it reachable, or correct [feed] source; until then no crawl of the feed starts"),
    (f"{INDEX}index=http://127.0.0.1:PORT", "package index", "http://127.0.0.1:PORT/pypi is unavailable",
     "make it reachable, or correct [pypi] index; until then no crawl of it starts"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("keys", "name", "text", "todo"), DOWN, ids=[f"{one[1]}-{number}" for number, one in enumerate(DOWN)]
)
def test_doctor_names_one_that_is_down(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    keys: str, name: str, text: str, todo: str,
) -> None:  # fmt: skip
    with socket.socket() as closed:  # bound, and nobody listens
        closed.bind(("127.0.0.1", 0))
        port = str(closed.getsockname()[1])
        with here.open("a") as config:
            config.write(f"{CRAWL}{keys}\n".replace("PORT", port))
        read_again(here, monkeypatch)
        monkeypatch.setattr(services, "PATIENCE", 1.0)
        code, checks = printed(capsys, "doctor")
    found = checks[name]
    assert (code, found["level"], found["todo"]) == (1, "fail", todo)
    assert text.replace("PORT", port) in str(found["text"])
    assert "secret" not in str(found)


def test_requests_that_nobody_takes_are_a_warning(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with here.open("a") as config:
        config.write(f"{CRAWL}[requests]\njob=api\n")
    read_again(here, monkeypatch)
    _, checks = printed(capsys, "doctor")
    assert (checks["bus"]["level"], checks["bus"]["text"]) == ("ok", "spool, with 0 topics")
    assert (checks["requests"]["level"], checks["requests"]["todo"]) == ("warn", "start: warcmill run requests")
