"""The dispatcher: which verb runs, what reaches the screen, and the exit code."""

from __future__ import annotations

import argparse
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from commands import main as command
from warcmill.errors import BadConfig, Busy, Mismatch, Unavailable, WarcmillError

ROOT = Path(command.__file__).parent.parent
VERBS = {verb: summary for group in command.VERBS.values() for verb, summary in group.items()}
WRITTEN = sorted(verb for verb in VERBS if (ROOT / "commands" / f"{verb}.py").exists())


@pytest.fixture
def verb(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A verb `probe` that returns what its one argument says; tests give it another `run`."""
    module = ModuleType("commands.probe")
    module.SUMMARY = "try the dispatcher"
    module.EPILOG = "for example:\n  warcmill probe 1"
    module.add_arguments = lambda parser: parser.add_argument("code", type=int)
    module.run = lambda args: args.code
    monkeypatch.setitem(sys.modules, "commands.probe", module)
    monkeypatch.setitem(command.VERBS["look"], "probe", module.SUMMARY)
    return module


@pytest.mark.parametrize("code", [0, 1])
def test_the_verbs_answer_is_the_exit_code(verb: ModuleType, code: int) -> None:
    assert command.main(["probe", str(code)]) == code


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Mismatch("length", 3, 4), 1),
        (BadConfig("[warcmill] state", "is missing"), 3),
        (Unavailable("root 'store'", "not mounted"), 4),
        (Busy("the scan"), 5),
    ],
)
def test_an_error_of_ours_is_one_line_and_its_code(
    verb: ModuleType, capsys: pytest.CaptureFixture[str], error: WarcmillError, code: int
) -> None:
    def run(args: argparse.Namespace) -> int:
        raise error

    verb.run = run
    assert command.main(["probe", "0"]) == code
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"warcmill: {error}\n")


def test_a_bug_is_a_traceback_and_70(verb: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    verb.run = lambda args: [][args.code]
    assert command.main(["probe", "0"]) == 70
    out, err = capsys.readouterr()
    assert out == ""
    assert "IndexError" in err
    assert "Traceback" in err


def test_an_interrupt_is_130(verb: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    def run(args: argparse.Namespace) -> int:
        raise KeyboardInterrupt

    verb.run = run
    assert command.main(["probe", "0"]) == 130
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("words", [["probe"], ["probe", "no-number"], ["probe", "1", "--nonsense"]])
def test_wrong_arguments_of_a_verb_are_usage(
    verb: ModuleType, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        command.main(words)
    assert left.value.code == 2
    assert "usage: warcmill probe" in capsys.readouterr().err


def test_a_verbs_help_shows_its_summary_and_examples(verb: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        command.main(["probe", "--help"])
    assert left.value.code == 0
    out = capsys.readouterr().out
    assert verb.SUMMARY in out
    assert verb.EPILOG in out


def test_no_verb_and_a_mistyped_one_are_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main([]) == 2
    assert "usage: warcmill VERB" in capsys.readouterr().err
    assert command.main(["stauts"]) == 2
    assert "no verb 'stauts'; did you mean 'status'?" in capsys.readouterr().err
    assert command.main(["../check"]) == 2, "a verb is a name of the table, never a path"


def test_help_teaches_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--help"]) == 0
    out = capsys.readouterr().out
    for verb, summary in VERBS.items():
        assert f"  {verb:<10} {summary}\n" in out
    assert max(map(len, out.splitlines())) <= 110


def test_help_imports_neither_luigi_nor_a_verb() -> None:
    code = "import sys; from commands.main import main; main(['--help']); print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    loaded = set(done.stdout.splitlines()[-1].split())
    assert {name for name in loaded if name.startswith("commands.")} == {"commands.main"}
    assert loaded.isdisjoint({"luigi", "rich", "isal"})


def test_a_reader_that_went_away_is_no_complaint() -> None:
    """`warcmill ... | head -1`: the pipe is closed long before the last line."""
    code = (
        "import sys, types; from commands import main as m\n"
        "v = types.ModuleType('commands.probe'); v.SUMMARY = v.EPILOG = ''\n"
        "v.add_arguments = lambda parser: None\n"
        "v.run = lambda args: print('line\\n' * 100_000) or 0\n"
        "sys.modules['commands.probe'] = v; m.VERBS['look']['probe'] = ''\n"
        "sys.exit(m.main(['probe']))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
    ) as process:
        assert process.stdout
        assert process.stderr
        assert process.stdout.readline() == b"line\n"
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141


@pytest.mark.parametrize("name", WRITTEN)
def test_a_verbs_module_keeps_the_contract(name: str) -> None:
    module = import_module(f"commands.{name}")
    assert module.SUMMARY == VERBS[name], f"commands/{name}.py and the table in commands/main.py differ"
    assert f"warcmill {name}" in module.EPILOG, "the epilog shows at least one example"
    module.add_arguments(argparse.ArgumentParser())
    assert callable(module.run)


def test_every_module_of_commands_is_a_verb_or_a_known_helper() -> None:
    assert "main" not in VERBS
    for path in (ROOT / "commands").glob("*.py"):
        source = path.read_text("utf-8")
        assert ("\nSUMMARY = " in source) <= (path.stem in VERBS), f"{path.name} is in no group"


def test_a_due_time_is_not_called_a_launch_id(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(["pulse", "start", "daily", "--due", "20261122"])
    assert ended.value.code == 2
    assert "'20261122' is not a due time" in capsys.readouterr().err
