"""warcmill make: run the step that publishes a marker, and first the steps that it rests on."""

from __future__ import annotations

import argparse

from commands.console.scanner import ours
from commands.console.show import err
from commands.console.single_task import do
from tasks.config.settings import check_hardened, settings
from tasks.line import open_line
from warcmill import layout
from warcmill.audit import remedies
from warcmill.model import Key

SUMMARY = "run the step that publishes a marker, and first the steps that it rests on"
EPILOG = """\
examples:
  warcmill make files.copied.daily.20161019234428.final
  warcmill make files.retired.daily.20161019234428.final

MARKER is the name of a marker, as 'why' and 'reconcile' print it. A marker that is there
stays as it is: 'warcmill redo' moves one aside. 'warcmill scan' makes all that are missing;
make is for a step that no scan runs by itself, such as files.read-back and files.retired,
and for a marker that a scan passes over, as later ones are there.

The step is a luigi task; it logs to stderr, and a line on stdout reports what happened.

exit codes: 0 done, or done already, 1 the step failed, or no step makes such a marker,
2 usage, 3 configuration, 4 a root did not answer, 5 the step is running already, 70 a bug
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """MARKER."""
    parser.add_argument("marker", type=_marker, metavar="MARKER", help="its name, as why and reconcile print it")


def run(args: argparse.Namespace) -> int:
    """Run the step, unless its marker is there."""
    settings()
    check_hardened()
    key: Key = args.marker
    name = layout.marker_name(key)
    if (made_by := remedies.step(key)) != f"warcmill make {name}":
        err(f"warcmill make: no step of its own makes {name}; run: {made_by}")
        return 1
    words = [key.task]
    for option, value in key.params:
        words += [f"--{option.replace('_', '-')}", value]
    return ours(do(open_line(), key, words, lambda _: f"{name} is published", f"tasks.{key.task.partition('.')[0]}"))


def _marker(text: str) -> Key:
    key = layout.parse_marker_name(text)
    if key is None:
        raise argparse.ArgumentTypeError(f"'{text}' is not a marker's name, such as files.copied.daily.LAUNCH.final")
    return key
