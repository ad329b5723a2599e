"""The redo of a step from a launch's page: what moves with it is shown, and an outward act is refused unless named."""

from __future__ import annotations

import pytest
from launches import states
from launches.states import JOB, WHOLE
from operating.web_client import WebAnswer
from operating.web_site import WebSite

from warcmill import layout
from warcmill.markers.claim import Claim

PATH = f"/launches/{JOB}/{WHOLE.id}/redo"
COPIED, STOPPED = f"files.copied.{JOB}.{WHOLE.id}.final", layout.marker_name(layout.key("pulse.StopJob", WHOLE))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> WebSite:
    made = states.made(tmp_path_factory.mktemp("states")).site()
    key = layout.key("pulse.StopJob", WHOLE)
    made.roots.state.publish(key, Claim(key, facts={"engine": "ended"}))
    return made


def posted(site: WebSite, **fields: str) -> WebAnswer:
    return site.post(PATH, {"form": site.get(PATH, {"format": "json"}).document["form"], **fields})


def test_what_rests_on_a_step_is_shown_before_it_moves(site: WebSite) -> None:
    page = site.get(f"/launches/{JOB}/{WHOLE.id}").text
    assert f"{PATH}?step={COPIED}" in page
    assert PATH not in site.get(f"/launches/{JOB}/{WHOLE.id}", role="curator").text
    found = site.get(PATH, {"step": COPIED, "format": "json"}).document
    assert found["markers"][0] == COPIED
    assert f"files.verified.{JOB}.{WHOLE.id}.final" in found["markers"]
    assert found["outward"] == []
    assert COPIED in site.get(PATH).text, "without a step, all of them"
    assert site.get(PATH, {"step": "files.copied.other.20161019234428.final"}).status == 404
    assert site.get(PATH.replace(WHOLE.id, "x")).status == 404


def test_the_verb_gets_the_marker_and_the_reason(site: WebSite) -> None:
    done = posted(site, step=COPIED, reason="--help", also="not this")
    words = site.get(done.header("location"), {"format": "json"}).document["words"]
    assert words == ["redo", JOB, WHOLE.id, COPIED, "--downstream", "--reason=--help"]
    for odd in ({"reason": "why"}, {"step": COPIED, "reason": ""}):
        assert posted(site, **odd).status == 400


def test_an_outward_act_is_refused_unless_it_is_named(site: WebSite) -> None:
    asked = {"step": STOPPED, "reason": "it was stopped by mistake"}
    before = site.state.names("web/actions")
    refused = posted(site, **asked)
    assert refused.status == 400
    assert f"{STOPPED} records an act outside the state" in refused.text
    assert site.state.names("web/actions") == before
    done = posted(site, **asked, also=STOPPED)
    words = site.get(done.header("location"), {"format": "json"}).document["words"]
    assert words[-1] == f"--also={STOPPED}"
