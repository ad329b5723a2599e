"""What exists is documented, and what is documented exists. The code is asked: a new thing fails here by itself."""

from __future__ import annotations

import argparse
import ast
import configparser
import importlib
import pkgutil
import re
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path

import luigi
import pytest
from operating.documented import FILES, PAGES, ROOT, printed

import tasks
from commands import main as command
from tasks.config import chains, engines, roots, sections, settings
from tasks.config.sections import Section
from tasks.step import JobStep, Scan
from warcmill import chain, errors
from warcmill.audit import gaps
from warcmill.audit.progress_grid import Mark
from warcmill.errors import WarcmillError

VERBS = [verb for group in command.VERBS.values() for verb in group]
MODULES = [importlib.import_module(f"tasks.{found.name}") for found in pkgutil.iter_modules(tasks.__path__)]


def without_blocks(text: str) -> str:
    """A page's prose: no fenced blocks."""
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


def section(page: str, heading: str) -> str:
    """The text under a heading, up to the next of its rank or above; '' when there is no such heading."""
    text, rank = f"\n{PAGES[page]}", heading.partition(" ")[0]
    begin = text.find(f"\n{heading}\n")
    if begin < 0:
        return ""
    rest = text[begin + 1 :]
    end = re.search(rf"\n#{{1,{len(rank)}}} ", rest)
    return rest[: end.start()] if end else rest


def code(text: str) -> set[str]:
    """What is between backticks."""
    return set(re.findall(r"`([^`\n]+)`", text))


def first_cells(text: str) -> set[str]:
    """The first cell of every table row, and what an item of a list explains, without backticks."""
    rows = {line.strip("|").partition(" | ")[0].strip(" `") for line in text.splitlines() if line.startswith("|")}
    lines = (re.sub(r" \([^)]*\)", "", line) for line in text.splitlines() if line.startswith("- "))
    items = [line[2:].partition(": ")[0] for line in lines]
    return rows | {word.strip("`*") for item in items for word in item.split(", ")}


# Tasks.


def subclasses(base: type) -> Iterator[type]:
    for one in base.__subclasses__():
        yield one
        yield from subclasses(one)


def family(task: type[luigi.Task]) -> str:
    return str(task.get_task_family())


TASKS = {family(one): one for base in (JobStep, Scan) for one in subclasses(base) if family(one) and "." in family(one)}
TASKS = {name: one for name, one in TASKS.items() if one.__module__.startswith("tasks.")}


def test_the_tasks_are_found() -> None:
    assert {"output.PackageLogs", "files.Retire", "output.ScanForOutputs"} <= set(TASKS)


@pytest.mark.parametrize("name", sorted(TASKS))
def test_every_task_and_every_parameter_of_it_is_documented(name: str) -> None:
    text = section("tasks.md", f"### {name}")
    assert text, f"docs/tasks.md has no heading '### {name}'"
    told = code(text) | code(section("tasks.md", "## Parameters"))
    for parameter, _ in TASKS[name].get_params():
        assert f"--{parameter.replace('_', '-')}" in told, parameter
    if issubclass(TASKS[name], JobStep):
        assert chain.by_task(chain.ROWS)[name].marker in told
    assert any(name in one.bare.split() for one in printed(text)), "no command line to copy"


@pytest.mark.parametrize("row", chain.ROWS, ids=lambda row: row.task)
def test_every_marker_s_name_and_claim_are_documented(row: chain.Row) -> None:
    assert f"| `{row.marker}` | `{row.task}` |" in section("markers.md", "## Names and paths")
    assert section("markers.md", f"### {row.task}"), f"docs/markers.md has no heading '### {row.task}'"


# Commands.


