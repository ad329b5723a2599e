"""accept and close by pages: the real verbs, on launches built by hand."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pytest
from launches import launch_sorts
from launches.engine import LAUNCH, Engine
from operating.web_client import WebAnswer
from operating.web_site import WebSite

from commands.init import configuration

REFUSED, RUNS = f"/launches/refused/{LAUNCH.id}", f"/launches/runs/{LAUNCH.id}"


@pytest.fixture
def site(tmp_path: Path) -> WebSite:
    """Launches of every sort, and the verbs of this line."""
    engine = Engine(tmp_path / "line")
    assert {"refused", "runs", "crawled"} <= set(launch_sorts.leave_all(engine))
    config = tmp_path / "luigi.cfg"
    config.write_text(configuration(engine.folders, engine.layout))
    verbs = ("env", f"LUIGI_CONFIG_PATH={config}", sys.executable, "-m", "commands.main")
    return WebSite(engine, engine.audited, verbs)


def ended(site: WebSite, answer: WebAnswer) -> Any:
    assert answer.status == 303, answer.text
    deadline, page = time.monotonic() + 300, answer.header("location")
    while (found := site.get(page, {"format": "json"}).document)["exit_code"] is None:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return found


@pytest.mark.parametrize("finding", ["", "kind:refused", "name:"])
def test_findings_are_accepted_all_of_a_kind_or_one(site: WebSite, finding: str) -> None:
    asked = site.get(f"{REFUSED}/accept", {"format": "json"}).document
    (name,) = [value for value in asked["findings"] if value.startswith("name:")]
    chosen = name if finding == "name:" else finding
    assert chosen in asked["findings"]
    done = ended(site, site.post(f"{REFUSED}/accept", {"reason": "-x it is known", "finding": chosen}))
    assert done["exit_code"] == 0, done["output"]
    assert "--reason=-x it is known" in done["words"]
    assert f"accepted: refused/{LAUNCH.id} refused" in done["output"]
    answer = site.get(f"{REFUSED}/accept")
    assert (answer.status, "no finding to be accepted" in answer.text) == (409, True)
    assert "Accept findings" not in site.get(REFUSED).text


def test_a_finding_that_is_none_and_a_launch_without_one_are_refused(site: WebSite) -> None:
    answer = site.post(f"{REFUSED}/accept", {"reason": "x", "finding": "name:<b>"})
    assert answer.status == 400
    assert "no finding of this launch is open under this name" in answer.text
    assert "<b>" not in answer.text
    assert site.get(f"/launches/crawled/{LAUNCH.id}/accept").status == 409
    assert site.get(f"/launches/nowhere/{LAUNCH.id}/accept").status == 409


def test_a_launch_is_closed_once(site: WebSite) -> None:
    done = ended(site, site.post(f"{RUNS}/close", {"reason": "its engine is gone"}))
    assert done["exit_code"] == 0, done["output"]
    assert f"runs/{LAUNCH.id} is closed: its engine is gone" in done["output"]
    again = ended(site, site.post(f"{RUNS}/close", {"reason": "another reason"}))
    assert again["exit_code"] == 1
