"""Packages made with formats/eark, judged by commons-ip: VALID, without an error, two warnings and no other."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from lxml import etree
from packing.packages import HOSTILE, package, write
from records.warcs import WEEKLY

from servers import judges
from servers.judges import PackageReport
from warcmill.formats.sip import eark

# SHOULD: metadata in each representation (ours is the package's), documentation (docs/content-information-type.md).
ALLOWED = ("CSIPSTR13", "CSIPSTR16")
Files = dict[tuple[eark.Kind, str], bytes]


def logs() -> Files:
    return {("logs", "02.logs.weekly.20261121081735.final.zip"): b"PK\x05\x06" + bytes(18)}


def whole() -> Files:
    """Of every kind, with a WARC that Heritrix wrote."""
    data = WEEKLY.read_bytes()
    name = WEEKLY.name
    return {("warcs", name): data, ("viral", f"BL-VIRAL-{name}"): data[:5000], **logs()}


def hostile() -> Files:
    return {("warcs", name): name.encode() for name in HOSTILE} | logs()


def many() -> Files:
    return {("warcs", f"BL-{number:05}~crawler~8443.warc.gz"): b"%d" % number for number in range(700)} | logs()


GOOD: Mapping[str, Files] = {
    "every kind": whole(),
    "nothing viral": {key: data for key, data in whole().items() if key[0] != "viral"},
    "hostile names": hostile(),
    "many files": many(),
    "logs alone": logs(),
}


def changed_byte(home: Path) -> None:
    warc = home / "representations" / "warcs" / "data" / WEEKLY.name
    data = bytearray(warc.read_bytes())
    data[len(data) // 2] ^= 1
    warc.write_bytes(data)


def changed_premis(home: Path) -> None:
    path = home / eark.PRESERVATION
    path.write_bytes(path.read_bytes().replace(b"hit", b"hat"))


HARM: Mapping[str, tuple[Callable[[Path], None], str]] = {
    "a byte of a WARC": (changed_byte, "CSIP71"),
    "PREMIS changed": (changed_premis, "CSIP43"),
    "no root METS": (lambda home: (home / "METS.xml").unlink(), "CSIPSTR4"),
    "no METS of a representation": (lambda home: (home / "representations/viral/METS.xml").unlink(), "CSIP66"),
    "a WARC is missing": (lambda home: (home / "representations/warcs/data" / WEEKLY.name).unlink(), "CSIP0"),
    "a folder of another name": (lambda home: home.rename(home.with_name("other")), "CSIP1"),
}


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> dict[str, PackageReport]:
    """All in one JVM."""
    folder = tmp_path_factory.mktemp("packages")
    homes = {}
    for name, files in GOOD.items():
        homes[name] = write(package(files, replaces="weekly.1" if name == "logs alone" else ""), folder / name, files)
    for name, (harm, _) in HARM.items():
        home = shutil.copytree(homes["every kind"], folder / name / homes["every kind"].name)
        harm(home)
        homes[name] = next((folder / name).iterdir())
    reports = judges.validate_all(list(homes.values()), tmp_path_factory.mktemp("reports"))
    return dict(zip(homes, reports, strict=True))


@pytest.mark.parametrize("name", GOOD)
def test_commons_ip_accepts(name: str, judged: dict[str, PackageReport]) -> None:
    report = judged[name]
    assert (report.result, report.errors, report.warnings) == ("VALID", (), ALLOWED)
    assert report.is_valid


@pytest.mark.parametrize("name", HARM)
def test_commons_ip_notices(name: str, judged: dict[str, PackageReport]) -> None:
    """So it was really asked, and about these bytes."""
    report = judged[name]
    assert not report.is_valid
    assert HARM[name][1] in [finding.id for finding in report.errors]


def test_every_mets_is_valid_by_the_schemas_of_commons_ip(judged: dict[str, PackageReport], tmp_path: Path) -> None:
    """Stricter than METS alone: they ask for CSIP's attributes too."""
    schema = etree.XMLSchema(etree.parse(judges.schemas(tmp_path)[0], etree.XMLParser(no_network=True)))
    documents = [path for name in GOOD for path in judged[name].package.rglob("METS.xml")]
    assert len(documents) == 4 + 3 + 3 + 3 + 2
    for path in documents:
        assert schema.validate(etree.parse(path)), schema.error_log
