"""Handlers of one's own: loaded as they are, each message in a process that they cannot take the role down with."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from warcmill.clients.bus.access import KafkaAccess
from warcmill.errors import BadConfig
from warcmill.requests.handlers import MessageHandler, TakenMessage, sort_message
from warcmill.requests.plugins.runners import PluginHandlers
from warcmill.requests.settings import RequestsPlace

PLUGINS = Path(__file__).parents[2] / "data" / "plugins"
NOTE = "plugins.note_handler.NoteHandler"


def place(folder: Path, plugins: object, **more: object) -> RequestsPlace:
    shutil.copytree(PLUGINS, folder / "plugins", dirs_exist_ok=True)
    file = folder / "localsettings.py"
    settings = {"NOTES": str(folder / "notes"), "PLUGINS": plugins, **more}
    file.write_text("".join(f"{name} = {value!r}\n" for name, value in settings.items()))
    access = KafkaAccess("SASL_SSL", mechanism="PLAIN", user="u", password="p", settings={"client.id": "c"})
    return RequestsPlace("ondemand", "demo", "spool", str(file), folder / "spool", given={}, kafka=access)


@contextmanager
def handlers(folder: Path, plugins: object, seconds: float = 60, **more: object) -> Iterator[PluginHandlers]:
    found = PluginHandlers(place(folder, plugins, **more), seconds)
    try:
        yield found
    finally:
        found.close()


def names(of: PluginHandlers) -> list[str]:
    return [f"{one.name} {one.rank}" for one in sorted(of.all, key=lambda one: one.rank)]


def note(of: PluginHandlers, text: str) -> tuple[MessageHandler, str]:
    taken = sort_message(b'{"uuid": "u", "note": "%s"}' % text.encode(), of.all)
    assert isinstance(taken, TakenMessage), taken
    assert of.owns(taken.handler)
    return taken.handler, of.handle(taken.handler, taken.document)


def test_a_plugin_is_one_more_handler_and_gets_the_defaults_of_its_schema(tmp_path: Path) -> None:
    with handlers(tmp_path, {NOTE: 150}) as found:
        assert names(found)[:3] == ["ScraperHandler 100", "NoteHandler 150", "ActionHandler 200"]
        taken, fault = note(found, "first")
        assert (taken.name, fault) == ("NoteHandler", "")
        assert note(found, "second")[1] == ""
        other = sort_message(b'{"uuid": "u", "appid": "testapp"}', found.all)
        assert isinstance(other, TakenMessage)
        assert not found.owns(other.handler)
    assert (tmp_path / "notes").read_text() == "first blue\nsecond blue\n"


@pytest.mark.parametrize(
    ("text", "why"),
    [("raise", "failed: ValueError: no such note"), ("exit", "failed: SystemExit: 3"), ("die", "ended its process")],
)
def test_a_plugin_that_raises_or_exits_costs_its_message_alone(tmp_path: Path, text: str, why: str) -> None:
    with handlers(tmp_path, {NOTE: 150}) as found:
        assert note(found, "before")[1] == ""
        assert note(found, text)[1] == f"{NOTE} {why}"
        assert note(found, "after")[1] == ""
    assert (tmp_path / "notes").read_text() == "before blue\nafter blue\n"


def test_a_plugin_that_hangs_is_ended(tmp_path: Path) -> None:
    with handlers(tmp_path, {NOTE: 150}, seconds=5) as found:
        assert note(found, "hang")[1] == f"{NOTE} took longer than 5 s, and was ended"
        assert note(found, "after")[1] == ""


def test_a_built_in_handler_may_be_left_out_or_have_another_rank(tmp_path: Path) -> None:
    ranks = {"plugins.zookeeper_handler.ZookeeperHandler": None, "plugins.scraper_handler.ScraperHandler": 250}
    with handlers(tmp_path, ranks) as found:
        assert names(found) == ["ActionHandler 200", "ScraperHandler 250", "StatsHandler 300"]


@pytest.mark.parametrize(
    ("plugins", "why"),
    [
        ({"plugins.note_monitor.NoteMonitor": 1, NOTE: 2}, "NoteMonitor: a monitor needs a Redis; set REDIS_HOST"),
        ({"plugins.nowhere.NoHandler": 1}, "plugins.nowhere.NoHandler cannot be loaded: ModuleNotFoundError"),
        ({"plugins.stop_monitor.StopMonitor": None}, "StopMonitor is built in"),
        ({"plugins.note_handler.NoteHandler": "first"}, "it takes 'MODULE.CLASS': RANK, or None"),
        (["plugins.note_handler.NoteHandler"], "it takes a dictionary"),
    ],
)
def test_a_plugin_that_cannot_be_had_is_refused_by_name(tmp_path: Path, plugins: object, why: str) -> None:
    with pytest.raises(BadConfig, match=r"PLUGINS") as caught, handlers(tmp_path, plugins):
        pass
    assert why in str(caught.value)


def test_a_plugin_without_its_schema_is_refused_by_name(tmp_path: Path) -> None:
    at = place(tmp_path, {NOTE: 1})
    (tmp_path / "plugins" / "note_schema.json").unlink()
    with pytest.raises(BadConfig, match=r"NoteHandler cannot be loaded: FileNotFoundError.*note_schema"):
        PluginHandlers(at)


BAD = """
import os, sys
from base_handler import BaseHandler
{at_import}

class BadHandler(BaseHandler):
    schema = "note_schema.json"

    def setup(self, settings):
        {in_setup}

    def handle(self, dict):
        print("a line for people", flush=True)
        sys.stdout.buffer.write(b"\\x00\\x00\\x00\\x02{{}}")
        sys.stdout.flush()
"""
BAD_NAME = "plugins.bad_handler.BadHandler"


def bad(folder: Path, at_import: str = "", in_setup: str = "pass") -> None:
    """Write a plugin that misbehaves where it is loaded, or that prints."""
    (folder / "plugins").mkdir()
    text = BAD.format(at_import=at_import, in_setup=in_setup)
    (folder / "plugins" / "bad_handler.py").write_text(text)


@pytest.mark.parametrize(
    ("at_import", "in_setup", "why"),
    [
        ("raise ValueError('no such place')", "pass", "cannot be loaded: ValueError: no such place"),
        ("sys.exit(4)", "pass", "cannot be loaded: SystemExit: 4"),
        ("os._exit(4)", "pass", "they ended their process"),
        ("def", "pass", "cannot be loaded: SyntaxError"),
        ("", "raise KeyError('NOWHERE')", "cannot be loaded: KeyError: 'NOWHERE'"),
        ("", "os._exit(4)", "they ended their process"),
    ],
)
def test_a_plugin_that_fails_while_it_is_loaded_is_refused_by_name(
    tmp_path: Path, at_import: str, in_setup: str, why: str
) -> None:
    bad(tmp_path, at_import, in_setup)
    with pytest.raises(BadConfig) as caught, handlers(tmp_path, {BAD_NAME: 150}):
        pass
    assert BAD_NAME in str(caught.value)
    assert why in str(caught.value)


def test_what_a_plugin_prints_is_no_answer(tmp_path: Path) -> None:
    bad(tmp_path)
    with handlers(tmp_path, {BAD_NAME: 150}) as found:
        assert note(found, "first")[1] == ""
        assert note(found, "second")[1] == ""
