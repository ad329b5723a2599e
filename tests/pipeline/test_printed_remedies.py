"""Every `warcmill` command that the code prints is typed in the folder of the tutorial, without a variable: it runs.

They are collected from the texts of the code. One that is not in `TYPED` fails; so does one there that no text has. The
commands of the pages are run by tests/docs.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path

import preloaded
import pytest
from loopback_site import windmills
from operating.documented import PRINTED

from commands.console.parser import parser_of
from commands.main import VERBS
from warcmill import chain
from warcmill.audit import remedies
from warcmill.model import FINAL, Key

ROOT = Path(__file__).parents[2]
ALL = {verb for group in VERBS.values() for verb in group}
JOB = "windmills-example"
COMMAND = re.compile(r"(?<![\w/.])warcmill ([a-z]+)(?![\w:])((?: \S+)*)")
FILLED_IN = re.compile(r'\{[^}]*\}|"\{\}"|[A-Z]{3,}|--[a-z-]+')
# What is typed in place of each; LAUNCH, DAY and the name of a SEED are the tutorial's. Without words, the reason.
TYPED = {
    "accept --kind": "accept --kind refused DAY --reason why",
    "accept --seeds --launch {} {} --reason TEXT": "accept --seeds --launch JOB LAUNCH --reason why",
    "accept NAME --launch {} {} --reason TEXT": "accept final/x --launch JOB LAUNCH --reason why",
    "accept {} --launch {} {} --reason TEXT": "accept final/y --launch JOB LAUNCH --reason why",
    "accept {} {} --reason TEXT": "accept JOB 20261121060000 --reason why",
    "backfill {}": "backfill DAY",
    "backup": "backup",
    "backup {}": "backup MONTH",
    "catalogue rebuild": "catalogue rebuild",
    "close {} {} --reason TEXT": "close JOB LAUNCH --reason why",
    "completion": "completion bash",
    "crawl": "",
    "crawl URL": "",
    "crawl URL --job {}": "",
    "crawl {}": "",
    "group {} explain {}": "",
    "doctor": "doctor",
    "documents --help": "documents --help",
    "documents list": "",
    "group GROUP recover --cluster {job}": "",
    "doctor --json": "doctor --json",
    "feed import --from": "",
    "import FOLDER --job {}": "import empty --job elections",
    "init": "init new",
    "init --adopt": "init --adopt index",
    "init --adopt {}": "init --adopt engine.crawl",
    "init FOLDER": "init newer",
    "job {args.job} resume": "job JOB resume",
    "job {} retry --missed": "job JOB retry --missed",
    "job {} list --after {}": "job JOB list --after 100",
    "job {} rebuild": "job JOB rebuild",
    "job {} retire {} --reason TEXT": "job JOB retire w2 --reason why",
    "job {} undo": "job JOB undo",
    "job {} watch": "job JOB watch",
    "make {}": "make files.read-back.JOB.LAUNCH.final",
    "pages": "pages JOB LAUNCH",
    "pages {} {}": "pages JOB LAUNCH",
    "plan {}": "plan DAY",
    "pulse start {}": "",
    "pulse start {} --again": "",
    "pulse start {} --checkpoint NAME": "",
    "pulse status {}": "pulse status JOB",
    "pulse stop {}": "pulse stop JOB",
    "pulse {} {}": "pulse stop JOB",
    "pypi dump_full JOB": "pypi dump_full JOB",
    "pypi dump_full {}": "pypi dump_full JOB",
    "pypi trigger_full {}": "pypi trigger_full JOB",
    "pypi trigger_incremental {}": "pypi trigger_incremental JOB",
    "quality {} {}": "quality JOB LAUNCH --last",  # a check needs a browser: tests/services/test_quality.py
    "reconcile": "reconcile",
    "reconcile {}": "reconcile DAY",
    "reconcile {} --json": "reconcile DAY --json",
    "redo": "redo JOB LAUNCH seeds",
    "redo {} {} {}": "redo JOB LAUNCH seeds",
    "redo {} {} {} --downstream": "redo JOB LAUNCH crawl-report final --downstream",
    "redo {} {} {} {} --downstream --reason TEXT": "redo JOB LAUNCH cdx final --downstream --reason why",
    "render serve": "",
    "report {} {}": "report JOB LAUNCH",
    "report {} {} --missed": "report JOB LAUNCH --missed",
    "report {} {} --seeds": "report JOB LAUNCH --seeds",
    "restore": "restore",
    "restore --new-state": "restore --new-state",
    "group NAME init": "",
    "group {}": "",
    "group {} init": "",
    "run requests": "",
    "run requests rest --port PORT": "",
    "run rest": "",
    "run spider": "",
    "run updater JOB": "",
    "run updater {}": "",
    "scan": "scan",
    "scan {}": "scan DAY",
    "schedule": "schedule JOB daily",
    "script delete": "",
    "script list {}": "",
    "script new": "",
    "script run": "",
    "script set": "",
    "serve": "",
    "serve --get-replay": "",
    "serve token": "serve token list",
    "status INTERVAL": "status MONTH",
    "status {}": "status DAY",
    "surt URL": "surt http://windmills.example/",
    "verify --outside": "verify --outside",
    "uri {} order {}": "",
    "versions list": "versions list",
    "versions verify": "versions verify",
    "wacz {} {}": "wacz JOB LAUNCH -o x.wacz",
    "why": "why",
    "why {}": "why JOB",
    "why {} {}": "why JOB LAUNCH",
    "why {} {} --json": "why JOB LAUNCH --json",
}
ELSEWHERE = {
    "documents": "tests/pipeline/test_documents_command.py types it",
    "feed": "tests/pipeline/test_feed_exchange.py types it",
    "script": "tests/pipeline/test_scripts.py types it",
    "group": "tests/services/test_clusters_updater.py types it",
    "uri": "tests/services/test_clusters_orders.py types it",
    "crawl": "tests/pipeline/test_start_pages.py types it", "pulse": "tests/pipeline/test_own_engine.py types it",
    **dict.fromkeys(("render", "run", "serve"), "it serves until it is stopped"),
}  # fmt: skip
# Of a job without a Redis, or without a package index, which those that print them have.
CONFIGURED = ("job JOB rebuild", "job JOB retire", "pypi ")


def texts(path: Path) -> Iterator[str]:
    """The texts of a module, with `{}` for what is put in; without docstrings and the help of verbs."""
    tree, skipped = ast.parse(path.read_text("utf-8")), set[int]()
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant() as docstring):
                skipped.add(id(docstring))
            case ast.Assign(targets=[ast.Name(id="EPILOG")]):
                skipped.update(map(id, ast.walk(node)))
            case ast.JoinedStr(values=values):
                skipped.update(map(id, values))
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if id(node) not in skipped:
                yield text
            case ast.JoinedStr(values=values) if id(node) not in skipped:
                yield "".join(str(one.value) if isinstance(one, ast.Constant) else "{}" for one in values)


def commands(text: str) -> Iterator[str]:
    """The commands in a text: a verb, an action of it, options, and what is filled in; up to the first other word."""
    for verb, rest in COMMAND.findall(text):
        if verb not in ALL:
            continue
        words, known = [verb], actions(verb)
        for word in rest.split():
            bare = word.rstrip(".,;:')\"") if not word.endswith('}"') else word
            if not FILLED_IN.fullmatch(bare) and bare not in known:
                break
            words.append(bare)
            if bare != word:
                break
        yield " ".join(words).replace('"{}"', "{}")


def actions(verb: str) -> Collection[str]:
    found = (one.choices for one in parser_of(verb)._actions if isinstance(one, argparse._SubParsersAction))
    return next(iter(found), ())


MODULES = [path for room in ("warcmill", "commands", "tasks") for path in sorted((ROOT / room).rglob("*.py"))]
FOUND = {command for path in MODULES for text in texts(path) for command in commands(text)}


@pytest.fixture(scope="module")
def tutorial(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of who has followed the tutorial, and the launch in the archive below it."""
    folder = tmp_path_factory.mktemp("tutorial")
    (folder / "empty").mkdir()
    with windmills() as port:
        site = f"http://windmills.example:{port}/"
        inside = ("--allow-private", "127.0.0.0/8", "--no-delay", "--resolve", "windmills.example=127.0.0.1")
        assert typed(folder, "crawl", site, *inside)[0] == 0
    (launch,) = (folder / "archive/output/warcs" / JOB).iterdir()
    return folder, launch.name


