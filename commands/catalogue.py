"""warcmill catalogue: find SIPs, WARCs and ARKs; or make the catalogue anew from the markers."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from datetime import date
from typing import cast

from rich.text import Text

from commands.console.arguments import add_json, job, launch_id
from commands.console.show import as_json, counted, err, out
from commands.console.terminal import console, lines, styled
from tasks.line import OpenRoots, catalogue_of, open_line
from warcmill.audit.survey import in_order
from warcmill.base.escapes import printable
from warcmill.errors import WarcmillError
from warcmill.launches.discovery import with_markers
from warcmill.model import Json, Launch
from warcmill.package.catalogue import STATES, Catalogue, RowSet, row_set
from warcmill.package.catalogue_query import SHORTEST, CatalogueMatch, Question, Record, ask
from warcmill.package.index_sip import entered

SUMMARY = "find SIPs, WARCs and ARKs in the catalogue, or make it anew from the markers"
EPILOG = f"""\
examples:
  warcmill catalogue query --warc BL-20161019234430000-00000-1~crawler~8443.warc.gz
  warcmill catalogue query --launch daily 20161019234428
  warcmill catalogue query --digest 3c9909afec25354d
  warcmill catalogue query --ark ark:12345/x5k7wz0rj8h2m4np6q
  warcmill catalogue query --state {STATES[0]} --json | jq -r '.sips[].name'
  warcmill catalogue rebuild

query prints the SIPs that fit everything that is asked for, each with its state
({", ".join(STATES)}), its file in the store, and the WARCs that it covers.
Asked for a WARC, a digest or an ARK it prints only those files. A SIP is in the catalogue
once package.IndexSip has entered it; one that is on its way there is shown by 'warcmill
status' and 'warcmill why'.

rebuild reads the markers of all launches, and replaces all rows with their facts. The
catalogue is the file catalogue.sqlite in the index root. It can always be made anew: back
up the state, not the catalogue.

--json (query): {{"sips": [{{"job", "launch_id", "stage", "name": the file at the destination,
"path": in the store, "size", "sha512", "form", "covers": [stage], "before": stage of the
SIP before or "", "state", "claim": of its 05, "warcs": [{{"stage", "name", "word", "path",
"size", "sha512"}}], "arks": [{{"ark", "path", "name"}}], "events": [{{"marker", "task", "stage", "claim",
"host", "started", "finished"}}]}}]}}

exit codes: 0 found, or done; 1 nothing fits, there is no catalogue yet or it is damaged, or
markers that a rebuild needs cannot be read; 2 usage, 3 configuration, 4 a disk did not
answer, 5 another process is writing it
"""
MOST = 20  # WARCs that are listed of a SIP in a terminal
EVER = date(1970, 1, 1), date(9999, 12, 31)
_DIGEST = re.compile(rf"[0-9a-fA-F]{{{SHORTEST},128}}")
_OF_SIP = ("job", "launch_id", "sip")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """query [--ark] [--warc] [--digest] [--launch] [--state] [--json], rebuild."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="query|rebuild")
    actions.add_parser("rebuild", allow_abbrev=False)
    query = actions.add_parser("query", allow_abbrev=False)
    query.add_argument("--ark", default="", metavar="ARK", help="an ARK of a SIP or of a file")
    query.add_argument("--warc", default="", metavar="NAME", help="a WARC, by its own name")
    query.add_argument(
        "--digest", type=_digest, metavar="SHA512", help=f"of a WARC or SIP; its first {SHORTEST} digits do"
    )
    query.add_argument("--launch", nargs=2, action=_OfLaunch, metavar=("JOB", "LAUNCH"), help="one launch")
    query.add_argument("--state", default="", choices=STATES, metavar="STATE", help=", ".join(STATES))
    add_json(query)


def run(args: argparse.Namespace) -> int:
    """Ask the catalogue, or make it anew."""
    line = open_line()
    catalogue = catalogue_of(line)
    if args.action == "rebuild":
        return _rebuild(line, catalogue)
    question = Question(args.ark, args.warc, args.digest or "", args.launch, args.state)
    return _print_json(catalogue, question) if args.json else _print(catalogue, question)


