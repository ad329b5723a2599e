"""Which histories of a Heritrix job are sound, and which lose pages that have changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from warcmill.errors import BadInput
from warcmill.formats.profile import LOSS, faults, loss

ROOT = Path(__file__).parent.parent.parent.parent
SHIPPED = (ROOT / "config" / "heritrix" / "profile.cxml").read_text("utf-8")
SEEN = ROOT / "tests/data/sample/kind-first/jobs/weekly/crawler-beans.cxml"  # as jobs were that lost pages
SCRIPT = 'void process(curi) { curi.getData().remove("content-digest-history"); }'
FORGET = '<ref bean="forgetOldDigest"/>'
LOADER = '<ref bean="contentDigestHistoryLoader"/>'
STORER = '<ref bean="contentDigestHistoryStorer"/>'
LOAD, STORE = '<ref bean="persistLoad"/>', '<ref bean="persistStore"/>'


def with_changes(*changes: tuple[str, str]) -> str:
    text = SHIPPED
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def found(*changes: tuple[str, str]) -> list[str]:
    return list(faults(with_changes(*changes).encode(), "a profile"))


def test_the_copy_that_the_wheel_holds_is_the_shipped_one() -> None:
    assert (ROOT / "tasks" / "profile.cxml").read_text("utf-8") == SHIPPED


@pytest.mark.parametrize(
    "changes",
    [
        [(FORGET, "")],
        [(SCRIPT, SCRIPT.replace("curi.getData", "// curi.getData"))],
        [(SCRIPT, f"/* {SCRIPT} */")],
        [(SCRIPT, 'void process(curi) { curi.getData().get("content-digest-history"); }')],
        [(FORGET + LOADER, LOADER + FORGET)],
        [(FORGET, ""), (LOAD, FORGET + LOAD)],
        [("metadata.jobName=@job@", "forgetOldDigest.enabled=false")],
        [('id="forgetOldDigest" class="org.archive.modules.ScriptedProcessor"', 'id="forgetOldDigest" class="a.B"')],
        [(FORGET, ""), (LOAD, '<bean class="org.archive.modules.recrawl.PersistLoadProcessor"/>')],
        [(FORGET, ""), (LOAD, '<ref bean="mine"/>'), ('id="persistLoad"', 'id="mine"')],
    ],
)
def test_what_would_lose_changed_pages_is_refused(changes: list[tuple[str, str]]) -> None:
    assert found(*changes) == [LOSS]
    assert loss(with_changes(*changes).encode(), "a profile") == LOSS


@pytest.mark.parametrize(
    "changes",
    [
        [(FORGET, ""), (LOADER, ""), (STORER, "")],
        [(FORGET, ""), (LOAD, ""), (STORE, "")],
        [(LOAD, ""), (STORE, ""), ('<ref bean="fetchHistory"/>', "")],
        [(FORGET, ""), ("metadata.jobName=@job@", "persistLoad.enabled=false\npersistStore.enabled=false")],
        [(FORGET, ""), ('<ref bean="annotateIp"/>', FORGET + '<ref bean="annotateIp"/>')],
        [(SCRIPT, "def process(curi):\n    curi.data.remove( 'content-digest-history' )")],
        [(FORGET, f'<bean class="org.archive.modules.ScriptedProcessor">{SCRIPT}</bean>')],
    ],
)
def test_one_history_alone_or_a_map_cleared_in_any_way_is_accepted(changes: list[tuple[str, str]]) -> None:
    assert found(*changes) == []
    assert loss(with_changes(*changes).encode(), "a profile") == ""


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ([(LOAD, ""), (STORE, ""), (LOADER, ""), (STORER, "")], "else each launch stores everything again"),
        ([(LOAD, "")], "persistLoad before fetchHttp"),
        ([(STORE, "")], "persistStore after warcWriter"),
        ([(LOADER, "")], "contentDigestHistoryLoader before warcWriter"),
        ([(STORER, "")], "contentDigestHistoryStorer after warcWriter"),
    ],
)
def test_half_a_history_and_none_are_named(changes: list[tuple[str, str]], named: str) -> None:
    (fault,) = found(*changes)
    assert named in fault


def test_a_profile_by_which_pages_were_lost_is_known() -> None:
    assert loss(SEEN.read_bytes(), "the job") == LOSS


def test_what_is_no_configuration_is_not_judged() -> None:
    with pytest.raises(BadInput, match="is not XML"):
        loss(b"<beans", "the job")