def typed(folder: Path, *words: str) -> tuple[int, str]:
    """A command as it is typed there: exit code, and all that it prints."""
    env = {name: value for name, value in os.environ.items() if name != "LUIGI_CONFIG_PATH"}
    done = preloaded.run("commands.main", *words, env=env, folder=folder, together=True)
    return done.returncode, done.stdout


def test_each_command_that_the_code_prints_is_known_here() -> None:
    assert sorted(FOUND) == sorted(TYPED)
    assert {command.split()[0] for command, words in TYPED.items() if not words} == {*ELSEWHERE}


@pytest.mark.parametrize("command", sorted(command for command, words in TYPED.items() if words))
def test_a_printed_command_runs_in_the_folder_of_the_tutorial(command: str, tutorial: tuple[Path, str]) -> None:
    folder, launch = tutorial
    day = f"{launch[:4]}-{launch[4:6]}-{launch[6:8]}"
    put_in = {"JOB": JOB, "LAUNCH": launch, "DAY": day, "MONTH": day[:7]}
    words = [re.sub("JOB|LAUNCH|DAY|MONTH", lambda found: put_in[found[0]], word) for word in TYPED[command].split()]
    code, told = typed(folder, *words)
    may = (0, 1, 3) if TYPED[command].startswith(CONFIGURED) else (0, 1)
    assert (code in may, "Traceback" in told) == (True, False), f"{code}\n{told}"


@pytest.mark.parametrize("row", chain.ROWS, ids=lambda row: row.task)
def test_the_remedy_of_each_missing_marker_is_a_verb_that_takes_it(row: chain.Row) -> None:
    names = re.findall(r"\{(\w+)\}", row.marker)
    values = {"job": "daily", "stage": str(FINAL), "number": "00002", "finding": "0" * 16}
    key = Key(row.task, tuple((name, values.get(name, "20261121081844")) for name in sorted(names)))
    program, verb, *words = remedies.step(key).split()
    assert program == "warcmill"
    args = parser_of(verb).parse_args(words)
    if verb == "make":
        module = (ROOT / f"tasks/{args.marker.task.partition('.')[0]}.py").read_text("utf-8")
        assert f"class {args.marker.task.partition('.')[2]}(" in module
        assert remedies.step(args.marker) == remedies.step(key)


def test_no_printed_command_is_luigis_own() -> None:
    """`luigi` finds the archive by LUIGI_CONFIG_PATH alone. The pages that are about it say so; timers name it."""
    about = [path.name for path in MODULES if any("luigi --module" in text for text in texts(path))]
    assert about == ["schedule.py"]
    assert {one.page for one in PRINTED if one.bare.startswith("luigi ")} == {"tasks.md", "operate/growing.md"}
