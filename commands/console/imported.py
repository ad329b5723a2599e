"""The imports of the Python files of a folder, or of one file, but for those of its own modules. Reads only."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import cast

from msgspec import Struct, field

from warcmill.errors import BadInput
from warcmill.formats import python_source
from warcmill.model import Json, JsonObject

_END = ".py"
_ASIDE = frozenset({"__pycache__", "node_modules", "site-packages"})


class SourceImports(Struct):
    """The imports of some files: `names`, True for one that is optional everywhere; `places` has a file and line of
    each. `unread`: files that are not Python source, each with the reason."""

    files: int = 0
    names: dict[str, bool] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)


def below(top: Path) -> SourceImports:
    """The imports of a file, or of all files of a folder; BadInput if there is none. Hidden folders, those of virtual
    environments, and links are left out."""
    if not top.exists():
        raise BadInput(str(top), "no such file or folder")
    found, files = SourceImports(), [top] if top.is_file() else sorted(_files(top))
    folder = top if top.is_dir() else top.parent
    roots = _names_in(folder) | _names_in(folder / "src")
    known = dict[Path, frozenset[str]]()
    for path in files:
        for place in (path.parent, _root(path)):
            if place not in known:
                known[place] = _names_in(place)
        _take(found, path, str(path.relative_to(folder)), roots | known[path.parent] | known[_root(path)])
    if not found.files and not found.unread:
        raise BadInput(str(top), f"it has no file *{_END}")
    return found


def answer(imports: SourceImports, needed: JsonObject) -> JsonObject:
    """The projects that imports need, with a place of each name that none gives, and the files that are unread."""
    unknown = list[Json]()
    for one in cast("list[JsonObject]", needed["unknown"]):
        below_it = (name for name in imports.names if f"{name}.".startswith(f"{one['module']}."))
        unknown.append({**one, "place": imports.places[next(below_it)]})
    unread: list[Json] = [{"file": name, "why": why} for name, why in imports.unread.items()]
    return {**needed, "unknown": unknown, "files": imports.files, "unread": unread}


def _take(found: SourceImports, path: Path, name: str, own: frozenset[str]) -> None:
    try:
        imports = [*python_source.imported(path.read_bytes(), name)]
    except BadInput as error:
        found.unread[name] = error.why
        return
    except OSError as error:
        found.unread[name] = f"it cannot be read: {error.strerror}"
        return
    found.files += 1
    for one in imports:
        if one.name.partition(".")[0] not in own:
            found.names[one.name] = one.is_optional and found.names.get(one.name, True)
            found.places.setdefault(one.name, f"{name}:{one.line}")


def _files(top: Path) -> Iterator[Path]:
    for folder, inner, names in os.walk(top):
        inner[:] = [one for one in inner if not _is_aside(Path(folder) / one)]
        yield from (Path(folder) / name for name in names if name.endswith(_END))


def _is_aside(folder: Path) -> bool:
    return folder.name.startswith(".") or folder.name in _ASIDE or (folder / "pyvenv.cfg").exists()


def _root(path: Path) -> Path:
    """The folder from which a file is imported: that of the package at the top. A folder in a package may be without an
    `__init__`."""
    root = path.parent.absolute()
    while root != root.parent and any((one / f"__init__{_END}").exists() for one in (root, root.parent)):
        root = root.parent
    return root


def _names_in(folder: Path) -> frozenset[str]:
    """The modules and packages of a folder."""
    if not folder.is_dir():
        return frozenset()
    return frozenset(_named(folder.iterdir()))


def _named(entries: Iterable[Path]) -> Iterator[str]:
    for one in entries:
        if one.is_dir() and not _is_aside(one):
            if next(_files(one), None):
                yield one.name
        elif one.suffix in (_END, ".so", ".pyd"):
            yield one.name.partition(".")[0]
