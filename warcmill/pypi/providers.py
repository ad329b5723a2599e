"""Answers across projects: which give a module, the best first, and which require a project. Reads only.

A module's files are in `modules`; what projects state of names, and what requires them, in `distributions`. Both are
asked for the keys that begin with the name, and of each project found for its newest release: no index is walked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from msgspec import Struct, field
from packaging.requirements import InvalidRequirement, Requirement

from warcmill.errors import NotReady
from warcmill.formats.pypi import data_sets, releases
from warcmill.formats.pypi.data_sets import DISTRIBUTIONS, MODULES
from warcmill.formats.pypi.filenames import normalised
from warcmill.formats.pypi.modules import above
from warcmill.formats.pypi.releases import VENDORS, Dependent, NameUse, Release
from warcmill.model import Json, JsonObject
from warcmill.pypi.answers import PublishedData, marked
from warcmill.versions.leveldb import Database, reading

MARKS = ("namespace", "old", "private", "vendored", "stub", "claimed")  # the worse, the later
MOST_OTHERS = 5  # projects that give a module, of which others than the best are named


class Provider(Struct):
    """A project that has to do with a module. `files`: their versions and names. `dependents`, `release`: None where
    they are not known."""

    project: str
    files: list[tuple[str, str]] = field(default_factory=list)
    use: NameUse = NameUse()
    release: Release | None = None
    dependents: int | None = None

    def marks(self, module: str) -> list[str]:
        """The reasons why it may not be the one that is looked for."""
        parts, versions = module.split("."), {releases.order(version) for version, _ in self.files}
        found = {
            "namespace": bool(self.use.namespace),
            "old": bool(versions and self.release) and releases.order(self.version) not in versions,
            "private": self.use.private or any(part.startswith("_") and part[-2:] != "__" for part in parts),
            "vendored": bool(VENDORS.intersection(parts[:-1])) or bool(self.use.copy and not self._has()),
            "stub": (self.use.stub or _is_stub(self.project)) and not self.use.namespace,
            "claimed": self.use.claimed and not self.use.confirmed and not self.gives(),
        }
        return [mark for mark in MARKS if found[mark]]

    @property
    def version(self) -> str | None:
        """The version of its newest release."""
        return self.release.version if self.release else None

    def _has(self) -> bool:
        return bool(self.files or self.use.namespace or self.use.claimed or self.use.stub)

    def gives(self) -> bool:
        """True if an import of the module works with a file of it."""
        return bool(self.files or self.use.namespace)

    def is_own(self, module: str) -> bool:
        """True if the project has the name of the module, or of a package that it is in."""
        return self.project in (normalised(module), *map(normalised, above(module)))

    def newest_file(self) -> tuple[str, str] | None:
        """The version and the name of the newest file that has the module."""
        return max(self.files, key=lambda one: (releases.order(one[0]), one[1]), default=None)

    def rank(self, module: str) -> tuple[Any, ...]:
        """Its place among others: the best is the least."""
        worst = max((MARKS.index(mark) + 1 for mark in self.marks(module)), default=0)
        uploaded = (self.release.uploaded if self.release else None) or ""
        is_confirmed = self.use.claimed and self.use.confirmed
        last = not uploaded, tuple(-ord(character) for character in uploaded[:32])  # the newest first
        return worst, not self.is_own(module), not is_confirmed, -(self.dependents or 0), last, self.project

    def to_json(self, module: str) -> JsonObject:
        """The project as `--json` has it."""
        newest = self.newest_file()
        return {
            "project": self.project,
            "version": (newest[0] or None) if newest else self.version,
            "filename": newest[1] if newest else None,
            "files": len(self.files),
            "newest": self.version,
            "own": self.is_own(module),
            "confirmed": self.use.confirmed if self.use.claimed else None,
            "dependents": self.dependents,
            "gives": self.gives(),
            "marks": list[Json](self.marks(module)),
            "namespace": self.use.namespace or None,
            "below": list[Json](self.use.below),
            "copy": self.use.copy or None,
        }


class _Opened(Struct, frozen=True):
    """The two data sets, open."""

    modules: Database
    distributions: Database
    serial: int
    known: dict[str, list[Provider]] = field(default_factory=dict)

    def providers(self, module: str) -> tuple[list[Provider], list[Json]]:
        """The projects that have to do with a module, the best first; and its files."""
        found, files, name = dict[str, Provider](), list[Json](), data_sets.joined(module, "")
        for key, value in self.modules.beginning_with(name):
            project, version, filename = data_sets.parts_of(key)[1:]
            found.setdefault(project, Provider(project)).files.append((version, filename))
            row: JsonObject = {"project": project, "version": version or None, "filename": filename}
            files.append(row | marked(value.decode("utf-8", "replace")))
        if module and _has_releases(self.distributions):
            for key, value in self.distributions.beginning_with(releases.NAMED + name):
                project = data_sets.parts_of(key)[-1]
                found.setdefault(project, Provider(project)).use = NameUse.parse(value)
            for one in found.values():
                release = self.distributions.get(releases.RELEASE + data_sets.joined(one.project))
                one.release = Release.parse(release) if release else None
                number = self.distributions.get(releases.DEPENDENTS + data_sets.joined(one.project))
                one.dependents = int(number or b"0")
        return sorted(found.values(), key=lambda one: one.rank(module)), files

    def needed(self, name: str) -> tuple[str, list[Provider]]:
        """The module that an import of a name needs first, and the projects that give it, the best first; without one
        the name that nothing gives. Others may add to a namespace, so that it is not enough."""
        best, lacking = None, ""
        for module in (*reversed([*above(name)]), name):
            giving = self._giving(module)
            files = [one for one in giving if not one.use.namespace]
            best = (module, files) if files else best
            if best and len(files) == len(giving) > 0:
                return best
            lacking = lacking or ("" if giving else module)
        return best or (lacking or name, [])

    def _giving(self, module: str) -> list[Provider]:
        if module not in self.known:
            self.known[module] = [one for one in self.providers(module)[0] if one.gives()]
        return self.known[module]


@contextmanager
def _opened(data: PublishedData) -> Iterator[_Opened]:
    modules, distributions = data.current(MODULES), data.current(DISTRIBUTIONS)
    serial = min(data.serial(MODULES, modules), data.serial(DISTRIBUTIONS, distributions))
    with reading(data.index, modules) as first, reading(data.index, distributions) as second:
        yield _Opened(first, second, serial)


def provides(data: PublishedData, module: str) -> JsonObject:
    """The projects that give a module, the best first; and its files, by project, version and name."""
    with _opened(data) as opened:
        ranked, files = opened.providers(module)
        serial = opened.serial
    projects: list[Json] = [one.to_json(module) for one in ranked]
    return {"module": module, "serial": serial, "projects": projects, "files": files}


def needed(data: PublishedData, names: Mapping[str, bool]) -> JsonObject:
    """The projects that some imports need, by name, each with its newest release, the modules that it gives, and others
    that give them, too; and the names that none gives. `names`: True for one that is optional."""
    modules, unknown = dict[str, tuple[list[Provider], bool]](), dict[str, bool]()
    with _opened(data) as opened:
        for name, is_optional in names.items():
            module, given = opened.needed(name)
            if given:
                modules[module] = given, is_optional and modules.get(module, ([], True))[1]
            else:
                unknown[module] = is_optional and unknown.get(module, True)
        serial = opened.serial
    projects = dict[str, list[str]]()
    for module, (given, _) in sorted(modules.items()):
        projects.setdefault(given[0].project, []).append(module)
    return {
        "serial": serial,
        "projects": [
            {
                "project": project,
                "version": modules[given[0]][0][0].version,
                "modules": list[Json](given),
                "optional": all(modules[module][1] for module in given),
                "others": list[Json](
                    sorted({one.project for module in given for one in modules[module][0][1:MOST_OTHERS]})
                ),
            }
            for project, given in sorted(projects.items())
        ],
        "unknown": [{"module": module, "optional": optional} for module, optional in sorted(unknown.items())],
    }


def required_by(data: PublishedData, project: str) -> JsonObject:
    """The projects whose newest release requires a project, by name, with each requirement's parts. NotReady while the
    database is of an earlier version of Warcmill."""
    name, found = normalised(project), data.current(DISTRIBUTIONS)
    with reading(data.index, found) as database:
        if not _has_releases(database):
            why = (
                f"version {found.number} of {DISTRIBUTIONS} does not have them yet: the next dump makes it anew, and"
                " 'warcmill pypi dump_full JOB' does so now"
            )
            raise NotReady("the requirements of newest releases", why)
        pairs = database.beginning_with(releases.REQUIRED + data_sets.joined(name, ""))
        rows: list[Json] = [row for key, value in pairs for row in _rows(Dependent.parse(key, value))]
    return {"project": name, "serial": data.serial(DISTRIBUTIONS, found), "required_by": rows}


def _rows(one: Dependent) -> Iterator[JsonObject]:
    for text in one.requirements:
        yield {"project": one.project, "version": one.version or None, "requirement": text, **_parts(text)}


@lru_cache(1 << 14)
def _parts(text: str) -> JsonObject:
    """The parts of a requirement; null each where it is not a valid one (PEP 508)."""
    try:
        found = Requirement(text)
    except InvalidRequirement:
        return {"specifier": None, "extras": None, "marker": None}
    marker = str(found.marker) if found.marker else None
    return {"specifier": str(found.specifier), "extras": list[Json](sorted(found.extras)), "marker": marker}


def _has_releases(database: Database) -> bool:
    return database.get(releases.RELEASE) == releases.SCHEMA


def _is_stub(project: str) -> bool:
    return project.startswith("types-") or project.endswith("-stubs")
