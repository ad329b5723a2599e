"""A feed is judged against the last good one, kept, and read again whole; what is refused changes nothing."""

from __future__ import annotations

import hashlib
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from warcmill.base.schedule import DAILY
from warcmill.errors import BadConfig, BadInput, Mismatch, NotReady, Unavailable
from warcmill.formats.feed import read
from warcmill.formats.targets import Caps
from warcmill.layout import OutputLayout
from warcmill.markers.claim import claim_digest
from warcmill.markers.state import MarkerStore
from warcmill.pulse.feed import Due, HeritrixRecipe, Source, crawl, last_good, prepare
from warcmill.stores.file import FileStore
from warcmill.stores.sentinel import adopt

PROFILE = (Path(__file__).parent.parent.parent.parent / "config" / "heritrix" / "profile.cxml").read_text("utf-8")
CAPS = Caps(1 << 20, 1 << 21)
RECIPE = HeritrixRecipe(PROFILE, "http://archive.example/", "/data/output", OutputLayout.KIND_FIRST, (), CAPS)
FIRST, SECOND = "20260131060000", "20260201060000"


@pytest.fixture
def state(tmp_path: Path) -> MarkerStore:
    adopt({"state": tmp_path / "state"})
    return MarkerStore(FileStore("state", tmp_path / "state"))


def due(moment: str, job: str = "daily") -> Due:
    return Due(job, moment, DAILY)


def feed_of(number: int, weekly: int = 0) -> bytes:
    words = ["DAILY"] * number + ["WEEKLY"] * weekly
    return b"\n".join(json.dumps(target(place, word)).encode() for place, word in enumerate(words))


def target(place: int, word: str) -> dict[str, Any]:
    schedules = [{"startDate": "2024-01-01", "frequency": word}]
    return {"id": place, "seeds": [f"http://{place}.example/"], "schedules": schedules}


def source(data: bytes | Exception, **more: Any) -> Source:
    def fetch() -> bytes:
        if isinstance(data, Exception):
            raise data
        return data

    return Source(fetch, "https://curators.example/feed", **{"most_faulty": 5, **more})


def took(state: MarkerStore, moment: str, data: bytes, **more: Any) -> None:
    state.publish(due(moment).key, crawl(state, due(moment), source(data, **more)))


def kept(state: MarkerStore) -> list[str]:
    return [entry.name for entry in state.store.list("feeds")]


def test_a_feed_is_kept_by_its_digest_and_claimed_with_its_counts(state: MarkerStore) -> None:
    data = feed_of(3, weekly=2)
    claim = crawl(state, due(FIRST), source(data))
    digest = hashlib.sha512(data).hexdigest()
    assert [(one.path, one.size, one.sha512) for one in claim.outputs] == [(f"feeds/{digest}.feed", len(data), digest)]
    assert claim.counts == {"targets": 5, "of_job": 3}
    assert claim.facts == {"source": "https://curators.example/feed"}
    again = crawl(state, due(FIRST), source(data))
    assert claim_digest(claim) == claim_digest(again)
    assert kept(state) == [f"{digest}.feed"]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "of its 0 targets none"),
        (b"[]", "of its 0 targets none"),
        (feed_of(0, weekly=50), "of its 50 targets none is to be crawled DAILY"),
        (feed_of(4, weekly=1), "has 5 targets, less than half of the 20"),
        (feed_of(4, weekly=16), "has 4 targets, less than half of the 10 it had, counting of_job"),
        (
            feed_of(18) + b"\nnope",
            "1 of its 19 targets are faulty, more than 5 percent; .* line 19: is no JSON",
        ),
        (b"<html>an error page</html>", "1 of its 1 targets .* line 1: is no JSON"),
    ],
)
def test_what_cannot_be_right_is_refused_and_the_last_good_one_stays(state: MarkerStore, data: bytes, why: str) -> None:
    took(state, FIRST, feed_of(10, weekly=10))
    before = kept(state)
    with pytest.raises(BadInput, match=why):
        crawl(state, due(SECOND), source(data))
    assert kept(state) == before
    found = last_good(state, due(SECOND))
    assert found
    assert found.claim.key["due"] == FIRST


