"""Values as pages show them; and texts from outside, which change nothing around them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from jinja2 import UndefinedError

from warcmill.audit.progress_grid import LEGEND, Mark
from warcmill.web.rendering import age, cut, environment, plain_text, size, time

HOSTILE = "<script>alert(1)</script>\"' onclick=x \u202egnp.exe\x00\x1b[31m\r\nSet-Cookie: a=b \udcff"
PARTS = '{% import "parts.html" as parts %}'


def written(template: str, **values: object) -> str:
    return environment().from_string(PARTS + template).render(**values)


@pytest.mark.parametrize(
    "template",
    [
        "{{ text }}",
        "<a title='{{ text }}'>",
        "{{ parts.outside(text) }}",
        "{{ parts.id(text, text) }}",
        "{{ parts.gap(text, text, text, text) }}",
        "{{ parts.notice(text) }}",
        "{{ parts.facts([(text, text)]) }}",
        "{{ parts.field('name', text, text, text, text) }}",
        "{{ parts.choice('name', text, [(text, text)], text) }}",
        "{{ parts.command(text) }}",
        "{{ parts.time(text) }}",
        "{% call parts.table(text) %}{{ text }}{% endcall %}",
        "<pre>{{ text|plain_text }}</pre>",
    ],
)
def test_a_text_from_outside_changes_nothing_around_it(template: str) -> None:
    html = written(template, text=HOSTILE)
    assert not any(sign in html for sign in ("<script", "\u202e", "\x00", "\x1b", "\r", "\udcff", "'' ", "\"'"))
    assert "alert(1)" in html
    assert html.encode("utf-8")


def test_a_long_text_is_cut_and_its_length_is_given() -> None:
    assert cut("a" * 500) == "a" * 500
    assert cut("a" * 1_000_000) == f"{'a' * 500}… (1,000,000 characters)"
    assert len(written("{{ parts.gap(text, text, text, text) }}", text="a" * 1_000_000)) < 10_000


def test_a_log_keeps_its_lines() -> None:
    assert plain_text("one <b>\r\n\ttwo\x0bthree\n") == "one &lt;b&gt;\n    two\\x0bthree"


@pytest.mark.parametrize(
    ("number", "text"),
    [
        *((0, "0 B"), (999, "999 B"), (1000, "1.00 kB"), (1_087_505, "1.09 MB"), (9_994_999, "9.99 MB")),
        *((9_995_001, "10.0 MB"), (99_950_000, "100 MB"), (999_499_999, "999 MB"), (999_999_999, "1.00 GB")),
        (999_500, "1.00 MB"),
        (10**18, "1000 PB"),
    ],
)
def test_bytes_have_three_digits(number: int, text: str) -> None:
    assert size(number) == text


def test_a_time_is_utc_and_another_text_stays_one() -> None:
    shown = '<time datetime="2016-10-19T23:44:28Z">2016-10-19 23:44:28 UTC</time>'
    assert time("2016-10-19T23:44:28Z") == time("20161019234428") == shown
    assert time("2016-10-19") == time("20161019") == '<time datetime="2016-10-19">2016-10-19</time>'
    assert time("<never>") == "<bdi>&lt;never&gt;</bdi>"
    assert time("") == ""
    assert "<time" not in time("2016-19-39T23:44:28Z"), "Nu refuses a day that is none"


@pytest.mark.parametrize(
    ("utc", "text"),
    [
        ("2026-11-26T12:00:00Z", "just now"),
        ("2026-11-26T11:59:59Z", "1 second ago"),
        ("2026-11-26T11:58:01Z", "119 seconds ago"),
        ("2026-11-26T11:58:00Z", "2 minutes ago"),
        ("2026-11-26T09:59:00Z", "2 hours ago"),
        ("2025-11-26T12:00:00Z", "365 days ago"),
        ("2026-11-26T13:00:00Z", "just now"),
        ("torn", ""),
    ],
)
def test_an_age_is_given_in_its_largest_unit(utc: str, text: str) -> None:
    assert age(utc, datetime(2026, 11, 26, 12, tzinfo=UTC)) == text


@pytest.mark.parametrize("mark", list(Mark))
def test_a_state_has_the_word_and_the_shape_of_the_terminal(mark: Mark) -> None:
    name = mark.replace(" ", "-")
    assert written("{{ parts.state(word) }}", word=mark) == (
        f'<span class="state {name}" data-shape="{mark.shape}">{mark}</span>'
    )
    in_grid = written('{{ parts.state(word, "1/2", grid=true) }}', word=str(mark))
    assert f'<span class="unseen">{mark}</span> 1/2</span>' in in_grid


def test_the_legend_is_that_of_status() -> None:
    legend = written("{{ parts.legend(states) }}")
    assert [legend.index(f">{mark}<") for mark in LEGEND] == sorted(legend.index(f">{mark}<") for mark in LEGEND)


def test_a_page_names_its_place_who_looks_and_how_old_it_is() -> None:
    page = '{% extends "base.html" %}{% block title %}Jobs{% endblock %}{% block main %}<h1>Jobs</h1>{% endblock %}'
    menu = [{"path": "/", "label": "Home"}, {"path": "/jobs", "label": "Jobs"}]
    who = {"name": "anna", "role": "operator"}
    values = {"menu": menu, "here": "/jobs", "who": who, "written": "2016-10-19T23:44:28Z"}
    html = environment().from_string(page).render(**values)
    assert '<a href="/jobs" aria-current="page">Jobs</a>' in html
    assert html.count("aria-current") == 1
    assert "<bdi>anna</bdi>, operator" in html
    assert f"State written {time('2016-10-19T23:44:28Z')}" in html
    unsigned = environment().from_string(page).render(**values | {"who": None, "written": ""})
    assert '<p id="written"></p>' in unsigned
    assert "operator" not in unsigned


def test_what_a_template_has_no_value_for_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        written("{{ lacking }}")
