"""A verb imports what it needs: the modules of a new Python that runs it, by its help and by a small call.

To import takes nearly all the time of a short verb. A module that is forbidden here belongs into the function that
needs it, or what is needed of it into a smaller module.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from line import DAY, new_line
from sample import JOB, LAUNCH_ID

from commands import main as command
from commands.main import VERBS

ROOT = Path(command.__file__).parent.parent
ALL = [verb for group in VERBS.values() for verb in group]
ALONE = ("check", "cdxj", "surt", "completion", "man")  # they need no line
SERVERS = ("luigi", "tornado", "paramiko", "hdfs", "boto3", "redis")
SERVERS += ("playwright", "scrapy", "twisted", "jinja2", "smtplib")
OF_A_LINE = ("requests", "urllib3", "asyncio", "starlette", "uvicorn", "defusedxml")
OF_A_LINE += ("warcmill.crawl.visit", "warcmill.crawl.extract", "warcmill.web.app", "warcmill.index")
OF_ONE = ("rich", "sqlite3", "tasks.line", "tasks.config.settings")
OF_ONE += ("warcmill.audit", "warcmill.stores", "warcmill.markers")
# What the options themselves need, or all that a verb is for.
MAY = {
    "catalogue": ("requests", "urllib3", "defusedxml"),
    "crawl": ("asyncio",),
    "feed": ("requests", "urllib3"),
    "job": ("asyncio", "warcmill.crawl.visit", "warcmill.crawl.extract"),
    "pypi": ("requests", "urllib3", "asyncio", "defusedxml", "warcmill.crawl.extract"),
    "render": ("asyncio", "starlette", "uvicorn", "warcmill.crawl.visit", "warcmill.crawl.extract"),
    "request": ("asyncio", "warcmill.crawl.visit", "warcmill.crawl.extract"),
    "run": ("asyncio",),
    "script": ("asyncio",),
    "schedule": ("asyncio", "warcmill.crawl.visit", "warcmill.crawl.extract"),
}
PROGRAM = """
import atexit, json, sys
atexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=open(sys.argv.pop(), "w")))
from commands.main import main
sys.exit(main(sys.argv[1:-1]))
"""


def imported(tmp_path: Path, *words: str, codes: tuple[int, ...] = (0,)) -> set[str]:
    """The modules of a new Python once it has run this verb."""
    names = tmp_path / "modules.json"
    command = [sys.executable, "-c", PROGRAM, *words, str(names)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
    assert done.returncode in codes, done.stderr
    return set(json.loads(names.read_text()))


def forbidden(verb: str) -> set[str]:
    """The modules that a verb must begin without."""
    return {*SERVERS, *OF_A_LINE, *(OF_ONE if verb in ALONE else ())} - set(MAY.get(verb, ()))


@pytest.mark.parametrize("verb", ALL)
def test_the_help_of_a_verb_imports_little(verb: str, tmp_path: Path) -> None:
    assert not imported(tmp_path, verb, "--help") & forbidden(verb)


def test_the_overview_imports_no_verb(tmp_path: Path) -> None:
    modules = imported(tmp_path, "--help")
    assert not {f"commands.{verb}" for verb in ALL} & modules
    assert not {*SERVERS, *OF_A_LINE, *OF_ONE, "argparse"} & modules


@pytest.mark.parametrize(
    ("verb", "word"), [("surt", "http://a.example/"), ("completion", "bash"), ("check", "a.warc"), ("cdxj", "a.warc")]
)
def test_a_verb_without_a_line_imports_nothing_of_one(
    verb: str, word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.warc").write_bytes(b"")
    assert not imported(tmp_path, verb, word, codes=(0, 1)) & forbidden(verb)


@pytest.mark.parametrize(
    ("verb", "words"),
    [
        ("status", [DAY]),
        ("reconcile", [DAY]),
        ("files", [DAY]),
        ("why", [JOB, LAUNCH_ID]),
        ("report", [JOB, LAUNCH_ID]),
        ("verify", [DAY]),
        ("restore", []),
    ],
)
def test_a_verb_that_reads_a_line_asks_no_server_and_loads_no_crawler(
    verb: str, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LUIGI_CONFIG_PATH", str(new_line(tmp_path / "line").config))
    assert not imported(tmp_path, verb, *words, codes=(0, 1)) & forbidden(verb)


@pytest.mark.parametrize("words", ["run x.py", "new papers/shop --start http://a.example/", "check x.py", "step x.py"])
def test_scripts_without_their_extra_name_it(words: str, tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("")
    code = "import sys; sys.modules['lxml'] = None; from commands.main import main; sys.exit(main(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, "script", *words.split()], cwd=tmp_path, capture_output=True, text=True,
        check=False, env={**os.environ, "PYTHONPATH": str(ROOT), "LUIGI_CONFIG_PATH": str(tmp_path / "luigi.cfg")},
    )  # fmt: skip
    assert (done.returncode, "pip install 'warcmill[scripts]'" in done.stderr) == (3, True), done.stderr
