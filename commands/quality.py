"""warcmill quality: open pages of a launch in replay, name what they lack; mark the launch, and patch it."""

from __future__ import annotations

import argparse

from commands.console.arguments import add_json, add_launch
from commands.console.show import err
from warcmill.quality import MARKS, MOST, SAMPLE

SUMMARY = "open pages of a launch in replay with the network cut, and name what they lack"
EPILOG = """\
examples:
  warcmill quality daily
  warcmill quality daily 20161019234428 --sample 50
  warcmill quality daily 20161019234428 --last --json
  warcmill quality daily 20161019234428 --mark poor --note 'no pictures in the news'
  warcmill quality daily 20161019234428 --patch

A check opens the seeds and 20 other pages, or --sample so many of each, in Chromium, which
reaches our replay alone. The same ones each time: those whose URLs have the smallest SHA-256.
For each page it names the parts that replay has not, with the reason:

  hidden      an access rule hides it
  scope       a rule of the job leaves it out
  robots      robots.txt forbids it
  refused     a quota, a person, or the rule about inside addresses was against it
  failed      no answer came, or an error
  orphan      the archive has a revisit of it, and not the payload
  unseen      the crawl found no link to it, as where a script makes the address
  unindexed   it was got, and the index version has it not yet
  broken      the index version has it, and replay could not show it

Besides: what the page asked the live web for, which was refused, and how many of the words
that the crawl saw are in replay. Worst first. The report is kept in the state, and names the
version of the index. --last shows the newest one again. --mark is a decision, kept with who
made it. --patch starts a crawl of what the newest report names and a crawl can bring, as a
job of its own, JOB-patch: these URLs, each with its parts, and the manners of JOB. Its launch
names the one that it mends. Once 'warcmill scan' has brought it in, check again.

It needs Chromium and pywb: apt-get install chromium, pip install 'warcmill[render]',
'warcmill serve --get-replay'.

--json: {"job", "launch_id", "number", "made", "version", "kinds": {reason: number},
"lacking", "seeds", "others", "pages": [{"url", "time", "title", "is_seed", "state", "why",
"parts", "missing": [{"kind", "url", "why"}], "leaks", "words", "common", "thumbnail"}]}

exit codes: 0 checked, whatever is missing, or shown, marked, started; 1 no such launch, none
of its stages is verified yet, no index is published, nothing to show or to patch, 2 usage,
3 configuration, or Chromium or pywb is missing, 4 a root, the store, the browser or replay
did not answer
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """[JOB [LAUNCH]], --sample, and what else is to be done than a check."""
    add_launch(parser, optional=True)
    parser.add_argument(
        "--sample", type=_sample, default=SAMPLE, metavar="N",
        help=f"so many seeds, and so many other pages; by default {SAMPLE}",
    )  # fmt: skip
    parser.add_argument("--no-sandbox", action="store_true", help="Chromium without its sandbox, as root needs it")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--last", action="store_true", help="check nothing: show the newest report")
    what.add_argument("--mark", choices=MARKS, help="check nothing: say how the launch is")
    what.add_argument("--patch", action="store_true", help="check nothing: start a crawl of what is missing")
    parser.add_argument("--note", default="", metavar="TEXT", help="why, one line, kept with the mark")
    add_json(parser)


def _sample(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= MOST:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number from 1 to {MOST}")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Check, show, mark or patch a launch."""
    if args.note and not args.mark:
        err("warcmill quality: --note goes with --mark")
        return 2
    from commands.console import quality  # it imports what crawls, which --help does without

    return quality.run(args)
