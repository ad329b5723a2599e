"""warcmill documents: list the publications that the archive has, decide which are kept, hand them on."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from commands.console.arguments import add_json
from commands.console.person import person
from commands.console.show import as_json, counted, err, out
from warcmill.errors import BadInput, Unavailable

if TYPE_CHECKING:
    from warcmill.documents.desk import Desk
    from warcmill.documents.exchange import HandedIn
    from warcmill.documents.looking import DocumentReport
    from warcmill.stores import Store

SUMMARY = "list the publications that crawls brought, decide which are kept, hand them on"
EPILOG = """\
examples:
  warcmill documents list
  warcmill documents list --status NEW --target watched --days 7
  warcmill documents list --prefix org,example --type pdf --words 'annual report'
  warcmill documents show 3f2a9c41
  warcmill documents decide 3f2a9c41 --status SAVED --title 'Annual report 2026'
  warcmill documents decide 3f2a9c41 90ab12cd --status IGNORED --note 'minutes of meetings'
  warcmill documents decide 3f2a9c41 --isbn '' --withdraw title
  warcmill documents import w3act.jsonl
  warcmill documents export --status SAVED --since 2026-11-01 --format csv > saved.csv

A document is one body, such as a PDF, with all URLs at which crawls met it. Its id is the
SHA-256 of that body; 8 digits of it are enough. 'warcmill scan' finds documents, where
[documents] since is set. list takes them by status, target (an id, or watched: any that is
watched), prefix (a SURT, a URL or a host), type, words of title, publisher and URL, and the
days in which they were first seen; without an option all. The newest publication is first.

decide says what becomes of documents: a status, and values for fields in place of those that
were extracted, which stay as they are written, whatever later crawls bring. --isbn '' leaves a
field empty; --withdraw FIELD takes a person's value away, so that the extracted one is shown
again. A decision is in the store before the command ends. Of two people who decide over one
state the second is refused: --over takes the decision that 'show' or 'list --json' printed.

import reads W3ACT's documents, a line of JSON each: id_watched_target, document_url,
wayback_timestamp, landing_page_url, title, publisher, publication_date, authors, isbn, doi,
status. A line finds its document by document_url and wayback_timestamp, or by sha256. What is
decided here already stays; so the same import again continues, or changes nothing. A document
that the archive has not yet is named, and can be imported later.

export writes documents of a status, decided since a day: jsonl as list --json has them, csv
for spreadsheets, dc as Dublin Core in XML.

--json: list {"after", "decision", "documents": [{"authors", "document_url", "doi",
"filename", "first_seen", "id", "isbn", "landing_page_url", "publication_date", "publisher",
"size", "status", "target_id", "title", "type", "urls", "version_of", "wayback_timestamp"}]}
show {"candidates": {FIELD: [{"by", "date", "url", "value", "why_not"}]}, "captures":
[{"date", "is_revisit", "job", "launch", "offset", "url", "warc"}], "decision", "document",
"fault", "history": [{"decision", "fields", "status", "time", "who"}], "versions"}
decide {"changed", "decision"}; import {"bad": [{"line", "name", "why"}], "decided", "known",
"lines", "new", "waiting": [{"line", "name", "why"}]}

exit codes: 0 done, or nothing new to decide; 1 no such document, somebody else has decided
meanwhile, or lines of an import are bad or wait; 2 usage, 3 configuration, 4 a root did not
answer: the same command again continues; 5 the table of documents is being made
"""
STATUSES = ("NEW", "SAVED", "SUBMITTED", "IGNORED", "DELETED")
TYPES = ("pdf", "epub", "text", "sheet", "slides", "other")
WRITTEN = ("title", "landing_page_url", "publisher", "publication_date", "authors", "isbn", "doi", "target_id", "note")
FORMATS = ("jsonl", "csv", "dc")
LIMIT = 1_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """list, show ID, decide ID... --status S, import FILE, export --status S."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="list|show|decide|import|export")
    choices = {name: actions.add_parser(name, allow_abbrev=False) for name in ACTIONS}
    listed, decided, exported = choices["list"], choices["decide"], choices["export"]
    listed.add_argument("--status", choices=STATUSES, default="", help="only those")
    listed.add_argument("--target", default="", metavar="ID", help="only its documents; 'watched': of any target")
    listed.add_argument("--prefix", default="", metavar="SURT", help="only below it: a SURT, a URL or a host")
    listed.add_argument("--type", choices=TYPES, default="", help="only of this type; text: of word processors")
    listed.add_argument("--days", type=_number, default=0, metavar="NUMBER", help="first seen in the last so many")
    listed.add_argument("--words", default="", metavar="WORDS", help="in title, publisher or URL")
    listed.add_argument("--publisher", default="", metavar="WORDS", help="in the publisher")
    listed.add_argument(
        "--limit", type=_number, default=LIMIT, metavar="NUMBER", help=f"how many; by default {LIMIT:,}"
    )
    listed.add_argument("--after", default="", metavar="PLACE", help="the 'after' of the list before")
    choices["show"].add_argument("id", metavar="ID", help="of a document, or 8 or more digits of it")
    decided.add_argument("ids", nargs="+", metavar="ID", help="of a document, or 8 or more digits of it")
    decided.add_argument("--status", choices=STATUSES, default="", help="what becomes of them")
    for name in WRITTEN:
        option = f"--{name.replace('_', '-')}"
        decided.add_argument(
            option, dest=name, metavar="TEXT", help="in place of the extracted one; '' leaves it empty"
        )
    shown_again = "show the extracted value again"
    decided.add_argument("--withdraw", action="append", default=[], choices=WRITTEN, metavar="FIELD", help=shown_again)
    decided.add_argument("--over", type=_number, metavar="NUMBER", help="the last decision that you have seen")
    choices["import"].add_argument("file", type=Path, metavar="FILE", help="documents of W3ACT, a line of JSON each")
    exported.add_argument("--status", choices=STATUSES, required=True, help="only those")
    exported.add_argument("--since", type=_day, metavar="DAY", help="only those decided since")
    exported.add_argument("--format", choices=FORMATS, default=FORMATS[0], help="by default jsonl")
    for name in ("list", "show", "decide", "import"):
        add_json(choices[name])


