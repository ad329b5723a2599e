"""The judges that others write: what each says of a sound thing and of a broken one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from lxml import etree
from records.warcs import WEEKLY, http, record, sha1, warc_gz

from servers import judges, packages, process
from warcmill.errors import Unavailable

DUBLIN_CORE = b'<dc xmlns="http://purl.org/dc/elements/1.1/"><title>weekly</title></dc>'


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SIP by commons-ip's own hand, with a real WARC in it."""
    folder = tmp_path_factory.mktemp("package")
    (folder / "dc.xml").write_bytes(DUBLIN_CORE)
    shutil.copyfile(WEEKLY, folder / "weekly.warc.gz")
    words = ["create", "--sip-id=weekly-final", "-s", "Folder", "--metadata-file=dc.xml", "--metadata-type=DC"]
    words += ["--metadata-version=1.1", "--representation-data=weekly.warc.gz", "--representation-id=rep1"]
    words += ["--submitter-name=Warcmill", "--submitter-id=warcmill", "-C", "SHA-512"]
    classes = f"{packages.commons_ip() / 'lib'}/*"
    command = [packages.java(), "-cp", classes, "org.roda_project.commons_ip2.cli.Main", *words]
    process.run("commons-ip", folder, command, judges.SECONDS)
    return folder / "weekly-final"


def test_several_packages_are_judged_in_one_jvm_by_their_reports(package: Path, tmp_path: Path) -> None:
    changed = shutil.copytree(package, tmp_path / "changed" / package.name)
    with next(changed.rglob("weekly.warc.gz")).open("ab") as warc:
        warc.write(b"x")
    good, bad, again = judges.validate_all([package, changed, package], tmp_path / "reports")
    assert (good.result, good.errors, good.warnings) == ("VALID", (), ("CSIPSTR13", "CSIPSTR16"))
    assert good.is_valid
    assert (bad.result, [finding.id for finding in bad.errors]) == ("INVALID", ["CSIP69", "CSIP71"])
    assert not bad.is_valid
    assert again == good
    assert judges.validate_sip(changed, tmp_path / "other") == bad


def test_no_package_is_no_verdict(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="there is no package"):
        judges.validate_sip(tmp_path / "missing", tmp_path / "reports")


def test_a_mets_is_judged_by_its_schemas_without_a_network(package: Path, tmp_path: Path) -> None:
    parser = etree.XMLParser(no_network=True, resolve_entities=False, load_dtd=False)
    schema = etree.XMLSchema(etree.parse(judges.schemas(tmp_path)[0], parser))
    mets = etree.parse(package / "METS.xml", parser)
    assert schema.validate(mets)
    root = mets.getroot()
    root.remove(root.find("{http://www.loc.gov/METS/}structMap"))
    assert not schema.validate(mets)


def test_jwarc_reads_a_warc_whole(tmp_path: Path) -> None:
    cut, sound = tmp_path / "cut.warc.gz", tmp_path / "sound.warc.gz"
    sound.write_bytes(warc_gz(record(block=http(b"<p>Hello.</p>"), payload=sha1(b"<p>Hello.</p>"))))
    cut.write_bytes(sound.read_bytes()[:-1])
    assert judges.validate_warcs(sound) == []
    [fault] = judges.validate_warcs(sound, cut)
    assert (fault.file, fault.offset) == ("cut.warc.gz", None)
    assert "EOFException" in fault.why
    with pytest.raises(Unavailable, match="there is no WARC"):
        judges.validate_warcs(tmp_path / "missing.warc.gz")


def test_what_jwarc_finds_in_a_warc_of_heritrix_is_how_it_reads_chunked_payloads() -> None:
    faults = judges.validate_warcs(WEEKLY)
    assert faults
    assert all(fault.offset is not None for fault in faults)
    others = [fault.why for fault in faults if not fault.why.startswith(judges.PAYLOAD)]
    assert len(others) == 2, others
    assert all(why.startswith("invalid ") for why in others), "/odd/truncated and /odd/reset"


def test_jwarc_writes_the_cdxj_of_a_warc() -> None:
    lines = judges.cdxj(WEEKLY)
    assert lines
    assert {line.fields["filename"] for line in lines} == {WEEKLY.name}
    assert all(len(line.timestamp) == 14 for line in lines)
