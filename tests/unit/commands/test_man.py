"""The manual page reports what the help says: every verb, every option, every example."""

from __future__ import annotations

import re

import pytest

from commands.console.parser import options_of, parser_of
from commands.main import CODES, VERBS
from commands.man import escaped, page

PAGE = list(page())
SHOWN = re.sub(r"\\f[BR]|\\&", "", "\n".join(PAGE)).replace(r"\-", "-").replace(r"\(aq", "'").replace(r"\(ga", "`")
SHOWN = SHOWN.replace(r"\e", "\\")


@pytest.mark.parametrize("verb", [verb for group in VERBS.values() for verb in group])
def test_a_verb_has_its_section_with_all_its_options_and_its_epilog(verb: str) -> None:
    begin = SHOWN.index(f".SS warcmill {verb}\n")
    section = SHOWN[begin : SHOWN.find("\n.S", begin + 1)]
    parser = parser_of(verb)
    assert f"{parser.description}." in section
    assert all(re.search(rf"^(-\w, )?{re.escape(option)}\b", section, re.MULTILINE) for option in ours(verb))
    assert (parser.epilog or "").rstrip() in section


def ours(verb: str) -> set[str]:
    return {*options_of(parser_of(verb))} - {"-h", "--help"}


def test_the_exit_codes_are_explained() -> None:
    assert CODES.partition(": ")[2] in SHOWN


def test_no_line_of_text_is_taken_for_a_macro() -> None:
    assert escaped(".nf") == r"\&.nf"
    assert escaped("'x' \\ -y `z`") == r"\&\(aqx\(aq \e \-y \(gaz\(ga"
    macros = {line.split()[0] for line in PAGE if line.startswith(".")}
    assert macros <= {".TH", ".SH", ".SS", ".B", ".TP", ".PP", ".nf", ".fi", ".ad"}
    assert not any(line.startswith("'") for line in PAGE)
