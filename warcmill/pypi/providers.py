"""Answers across projects: which give a module, the best first, and which require a project. Reads only.

A module's files are in `modules`; what projects state of names, and what requires them, in `distributions`. Both are
asked for the keys that begin with the name, and of each project found for its newest release: no index is walked.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
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
        last = tuple(-ord(character) for character in uploaded[:32])  # the newest first
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


def provides(data: PublishedData, module: str) -> JsonObject:
    """The projects that give a module, the best first; and its files, by project, version and name."""
    found, name = dict[str, Provider](), data_sets.joined(module, "")
    published, states = data.current(MODULES), data.current(DISTRIBUTIONS)
    files = list[Json]()
    with ExitStack() as opened:
        for key, value in opened.enter_context(reading(data.index, published)).beginning_with(name):
            project, version, filename = data_sets.parts_of(key)[1:]
            found.setdefault(project, Provider(project)).files.append((version, filename))
            row: JsonObject = {"project": project, "version": version or None, "filename": filename}
            files.append(row | marked(value.decode("utf-8", "replace")))
        database = opened.enter_context(reading(data.index, states))
        if module and _has_releases(database):
            for key, value in database.beginning_with(releases.NAMED + name):
                project = data_sets.parts_of(key)[-1]
                found.setdefault(project, Provider(project)).use = NameUse.parse(value)
            for one in found.values():
                release = database.get(releases.RELEASE + data_sets.joined(one.project))
                one.release = Release.parse(release) if release else None
                number = database.get(releases.DEPENDENTS + data_sets.joined(one.project))
                one.dependents = int(number or b"0")
    ranked = sorted(found.values(), key=lambda one: one.rank(module))
    return {
        "module": module,
        "serial": min(data.serial(MODULES, published), data.serial(DISTRIBUTIONS, states)),
        "projects": [one.to_json(module) for one in ranked],
        "files": files,
    }


def required_by(data: PublishedData, project: str) -> JsonObject:
    """The projects whose newest release requires a project, by name, with each requirement's parts. NotReady while the
    database is of an earlier version of Warcmill."""
    name, found = normalised(project), data.current(DISTRIBUTIONS)
    with reading(data.index, found) as database:
        if not _has_releases(database):
            why = (
                f"version {found.number} of {DISTRIBUTIONS} does not have them yet: the next dump makes it anew, as the"
                f" next scan does once index:{found.folder} is deleted"
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
