"""The modules of a distribution, by the names of its members alone. Pure.

A wheel has the modules that Python's finders find in its unpacked files: a package is a folder with an `__init__`, a
module a file of Python's, compiled or not. A folder without an `__init__` is not a module, since no file of the
distribution makes it one; modules in it are. A folder that a line of a `.pth` file names is searched, too: modules in
it are at the top (`site`); a line that is code is not run. `top_level.txt` says which names of an sdist are installed;
the folder that its egg-info is in has them, else one other folder that is not of tests, documents, examples or tools.
Without it the layout says so: the packages in `src/`, else the only package at the top, else the only module. Of
several the modules are unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

MOST = 250_000  # modules of one distribution; a million take 660 MB on their way into a data set
MOST_BYTES = 64 << 20  # of their names; the largest have 3 MB
_DEEPEST = 8  # folders above a name of top_level.txt
_EXTENSION = re.compile(
    r"([^.]+)(?:\.(?:cpython-[0-9]+[a-z]*(?:-[A-Za-z0-9_-]+)?|cp[0-9]+[a-z]*-[A-Za-z0-9_]+|abi3|abi3t|abi3-[A-Za-z0-9_-]+"
    r"|pypy[0-9]+-[A-Za-z0-9_-]+|graalpy[0-9]+-[A-Za-z0-9_-]+))?\.(?:so|pyd)"
)
_SOURCE = re.compile(r"([^.]+)\.(?:py|pyc)")
_INSTALLED = re.compile(r"[^/]+\.data/(?:purelib|platlib)/(.+)").fullmatch  # its files are moved
_STUBS = re.compile(r"([^/]+)-stubs(/.+)\.pyi").fullmatch
_NEVER = frozenset(
    {
        "test", "tests", "testing", "doc", "docs", "documentation", "example", "examples", "sample", "samples", "demo",
        "demos", "bench", "benchmark", "benchmarks", "script", "scripts", "tool", "tools", "ci", "build", "dist",
        "contrib", "extras", "node_modules", "util", "utils", "unit_test", "unit_tests", "testdata", "fixtures", "bin",
        "debian", "manpages", "exercise", "exercises", "tutorial", "tutorials", "benchmarking",
    }
)  # fmt: skip
_NEVER_MODULES = frozenset(
    {
        "setup", "conftest", "noxfile", "toxfile", "fabfile", "dodo", "tasks", "versioneer", "ez_setup", "bootstrap",
        "distribute_setup", "manage", "runtests", "run_tests", "conf", "release", "pavement",
    }
)  # fmt: skip


class TooMany(Exception):
    """A distribution has more modules than fit into memory."""


class ModulePaths:
    """Collects the paths of a distribution that may be modules; all others are forgotten. TooMany above a limit."""

    def __init__(self) -> None:
        self._found: set[str] = set()
        self._stubs: set[str] = set()
        self._bytes = 0

    def add(self, path: str) -> None:
        """Take the path of one file."""
        if path.endswith((".py", ".pyc", ".so", ".pyd")):
            self._add(path, self._found)
        elif path.endswith(".pyi") and (stub := _STUBS(moved(path))):
            self._add(f"{stub[1]}{stub[2]}.py", self._stubs)

    def _add(self, path: str, found: set[str]) -> None:
        if path not in found:
            self._bytes += len(path)
            if self._bytes > MOST_BYTES or len(found) == MOST:
                raise TooMany
            found.add(path)

    @property
    def stubs(self) -> tuple[str, ...] | None:
        """The topmost modules whose types alone are there, in folders `*-stubs` (PEP 561); None without one."""
        return roots(_modules(self._stubs)) or None

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)


def of_wheel(paths: Iterable[str], folders: Sequence[str] = ()) -> tuple[str, ...]:
    """The modules of a wheel, or of an egg, by the paths of its files, sorted. `folders`: those of its .pth files."""
    if not folders:
        return _modules(moved(path) for path in paths)
    installed = [moved(path) for path in paths]
    found = set(_modules(installed))
    for folder in folders:
        found.update(_modules(path[len(folder) :] for path in installed if path.startswith(folder)))
    return tuple(sorted(found))


def moved(path: str) -> str:
    """The path of a wheel's file once it is installed among modules."""
    installed = _INSTALLED(path) if ".data/" in path else None
    return installed[1] if installed else path


def pth_folders(data: bytes) -> Iterator[str]:
    """The folders inside of site-packages that a .pth file adds to the path, each with a slash at its end.

    Lines that `site` runs as code, absolute paths, and those that lead out name no folder of a distribution.
    """
    for line in data.decode("utf-8-sig", "replace").splitlines():
        path = line.rstrip().replace("\\", "/")  # as wheels for Windows have them
        if not path or path.startswith(("#", "import ", "import\t", "/")) or path[1:2] == ":":
            continue
        parts = list[str]()
        for part in path.split("/"):
            if part == ".." and not parts:
                break
            if part == "..":
                parts.pop()
            elif part not in ("", "."):
                parts.append(part)
        else:
            if parts:
                yield f"{'/'.join(parts)}/"


def roots(names: Iterable[str]) -> tuple[str, ...]:
    """Those modules that are below no other, sorted."""
    known = set(names)
    return tuple(sorted(name for name in known if not any(one in known for one in above(name))))


