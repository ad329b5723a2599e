"""The modules of a distribution, by the names of its members alone. Pure.

A wheel has the modules that Python's finders find in its unpacked files: a package is a folder with an `__init__`, a
module a file of Python's, compiled or not. A folder without an `__init__` is not a module, since no file of the
distribution makes it one; modules in it are. `top_level.txt` says which of an sdist's folders are installed. Without
it, its layout does: `src/`, else packages and modules at its top, but no tests, documents, examples or tools.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

MOST = 250_000  # modules of one distribution; a million take 660 MB on their way into a data set
MOST_BYTES = 64 << 20  # of their names; the largest have 3 MB
_EXTENSION = re.compile(
    r"([^.]+)(?:\.(?:cpython-[0-9]+[a-z]*(?:-[A-Za-z0-9_-]+)?|cp[0-9]+[a-z]*-[A-Za-z0-9_]+|abi3|abi3t|abi3-[A-Za-z0-9_-]+"
    r"|pypy[0-9]+-[A-Za-z0-9_-]+|graalpy[0-9]+-[A-Za-z0-9_-]+))?\.(?:so|pyd)"
)
_SOURCE = re.compile(r"([^.]+)\.(?:py|pyc)")
_INSTALLED = re.compile(r"[^/]+\.data/(?:purelib|platlib)/(.+)")  # folders of a wheel whose files are moved
_NEVER = frozenset(
    {
        "test", "tests", "testing", "doc", "docs", "documentation", "example", "examples", "sample", "samples", "demo",
        "demos", "bench", "benchmark", "benchmarks", "script", "scripts", "tool", "tools", "ci", "build", "dist",
        "contrib", "extras", "node_modules",
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
        self._bytes = 0

    def add(self, path: str) -> None:
        """Take the path of one file."""
        if path.endswith((".py", ".pyc", ".so", ".pyd")) and path not in self._found:
            self._bytes += len(path)
            if self._bytes > MOST_BYTES or len(self._found) == MOST:
                raise TooMany
            self._found.add(path)

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)


def of_wheel(paths: Iterable[str]) -> tuple[str, ...]:
    """The modules of a wheel, or of an egg, by the paths of its files, sorted."""
    return _modules(_moved(path) for path in paths)


def _moved(path: str) -> str:
    installed = _INSTALLED.fullmatch(path)
    return installed[1] if installed else path


def of_source(paths: Iterable[str], tops: Sequence[str] | None, project: str) -> tuple[str, ...] | None:
    """The modules of an sdist, by the paths of its files below its folder; None if they are unknown. `tops` are the
    names in its top_level.txt, None without one."""
    files = sorted(paths, key=lambda path: (path.count("/"), path))
    if tops is not None:
        return _of_tops(files, [top for top in tops if all(part.isidentifier() for part in top.split("."))])
    inside = [path[4:] for path in files if path.startswith("src/")]
    found = _modules(inside) or _modules(_at_top(files, project))
    return found or None


def _of_tops(files: Sequence[str], tops: Sequence[str]) -> tuple[str, ...]:
    """The modules below each name. Its folder may be anywhere: the one that is least deep counts. A name without a
    file in Python is a module all the same: it may be one in C."""
    found = set[str]()
    for top in tops:
        name = top.replace(".", "/")
        place = _place(files, name)
        below = (path[len(place) :] for path in files if path.startswith(f"{place}{name}")) if place is not None else ()
        found.update(one for one in _modules(below) if one == top or one.startswith(f"{top}."))
        if not any(one.startswith(f"{top}.") for one in found):
            found.add(top)
    return tuple(sorted(found))


def _place(files: Iterable[str], name: str) -> str | None:
    """The folder in which a module, a package or a folder with modules has this name; None without one."""
    for path in files:
        at = 0 if path.startswith(name) else path.find(f"/{name}") + 1
        if (at or path.startswith(name)) and path[at + len(name) : at + len(name) + 1] in ("/", "."):
            return path[:at]
    return None


def _at_top(files: Sequence[str], project: str) -> Iterator[str]:
    """The files of packages and modules at the top of an sdist."""
    packages = {path.partition("/")[0] for path in files if path.count("/") == 1 and _stem(path) == "__init__"}
    packages.add(re.split("[-_.]", project)[0])  # a namespace has no `__init__`
    for path in files:
        top, _, rest = path.partition("/")
        name = top if rest else _stem(top)
        if name.lower() not in _NEVER and (top in packages if rest else name.lower() not in _NEVER_MODULES):
            yield path


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
