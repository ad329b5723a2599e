"""Distributions for the local package index: real ones, fetched once by pip, and made ones. Writes files.

`config/distributions.lock` lists the real ones, a file a line with its hash; pip fetches each, and keeps to the hash.
No index has a file of the odder kinds that pip still fetches, so these are made: an egg, of a real sdist, and a tar
with what old tools left in theirs. `wheel` and `sdist` make small ones for a test that needs a new upload.
"""

from __future__ import annotations

import base64
import hashlib
import io
import re
import sys
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from servers import packages, process
from warcmill.errors import BadInput

LOCK = packages.LOCKS.parent / "distributions.lock"
SECONDS = 300
_LINE = re.compile(r"(?P<wanted>\S+==\S+) --hash=sha256:(?P<sha256>[0-9a-f]{64})  # (?P<filename>\S+)")
_EPOCH = (2026, 1, 1, 0, 0, 0)


class LockedFile(Struct, frozen=True):
    """A line of the lock: `wanted` is `PROJECT==VERSION`."""

    wanted: str
    sha256: str
    filename: str


def locked() -> list[LockedFile]:
    """The real files that the lock lists, in its order."""
    lines = [line for line in LOCK.read_text("utf-8").splitlines() if not line.startswith("#")]
    found = [_LINE.fullmatch(line) for line in lines]
    for number, match in enumerate(found):
        if match is None:
            raise BadInput(str(LOCK), f"this is not a line of it: {lines[number]}")
    return [LockedFile(**match.groupdict()) for match in found if match is not None]


def real() -> list[Path]:
    """The files of the lock, and those that are made of them; the first time pip fetches them, about a minute."""
    digest = hashlib.sha256(LOCK.read_bytes()).hexdigest()[:12]
    home = packages.folder() / f"distributions-{digest}"
    with packages.making(home) as building:
        if building is not None:
            for one in locked():
                _fetch(building, one)
    return [home / one.filename for one in locked()]


def odd(folder: Path) -> list[Path]:
    """An egg and a tar such as old tools left, in `folder`."""
    (sdist,) = [path for path in real() if path.name == "six-1.16.0.tar.gz"]
    return [_egg(folder, sdist), _odd_tar(folder)]


def wheel(
    folder: Path,
    project: str,
    version: str,
    modules: Mapping[str, bytes] | None = None,
    requires: Sequence[str] = (),
    requires_python: str = "",
    fields: Sequence[str] = (),
    tag: str = "py3-none-any",
) -> Path:
    """Make a wheel, a pure one by default; without `modules` it has one, named as the project. The same call gives the
    same bytes. `fields`: more lines of its METADATA."""
    name = re.sub(r"[-_.]+", "_", project).lower()
    files = dict({f"{name}.py": b""} if modules is None else modules)
    info = f"{name}-{version}.dist-info"
    files[f"{info}/METADATA"] = metadata(project, version, requires, requires_python, fields)
    is_pure = str(tag.endswith("-any")).lower()
    paper = f"Wheel-Version: 1.0\nGenerator: servers\nRoot-Is-Purelib: {is_pure}\nTag: {tag}\n"
    files[f"{info}/WHEEL"] = paper.encode()
    files[f"{info}/RECORD"] = _record(files, f"{info}/RECORD")
    path = folder / f"{name}-{version}-{tag}.whl"
    _zip(path, files)
    return path


def sdist(folder: Path, project: str, version: str, files: Mapping[str, bytes], requires: Sequence[str] = ()) -> Path:
    """Make an sdist of these files, PKG-INFO added, by Metadata 2.2. The same call gives the same bytes."""
    name = re.sub(r"[-_.]+", "_", project).lower()
    top = f"{name}-{version}"
    path = folder / f"{top}.tar.gz"
    whole = {"PKG-INFO": metadata(project, version, requires, ""), **files}
    with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT) as tar:
        for inner, data in whole.items():
            _add(tar, f"{top}/{inner}", data)
    _without_time(path)
    return path


