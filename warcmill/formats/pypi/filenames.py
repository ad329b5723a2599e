"""The names of distributions: project, version, kind and tags, as far as a name has them. Pure.

Names are those that a package index lists, and hostile: nothing of them is a path. `packaging` refuses what has an
invalid version; here a version is any text, as old files have many of these.
"""

from __future__ import annotations

import re
from enum import StrEnum

from msgspec import Struct

from warcmill.formats.pypi.dump import DistType

LONGEST = 1_000  # characters
METADATA = ".metadata"  # of a wheel, at its own address and this (PEP 658)
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_SEPARATORS = re.compile(r"[-_.]+")
_PLATFORM = r"(?:win32|win-amd64|win-arm32|win-arm64|win-ia64|linux-[a-z0-9_]+|macosx-[0-9.]+-[a-z0-9_]+)"
_INSTALLER = re.compile(rf"(?P<whole>.+?)(?:\.{_PLATFORM})?(?:-py[0-9.]+)?\.(?:exe|msi)", re.IGNORECASE)
_DUMB = re.compile(rf"(?P<whole>.+)\.{_PLATFORM}\.(?:tar\.gz|tgz|tar\.bz2|tar\.xz|tar\.Z|zip|tar)", re.IGNORECASE)
_RPM = re.compile(r"(?P<whole>.+)-[^-]+\.[A-Za-z0-9_]+\.rpm", re.IGNORECASE)
_EGG = re.compile(r"(?P<name>[^-]+)-(?P<version>[^-]+)(?:-(?P<python>py[0-9.]+)(?:-(?P<platform>.+))?)?\.egg")
_WHEEL = re.compile(
    r"(?P<name>[^-]+)-(?P<version>[^-]+)(?:-(?P<build>[0-9][^-]*))?"
    r"-(?P<python>[^-]+)-(?P<abi>[^-]+)-(?P<platform>[^-]+)\.whl"
)
_TARS = {
    ".tar.gz": "gz", ".tgz": "gz", ".tar.bz2": "bz2", ".tbz": "bz2", ".tbz2": "bz2", ".tar.xz": "xz", ".txz": "xz",
    ".tar": "",
}  # fmt: skip


class FileForm(StrEnum):
    """The form of a distribution's file, which decides its reading."""

    WHEEL = "wheel"
    EGG = "egg"
    TAR = "tar"
    ZIP = "zip"
    NAME_ONLY = "name only"  # installers of systems, archives of installed files: nothing of them is read


class DistributionName(Struct, frozen=True):
    """The parts of the name of a distribution's file. None, or '' for tags: the name does not have it.

    `project` is normalised. `coding` is a tar's: gz, bz2, xz, or '' without one.
    """

    filename: str
    project: str
    version: str | None
    dist_type: DistType
    form: FileForm
    coding: str = ""
    build: str = ""
    python: str = ""
    abi: str = ""
    platform: str = ""


def normalised(name: str) -> str:
    """The name of a project as indexes compare it (the specification of names, after PEP 503)."""
    return _SEPARATORS.sub("-", name).lower()


def is_project(name: str) -> bool:
    """True if a text may be the name of a project."""
    return len(name) <= LONGEST and _NAME.fullmatch(name) is not None


def parse(filename: str, project: str = "") -> DistributionName | None:
    """Return the parts of a distribution's name; None for any other. `project`: where it is known, it decides where in
    the name the version begins."""
    if len(filename) > LONGEST or not filename.isprintable() or "/" in filename or "\\" in filename:
        return None
    known, lower = normalised(project), filename.lower()
    if wheel := _WHEEL.fullmatch(filename):
        tags = {name: wheel[name] or "" for name in ("build", "python", "abi", "platform")}
        name, version = known or normalised(wheel["name"]), wheel["version"]
        return DistributionName(filename, name, version, DistType.WHEEL, FileForm.WHEEL, **tags)
    if egg := _EGG.fullmatch(filename):
        tags = {name: egg[name] or "" for name in ("python", "platform")}
        name = known or normalised(egg["name"])
        return DistributionName(filename, name, egg["version"], DistType.BDIST, FileForm.EGG, **tags)
    for pattern in (_INSTALLER, _RPM, _DUMB):
        if found := pattern.fullmatch(filename):
            name, version_ = _split(found["whole"], known)
            return DistributionName(filename, name, version_, DistType.BDIST, FileForm.NAME_ONLY)
    if lower.endswith((".deb", ".dmg")):
        return DistributionName(filename, *_split(filename[:-4], known), DistType.BDIST, FileForm.NAME_ONLY)
    return _source(filename, known)


def of_metadata(filename: str) -> DistributionName | None:
    """The parts of the name of the wheel that a `FILE.metadata` is beside; None for any other name."""
    found = parse(filename.removesuffix(METADATA)) if filename.endswith(METADATA) else None
    return found if found and found.form is FileForm.WHEEL else None


def kin(filename: str, project: str) -> tuple[str | None, str]:
    """The version and Python tag of a wheel: those of a project that have both in common differ in their platforms.
    Any other file is alone."""
    found = parse(filename, project)
    return (found.version, found.python) if found and found.form is FileForm.WHEEL else (None, filename)


def _source(filename: str, known: str) -> DistributionName | None:
    lower = filename.lower()
    for end, coding in _TARS.items():
        if lower.endswith(end):
            name, version = _split(filename[: -len(end)], known)
            return DistributionName(filename, name, version, DistType.SDIST, FileForm.TAR, coding)
    if lower.endswith(".zip"):
        name, version = _split(filename[:-4], known)
        return DistributionName(filename, name, version, DistType.SDIST, FileForm.ZIP)
    if lower.endswith(".tar.z"):  # LZW, which nothing wrote for twenty years
        name, version = _split(filename[:-6], known)
        return DistributionName(filename, name, version, DistType.SDIST, FileForm.NAME_ONLY)
    return None


def _split(whole: str, known: str) -> tuple[str, str | None]:
    """The project, and the version, of a name without its end. The project may have dashes, old versions too."""
    dashes = [place for place, character in enumerate(whole) if character == "-"]
    if known:
        ends = (place for place in dashes if normalised(whole[:place]) == known)
        return known, next((whole[place + 1 :] for place in ends if whole[place + 1 :]), None)
    digits = (place for place in dashes if whole[place + 1 : place + 2].isdigit())
    place = next(digits, dashes[-1] if dashes else len(whole))
    return normalised(whole[:place]), whole[place + 1 :] or None