def test_a_faulty_target_is_left_out_and_named_and_the_others_are_crawled(
    state: MarkerStore, caplog: pytest.LogCaptureFixture
) -> None:
    data = feed_of(20) + b'\n{"id": 99, "seeds": []}'
    claim = crawl(state, due(FIRST), source(data))
    state.publish(due(FIRST).key, claim)
    fault = "https://curators.example/feed, line 21: seeds: a target needs at least one"
    assert claim.facts["faulty"] == [fault]
    assert claim.counts == {"targets": 20, "of_job": 20}
    assert "of the feed's targets 1 are faulty, and left out" in caplog.text
    assert fault in caplog.text
    assert prepare(state, due(FIRST), RECIPE)[1]["targets"] == 20


@pytest.mark.parametrize(("most", "refused"), [(0, True), (49, True), (50, False), (100, False)])
def test_how_much_of_a_feed_may_be_faulty(state: MarkerStore, most: int, refused: bool) -> None:
    feed = source(feed_of(1) + b"\nnope", most_faulty=most)
    if not refused:
        assert crawl(state, due(FIRST), feed).counts["targets"] == 1
        return
    with pytest.raises(BadInput, match=f"1 of its 2 targets are faulty, more than {most} percent"):
        crawl(state, due(FIRST), feed)


def test_a_feed_may_lose_half(state: MarkerStore) -> None:
    took(state, FIRST, feed_of(10))
    assert crawl(state, due(SECOND), source(feed_of(5))).counts["targets"] == 5


def test_a_sharply_smaller_feed_is_taken_when_an_operator_confirms_it(state: MarkerStore) -> None:
    took(state, FIRST, feed_of(10))
    small = feed_of(1)
    with pytest.raises(BadInput, match=r"accept=[0-9a-f]{32} in \[feed\]") as refused:
        crawl(state, due(SECOND), source(small))
    accept = str(refused.value).partition("accept=")[2].partition(" ")[0]
    assert crawl(state, due(SECOND), source(small, accept=accept)).counts["targets"] == 1
    with pytest.raises(BadInput, match="less than half"):
        crawl(state, due(SECOND), source(feed_of(2), accept=accept))
    with pytest.raises(BadInput, match="none is to be crawled"):
        crawl(state, due(SECOND), source(b"", accept=hashlib.sha512(b"").hexdigest()))


@pytest.mark.parametrize("accept", ["abc", "0123456789abcdeg", "x" * 128, "*" * 16])
def test_what_is_accepted_must_be_a_digest(state: MarkerStore, accept: str) -> None:
    with pytest.raises(BadConfig, match=r"\[feed\] accept"):
        crawl(state, due(FIRST), source(feed_of(1), accept=accept))


@pytest.mark.parametrize("fault", [Unavailable("feed", "it was answered 503"), b"nope"])
def test_the_last_good_feed_is_used_again_only_when_configured(
    state: MarkerStore, fault: bytes | Exception, caplog: pytest.LogCaptureFixture
) -> None:
    took(state, FIRST, feed_of(4))
    with pytest.raises((Unavailable, BadInput)):
        crawl(state, due(SECOND), source(fault))
    with caplog.at_level(logging.WARNING):
        claim = crawl(state, due(SECOND), source(fault, fallback=True))
    state.publish(due(SECOND).key, claim)
    assert claim.facts["again"] == FIRST
    assert "fallback" in caplog.text
    assert prepare(state, due(SECOND), RECIPE)[1]["targets"] == 4


def test_without_a_last_good_feed_there_is_nothing_to_fall_back_on(state: MarkerStore) -> None:
    with pytest.raises(Unavailable):
        crawl(state, due(FIRST), source(Unavailable("feed", "gone"), fallback=True))


def test_the_last_good_feed_is_this_job_s_newest_before_the_due_time(state: MarkerStore) -> None:
    took(state, "20241231060000", feed_of(1))
    took(state, FIRST, feed_of(2))
    took(state, "20260202060000", feed_of(3))
    other = Due("daily2", FIRST, DAILY)
    state.publish(other.key, crawl(state, other, source(feed_of(9))))
    assert last_good(state, due("20241231060000")) is None
    for moment, number in ((FIRST, 1), (SECOND, 2), ("20270101000000", 3)):
        found = last_good(state, due(moment))
        assert found
        assert found.claim.counts["targets"] == number


def test_a_broken_marker_is_no_good_feed(state: MarkerStore) -> None:
    took(state, "20260130060000", feed_of(1))
    took(state, FIRST, feed_of(9))
    (state.store.base / "2026-01" / "daily" / f"00.feed.daily.{FIRST}").write_text("cut")
    found = last_good(state, due(SECOND))
    assert found
    assert found.claim.counts["targets"] == 1


