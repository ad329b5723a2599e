"""Python's own finders, over files as an installer unpacks them: the judge of lists of modules."""

from __future__ import annotations

import importlib.machinery
import re
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

EXTENSIONS = (
    *importlib.machinery.EXTENSION_SUFFIXES,
    ".cpython-39-x86_64-linux-gnu.so",
    ".cp312-win_amd64.pyd",
    ".abi3.so",
    ".so",
    ".pyd",
)


def found_by_finders(files: Iterable[str]) -> set[str]:
    """The modules that a finder finds among the unpacked files, of all names that their paths could give."""
    with tempfile.TemporaryDirectory() as folder:
        for file in files:
            path = Path(folder) / re.sub(r"^[^/]+\.data/(purelib|platlib)/", "", file)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        return set(_find(Path(folder), ""))


def _find(folder: Path, prefix: str) -> Iterator[str]:
    finder = importlib.machinery.FileFinder(
        str(folder),
        (importlib.machinery.ExtensionFileLoader, list(EXTENSIONS)),
        (importlib.machinery.SourceFileLoader, [".py"]),
        (importlib.machinery.SourcelessFileLoader, [".pyc"]),
    )
    for name in {entry.name.partition(".")[0] for entry in folder.iterdir()} | {e.name for e in folder.iterdir()}:
        if not name.isidentifier() or name == "__init__":
            continue
        spec = finder.find_spec(prefix + name)
        if spec is None:
            continue
        if spec.loader is not None:
            yield prefix + name
        if spec.submodule_search_locations:
            yield from _find(folder / name, f"{prefix}{name}.")