def _print_json(catalogue: Catalogue, question: Question) -> int:
    found = [_json(one) for one in ask(catalogue, question)]
    print(as_json({"sips": list(found)}))
    return 0 if found else 1


def _print(catalogue: Catalogue, question: Question) -> int:
    number = 0
    for one in ask(catalogue, question):
        number += 1
        lines(console(), *_texts(one, question))
    lines(console(), Text(counted(number, "SIP", "SIPs") if number else "no SIP fits", style="bold"))
    return 0 if number else 1


def _rebuild(line: OpenRoots, catalogue: Catalogue) -> int:
    troubles: list[str] = []
    sips = catalogue.rebuild(_all_rows(line, troubles))
    err(*troubles)
    out(f"{catalogue.path} has {counted(sips, 'SIP', 'SIPs')}")
    return 1 if troubles else 0


def _all_rows(line: OpenRoots, troubles: list[str]) -> Iterator[RowSet]:
    """The rows of every SIP that has its 08. One that cannot be read hides no other."""
    for launch in in_order(with_markers(line.state, *EVER)):
        try:
            stages = entered(line.state, launch)
        except WarcmillError as error:
            troubles.append(f"{launch}: {error}")
            continue
        for stage in stages:
            try:
                yield row_set(line.state, launch, stage)
            except WarcmillError as error:
                troubles.append(f"{launch} {stage} is left out: {error}")


def _texts(found: CatalogueMatch, question: Question) -> Iterator[Text]:
    sip = found.sip
    launch = f"{sip['job']}/{sip['launch_id']} {sip['sip']}"
    covers = "" if sip["covers"] == sip["sip"] else f", covers {str(sip['covers']).replace(' ', ', ')}"
    yield Text.assemble((launch, "bold"), f"  {sip['state']}, by {sip['form']}{covers}")
    yield styled(f"  store:{sip['path']}  {sip['size']:,} bytes")
    yield styled(f"  sha512 {sip['sha512']}", "dim")
    arks = {str(one["path"]): str(one["ark"]) for one in found.arks}
    if own := arks.pop(str(sip["path"]), ""):
        yield styled(f"  {own}", "cyan")
    most = len(found.warcs) if question.is_about_files() else MOST
    yield from (_warc(one, arks) for one in found.warcs[:most])
    if question.ark:
        yield from (styled(f"    store:{path}  {ark}") for path, ark in arks.items())  # of a file that is not a WARC
    if len(found.warcs) > most:
        yield styled(f"  and {len(found.warcs) - most} more WARCs; --json lists all", "dim")


def _warc(warc: Record, arks: dict[str, str]) -> Text:
    ark = arks.pop(str(warc["path"]), "")
    word = "" if warc["word"] == "whole" else f"  {warc['word']}"
    text = f"    {warc['size']:>15,}  {printable(str(warc['name']))}"
    return Text.assemble(text, (word, "yellow"), (f"  {ark}" if ark else "", "cyan"))


def _json(found: CatalogueMatch) -> dict[str, Json]:
    sip: dict[str, Json] = {name: value for name, value in found.sip.items() if name not in ("sip", "covers")}
    parts = {"warcs": found.warcs, "arks": found.arks, "events": found.events}
    return {
        **sip,
        "stage": found.sip["sip"],
        "covers": list(str(found.sip["covers"]).split()),
        **{name: [_without_sip(one) for one in part] for name, part in parts.items()},
    }


def _without_sip(record: Record) -> dict[str, Json]:
    return {name: value for name, value in record.items() if name not in _OF_SIP}


def _digest(text: str) -> str:
    if not _DIGEST.fullmatch(text):
        raise argparse.ArgumentTypeError(f"'{text}' is not a SHA-512: {SHORTEST} to 128 hex digits")
    return text.lower()


class _OfLaunch(argparse.Action):
    """Two words are a job and a launch."""

    def __call__(
        self,
        _parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        _option: str | None = None,
    ) -> None:
        name, number = cast("list[str]", values)  # nargs=2
        try:
            namespace.launch = Launch(job(name), launch_id(number))
        except argparse.ArgumentTypeError as error:
            raise argparse.ArgumentError(self, str(error)) from error
