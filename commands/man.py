"""warcmill man: print the manual page, made from the help of the verbs."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial

from commands.console.parser import arguments, nested, parser_of
from commands.main import CODES, DESCRIPTION, VERBS
from warcmill import __version__

SUMMARY = "print the manual page of warcmill, for man"
EPILOG = """\
examples:
  warcmill man | man -l -
  warcmill man > /usr/local/share/man/man1/warcmill.1

exit codes: 0 printed, 2 usage
"""
WIDTH = 78  # columns of preformatted text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """No arguments."""


def run(_: argparse.Namespace) -> int:
    """Print the page."""
    print("\n".join(page()))
    return 0


def page() -> Iterator[str]:
    """The lines of the page, in man(7) macros."""
    yield f'.TH WARCMILL 1 "" "warcmill {__version__}" "Warcmill"'
    yield ".ad l"  # ragged right: names and options keep their spaces
    yield from (".SH NAME", rf"warcmill \- {escaped(DESCRIPTION)}")
    yield from (".SH SYNOPSIS", ".B warcmill", "VERB [ARGUMENT ...]")
    for group, verbs in VERBS.items():
        yield f".SH {group.upper()}"
        for verb in verbs:
            yield from _verb(verb)
    yield from (".SH EXIT STATUS", escaped(CODES.partition(": ")[2]))
    yield from (".SH ENVIRONMENT", ".TP", r"\fBLUIGI_CONFIG_PATH\fR", "the luigi.cfg that is read")
    yield from (".SH SEE ALSO", "luigi(1)")


def _verb(verb: str) -> Iterator[str]:
    parser = parser_of(verb)
    yield f".SS warcmill {escaped(verb)}"
    yield escaped(f"{parser.description}.")
    for part in (parser, *nested(parser).values()):
        part.formatter_class = partial(argparse.RawDescriptionHelpFormatter, width=WIDTH)
        yield from _preformatted(part.format_usage().removeprefix("usage: "))
    for part in (parser, *nested(parser).values()):
        yield from (line for action in arguments(part) for line in _argument(action))
    yield from _preformatted(parser.epilog or "")


def _argument(action: argparse.Action) -> Iterator[str]:
    if "--help" in action.option_strings or isinstance(action.choices, dict):
        return
    metavar = " ".join(action.metavar) if isinstance(action.metavar, tuple) else action.metavar or ""
    metavar = metavar or ("" if action.option_strings else action.dest)
    names = ", ".join(rf"\fB{escaped(name)}\fR" for name in action.option_strings)
    yield from (".TP", f"{names} {escaped(metavar)}".strip(), escaped(action.help or ""))


def _preformatted(text: str) -> Iterator[str]:
    yield from (".PP", ".nf")
    yield from (escaped(line) for line in text.rstrip().splitlines())
    yield ".fi"


def escaped(text: str) -> str:
    """A line of text, escaped for groff: backslashes, dashes, quotes, and what would begin a macro."""
    plain = text.replace("\\", r"\e").replace("-", r"\-").replace("'", r"\(aq").replace("`", r"\(ga")
    return rf"\&{plain}" if plain.startswith((".", r"\(aq")) else plain
