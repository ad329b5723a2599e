"""The rules of the house in CONTRIBUTING.md: a module earns its name by hiding something, a name has one meaning."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
TOPS = ("warcmill", "tasks", "commands", "servers", "targets")
SMALL = 60  # lines; a module with fewer and one importer belongs into that
ALONE = "stands alone"  # a small module's first line has these words, and the reason
MOST_ALONE = 30
MOST_IN_A_FOLDER = 14
# A chain has a module for each of its steps, and policies are one a module.
LARGE_FOLDERS = {
    "warcmill/backup", "warcmill/files", "warcmill/index", "warcmill/output", "warcmill/package", "warcmill/pulse",
    "warcmill/reports", "warcmill/crawl/policies",
}  # fmt: skip
QUESTION = re.compile(r"(?:^|[.!?]\s+|\n\s*\n\s*|\n\s*- )(What|Whether|How)\b")
# Words that stop a reader: "X is not a Y" reads at once, "it is no Y" does not; an invalid thing is invalid, not none.
TIC = re.compile(
    r"(?<!there )(?<!There )\b(?:is|are|was|were)\s+no\s+(?!longer\b|more\b|older\b|less\b|better\b)\w"
    r"|\b(?:it|that|which|what|this|one)\s+(?:is|are)\s+none\b(?!\s+of\b)"
)
# Sentences that claims, logs, reports, notices or answers have: they keep their bytes.
TIC_ON_THE_WIRE = {
    "commands/report.py": 1,
    "warcmill/audit/day_summary.py": 1,
    "warcmill/clients/package_index.py": 1,
    "warcmill/crawl/beside/page.py": 1,
    "warcmill/crawl/books/uri_list.py": 1,
    "warcmill/crawl/control/frontier.py": 2,
    "warcmill/crawl/control/messages.py": 1,
    "warcmill/crawl/fetch/addresses.py": 1,
    "warcmill/crawl/fetch/exchange.py": 7,
    "warcmill/crawl/fetch/http.py": 1,
    "warcmill/crawl/frontier/dump.py": 1,
    "warcmill/formats/feed.py": 2,
    "warcmill/formats/index/urlkey.py": 1,
    "warcmill/formats/logs/logzip.py": 1,
    "warcmill/formats/pypi/simple_page.py": 1,
    "warcmill/formats/seeds.py": 2,
    "warcmill/formats/surt.py": 3,
    "warcmill/formats/warc/checks.py": 1,
    "warcmill/formats/warc/gzip.py": 1,
    "warcmill/formats/warc/header.py": 1,
    "warcmill/formats/warc/records.py": 1,
    "warcmill/markers/claim.py": 1,
    "warcmill/package/verify.py": 1,
    "warcmill/pypi/feed.py": 1,
    "warcmill/reports/seed_lines.py": 1,
    "warcmill/requests/incoming.py": 1,
    "warcmill/requests/migration.py": 2,
    "warcmill/requests/sender.py": 1,
    "warcmill/requests/serving/scope.py": 1,
    "warcmill/spiders/requests.py": 1,
    "warcmill/spiders/visit.py": 1,
    "warcmill/stores/engine_folder.py": 1,
}  # fmt: skip
# Not yet as the rules have it: these only shrink.
SEAMS_LEFT = 0
ALONE_LEFT: set[str] = set()
LARGE_LEFT: set[str] = set()
TWICE_LEFT: set[str] = set()
CIRCLES_LEFT = {"warcmill/spiders/bridge.py", "warcmill/spiders/visit.py"}


@cache
def trees() -> dict[str, ast.Module]:
    """The syntax tree of each module, by its path."""
    paths = sorted(path for top in TOPS for path in (ROOT / top).rglob("*.py"))
    return {path.relative_to(ROOT).as_posix(): ast.parse(path.read_text("utf-8")) for path in paths}


def dotted(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


@cache
def importers() -> dict[str, set[str]]:
    """Who imports each module, or a name of it."""
    modules = {dotted(path): path for path in trees()}
    by: dict[str, set[str]] = defaultdict(set)
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
                used = {name if name in modules else node.module for name in names}
            else:
                used = {alias.name for alias in node.names} if isinstance(node, ast.Import) else set()
            for name in used & modules.keys():
                by[modules[name]].add(path)
    return by


def docstrings() -> Iterator[tuple[str, str]]:
    """Where a docstring is, and its text."""
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{path}:{getattr(node, 'name', 'module')}", ast.get_docstring(node) or ""


def is_small(path: str) -> bool:
    lines = (ROOT / path).read_text("utf-8").count("\n")
    return lines < SMALL and not path.startswith(("commands/", "tasks/", "servers/")) and "__init__" not in path


def first_line(path: str) -> str:
    return (ast.get_docstring(trees()[path]) or "").partition("\n")[0]


def test_a_small_module_with_one_importer_says_why_it_stands_alone() -> None:
    by = importers()
    lonely = {path: by[path] for path in trees() if is_small(path) and len(by[path]) == 1}
    unexplained = {path: users for path, users in lonely.items() if ALONE not in first_line(path)}
    new = {path: users for path, users in unexplained.items() if path not in ALONE_LEFT}
    assert not new, f"merge each into its importer, or give the reason why it {ALONE!r} in its first line"
    assert unexplained.keys() >= ALONE_LEFT, f"remove from ALONE_LEFT: {ALONE_LEFT - unexplained.keys()}"


def test_few_modules_stand_alone() -> None:
    alone = {path for path in trees() if ALONE in first_line(path)}
    assert len(alone) <= MOST_ALONE
    assert {path for path in alone if not is_small(path) or len(importers()[path]) != 1} == set(), "no reason is needed"


def test_no_two_public_classes_have_one_name() -> None:
    classes: dict[str, set[str]] = defaultdict(set)
    for path, tree in trees().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                classes[node.name].add(path)
    twice = {name: sorted(paths) for name, paths in classes.items() if len(paths) > 1}
    assert not {name: paths for name, paths in twice.items() if name not in TWICE_LEFT}, "rename one of each"
    assert twice.keys() >= TWICE_LEFT, f"remove from TWICE_LEFT: {sorted(TWICE_LEFT - twice.keys())}"


def test_a_folder_of_the_library_holds_few_modules() -> None:
    folders = Counter(path.rpartition("/")[0] for path in trees() if path.startswith("warcmill/") and "__" not in path)
    large = {name: count for name, count in folders.items() if count > MOST_IN_A_FOLDER and name not in LARGE_FOLDERS}
    assert large.keys() == LARGE_LEFT


def test_nothing_but_the_place_that_opens_it_imports_the_form_of_a_frontier_in_sqlite() -> None:
    """Another form can then stand beside it: all else is written against `Frontier`."""
    folder = "warcmill/crawl/frontier/"
    of_all_forms = {
        f"{folder}{name}.py" for name in ("__init__", "crew", "dump", "journal", "link", "outbox", "register")
    }
    for path in importers():
        if path.startswith(folder) and path not in of_all_forms:
            outside = {other for other in importers()[path] if not other.startswith(folder)}
            assert outside <= {"warcmill/crawl/launch/database.py"}, path
    importing = {
        path for path, tree in trees().items() if path.startswith("warcmill/crawl/") and "sqlite3" in names(tree)
    }
    assert {path for path in importing if not path.startswith(folder)} == set()


def test_nobody_imports_a_verb_or_makes_the_arguments_of_one() -> None:
    """A verb's work is functions with arguments, in `commands/console/` or below, which others call too."""
    by = importers()
    verbs = {path for path in trees() if re.fullmatch(r"commands/(?!__init__|main)\w+\.py", path)}
    assert {verb: sorted(by[verb]) for verb in verbs if by[verb]} == {}
    made = (
        ast.unparse(node.func) for tree in trees().values() for node in ast.walk(tree) if isinstance(node, ast.Call)
    )
    assert "argparse.Namespace" not in set(made)


