"""What a package says of its crawl: the targets of its feed, and the findings that an operator accepted."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from launches import chain as steps
from launches.engine import LAUNCH, Engine, line_of
from records.warcs import warc_gz, warcinfo

from warcmill import layout
from warcmill.audit import survey
from warcmill.decisions import statements
from warcmill.markers.claim import Claim
from warcmill.markers.facts.package import Packaged
from warcmill.model import FINAL, FileRef
from warcmill.package import build, contents
from warcmill.package.sips import Terms

NAME = "BL-20161019234430000-00000-1~crawler~8443.warc.gz"
DUE = "20161019230000"


def target(number: int, frequency: str, *seeds: str) -> dict[str, Any]:
    schedules = [{"startDate": "2015-01-01T00:00:00Z", "endDate": None, "frequency": frequency}]
    return {"id": number, "title": f"Target <{number}>", "seeds": list(seeds), "schedules": schedules}


TARGETS = [
    target(1, "DAILY", "http://a.example/"),
    target(2, "WEEKLY", "http://b.example/"),
    target(3, "DAILY", "http://c.example/"),
]


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    """A verified launch whose WARC is cut, so that it is refused."""
    made = Engine(tmp_path)
    made.logs(line_of("http://a.example/", NAME))
    made.warc(f"{NAME}.open", warc_gz(warcinfo()) + b"\x1f\x8b cut")
    made.finish()
    steps.assembled(made)
    steps.upto(made, "Verify")
    return made


def feed(engine: Engine, seeds: str) -> None:
    """The markers of the due crawl that the launch was started for; `seeds` is its seeds.txt."""
    data = json.dumps(TARGETS).encode()
    sha512 = hashlib.sha512(data).hexdigest()
    kept = FileRef("state", layout.feed_path(sha512), len(data), sha512)
    engine.state.store.commit_new(kept.path, io.BytesIO(data), kept.size, sha512)
    key = layout.feed_key(LAUNCH.job, DUE)
    counts = {"targets": 3, "of_job": 2}
    engine.state.publish(key, Claim(key, outputs=(kept,), counts=counts, facts={"source": "feed.json"}))
    started = layout.key("pulse.Started", LAUNCH)
    files = {"seeds.txt": hashlib.sha512(seeds.encode()).hexdigest()}
    facts = {"due": DUE, "feed": sha512, "targets": 2, "files": files}
    engine.state.publish(started, Claim(started, facts=facts))


def documents(engine: Engine) -> dict[str, str]:
    """The texts of the SIP's documents by name."""
    claim = build.build(engine.state, engine.store, None, LAUNCH, FINAL, Terms("National Library", agreement="SA-7"))
    with tarfile.open(engine.store.real(Packaged.from_claim(claim).sip.path)) as tar:
        texts = (one for one in tar if one.name.endswith((".xml", ".txt")))
        return {one.name.rpartition("/")[2]: tar.extractfile(one).read().decode() for one in texts}  # type: ignore[union-attr]


def test_it_names_the_targets_that_the_launch_crawled_and_no_others(engine: Engine) -> None:
    feed(engine, "http://a.example/\nhttp://c.example/\n")
    told = documents(engine)["dc.xml"]
    assert [line.strip() for line in told.splitlines() if "subject" in line or "source" in line] == [
        "<dc:subject>Target &lt;1&gt;</dc:subject>",
        "<dc:subject>Target &lt;3&gt;</dc:subject>",
        "<dc:source>http://a.example/</dc:source>",
        "<dc:source>http://c.example/</dc:source>",
    ]
    assert "<dc:publisher>National Library</dc:publisher>" in told
    assert "<dc:rights>Submission agreement SA-7</dc:rights>" in told


def test_seeds_that_are_of_no_frequency_s_targets_name_none(engine: Engine) -> None:
    feed(engine, "http://another.example/\n")
    assert contents.targets(engine.state, LAUNCH) == []
    assert "<dc:subject>" not in documents(engine)["dc.xml"]


def test_a_launch_without_a_feed_is_described_too(engine: Engine) -> None:
    told = documents(engine)["dc.xml"]
    assert f"Web archive of the crawl daily, launch {LAUNCH.id}, stage final" in told


def test_an_accepted_finding_is_told_with_its_reason_and_is_still_a_failure(engine: Engine) -> None:
    before = documents(engine)["premis.xml"]
    assert "(accepted:" not in before
    seen = survey.survey(engine.state, engine.roots, LAUNCH, {})
    (found,) = (gap for gap in statements.acceptable(seen) if gap.kind == "refused")
    claim = statements.accept_all(seen, [found.name], "its engine was <killed>")[0]
    engine.state.publish(claim.key, claim)
    engine.store.real(f"sips/{LAUNCH}/final.tar").unlink()
    told = documents(engine)["premis.xml"]
    note = next(line for line in told.splitlines() if "(accepted: its engine was &lt;killed&gt;)" in line)
    assert f"{NAME}.open: at offset" in note
    assert told.count("(accepted:") == 1
