"""The newest release of each project, and what other projects have of it: keys and values of `distributions`. Pure.

    \\0 \\1                         the number of this schema: a database without it, or of another, is made anew
    \\0 \\1 project                 JSON, a `Release`
    \\0 \\2 required, project       the version, and the requirements of that project, joined by tabs
    \\0 \\3 required                the number of projects that require it
    \\0 \\4 name, project           JSON, a `NameUse`

A question reads the keys that begin with a name, and nothing else. Only releases whose facts are known count. Names are
namespaces, those of `Import-Name` and `Import-Namespace` (PEP 794), of stubs, and of copies in a folder such as
`_vendor`; modules that files give are in the data set `modules`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from packaging.version import InvalidVersion, Version

from warcmill.errors import BadInput
from warcmill.formats.pypi import filenames
from warcmill.formats.pypi.data_sets import Pairs, joined, parts_of
from warcmill.formats.pypi.dump import DistributionRow, DistType
from warcmill.formats.pypi.filenames import is_project, normalised
from warcmill.formats.pypi.lives import DistributionLife, LifeInterval
from warcmill.formats.pypi.modules import above, roots

Order = tuple[bool, bool, Version, str]
_Kind = TypeVar("_Kind")
SCHEMA = b"1"
RELEASE, REQUIRED, DEPENDENTS, NAMED = b"\0\1", b"\0\2", b"\0\3", b"\0\4"
PEP_420 = "PEP 420"
MOST_BELOW = 20  # names below a namespace that a value lists
MOST_COPIES = 1_000  # copies of other projects' modules in one
MOST_NAMES = 10_000  # requirements, and names that metadata states; no release has a tenth of them
VENDORS = frozenset(
    {
        "_vendor", "vendor", "_vendors", "vendors", "_vendored", "vendored", "extern", "_extern", "externals",
        "third_party", "_third_party", "thirdparty",
    }
)  # fmt: skip
_NO_VERSION = Version("0")
_REQUIRED = re.compile(r"[ \t]*([A-Za-z0-9][A-Za-z0-9._-]{0,999})").match


class Release(Struct, frozen=True, omit_defaults=True):
    """The newest release of a project: `uploaded` is the time of its last file. `required`: the projects that it
    requires; `names`: those that it has a `NameUse` of."""

    version: str
    uploaded: str | None = None
    required: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    @classmethod
    def parse(cls, value: bytes) -> Release:
        """Read a value; BadInput if it is invalid."""
        return _parsed(value, cls)

    def keys(self, project: str) -> Iterator[bytes]:
        """The keys that it put there, but for its own."""
        yield from (REQUIRED + joined(name, project) for name in self.required)
        yield from (NAMED + joined(name, project) for name in self.names)


class NameUse(Struct, frozen=True, omit_defaults=True):
    """A project's use of a name, in its newest release.

    `namespace`: its style, '' if it is not one; `below`: the topmost modules there, MOST_BELOW at most, of `count`.
    `claimed`: `Import-Name` or `Import-Namespace` has it; `confirmed`: the files agree; `private`: by that field.
    `stub`: of the module of this name it has the types alone; `copy`: where it has a copy of it, '' for none.
    """

    namespace: str = ""
    below: tuple[str, ...] = ()
    count: int = 0
    claimed: bool = False
    confirmed: bool = False
    private: bool = False
    stub: bool = False
    copy: str = ""

    @classmethod
    def parse(cls, value: bytes) -> NameUse:
        """Read a value; BadInput if it is invalid."""
        return _parsed(value, cls)


class Dependent(Struct, frozen=True):
    """A project whose newest release, of this version, requires another by these texts."""

    project: str
    version: str
    requirements: tuple[str, ...]

    @classmethod
    def parse(cls, key: bytes, value: bytes) -> Dependent:
        """Read a pair."""
        version, *texts = parts_of(value)
        return cls(parts_of(key)[-1], version, tuple(texts))


def pairs_of(
    project: str, files: Iterable[str], life: Callable[[str], DistributionLife]
) -> tuple[Release | None, Pairs]:
    """The newest release of a project, and all pairs of it; nothing without one. `files`: the names of its files, of
    which few are asked for their `life`."""
    found = newest(project, files, life)
    rows = sorted((one.row for one in found if one.row), key=lambda row: row.dist_type is not DistType.WHEEL)
    if not rows:
        return None, {}
    version = rows[0].version or ""
    required, uses = _requirements(rows), _uses(rows)
    uploaded = max((one.file.uploaded or "" for one in found), default="")
    release = Release(_clean(version), _clean(uploaded) or None, tuple(sorted(required)), tuple(sorted(uses)))
    pairs = {RELEASE + joined(project): msgspec.json.encode(release)}
    pairs |= {REQUIRED + joined(name, project): joined(version, *texts) for name, texts in required.items()}
    return release, pairs | {NAMED + joined(name, project): msgspec.json.encode(use) for name, use in uses.items()}


def newest(project: str, files: Iterable[str], life: Callable[[str], DistributionLife]) -> list[LifeInterval]:
    """The files of the newest release, of those that are there and whose facts are known: as installers choose it, a
    pre-release or one that is yanked only if there are no others."""
    by_version = dict[Order, list[str]]()
    for name in files:
        parsed = filenames.parse(name, project)
        by_version.setdefault(order(parsed.version if parsed else None), []).append(name)
    yanked = list[LifeInterval]()
    for version in sorted(by_version, reverse=True):
        lives = map(life, by_version[version])
        there = [one.newest for one in lives if one.last is None and not one.is_quarantined]
        if not any(one.row for one in there):
            continue
        if any(one.file.yanked is None for one in there):
            return there
        yanked = yanked or there
    return yanked


@lru_cache(1 << 14)
def order(version: str | None) -> Order:
    """The place of a version among others: those of PEP 440 after all others, and releases after pre-releases."""
    try:
        found = Version(version or "")
    except InvalidVersion:
        return False, False, _NO_VERSION, version or ""
    return True, not found.is_prerelease, found, ""


def _requirements(rows: Sequence[DistributionRow]) -> dict[str, tuple[str, ...]]:
    """The requirements of a release by the project that each names: those of its wheels, else of its sdists."""
    known = [row for row in rows if row.requires_dist is not None]
    wheels = [row for row in known if row.dist_type is DistType.WHEEL]
    found = dict[str, dict[str, None]]()
    for text in (text for row in wheels or known for text in (row.requires_dist or ())[:MOST_NAMES]):
        name = _REQUIRED(text)
        if name and is_project(name[1].rstrip("._-")):
            found.setdefault(normalised(name[1].rstrip("._-")), {})[text] = None
    return {name: tuple(texts) for name, texts in found.items()}


def _uses(rows: Sequence[DistributionRow]) -> dict[str, NameUse]:
    """All uses of names in a release."""
    modules = {name for row in rows for name in row.modules or ()}
    declared = {name: style for row in rows for name, style in (row.namespaces or {}).items()}
    found = _namespaces(modules, declared)
    for name in {name for row in rows for name in row.stubs or ()}:
        found[_clean(name)] = replace(found.get(name, NameUse()), stub=True)
    for copied, place in _copies(modules).items():
        found[copied] = replace(found.get(copied, NameUse()), copy=place)
    parents = {name for module in modules for name in above(module)}
    for row in rows:
        for text in (*(row.import_names or ()), *(row.import_namespaces or ()))[:MOST_NAMES]:
            name, _, rest = _clean(text).partition(";")
            if (name := name.strip()) and len(name) <= filenames.LONGEST:
                is_there, is_private = name in modules or name in parents, rest.strip() == "private"
                use = found.get(name, NameUse())
                found[name] = replace(use, claimed=True, confirmed=is_there, private=is_private)
    return found


def _namespaces(modules: set[str], declared: Mapping[str, str]) -> dict[str, NameUse]:
    """The namespaces at the top, and those in them. A folder in a package is not one that others add to."""
    below = dict[str, list[str]]()
    for module in roots(modules.difference(declared)):
        inner = module
        while "." in inner:
            inner = inner.rpartition(".")[0]
            below.setdefault(inner, []).append(module)
    found = dict[str, NameUse]()
    for name in sorted(below):
        if all(parent in found for parent in above(name)):
            count = len(below[name])
            style = declared.get(name, PEP_420)
            found[name] = NameUse(style, tuple(sorted(below[name])[:MOST_BELOW]), count)
    return found


def _copies(modules: Iterable[str]) -> dict[str, str]:
    """The modules that a release has a copy of, each with its place."""
    found = dict[str, str]()
    for module in sorted(modules):
        parts = module.split(".")
        at = next((place for place, part in enumerate(parts[:-1]) if part in VENDORS), None)
        if at is not None and len(found) < MOST_COPIES:
            found.setdefault(parts[at + 1], ".".join(parts[: at + 2]))
    return found


def _clean(text: str) -> str:
    """A text that is one part of a key."""
    return joined(text).decode("utf-8")


def _parsed(value: bytes, kind: type[_Kind]) -> _Kind:
    try:
        return msgspec.json.decode(value, type=kind)
    except msgspec.DecodeError as error:
        raise BadInput("a value of distributions", f"is not of its newest releases: {error}") from error