def _number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number")
    return int(text)


def _day(text: str) -> str:
    try:
        return str(date.fromisoformat(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"'{text}' is not a day such as 2026-11-30") from error


def run(args: argparse.Namespace) -> int:
    """Ask the desk, or decide."""
    from tasks import desk  # with SQLite and the version, which --help does without
    from tasks.line import open_line

    line = open_line()
    with desk.opened(line) as found:
        return ACTIONS[args.action](args, found, lambda: line.store)


def _list(args: argparse.Namespace, desk: Desk, _: Callable[[], Store]) -> int:
    from warcmill.documents import looking

    fields = {name: str(getattr(args, name) or "") for name in looking.FIELDS}
    page = looking.ask(desk, looking.query_of(fields), args.limit)
    if args.json:
        print(as_json(page.json()))
        return 0
    for one in page.documents:
        out(f"{one.entry.id[:12]} {one.decided.status:<9} {one.text('publication_date')[:10]:<10} {one.title}")
        out(f"{'':12} {one.entry.urls[0]}")
    if desk.missing:
        err(desk.missing)
        return 0
    number = "many documents" if page.found is None else counted(page.found, "document", "documents")
    err(number + (f"; the next ones: --after {page.after}" if page.after else ""))
    return 0


def _show(args: argparse.Namespace, desk: Desk, _: Callable[[], Store]) -> int:
    from warcmill.documents import looking

    found = looking.about(desk, desk.id_of(args.id))
    if args.json:
        print(as_json(found.json()))
    else:
        out(*_lines(found))
    return 0


def _lines(found: DocumentReport) -> Iterator[str]:
    from warcmill.documents.decided import author

    one = found.document
    yield from (f"{name}: {value}" for name, value in one.json().items() if name != "urls")
    yield from (f"url: {url}" for url in one.entry.urls)
    yield from [f"fault: {one.entry.fault}"] if one.entry.fault else []
    for name, candidates in one.entry.fields.items():
        for each in candidates:
            yield f"{name}, by {each.by}: {each.value}{f' (not good: {each.why_not})' if each.why_not else ''}"
    yield from (f"version: {other.entry.id} {other.title}" for other in found.versions)
    for decision, said in found.history:
        yield f"decision {decision.number}, {decision.time}, by {author(decision)}: {said.words}"


def _decide(args: argparse.Namespace, desk: Desk, open_store: Callable[[], Store]) -> int:
    from warcmill.documents.decided import DocumentDecision

    fields = {name: value for name in WRITTEN if (value := getattr(args, name)) is not None}
    if both := fields.keys() & set(args.withdraw):
        raise BadInput(f"--withdraw {min(both)}", "this field gets a value by the same command")
    fields |= dict.fromkeys(args.withdraw)
    if not args.status and not fields:
        raise BadInput("decide", "neither a status nor a field is given; 'warcmill documents --help' has examples")
    said = [DocumentDecision(desk.id_of(one), args.status, fields) for one in args.ids]
    changed = desk.decide(open_store, person(), said, args.over)
    if args.json:
        print(as_json({"changed": changed, "decision": desk.number}))
    elif changed:
        out(f"{counted(changed, 'document', 'documents')} decided, by decision {desk.number}")
    else:
        out("nothing new: it was decided so before")
    return 0


def _import(args: argparse.Namespace, desk: Desk, open_store: Callable[[], Store]) -> int:
    from warcmill.documents import exchange

    try:
        with args.file.open("rb") as file:
            done = exchange.hand_in(desk, open_store, person(), file)
    except OSError as error:
        raise Unavailable(str(args.file), error.strerror or str(error)) from error
    if args.json:
        print(as_json(done.json()))
    else:
        out(*_imported(str(args.file), done))
    return int(bool(done.bad or done.waiting))


def _imported(file: str, done: HandedIn) -> Iterator[str]:
    for line, name, why in done.bad:
        yield f"{file}, line {line}: {name}: {why}"
    for line, name, why in done.waiting:
        yield f"{file}, line {line}: {name}: {why}"
    counts = f"{done.decided:,} decided, {done.known:,} decided before, {done.new:,} NEW"
    left = f"{len(done.waiting):,} not in the archive yet, {len(done.bad):,} bad"
    yield f"{counted(done.lines, 'line', 'lines')}: {counts}, {left}"


def _export(args: argparse.Namespace, desk: Desk, _: Callable[[], Store]) -> int:
    from warcmill.documents import exchange, looking

    query = looking.DeskQuery(status=args.status, changed=args.since or "")
    for piece in exchange.FORMATS[args.format](looking.each(desk, query)):
        sys.stdout.write(piece)
    return 0


ACTIONS: Mapping[str, Callable[[argparse.Namespace, Desk, Callable[[], Store]], int]] = {
    "list": _list, "show": _show, "decide": _decide, "import": _import, "export": _export,
}  # fmt: skip
"""Each action, which returns the exit code."""