def parser_of(verb: str) -> argparse.ArgumentParser:
    module = importlib.import_module(f"commands.{verb}")
    parser = argparse.ArgumentParser(prog=verb, allow_abbrev=False)
    module.add_arguments(parser)
    return parser


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_and_every_option_of_it_is_documented(verb: str) -> None:
    text = section("commands.md", f"## warcmill {verb}")
    assert text, f"docs/commands.md has no heading '## warcmill {verb}'"
    told = {words.split()[0] for words in code(text) if words.startswith("-")}
    options = options_of(parser_of(verb))
    assert options - {"-h", "--help"} <= told
    assert any(one.bare.startswith(f"warcmill {verb}") for one in printed(text)), "no command line to copy"


def options_of(parser: argparse.ArgumentParser) -> set[str]:
    """Its options, and those of its actions: `pulse start`."""
    nested = [action.choices.values() for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    own = {option for action in parser._actions for option in action.option_strings}
    return own.union(*(options_of(one) for some in nested for one in some))


def test_every_mark_of_the_status_grid_is_documented() -> None:
    text = section("commands.md", "## warcmill status")
    for mark in Mark:
        assert f"| {mark} |" in text, mark


@pytest.mark.parametrize("verb", VERBS)
def test_the_overview_names_every_verb(verb: str) -> None:
    assert f"[{verb}](#warcmill-{verb})" in PAGES["commands.md"].partition("## ")[0]


# Configuration.


@pytest.mark.parametrize("config", sections.every(), ids=attrgetter("__name__"))
def test_every_key_that_warcmill_reads_is_documented(config: type[Section]) -> None:
    told = first_cells(section("configuration.md", f"## [{config.__name__}]"))
    assert told, f"docs/configuration.md has no heading '## [{config.__name__}]'"
    assert {key.name for key in config.listed()} <= told


NAMED_KEYS = [
    ("collection", chains.COLLECTION_KEYS),
    ("engine", roots.ENGINE_KEYS),
    ("job", engines.JOB_KEYS),
    ("writer", roots.WRITER_KEYS),
]


@pytest.mark.parametrize(("name", "keys"), NAMED_KEYS)
def test_every_key_of_the_sections_that_have_names_is_documented(name: str, keys: tuple[str, ...]) -> None:
    assert set(keys) <= first_cells(section("configuration.md", f"## [{name}.NAME]"))


@pytest.mark.parametrize(("section_name", "key"), sorted(settings._HARDENED))
def test_every_hardened_key_is_documented_with_its_value(section_name: str, key: str) -> None:
    row = f"| `[{section_name}]` | `{key}` | `{settings._HARDENED[section_name, key]}` |"
    assert row in PAGES["configuration.md"]


def test_every_key_of_the_template_is_documented() -> None:
    template = configparser.ConfigParser(interpolation=None)
    template.read(ROOT / "luigi.cfg")
    for name in template.sections():
        for key in template[name]:
            assert f"`{key}`" in PAGES["configuration.md"], f"[{name}] {key}"
    example = re.search(r"```ini\n(.*?)```", section("configuration.md", "## A whole file"), re.DOTALL)
    assert example
    shown = configparser.ConfigParser(interpolation=None)
    shown.read_string(example[1])
    assert {name: dict(shown[name]) for name in template.sections()} == {
        name: {**dict(template[name]), **({"local_scheduler": "true"} if name == "core" else {})}
        for name in template.sections()
    }


# Exit codes, errors, gaps.


def test_every_exit_code_is_documented() -> None:
    ours = {one.exit_code for one in [WarcmillError, *subclasses(WarcmillError)]}
    ours |= {node.value for node in ast.walk(source(command)) if is_code(node)}
    assert set(map(str, ours)) <= first_cells(section("operate/every-day.md", "### warcmill"))
    luigis = {value for (name, _), value in settings._HARDENED.items() if name == "retcode"}
    assert luigis <= first_cells(section("operate/every-day.md", "### luigi, that is every task and scan"))


def source(module: object) -> ast.Module:
    return ast.parse(Path(str(module.__file__)).read_text("utf-8"))  # type: ignore[attr-defined]


def is_code(node: ast.AST) -> bool:
    """A number that `main` returns: found by looking for all that could be one."""
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value in {2, 70, 130, 141}


@pytest.mark.parametrize(
    "name", sorted(one.__name__ for one in subclasses(WarcmillError) if one.__module__ == errors.__name__)
)
def test_every_error_is_documented_with_what_to_do(name: str) -> None:
    assert name in first_cells(section("operate/trouble.md", "## Errors"))
    code_of = getattr(errors, name).exit_code
    items = re.split(r"^- ", section("operate/every-day.md", "### warcmill"), flags=re.MULTILINE)
    assert any(item.startswith(f"{code_of}: ") and name in item for item in items)


def calls_of(*names: str) -> Iterator[ast.Call]:
    """Every call of a function so named, anywhere in the library."""
    for path in sorted((ROOT / "warcmill").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in names:
                yield node


def kinds_of_gaps() -> set[str]:
    """The third argument of every `_gap(...)` and `Gap(...)`, and what is known elsewhere: acceptable, unsound."""
    made = [call.args[2] for call in calls_of("_gap", "Gap") if len(call.args) > 2]
    plain = [part for node in made if not isinstance(node, (ast.JoinedStr, ast.Call)) for part in ast.walk(node)]
    kinds = {part.value for part in plain if isinstance(part, ast.Constant) and isinstance(part.value, str)}
    unsound = [call.args[0] for call in calls_of("Unsound")]
    return kinds | set(gaps.ACCEPTABLE) | {f"{one.value} marker" for one in unsound if isinstance(one, ast.Constant)}


def test_every_kind_of_gap_is_documented_with_what_to_do() -> None:
    kinds = kinds_of_gaps()
    assert {"lacking", "stale", "gone", "changed", "late stage", "foreign marker", "unavailable", "absent"} <= kinds
    assert kinds <= first_cells(section("operate/trouble.md", "## Gaps"))


# What is documented exists: commands are run, by test_commands_run.


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as forges make them."""
    headings = re.findall(r"^#{1,6} (.+)$", without_blocks(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links() -> Iterator[tuple[str, str]]:
    for page, text in PAGES.items():
        found = re.findall(r"\]\(([^)\s]+)\)", without_blocks(text))
        yield from ((page, target) for target in found if "://" not in target)


@pytest.mark.parametrize(("page", "target"), sorted(set(links())))
def test_every_link_leads_somewhere(page: str, target: str) -> None:
    path, _, anchor = target.partition("#")
    file = (FILES[page].parent / path).resolve() if path else FILES[page]
    assert file.exists(), f"{page}: {target}"
    if anchor:
        assert anchor in anchors(file.read_text("utf-8")), f"{page}: {target}"


def test_every_page_is_linked_from_the_readme_and_every_decision_from_the_architecture() -> None:
    targets = {
        (FILES[page].parent / target.partition("#")[0]).resolve()
        for page, target in links()
        if page in ("README.md", "architecture.md")
    }
    assert {path for page, path in FILES.items() if page != "README.md"} <= targets


@pytest.mark.parametrize("page", sorted(PAGES))
def test_no_page_names_a_path_or_a_word_of_one_machine(page: str) -> None:
    found = re.findall(r"(?<![\w.])/(?:work|root|tmp|home|Users)\b\S*|localhost:\d+", PAGES[page])
    assert found == []


@pytest.mark.parametrize("page", sorted(PAGES))
def test_prose_is_wrapped(page: str) -> None:
    prose = [line for line in without_blocks(PAGES[page]).splitlines() if not line.startswith(("|", "!"))]
    assert [line for line in prose if len(line) > 130] == []


def test_the_pictures_are_small() -> None:
    pictures = list((ROOT / "docs" / "pictures").iterdir())
    assert {path.name for path in pictures} >= {"chain.svg", "demo.svg", "visualiser.png"}
    assert all(path.stat().st_size < 200_000 for path in pictures)


def test_the_readme_names_the_system_packages_that_the_servers_need() -> None:
    listed = (ROOT / "servers" / "debian-packages.txt").read_text("utf-8").splitlines()[1:]
    assert f"\napt-get install {' '.join(listed)}\n" in PAGES["README.md"]
