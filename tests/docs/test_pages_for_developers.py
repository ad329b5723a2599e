"""The pages for who carries on: every folder is in them, and what they name is there."""

from __future__ import annotations

import ast
import configparser
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from operating.documented import PAGES, ROOT

import warcmill
from warcmill.chain import ROWS
from warcmill.markers import claim
from warcmill.model import Outcome, Root

ARCHITECTURE = PAGES["architecture.md"]
# CHANGELOG is about the past as well: what it names may be gone.
FOR_DEVELOPERS = sorted(
    page
    for page in PAGES
    if page in ("architecture.md", "glossary.md", "CONTRIBUTING.md", "SECURITY.md") or page.startswith("decisions/")
)
TOP = (".ci", "benchmarks", "commands", "config", "docs", "scripts", "servers", "targets", "tasks", "tests", "warcmill")
PATH = re.compile(rf"(?<![\w/.])(?:{'|'.join(map(re.escape, TOP))})/[\w./-]*(?![{{…])")
PARTS = r"^\*\*Decided\*\*|^## \w+"
FILE = re.compile(r"[\w-]+\.(?:py|cfg|toml|lock)")


def spans(text: str) -> set[str]:
    """What is between backticks, and no fenced block."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    return set(re.findall(r"`([^`\n]+)`", prose))


def paths(page: str) -> set[str]:
    return {found.rstrip(".") for span in spans(PAGES[page]) for found in PATH.findall(span)}


@pytest.mark.parametrize("page", FOR_DEVELOPERS)
def test_every_path_that_a_page_names_exists(page: str) -> None:
    assert {path for path in paths(page) if not (ROOT / path).exists()} == set()


def test_paths_are_found() -> None:
    assert {"warcmill/chain.py", "tasks/step.py", "setup.cfg"} <= paths("architecture.md") | spans(ARCHITECTURE)
    assert "tests/unit/" in paths("CONTRIBUTING.md")


@pytest.mark.parametrize("page", FOR_DEVELOPERS)
def test_every_file_that_a_page_names_without_its_folder_is_somewhere(page: str) -> None:
    names = {span for span in spans(PAGES[page]) if FILE.fullmatch(span)}
    there = {path.name for path in ROOT.iterdir()} | {path.name for top in TOP for path in (ROOT / top).rglob("*.*")}
    assert names <= there


def folders(top: str) -> set[str]:
    """The folders that hold modules, as pages write them."""
    found = {path.parent.relative_to(ROOT).as_posix() for path in (ROOT / top).rglob("*.py")}
    return {f"{folder}/" for folder in found}


@pytest.mark.parametrize("top", ["warcmill", "tasks", "targets", "commands", "servers", "benchmarks"])
def test_every_folder_of_the_code_is_in_the_architecture(top: str) -> None:
    assert folders(top) <= paths("architecture.md")


def test_every_folder_of_the_tests_is_in_contributing() -> None:
    there = {f"tests/{path.name}/" for path in (ROOT / "tests").iterdir() if path.is_dir() and path.name[0] not in "._"}
    assert there <= paths("CONTRIBUTING.md")


def layers(lines: list[str]) -> list[set[str]]:
    """The rooms of each row that are there: import-linter's contract names some in brackets, some with colons."""
    rows = [set(re.findall(r"\w+", line)) for line in lines if line.strip()]
    there = [{name for name in row if is_room(name)} for row in rows]
    return [row for row in there if row]


def is_room(name: str) -> bool:
    place = ROOT / "warcmill" / name
    return place.is_dir() or place.with_suffix(".py").is_file()


def test_the_rows_of_rooms_are_those_that_import_linter_holds() -> None:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", "utf-8")
    held = config["importlinter:contract:library"]["layers"].splitlines()
    (shown,) = re.findall(r"```text\n(web\n.*?)```", ARCHITECTURE, re.DOTALL)
    assert layers(shown.splitlines()) == layers(held)
    assert set(re.findall(r"\w+", shown)) == set().union(*layers(held)), "a room that is not there"