def test_imports_go_in_no_circle() -> None:
    """Those that only a type check follows, and those inside of functions, too."""
    left = {path: set(importers()[path]) for path in trees()}
    while ends := {path for path in left if not left[path]} | (left.keys() - set().union(*left.values())):
        left = {path: users - ends for path, users in left.items() if path not in ends}
    assert left.keys() == CIRCLES_LEFT


def test_values_are_structs() -> None:
    """A dataclass takes fifty times as long to make, and a class with private members is a plain one."""
    using = {path for path, tree in trees().items() if "dataclasses" in names(tree) | sources(tree)}
    assert not using, "make it a msgspec.Struct"
    private = [f"{path}: {name}" for path, tree in trees().items() for name in private_members(tree)]
    assert not private, "make it a plain class, or a cached_property"


def sources(tree: ast.Module) -> set[str]:
    """The modules that a module imports names of."""
    return {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}


def private_members(tree: ast.Module) -> Iterator[str]:
    """The private members of a module's Structs."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and "Struct" in {ast.unparse(base) for base in node.bases}:
            for member in node.body:
                if isinstance(member, ast.AnnAssign) and (name := ast.unparse(member.target)).startswith("_"):
                    yield f"{node.name}.{name}"


def names(tree: ast.Module) -> set[str]:
    """The modules that a module imports whole."""
    return {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}


def test_no_sentence_of_a_docstring_begins_as_a_question() -> None:
    questions = [f"{place}: {found}" for place, text in docstrings() for found in QUESTION.findall(text)]
    assert not questions, "name the thing, then say what it does:\n" + "\n".join(questions)


def test_nothing_is_no_something() -> None:
    pages = {path.relative_to(ROOT).as_posix() for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]}
    texts = {path: (ROOT / path).read_text("utf-8") for path in trees().keys() | pages - {"CHANGELOG.md"}}
    found = {path: TIC.findall(text) for path, text in texts.items()}
    assert {path: tics for path, tics in found.items() if len(tics) != TIC_ON_THE_WIRE.get(path, 0)} == {}


def test_no_docstring_keeps_the_seams_of_a_merge() -> None:
    seams = [place for place, text in docstrings() if "MERGED" in text]
    assert len(seams) <= SEAMS_LEFT, seams


def test_the_crawler_has_no_word_of_a_room_that_docks_to_it() -> None:
    """It knows a reader, an audience and a service: setup.cfg forbids the imports, and this the names."""
    words = re.compile(r"scrapy|appid|crawlid|warcmill\.(requests|spiders)", re.IGNORECASE)
    folder = ROOT / "warcmill" / "crawl"
    found = [path.name for path in folder.rglob("*.py") if words.search(path.read_text("utf-8"))]
    assert found == []


def test_one_module_knows_how_a_host_is_written() -> None:
    """Beside it there is the key of an index, which has the rule of other indexers."""
    other_rule = re.compile(r"[\"'](idna|punycode)[\"']|\bidna_to_|\b(import|from) (idna|encodings)\b|stringprep")
    found = {path for path in trees() if other_rule.search((ROOT / path).read_text("utf-8"))}
    assert found == {"warcmill/formats/index/urlkey.py"}


def test_a_visit_takes_few_branches() -> None:
    """The way of a URI is a line: what differs is asked of its reader and its audience."""
    tree = trees()["warcmill/crawl/visit/visit.py"]
    (visit,) = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Visit")
    (steps,) = (node for node in visit.body if isinstance(node, ast.AsyncFunctionDef) and node.name == "_result")
    branches = ast.If | ast.IfExp | ast.BoolOp | ast.match_case | ast.For | ast.While | ast.ExceptHandler
    assert sum(isinstance(node, branches) for node in ast.walk(steps)) <= 10
