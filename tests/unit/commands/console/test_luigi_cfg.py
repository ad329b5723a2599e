"""luigi.cfg as people write it, edited: each byte that is not of the edit stays."""

from __future__ import annotations

from configparser import Error

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands.console.luigi_cfg import EditedConfig, parsed, scheduled, unscheduled, with_job
from warcmill.errors import BadConfig

ENGINE, NEXT = "[engine.crawl]\nkind=warcmill\n", "# of the next\n[x]\ny: 1\n"


def fits(before: str, edited: EditedConfig) -> bool:
    """True if a file says after an edit what the edit says of it, and nothing else has changed."""
    wanted = {**parsed(before), **edited.holds}
    return parsed(edited.text) == {name: keys for name, keys in wanted.items() if keys is not None}


@pytest.mark.parametrize(
    ("listed", "then"),
    [
        ("jobs: alpha\n", "jobs: alpha,third\n"),  # refused once, though every other verb reads it
        ("jobs=alpha\n", "jobs=alpha,third\n"),
        ("jobs = alpha, beta  \n", "jobs = alpha, beta,third\n"),
        ("jobs:alpha", "jobs:alpha,third"),
        ("jobs=\n", "jobs=third\n"),
        ("jobs=alpha,\n", "jobs=alpha,third\n"),
        ("jobs=%(mine)s\nmine=alpha\n", "jobs=%(mine)s,third\nmine=alpha\n"),
        ("jobs =\n  a\n\n  # of b\n  b\n  # end\n\n", "jobs =\n  a\n\n  # of b\n  b,third\n  # end\n\n"),
        ("jobs = a\n# of b\n  b\n; of the next\n", "jobs = a\n# of b\n  b,third\n; of the next\n"),
        ("Jobs=other\njobs=alpha\n", "Jobs=other\njobs=alpha,third\n"),
        ("jobs=alpha\x0bbeta\u2028gamma\n", "jobs=alpha\x0bbeta\u2028gamma,third\n"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("below", ["", NEXT])
def test_a_job_is_listed_beside_those_that_are_there(listed: str, then: str, below: str) -> None:
    if below and not listed.endswith("\n"):
        listed, then = f"{listed}\n", f"{then}\n"
    edited = with_job(f"# ours\n{ENGINE}{listed}{below}", "third")
    assert edited.text == f"# ours\n{ENGINE}{then}{below}"
    assert fits(f"# ours\n{ENGINE}{listed}{below}", edited)


def test_the_section_is_added_where_it_is_not_there() -> None:
    assert with_job("[a]\nb: 1", "third").text == f"[a]\nb: 1\n\n{ENGINE}jobs=third\n"
    shared = with_job("# [engine.shared]\n[a]\nb: 1\n", "third", "redis://h").text
    assert shared.endswith("b: 1\n\n[engine.shared]\nkind=warcmill\nfrontier=redis://h\njobs=third\n")


def test_an_engine_without_jobs_is_left_to_its_operator() -> None:
    with pytest.raises(BadConfig, match="is not set"):
        with_job(f"{ENGINE}# jobs=a\nJobs=a\n", "third")


@pytest.mark.parametrize(
    "text", ["jobs=a\n", f"{ENGINE}jobs=a\njobs=b\n", f"{ENGINE}{ENGINE}", "\ufeff[a]\n", "[a]\nb\n"]
)
def test_what_luigi_cannot_read_is_not_edited(text: str) -> None:
    with pytest.raises(Error):
        with_job(text, "third")


def test_comments_and_other_keys_survive_in_every_place() -> None:
    text = f"[job.a]\n# ours\nstart = 2026-01-01\nfrequency: daily\n  # inner\n\n{NEXT}"
    then = f"[job.a]\nfrequency=weekly\nstart=2026-02-01\n# ours\n  # inner\n\n{NEXT}"
    assert scheduled(text, "a", {"frequency": "weekly", "start": "2026-02-01", "at": ""}).text == then
    assert unscheduled(f"[w]\nz=1\n{text}", "a").text == f"[w]\nz=1\n\n  # inner\n\n{NEXT}"
    assert unscheduled("[job.ab]\nstart=1\n", "a").text == "[job.ab]\nstart=1\n"
    assert (
        scheduled("[job.a]", "a", {"frequency": "daily", "start": "2026"}).text
        == "[job.a]\nfrequency=daily\nstart=2026\n"
    )


LINES = st.sampled_from([
    "[engine.crawl]", "[job.a]", "[b]", "jobs=x", "jobs : y,", "jobs:", "frequency=daily", "start : now", "  more",
    "  # inner", "# outer", "; o", "", " ", "x=1", "kind=warcmill", "k = v\r", "y\x0b=\u2028", "[DEFAULT]",
])  # fmt: skip


@given(st.lists(LINES, max_size=12).map("\n".join))
def test_no_edit_of_what_luigi_reads_changes_more_than_it_says_or_loses_a_comment(text: str) -> None:
    text = f"[first]\n{text}"
    try:
        sections = parsed(text)
    except Error:
        return
    edits = [unscheduled(text, "a"), scheduled(text, "b", {"frequency": "daily", "start": "2026", "zone": ""})]
    if "jobs" in sections.get("engine.crawl", {"jobs": ""}):
        edits.append(with_job(text, "third"))
    for edited in edits:
        assert fits(text, edited)
        assert set(comments(text)) - set(comments(edited.text)) == set() or None in edited.holds.values()


def comments(text: str) -> list[str]:
    return [line for line in text.split("\n") if line.lstrip().startswith(("#", ";"))]
