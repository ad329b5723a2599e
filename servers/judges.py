"""Judges of Warcmill's output: commons-ip, for E-ARK packages, and jwarc, for WARCs. Both are Java, and read only.

commons-ip exits 0 on an invalid package, so its report counts; its own `validate` fails at a second input, so
`ValidateAll.java` calls the same validator for all of them in one JVM (a JVM takes about a second to start).

Differences of jwarc which are not faults of a WARC: it computes a payload digest over the de-chunked body, Heritrix
over the body as transferred (`PAYLOAD`); and it refuses an HTTP answer that the server cut or garbled.
"""

from __future__ import annotations

import json
import re
import subprocess
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from servers import packages, pins, process
from warcmill.errors import Unavailable

SPECIFICATION = "2.2.0"  # of E-ARK CSIP and SIP
DRIVER = Path(__file__).parent / "ValidateAll.java"
SCHEMAS = ("mets1_12.xsd", "xlink.xsd", "DILCISExtensionMETS.xsd", "DILCISExtensionSIPMETS.xsd")
SECONDS = 600
PAYLOAD = "payload digest failed"
_FAULT = re.compile(r"(?P<file>.*?): ERROR: (?P<why>.*)")
_PLACE = re.compile(r".*?:   offset (?P<offset>[0-9]+) \(.*failed")
_BROKEN = re.compile(r"Exception validating (?P<file>.*?): (?P<why>.*)")


class PackageFault(Struct, frozen=True):
    """A requirement that the package does not meet: `level` MUST, SHOULD or MAY; `why` is commons-ip's."""

    id: str
    level: str
    why: tuple[str, ...]


class PackageReport(Struct, frozen=True):
    """The report of commons-ip on one package: its result, its figures by name, and what failed."""

    package: Path
    result: str
    summary: dict[str, int]
    failed: tuple[PackageFault, ...]

    @property
    def is_valid(self) -> bool:
        """True if it is valid, without an error. Warnings leave it valid."""
        return self.result == "VALID" and self.summary["errors"] == 0

    @property
    def errors(self) -> tuple[PackageFault, ...]:
        """The findings that break a MUST."""
        return tuple(finding for finding in self.failed if finding.level == "MUST")

    @property
    def warnings(self) -> tuple[str, ...]:
        """The requirements of a SHOULD or MAY that it does not meet, by their ids."""
        return tuple(sorted({finding.id for finding in self.failed if finding.level != "MUST"}))


def validate_sip(package: Path, report_folder: Path) -> PackageReport:
    """Judge one package: a folder with METS.xml in it, or a zip of one. The report is kept in `report_folder`."""
    return validate_all([package], report_folder)[0]


def validate_all(folders_or_zips: Sequence[Path], report_folder: Path) -> list[PackageReport]:
    """Judge packages in one JVM, in the order given; their reports are `1.json`, `2.json`..."""
    missing = [package for package in folders_or_zips if not package.exists()]
    if missing:  # it would report on them as on a package that is wrong
        raise Unavailable("commons-ip", f"there is no package {missing[0]}")
    report_folder.mkdir(parents=True, exist_ok=True)
    reports = [report_folder / f"{number}.json" for number in range(1, len(folders_or_zips) + 1)]
    pairs = [str(path.resolve()) for both in zip(folders_or_zips, reports, strict=True) for path in both]
    classes = f"{packages.commons_ip() / 'lib'}/*:{_driver()}"
    command: list[str | Path] = [packages.java(), "-Xmx512m", "-cp", classes, "ValidateAll", SPECIFICATION, *pairs]
    utf8 = {"LC_ALL": "C.UTF-8"}  # else Java finds no file whose name is not ASCII
    process.run("commons-ip", report_folder, command, SECONDS, utf8)  # it leaves commons-ip.log.txt where it is run
    return [_read(package, report) for package, report in zip(folders_or_zips, reports, strict=True)]


def schemas(folder: Path) -> list[Path]:
    """Unzip the schemas of METS, xlink and E-ARK's extensions into `folder`; the first one includes the others."""
    folder.mkdir(parents=True, exist_ok=True)
    library = packages.commons_ip() / "lib" / f"commons-ip2-{pins.COMMONS_IP_VERSION}.jar"
    with zipfile.ZipFile(library) as jar:
        for name in SCHEMAS:
            (folder / name).write_bytes(jar.read(f"schemas2/{name}"))
    return [folder / name for name in SCHEMAS]