def above(name: str) -> Iterator[str]:
    """The names that a module's name is below, the longest first."""
    while "." in name:
        name = name.rpartition(".")[0]
        yield name


def of_source(paths: Iterable[str], tops: Sequence[str] | None, project: str, root: str = "") -> tuple[str, ...] | None:
    """The modules of an sdist, by the paths of its files below its folder; None if they are unknown. `tops` are the
    names in its top_level.txt, None without one; `root` is the folder that has its egg-info, '' or with a slash."""
    files = sorted(paths)
    if tops is not None:
        return _of_tops(files, {top for top in tops if all(part.isidentifier() for part in top.split("."))}, root)
    inside = [path[4:] for path in files if path.startswith("src/")]
    if found := _packages(inside, project):
        return _modules(path for path in inside if path.partition("/")[0] in found)
    found = _packages(files, project) or _single(files)
    if not found:
        files, found = inside, _single(inside)
    return _modules(path for path in files if _top(path) in found) if len(found) == 1 else None


def is_aside(folder: str) -> bool:
    """True for a folder that is not installed, nor is what is in it: one of tests, examples, or documents."""
    return not _NEVER.isdisjoint(folder.lower().split("/"))


def _of_tops(files: Sequence[str], tops: Set[str], root: str) -> tuple[str, ...] | None:
    """The modules below each name; None if several folders may have them. A name without a file in Python is a module
    all the same: it may be one in C."""
    places, found = _places(files, {top.replace(".", "/") for top in tops}), set[str]()
    for top in tops:
        below = _chosen(places.get(top.replace(".", "/"), {}), top, root)
        if len(below) > 1:
            return None
        found.update(*below)
        if not any(one.startswith(f"{top}.") for one in found):
            found.add(top)
    return tuple(sorted(found))


def _places(files: Iterable[str], names: Set[str]) -> dict[str, dict[str, list[str]]]:
    """The paths of a module, a package or a folder of each name, by the folder that has it."""
    found, longest = dict[str, dict[str, list[str]]](), 1 + max((name.count("/") for name in names), default=0)
    for path in files:
        parts = path.split("/")
        last, parts[-1] = len(parts), _stem(path)
        for begin in range(min(last, _DEEPEST)):
            for end in range(begin + 1, min(last, begin + longest) + 1):
                if (name := "/".join(parts[begin:end])) in names:
                    folder = "".join(f"{part}/" for part in parts[:begin])
                    found.setdefault(name, {}).setdefault(folder, []).append(path)
    return found


def _chosen(places: Mapping[str, Sequence[str]], top: str, root: str) -> set[tuple[str, ...]]:
    """The modules of a name in the folder that has the egg-info. Else in another one: packages come before files, then
    the folder that is least deep. They are several where folders of one rank differ."""
    ranked = dict[tuple[bool, bool, int], set[tuple[str, ...]]]()
    for folder, paths in places.items():
        below = _modules(path[len(folder) :] for path in paths)
        known = tuple(one for one in below if one == top or one.startswith(f"{top}."))
        if known and (folder == root or not is_aside(folder.rstrip("/"))):
            is_package = any(path.startswith(f"{folder}{top.replace('.', '/')}/__init__.") for path in paths)
            ranked.setdefault((folder != root, not is_package, folder.count("/")), set()).add(known)
    return ranked[min(ranked)] if ranked else set()


def _packages(files: Iterable[str], project: str) -> set[str]:
    """The packages at the top of a folder, and the namespace that a project's name begins with."""
    namespace = re.split("[-_.]", project)[0]  # it has no `__init__`
    inside = [path.split("/", 2) for path in files if "/" in path]
    known = {parts[0] for parts in inside if len(parts) == 2 and _stem(parts[1]) == "__init__"}
    known |= {parts[0] for parts in inside if parts[0] == namespace}
    return {name for name in known if name.isidentifier() and name.lower() not in _NEVER}


def _single(files: Iterable[str]) -> set[str]:
    """The modules at the top of a folder that are not of its building and its tests."""
    return {
        name
        for name in _modules(path for path in files if "/" not in path)
        if name.lower() not in _NEVER | _NEVER_MODULES and not name.startswith("test_") and not name.endswith("_test")
    }


def _top(path: str) -> str:
    """The name of a folder or a module at the top of a folder."""
    top, slash, _ = path.partition("/")
    return top if slash else _stem(top)


def _stem(path: str) -> str:
    return path.rpartition("/")[2].partition(".")[0]


def _modules(paths: Iterable[str]) -> tuple[str, ...]:
    """The modules that finders find among some files, sorted."""
    packages, plain = set[str](), set[str]()
    for path in paths:
        *folders, file = path.split("/")
        match = _SOURCE.fullmatch(file) or _EXTENSION.fullmatch(file)
        if match and all(map(str.isidentifier, folders)) and match[1].isidentifier():
            if match[1] == "__init__":
                packages.add(".".join(folders))
            else:
                plain.add(".".join((*folders, match[1])))
    packages.discard("")
    # A module beside a folder without `__init__` hides it, with all that it has.
    hiding = plain - packages
    return tuple(sorted(one for one in packages | plain if not _is_hidden(one, hiding)))


def _is_hidden(name: str, hiding: set[str]) -> bool:
    place = name.rfind(".")
    while place > 0:
        if name[:place] in hiding:
            return True
        place = name.rfind(".", 0, place)
    return False