def test_the_files_for_the_engine_come_from_the_kept_feed(state: MarkerStore) -> None:
    took(state, FIRST, feed_of(2, weekly=3))
    files, facts = prepare(state, due(FIRST), RECIPE)
    assert files["seeds.txt"] == b"http://0.example/\nhttp://1.example/\n"
    assert facts["targets"] == 2
    assert facts["feed"] == hashlib.sha512(feed_of(2, weekly=3)).hexdigest()
    assert facts["files"] == {name: hashlib.sha512(data).hexdigest() for name, data in files.items()}
    beans = files["crawler-beans.cxml"].decode()
    assert "/data/output/warcs/daily/${launchId}<" in beans
    assert 'value="/data/output/logs/daily/${launchId}"' in beans
    filled = beans.partition("-->")[2]
    assert "@" not in filled, "nothing is left to fill in"


def test_job_first_has_the_launch_before_the_kind(state: MarkerStore) -> None:
    took(state, FIRST, feed_of(1))
    recipe = HeritrixRecipe(PROFILE, "http://archive.example/", "/jobs", OutputLayout.JOB_FIRST, (), CAPS)
    beans = prepare(state, due(FIRST), recipe)[0]["crawler-beans.cxml"].decode()
    assert "<value>/jobs/daily/${launchId}/viral</value>" in beans


def test_a_profile_that_lacks_something_is_refused(state: MarkerStore) -> None:
    took(state, FIRST, feed_of(1))
    poor = HeritrixRecipe(
        PROFILE.replace("logExtraInfo=true", "logExtraInfo=false"),
        "http://archive.example/",
        "/data/output",
        OutputLayout.KIND_FIRST,
        (),
        Caps(1 << 20, 1 << 21),
    )
    with pytest.raises(BadConfig, match=r"\[feed\] profile: loggerModule.logExtraInfo must be true"):
        prepare(state, due(FIRST), poor)


def test_a_kept_feed_that_was_changed_is_not_crawled_by(state: MarkerStore) -> None:
    took(state, FIRST, feed_of(2))
    path = state.store.base / "feeds" / kept(state)[0]
    path.chmod(0o644)
    path.write_bytes(feed_of(2).replace(b"0.example", b"9.example"))
    with pytest.raises(Mismatch, match="SHA-512"):
        prepare(state, due(FIRST), RECIPE)


def test_without_a_feed_there_is_nothing_to_prepare(state: MarkerStore) -> None:
    with pytest.raises(NotReady, match=r"pulse\.CrawlFeed"):
        prepare(state, due(FIRST), RECIPE)


def test_a_target_that_needs_a_login_is_reported_in_the_log_and_in_the_facts(
    state: MarkerStore, caplog: pytest.LogCaptureFixture
) -> None:
    secret = {**target(99, "DAILY"), "secretId": "s"}
    took(state, FIRST, feed_of(2) + b"\n" + json.dumps(secret).encode())
    caplog.clear()
    _, facts = prepare(state, due(FIRST), RECIPE)
    assert facts["without_login"] == ["99"]
    assert "1 targets need a login" in caplog.text
    assert caplog.text.rstrip().endswith(": 99")


def test_what_has_nothing_of_the_crawl_is_kept_for_later(state: MarkerStore) -> None:
    later = {"watched": True, "documentUrlScheme": "http://0.example/docs/", "notKnownYet": [1]}
    took(state, FIRST, json.dumps({**target(0, "DAILY"), **later}).encode())
    prepare(state, due(FIRST), RECIPE)
    (path,) = (one.path for one in state.require(due(FIRST).key).claim.outputs)
    with state.store.open(path) as file:
        data = file.read()
    assert json.loads(data).items() >= later.items()
    (found,) = read(data, path).targets
    assert (found.watched, found.document_url_scheme) == (True, "http://0.example/docs/")


def test_who_pauses_targets_loses_none_and_all_paused_is_said(state: MarkerStore) -> None:
    took(state, FIRST, feed_of(10))
    lines = [json.loads(line) for line in feed_of(10).splitlines()]
    paused = [json.dumps({**one, "paused": number < 8}).encode() for number, one in enumerate(lines)]
    claim = crawl(state, due(SECOND), source(b"\n".join(paused)))
    assert claim.counts == {"targets": 10, "of_job": 2}
    everyone = b"\n".join(json.dumps({**one, "paused": True}).encode() for one in lines)
    with pytest.raises(BadInput, match=r"none is to be crawled DAILY at .*; 10 are paused"):
        crawl(state, due(SECOND), source(everyone))
