"""Server software, fetched by Maven, checked against the pins, and kept between runs under {work}/packages."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from servers import pins, process
from warcmill.errors import Mismatch, Unavailable

FETCH_SECONDS = 900
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>servers</groupId><artifactId>fetch</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
{dependencies}
  </dependencies>
</project>
"""
DEPENDENCY = """    <dependency>
      <groupId>org.apache.hadoop</groupId><artifactId>{artifact}</artifactId><version>{version}</version>
    </dependency>"""


def default_work() -> Path:
    """`.services` at the project's root, or what WARCMILL_SERVICES names."""
    named = os.environ.get("WARCMILL_SERVICES")
    return Path(named).resolve() if named else Path(__file__).resolve().parent.parent / ".services"


def program(name: str, package: str) -> Path:
    """Where the program `name` is; `Unavailable` tells which system package has it."""
    found = shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"]))
    if found is None:
        raise Unavailable(name, f"this program is not installed; on Debian and Ubuntu: apt-get install {package}")
    return Path(found)


def java() -> Path:
    """The `java` that runs the servers: JAVA_HOME's, else the first in PATH."""
    home = os.environ.get("JAVA_HOME")
    return Path(home, "bin", "java") if home else program("java", "openjdk-17-jre-headless")


def heritrix() -> Path:
    """The unpacked Heritrix distribution: its `lib/` is the class path."""
    home = default_work() / "packages" / f"heritrix-{pins.HERITRIX_VERSION}"
    with _making(home) as building:
        if building is not None:
            _fetch_heritrix(building)
    return home


def hadoop() -> Path:
    """A folder with the HDFS jars and all they need."""
    home = default_work() / "packages" / f"hadoop-{pins.HADOOP_VERSION}"
    with _making(home) as building:
        if building is not None:
            _fetch_hadoop(building)
    return home


def listing(folder: Path) -> str:
    """`{sha256}  {name}` for each file of `folder`, by name: what the pins hold the digest of."""
    lines = []
    for path in sorted(folder.iterdir()):
        with path.open("rb") as file:
            lines.append(f"{hashlib.file_digest(file, 'sha256').hexdigest()}  {path.name}\n")
    return "".join(lines)


def _fetch_heritrix(building: Path) -> None:
    archive = building / "dist.zip"
    where = (f"-Dartifact={pins.HERITRIX_ARTIFACT}", f"-DoutputDirectory={building}", "-Dmdep.stripVersion=true")
    _maven(building, "copy", *where)
    (building / "heritrix-dist.zip").rename(archive)
    with archive.open("rb") as file:
        _compare(pins.HERITRIX_ARTIFACT, pins.HERITRIX_SHA256, hashlib.file_digest(file, "sha256").hexdigest())
    with zipfile.ZipFile(archive) as unpacking:
        unpacking.extractall(building)  # its digest is the pinned one
    archive.unlink()
    inner = building / f"heritrix-{pins.HERITRIX_VERSION}"
    for path in list(inner.iterdir()):
        path.rename(building / path.name)
    inner.rmdir()


def _fetch_hadoop(building: Path) -> None:
    dependencies = "\n".join(
        DEPENDENCY.format(artifact=artifact, version=pins.HADOOP_VERSION) for artifact in pins.HADOOP_ARTIFACTS
    )
    (building / "pom.xml").write_text(POM.format(dependencies=dependencies), encoding="utf-8")
    _maven(building, "copy-dependencies", f"-DoutputDirectory={building / 'lib'}", "-DincludeScope=runtime")
    found = listing(building / "lib")
    (building / "lib.sha256").write_text(found, encoding="utf-8")
    _compare(f"jars of Hadoop {pins.HADOOP_VERSION}", pins.HADOOP_SHA256, hashlib.sha256(found.encode()).hexdigest())


def _compare(what: str, expected: str, found: str) -> None:
    if expected != found:
        raise Mismatch(f"sha256 of {what}, as Maven fetched it (see servers/pins.py)", expected, found)


def _maven(folder: Path, goal: str, *options: str) -> None:
    command: list[str | Path] = [program("mvn", "maven"), "-q", "-B", f"{pins.DEPENDENCY_PLUGIN}:{goal}", *options]
    process.run(f"Maven's {goal}", folder, command, FETCH_SECONDS)


@contextmanager
def _making(home: Path) -> Iterator[Path | None]:
    """None if `home` is there; else an empty folder that becomes `home` when the block ends without an error."""
    home.parent.mkdir(parents=True, exist_ok=True)
    with (home.parent / f".{home.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if home.exists():
            yield None
            return
        building = home.with_name(f"{home.name}.part")
        shutil.rmtree(building, ignore_errors=True)
        building.mkdir()
        yield building
        building.rename(home)