def _driver() -> Path:
    """The folder with the compiled driver; made once for each version of it."""
    library = packages.commons_ip() / "lib" / f"commons-ip2-{pins.COMMONS_IP_VERSION}.jar"
    home = packages.commons_ip().with_name(
        f"commons-ip-driver-{pins.COMMONS_IP_VERSION}-{packages.sha256(DRIVER)[:12]}"
    )
    compiler = packages.jar(pins.ECJ, pins.ECJ_SHA256)
    with packages.making_in_place(home) as missing:
        if missing:
            command: list[str | Path] = [packages.java(), "-jar", compiler, "-17", "-cp", library, "-d", home, DRIVER]
            home.mkdir(exist_ok=True)
            process.run("the Eclipse compiler", home, command, SECONDS)
    return home


def _read(package: Path, report: Path) -> PackageReport:
    parsed = json.loads(report.read_text("utf-8"))
    summary = dict(parsed["summary"])
    result = str(summary.pop("result"))
    return PackageReport(package, result, summary, tuple(_failed(parsed["validation"])))


def _failed(validation: list[dict[str, object]]) -> list[PackageFault]:
    failed = []
    for check in validation:
        testing = check["testing"]
        assert isinstance(testing, dict)
        if testing["outcome"] == "FAILED":
            failed.append(
                PackageFault(str(check["id"]), str(check["level"]), (*testing["issues"], *testing["warnings"]))
            )
    return failed


class WarcFault(Struct, frozen=True):
    """A fault that jwarc finds in the record at `offset` of a file; without one, it could not read the file on."""

    file: str
    why: str
    offset: int | None


class CdxjLine(Struct, frozen=True):
    """One line of jwarc's CDXJ: its digest has its algorithm before it, which others leave out."""

    urlkey: str
    timestamp: str
    fields: dict[str, Any]


def validate_warcs(*warcs: Path) -> list[WarcFault]:
    """Read WARCs whole, with all their digests, in one JVM; return what is wrong in them, by the files' names."""
    missing = [warc for warc in warcs if not warc.is_file()]
    if missing:  # it would report it as a WARC that is wrong
        raise Unavailable("jwarc", f"there is no WARC {missing[0]}")
    command = [str(word) for word in (*_command(), "validate", "--threads", "1", *warcs)]
    done = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False, stdin=subprocess.DEVNULL)
    printed = done.stderr.decode("utf-8", "replace")
    faults = list(_faults(printed))
    if bool(faults) != (done.returncode == 1) or done.returncode > 1:
        raise Unavailable("jwarc", f"it ended with {done.returncode}:\n{printed[-process.TAIL_BYTES :]}")
    return faults


def cdxj(*warcs: Path) -> list[CdxjLine]:
    """The CDXJ lines of WARCs, in the order of their records."""
    printed = process.run("jwarc", warcs[0].parent, [*_command(), "cdxj", *warcs], SECONDS)
    return [_parse(line) for line in printed.splitlines() if line]


def _faults(printed: str) -> Iterator[WarcFault]:
    """The faults of a report: jwarc writes those of a record first, then the record's place."""
    pending: list[tuple[str, str]] = []
    for line in printed.splitlines():
        if broken := _BROKEN.fullmatch(line):
            yield WarcFault(Path(broken["file"]).name, broken["why"], None)
        elif fault := _FAULT.fullmatch(line):
            pending.append((fault["file"], fault["why"]))
        elif place := _PLACE.fullmatch(line):
            yield from (WarcFault(file, why, int(place["offset"])) for file, why in pending)
            pending = []
    yield from (WarcFault(file, why, None) for file, why in pending)


def _parse(line: str) -> CdxjLine:
    urlkey, timestamp, fields = line.split(" ", 2)
    return CdxjLine(urlkey, timestamp, json.loads(fields))


def _command() -> list[str | Path]:
    return [packages.java(), "-Xmx256m", "-jar", packages.jar(pins.JWARC, pins.JWARC_SHA256)]