def metadata(
    project: str, version: str, requires: Sequence[str], requires_python: str, fields: Sequence[str] = ()
) -> bytes:
    """A METADATA or PKG-INFO file."""
    lines = ["Metadata-Version: 2.2", f"Name: {project}", f"Version: {version}", "Summary: Made for a test"]
    lines += [f"Requires-Python: {requires_python}"] if requires_python else []
    lines += [f"Requires-Dist: {requirement}" for requirement in requires]
    return "\n".join([*lines, *fields, "", "Made for a test.", ""]).encode()


def _fetch(building: Path, one: LockedFile) -> None:
    """Fetch one file: pip takes that of its hash, if it is allowed the platform that the wheel is for."""
    wanted = building / "wanted.txt"
    wanted.write_text(f"{one.wanted} --hash=sha256:{one.sha256}\n", "utf-8")
    how = ["--no-binary=:all:"]
    if one.filename.endswith(".whl"):
        python, _, platform = one.filename.removesuffix(".whl").split("-")[-3:]
        version = f"{python[2]}.{python[3:]}" if python.startswith("cp") else "3.11"
        tags = [word for tag in platform.split(".") for word in ("--platform", tag)]
        how = ["--only-binary=:all:", "--python-version", version, *tags]
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps"]
    where = ["--no-cache-dir", "--require-hashes", "--dest", str(building), "-r", str(wanted)]
    process.run(f"pip download {one.filename}", building, [*pip, *how, *where], SECONDS)
    packages.compare(one.filename, one.sha256, packages.sha256(building / one.filename))
    wanted.unlink()


def _egg(folder: Path, sdist: Path) -> Path:
    """The egg of an sdist of one module: its PKG-INFO and lists lie in EGG-INFO."""
    files = {}
    with tarfile.open(sdist) as tar:
        for member in tar:
            _, _, inner = member.name.partition("/")
            content = tar.extractfile(member)
            if content is not None and (inner == "six.py" or inner.startswith("six.egg-info/")):
                files[inner.replace("six.egg-info/", "EGG-INFO/")] = content.read()
    path = folder / f"{sdist.name.removesuffix('.tar.gz')}-py2.7.egg"
    _zip(path, {**files, "EGG-INFO/zip-safe": b"\n"})
    return path


def _odd_tar(folder: Path) -> Path:
    """A bzip2 tar with links, a name too long for its field, `./` before names, and PKG-INFO as its last member."""
    path = folder / "oddly-0.1.tar.bz2"
    with tarfile.open(path, "w:bz2", format=tarfile.GNU_FORMAT) as tar:
        top = tarfile.TarInfo("./oddly-0.1")
        top.type, top.mode = tarfile.DIRTYPE, 0o755
        tar.addfile(top)
        _add(tar, "./oddly-0.1/setup.py", b"from distutils.core import setup\nsetup(name='oddly')\n")
        _add(tar, "./oddly-0.1/oddly/__init__.py", b"")
        _add(tar, f"./oddly-0.1/oddly/{'long_' * 30}name.py", b"")
        for name, kind in (("hard.py", tarfile.LNKTYPE), ("soft.py", tarfile.SYMTYPE)):
            link = tarfile.TarInfo(f"./oddly-0.1/oddly/{name}")
            link.type, link.linkname = kind, "./oddly-0.1/oddly/__init__.py" if name == "hard.py" else "__init__.py"
            tar.addfile(link)
        _add(tar, "./oddly-0.1/PKG-INFO", b"Metadata-Version: 1.0\nName: oddly\nVersion: 0.1\nSummary: UNKNOWN\n")
    return path


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(data)
    tar.addfile(member, io.BytesIO(data))


def _zip(path: Path, files: Mapping[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in files.items():
            packed.writestr(zipfile.ZipInfo(name, _EPOCH), data, zipfile.ZIP_DEFLATED)


def _record(files: Mapping[str, bytes], record: str) -> bytes:
    lines = []
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(data)}\n")
    return "".join([*lines, f"{record},,\n"]).encode()


def _without_time(path: Path) -> None:
    """Clear the time that gzip has in bytes 4 to 7 of its header (RFC 1952, 2.3)."""
    with path.open("r+b") as file:
        file.seek(4)
        file.write(bytes(4))