def test_the_drawings_name_rooms_and_modules_that_are_there() -> None:
    drawings = re.findall(r"```text\n(.*?)```", ARCHITECTURE, re.DOTALL)
    named = {found for drawing in drawings for found in re.findall(r"(?<![\w/.])[a-z]+/[a-z_/]*", drawing)}
    tops = (ROOT, ROOT / "warcmill", ROOT / "warcmill" / "crawl")
    lost = {name for name in named if not any((top / name).is_dir() or (top / f"{name}.py").exists() for top in tops)}
    assert len(named) > 10
    assert not lost


def test_the_four_to_read_first_are_short() -> None:
    for name in ("errors", "model", "chain", "layout"):
        assert f"| `warcmill/{name}.py` |" in ARCHITECTURE


# Security: a limit is what the code says.


def limits() -> Iterator[tuple[str, str, int]]:
    row = re.compile(r"^\| .* \| ([0-9,]+) \| `(\w+)` in `([\w/.]+)` \|$", re.MULTILINE)
    for number, name, path in row.findall(PAGES["SECURITY.md"]):
        yield path, name, int(number.replace(",", ""))


def constant(path: str, name: str) -> int:
    """The number that a module gives a name: a literal, or one shifted left."""
    for node in ast.parse((ROOT / path).read_text("utf-8")).body:
        target, value = (node.targets[0], node.value) if isinstance(node, ast.Assign) else (None, None)
        if isinstance(node, ast.AnnAssign):
            target, value = node.target, node.value
        if isinstance(target, ast.Name) and target.id == name and value is not None:
            return product(value)
    raise AssertionError(f"{path} has no {name}")


def product(node: ast.expr) -> int:
    match node:
        case ast.Constant(value=int(number)):
            return number
        case ast.BinOp(left=left, op=ast.LShift(), right=right):
            return product(left) << product(right)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return product(left) * product(right)
        case _:
            raise AssertionError(ast.dump(node))


def test_limits_are_found() -> None:
    assert len(list(limits())) == len(re.findall(r"` in `", PAGES["SECURITY.md"])) > 15


@pytest.mark.parametrize(("path", "name", "number"), list(limits()))
def test_a_limit_is_as_security_says(path: str, name: str, number: int) -> None:
    assert constant(path, name) == number


# The words, the versions.


def words() -> set[str]:
    """What the glossary's lists explain."""
    items = re.findall(r"^- (.+?): ", PAGES["glossary.md"], re.MULTILINE)
    return {word.strip("`") for item in items for word in item.split(", ")}


def test_the_glossary_has_the_words_of_the_model() -> None:
    roots = set(get_args(get_args(Root)[0]))
    chains = {"pulse", "output", "files", "package", "index", "reports", "pypi", "documents"}
    assert {"output", "jobs", "state", "store"} <= roots <= words()
    assert set(Outcome) <= words()
    assert {row.scope for row in ROWS} - words() == set()
    assert {row.task.partition(".")[0] for row in ROWS if row.head} <= chains
    assert all(f"`{chain}`" in PAGES["glossary.md"] for chain in chains)


def test_no_word_has_two_meanings() -> None:
    items = re.findall(r"^- (.+?): ", PAGES["glossary.md"], re.MULTILINE)
    assert len(items) == len(set(items)) > 50


def test_the_changelog_has_this_version_and_this_schema() -> None:
    assert re.search(rf"^## {re.escape(warcmill.__version__)}\b", PAGES["CHANGELOG.md"], re.MULTILINE)
    assert f"The schema has a number, now {claim.SCHEMA}." in " ".join(PAGES["CHANGELOG.md"].split())


def test_decisions_are_numbered_without_a_hole() -> None:
    names = sorted(Path(page).name for page in PAGES if page.startswith("decisions/"))
    assert [name[:4] for name in names] == [f"{number:04}" for number in range(1, len(names) + 1)]
    for name in names:
        page = PAGES[f"decisions/{name}"]
        assert page.startswith(f"# {name[:4]} ")
        assert {"**Decided**", "## Question", "## Decision", "## Price"} <= set(re.findall(PARTS, page, re.MULTILINE))
