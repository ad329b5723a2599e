"""warcmill search: find pages and PDFs of the archive by their words."""

from __future__ import annotations

import argparse

from msgspec.structs import asdict
from rich.text import Text

from commands.console.arguments import add_json
from commands.console.show import as_json, counted, err
from commands.console.terminal import console, lines
from tasks.config.settings import NO_INDEX, settings
from tasks.line import open_line
from warcmill.base import clock
from warcmill.base.escapes import printable
from warcmill.errors import BadConfig
from warcmill.model import Json
from warcmill.stores.opening import open_folder
from warcmill.versions import search
from warcmill.versions.search import FoundDocument, Query, SearchAnswer

SUMMARY = "find pages and PDFs of the archive by their words"
EPILOG = """\
examples:
  warcmill search freedom information
  warcmill search 'freedom of information' --site gov.example --from 2016-10 --to 2016-11
  warcmill search freedom --type pdf
  warcmill search freedom --json | jq -r '.found[].url'

Finds captures of HTML pages, PDFs and plain text that have all the words, in their title
or text; a word with blanks in it is a phrase. The best 20 are shown, each with a line of
its text in which the words are marked; where more than 10,000 captures have the words, the
best of the 10,000 that the index has last. --site takes a host, and means its subdomains
too; --from and --to take days, months or years, and include them; --type takes html, pdf,
text or other, by the media type that was served.

It asks the current version of the text index, which index.ScanForIndexing publishes where
[text] is on. What is hidden (warcmill versions hide) is not found.

--json: {"captures", "found": [{"line", "offset", "time", "title", "type", "url", "warc"}],
"version"}; captures counts all that were found, warc is below the store's warcs/

exit codes: 0 found, 1 nothing found, or no version is published, 2 usage,
3 configuration, 4 a root did not answer
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """WORD... [--site HOST] [--from DAY] [--to DAY] [--type TYPE] [--json]."""
    parser.add_argument("words", nargs="+", type=_word, metavar="WORD", help="a word, or a phrase")
    parser.add_argument("--site", default="", metavar="HOST", help="only of this host and its subdomains")
    parser.add_argument("--from", dest="first", type=_day, metavar="DAY", help="captured from then on")
    parser.add_argument("--to", dest="last", type=_day, metavar="DAY", help="captured until then")
    parser.add_argument("--type", default="", choices=search.TYPE_WORDS, help="only of this type")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print the best captures."""
    if not settings().index:
        raise BadConfig("[warcmill] index", f"is not set, {NO_INDEX}")
    query = Query(args.words, args.site, args.first or "", args.last or "", args.type)
    answer = search.search(open_line().state.store, open_folder("index", settings().index), query)
    if args.json:
        found: list[Json] = [asdict(one) for one in answer.best]
        print(as_json({"captures": answer.captures, "found": found, "version": answer.version}))
    else:
        _print(answer)
    return 0 if answer.captures else 1


def _print(answer: SearchAnswer) -> None:
    for one in answer.best:
        lines(console(), *_texts(one))
    last = f" of the {answer.ranked:,} last" if answer.ranked < answer.captures else ""
    shown = f"; the best {len(answer.best)}{last} are shown" if answer.captures > len(answer.best) else ""
    err(f"{counted(answer.captures, 'capture', 'captures')} found{shown}")


def _texts(result: FoundDocument) -> list[Text]:
    time = clock.stamp_text(result.time)
    return [
        Text(printable(result.title or result.url), "bold"),
        Text(f"  {printable(result.url)}  {time}", "cyan"),
        Text(f"  {printable(result.line)}"),
    ]


def _word(text: str) -> str:
    if not any(map(str.isalnum, text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a word")
    return text


def _day(text: str) -> str:
    if not search.is_day(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a year, a month or a day, such as 2016-10-19")
    return text.replace("-", "")
