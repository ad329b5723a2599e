"""warcmill search: find pages and PDFs of the archive by their words, and captures by their URL."""

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
from warcmill.errors import BadConfig, NotReady
from warcmill.model import Json
from warcmill.stores.opening import open_folder
from warcmill.versions import search
from warcmill.versions.search import FoundDocument, Query, SearchAnswer
from warcmill.web import queries
from warcmill.web.archive import Archive, ShownCaptures

SUMMARY = "find pages and PDFs of the archive by their words, or by their URL"
EPILOG = """\
examples:
  warcmill search freedom information
  warcmill search 'freedom of information' --site gov.example --from 2016-10 --to 2016-11
  warcmill search freedom --type pdf
  warcmill search https://www.example.org/report.html
  warcmill search freedom --json | jq -r '.found[].url'

Finds captures of HTML pages, PDFs and plain text that have all the words, in their title
or text; a word with blanks in it is a phrase. The best 20 are shown, each with a line of
its text in which the words are marked; where more than 10,000 captures have the words, the
best of the 10,000 that the index has last. --site takes a host, and means its subdomains
too; --from and --to take days, months or years, and include them; --type takes html, pdf,
text or other, by the media type that was served.

A URL alone, with its scheme or without, finds the captures of that URL, the newest first,
also those of pictures and errors, as the page of 'warcmill serve' does.

It asks the current version of the text index, for a URL that of the CDX; 'warcmill scan'
publishes them, where [text] and [index] are on. What is hidden (warcmill versions hide) is
not found.

--json: {"captures", "found": [{"line", "offset", "time", "title", "type", "url", "warc"}],
"version"}; captures counts all that were found, warc is below the store's warcs/; of a URL
{"captures", "found": [{"status", "time", "type", "url"}], "version"}

exit codes: 0 found, 1 nothing found, or no version is published, 2 usage,
3 configuration, 4 a root did not answer
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """WORD... [--site HOST] [--from DAY] [--to DAY] [--type TYPE] [--json]."""
    parser.add_argument("words", nargs="+", type=_word, metavar="WORD", help="a word, or a phrase; or a URL alone")
    parser.add_argument("--site", default="", metavar="HOST", help="only of this host and its subdomains")
    parser.add_argument("--from", dest="first", type=_day, metavar="DAY", help="captured from then on")
    parser.add_argument("--to", dest="last", type=_day, metavar="DAY", help="captured until then")
    parser.add_argument("--type", default="", choices=search.TYPE_WORDS, help="only of this type")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print the best captures."""
    if not settings().index:
        raise BadConfig("[warcmill] index", f"is not set, {NO_INDEX}")
    if captures := _captures_of(args):
        return _print_captures(captures, in_json=args.json)
    query = Query(args.words, args.site, args.first or "", args.last or "", args.type)
    answer = search.search(open_line().state.store, open_folder("index", settings().index), query)
    if args.json:
        found: list[Json] = [asdict(one) for one in answer.best]
        print(as_json({"captures": answer.captures, "found": found, "version": answer.version}))
    else:
        _print(answer)
    return 0 if answer.captures else 1


def _captures_of(args: argparse.Namespace) -> ShownCaptures | None:
    """The captures of a URL that was typed; None for words, and for what may be words and has no capture."""
    url = queries.url_of(args.words[0]) if len(args.words) == 1 and not args.site else ""
    if not url:
        return None
    line, is_url = open_line(), url == args.words[0]
    archive = Archive(line.state.store, lambda: open_folder("index", settings().index), lambda: line.store)
    try:
        found = archive.captures_of(url, args.first or "", args.last or "", args.type)
    except NotReady:
        if is_url:
            raise
        return None
    return found if found.captures or is_url else None


def _print_captures(found: ShownCaptures, *, in_json: bool) -> int:
    """Print the newest captures of a URL; return the exit code."""
    if in_json:
        listed: list[Json] = [asdict(one) for one in found.last]
        print(as_json({"captures": found.captures, "found": listed, "version": found.version}))
        return 0 if found.captures else 1
    shown = found.last[: search.MOST]
    for one in shown:
        type_ = f"  {printable(one.type)}" if one.type else ""
        lines(console(), Text(f"{clock.stamp_text(one.time)}  {one.status:<3}  {printable(one.url)}{type_}"))
    more = f"; the newest {len(shown)} are shown" if found.captures > len(shown) else ""
    err(f"{counted(found.captures, 'capture', 'captures')} found{more}")
    return 0 if found.captures else 1


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
