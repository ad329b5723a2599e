"""The look of the pages, as docs/look.md has it: five sizes, six spaces, colours that can be read; a colour a state."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from warcmill.audit.progress_grid import LEGEND, Mark

ROOT = Path(__file__).parents[3]
WEB = ROOT / "warcmill/web"
CSS = re.sub(r"/\*.*?\*/", "", (WEB / "static/warcmill.css").read_text("utf-8"), flags=re.DOTALL)
RULES = CSS[CSS.index("*, *::before") :]
NAMED = dict(re.findall(r"(--[\w-]+): ([^;]+);", CSS[: len(CSS) - len(RULES)]))
COLOURS = {
    name: tuple(re.findall(r"#[0-9a-f]{6}", value)) for name, value in NAMED.items() if value.startswith("light-dark")
}
GROUNDS = ("--paper", "--sheet", "--shade")
STATES = tuple(f"--{mark.replace(' ', '-')}" for mark in Mark)
NEVER_INLINE = re.compile(r"<script(?![^>]*\bsrc=)|<style|\s(?:style|on\w+)=|javascript:", re.IGNORECASE)


def luminance(colour: str) -> float:
    """The relative luminance of WCAG 2."""
    parts = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def colour(name: str, scheme: int) -> str:
    value = NAMED[name]
    return colour(value[4:-1], scheme) if value.startswith("var(") else COLOURS[name][scheme]


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_every_text_can_be_read_on_every_ground(scheme: int) -> None:
    texts = ("--ink", "--quiet", "--link", "--link-over", *STATES)
    pairs = [(text, ground) for text in texts for ground in GROUNDS]
    pairs += [("--on-link", "--link"), ("--on-link", "--link-over"), ("--ink", "--found"), ("--link", "--found")]
    low = {pair: contrast(*(colour(name, scheme) for name in pair)) for pair in pairs}
    assert {pair: ratio for pair, ratio in low.items() if ratio < 4.5} == {}


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_the_edge_of_a_field_and_the_focus_can_be_seen(scheme: int) -> None:
    for line in ("--edge", "--link"):
        assert all(contrast(colour(line, scheme), colour(ground, scheme)) >= 3 for ground in GROUNDS), line


def test_there_are_five_sizes_of_text_and_six_spaces() -> None:
    rem = {name: float(value[:-3]) * 16 for name, value in NAMED.items() if value.endswith("rem")}
    assert [size for name, size in rem.items() if not name.startswith("--s") or name == "--small"] == [
        13,
        16,
        19,
        23,
        28,
    ]
    assert [size for name, size in rem.items() if re.fullmatch(r"--s\d", name)] == [4, 8, 12, 16, 24, 32]
    sizes = set(re.findall(r"font-size: ([^;]+);", RULES))
    assert sizes <= {*(f"var({name})" for name in rem if not re.fullmatch(r"--s\d", name)), "100%", "1em"}
    spaces = re.findall(r"(?:margin|padding|gap)(?:-[\w-]+)?: ([^;]+);", RULES)
    odd = {part for space in spaces for part in re.sub(r"calc\(-1 \* (var\([^)]*\))\)", r"\1", space).split()}
    assert odd - {f"var(--s{number})" for number in (1, 2, 3, 4, 6, 8)} == {"0", "auto", "-1px"}


def test_no_colour_is_named_but_at_the_top() -> None:
    rules = RULES.partition("@media print")[0]
    assert re.findall(r"#[0-9a-f]{3,8}\b|rgba?\(|hsla?\(|light-dark\(", rules) == []


def test_every_state_has_a_colour_and_the_legend_has_every_state() -> None:
    for mark in Mark:
        name = mark.replace(" ", "-")
        assert f".{name} {{ --state: var(--{name}); }}" in RULES
    assert sorted(LEGEND) == sorted(Mark)
    assert len({mark.shape for mark in Mark}) == len(Mark)


@pytest.mark.parametrize("path", sorted((WEB / "templates").iterdir()), ids=lambda path: path.name)
def test_no_template_has_a_script_or_a_style_of_its_own(path: Path) -> None:
    assert NEVER_INLINE.findall(path.read_text("utf-8")) == []
    assert "|safe" not in path.read_text("utf-8").replace(" ", "")


def test_nothing_comes_from_outside() -> None:
    for path in sorted(WEB.glob("static/*")):
        texts = re.findall(r"https?://[^\s\"')]+", path.read_text("utf-8"))
        assert set(texts) <= {"http://www.w3.org/2000/svg"}, path.name
