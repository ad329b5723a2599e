"""One escaping: nothing that comes from outside moves a cursor, hides, or passes for a line of ours."""

from __future__ import annotations

import io
import logging
import sys
import unicodedata
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands import main as command
from commands.console.show import err, out
from warcmill.base.escapes import PrintableFormatter, printable, printable_lines

HIDING = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
FORGED = "2026-11-22T00:00:00Z INFO - - - -: all is well"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[2J\x1b]0;title\x07", r"a\x1b[2J\x1b]0;title\x07"),
        ("two\nlines\r\tand\x7f", r"two\nlines\r\tand\x7f"),
        ("\x9b31m\x85", r"\x9b31m\x85"),
        ("cod\u202egpj.exe\u2066\u200b\ufeff", r"cod\u202egpj.exe\u2066\u200b\ufeff"),
        ("\u2028\u2029\u00a0", r"\u2028\u2029\xa0"),
        ("not utf-8 \udcff\udc80", r"not utf-8 \xff\x80"),
        ("half a pair \ud800\udfff", r"half a pair \ud800\udfff"),
        ("\U000e0041", r"\U000e0041"),
        ("Größe, 日本語, a\\b", "Größe, 日本語, a\\b"),
        ("", ""),
    ],
)
def test_what_is_seen_stays_and_what_acts_is_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(st.text(st.characters()))
def test_any_text_is_one_harmless_line(text: str) -> None:
    shown = printable(text)
    assert not {unicodedata.category(char) for char in shown} & HIDING
    assert shown.isprintable()
    assert printable(shown) == shown
    assert printable_lines(text).count("\n") == text.count("\n")


def test_what_a_verb_prints_stays_on_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    out("a\nb", "c")
    err("\x1b[1m")
    assert capsys.readouterr() == ("a\\nb\nc\n", "\\x1b[1m\n")


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """What a handler with our formatter writes of all that is logged."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(PrintableFormatter("%(asctime)s %(message)s", "%Y"))
    root = logging.getLogger()
    root.addHandler(handler)
    yield stream
    root.removeHandler(handler)


def told(logged: io.StringIO) -> list[str]:
    lines = logged.getvalue().removesuffix("\n").split("\n")
    assert all(line.isprintable() for line in lines)
    return lines


def test_a_message_is_one_line_whatever_name_is_in_it(logged: io.StringIO) -> None:
    logging.getLogger("warcmill").warning("%s; not taken for a launch", f"\x1b[2J\n{FORGED}")
    (line,) = told(logged)
    assert line.endswith(rf"\x1b[2J\n{FORGED}; not taken for a launch")


@pytest.mark.parametrize("name", ["warcmill", "luigi-interface"])
def test_a_traceback_and_its_messages_are_indented(logged: io.StringIO, name: str) -> None:
    try:
        try:
            raise KeyError("\x1b[2J")
        except KeyError as error:
            raise ValueError(f"odd\n{FORGED}\n\x1b]0;x\x07") from error
    except ValueError:
        logging.getLogger(name).exception("failed:\n%s", FORGED)
    first, *rest = told(logged)
    assert "failed:" in first
    assert all(not line or line.startswith("    ") for line in rest)
    assert "    Traceback (most recent call last):" in rest
    assert f"    {FORGED}" in rest


def test_what_luigi_prints_in_several_lines_stays_legible(logged: io.StringIO) -> None:
    logging.getLogger("luigi-interface").error("\n===== Luigi Execution Summary =====\n\nScheduled 1 tasks\x1b[1m\n")
    first, *rest = told(logged)
    assert rest == ["    ===== Luigi Execution Summary =====", "", r"    Scheduled 1 tasks\x1b[1m"]
    assert FORGED not in first


def test_the_record_itself_is_left_as_it_is(logged: io.StringIO, caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("warcmill").warning("%s", "a\nb")
    assert caplog.records[0].getMessage() == "a\nb"


def ended(words: list[str]) -> object:
    try:
        return command.main(words)
    except SystemExit as left:
        return left.code


@pytest.mark.parametrize("words", [["\x1b[2J\nverb"], ["close", "\x1b[2J\na", "b"], ["check", "--\x1b[2J\nx", "f"]])
def test_what_was_typed_is_repeated_harmlessly(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(words) == 2
    said = capsys.readouterr().err
    assert all(line.isprintable() for line in said.split("\n"))
    assert r"\x1b[2J\n" in said


def test_a_bug_s_traceback_is_harmless(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fault(_words: object) -> int:
        raise KeyError(f"\x1b[2J\n{FORGED}") from ValueError(f"\x1b\n{FORGED}")

    monkeypatch.setattr(command, "_dispatch", fault)
    assert command.main([]) == 70
    said = capsys.readouterr().err.split("\n")
    assert all(line.isprintable() for line in said)
    assert f"    {FORGED}" in said
    assert FORGED not in said


def test_what_a_module_logs_below_a_verb_is_harmless(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Verbs set no logging up: Python's own last resort prints warnings."""
    monkeypatch.setattr(logging, "lastResort", logging._StderrHandler(logging.WARNING))
    assert command.main(["--version"]) == 0
    record = logging.LogRecord("warcmill.markers.state", logging.WARNING, "", 0, "%s", ("\x1b[2J\nx",), None)
    logging.lastResort.handle(record)
    assert capsys.readouterr().err == "\\x1b[2J\\nx\n"


def test_an_encoding_without_a_name_s_signs_ends_in_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    assert command.main(["--version"]) == 0
    out("Größe")
    assert raw.getvalue().endswith(b"Gr\\xf6\\xdfe\n")
