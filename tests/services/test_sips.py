"""SIPs as package.BuildSip leaves them in the store, judged by what others wrote: each case, by value and by reference.

bagit.py does not undo %25 in a path, as RFC 8493 asks: a bag with such a name is judged by commons-ip alone.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from launches import chain as steps
from launches.engine import Engine, line_of
from lxml import etree
from packing.bag_judges import filled, fits_profile, is_valid
from packing.packages import HOSTILE, schema_of
from packing.premis_checker import faults
from records.warcs import WEEKLY

from servers import judges
from servers.judges import PackageReport
from warcmill.formats.sip import eark
from warcmill.markers.facts.package import Packaged
from warcmill.model import FINAL, Stage
from warcmill.package import build
from warcmill.package.sips import Form, Terms

CP = Stage.parse("cp00001-20161020000000")
NAMES = [f"BL-20161019234430000-0000{serial}-1~crawler~8443.warc.gz" for serial in range(2)]
STORE = "https://archive.example/store/"
ALLOWED = ("CSIPSTR13", "CSIPSTR16")


def two_stages(made: Engine) -> tuple[Stage, ...]:
    made.logs(line_of("http://a.example/", NAMES[0]), stage=str(CP))
    made.logs(line_of("http://b.example/", NAMES[1]))
    made.warc(NAMES[0], WEEKLY.read_bytes())
    made.warc(NAMES[1], WEEKLY.read_bytes())
    made.warc(f"BL-VIRAL-{NAMES[1]}", WEEKLY.read_bytes(), "viral")
    return (CP, FINAL)


def cut(made: Engine) -> tuple[Stage, ...]:
    """A WARC that is refused, and what was salvaged of it."""
    made.logs(line_of("http://a.example/", NAMES[0]))
    made.warc(f"{NAMES[0]}.open", WEEKLY.read_bytes()[:-1000])
    return (FINAL,)


def empty(made: Engine) -> tuple[Stage, ...]:
    made.logs()
    return (FINAL,)


def names(made: Engine) -> tuple[Stage, ...]:
    known = [name for name in HOSTILE if name.endswith(".warc.gz")]
    made.logs(*(line_of("http://a.example/", name) for name in known))
    for name in known:
        made.warc(name, WEEKLY.read_bytes())
    return (FINAL,)


CASES = {
    "two stages": two_stages,
    "a cut WARC": cut,
    "an empty stage": empty,
    "hostile names": names,
}
FORMS: tuple[Form, ...] = ("value", "reference")


def unpacked(folder: Path, case: str, form: Form) -> Path:
    """The bag of a case, unpacked by GNU tar; one by reference is filled from the store."""
    made = Engine(folder / "line")
    stages = CASES[case](made)
    made.finish()
    for stage in stages:
        steps.assembled(made, stage)
        steps.upto(made, "Verify", stage)
    terms = Terms("National Library & Archive", form, STORE.rstrip("/"), naan="12345", shoulder="x5", agreement="SA-7")
    claim = build.build(made.state, made.store, None, made.launch, FINAL, terms)
    sip = Packaged.from_claim(claim)
    subprocess.run(["tar", "-xf", made.store.real(sip.sip.path), "-C", folder], check=True)
    home = folder / sip.bag
    return filled(home, STORE, made.store)


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, Form], PackageReport]:
    """All packages in one JVM."""
    bags = {(case, form): unpacked(tmp_path_factory.mktemp("sip"), case, form) for case in CASES for form in FORMS}
    homes = [bag / "data" / bag.name for bag in bags.values()]
    reports = judges.validate_all(homes, tmp_path_factory.mktemp("reports"))
    return dict(zip(bags, reports, strict=True))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", CASES)
def test_every_judge_accepts(case: str, form: Form, judged: dict[tuple[str, Form], PackageReport]) -> None:
    report = judged[case, form]
    assert (report.result, report.errors, report.warnings) == ("VALID", (), ALLOWED)
    bag = report.package.parents[1]
    assert is_valid(bag)
    assert fits_profile(bag)
    assert faults((report.package / eark.PRESERVATION).read_bytes()) == []
    schema = schema_of(report.package)
    for document in report.package.rglob("METS.xml"):
        assert schema.validate(etree.parse(document)), schema.error_log
