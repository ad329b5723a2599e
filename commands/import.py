"""warcmill import: make a launch of a folder of WARCs, or of WACZ files."""
# ruff: noqa: N999 - the parser finds this module by the verb's name, and nothing imports it by a statement

from __future__ import annotations

import argparse
import os
import pwd
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from itertools import islice, product
from pathlib import Path

from rich.text import Text

from commands.console.arguments import add_json, job, launch_id
from commands.console.progress import bytes_done
from commands.console.show import as_json, counted, err
from commands.console.terminal import console, lines
from tasks.config import chains
from tasks.config.settings import Settings, settings
from tasks.line import open_line
from warcmill import layout
from warcmill.base.escapes import printable
from warcmill.decisions import folder_import
from warcmill.decisions.folder_layouts import BareFolder, ImportOrder, ImportResult, WarcSource, why_never_found
from warcmill.errors import Busy
from warcmill.launches.roots import RootMap
from warcmill.markers import locks
from warcmill.markers.claim import Claim
from warcmill.markers.facts.operator import Imported
from warcmill.model import Item, Json, Launch, Outcome
from warcmill.stores.opening import is_remote
from warcmill.web.handover.files import FOLDER as UPLOADS

SUMMARY = "make a launch of a folder of WARCs that has no launch and no log, or of WACZ files"
EPILOG = """\
examples:
  warcmill import /mnt/old/2009-elections --job elections
  warcmill import wget-2026 --job wget --launch-id 20260214090000
  warcmill import crawls/*.wacz --job elections
  warcmill import /mnt/old/2009-elections --job elections --json | jq -r '.left_out[]'

Takes every *.warc and *.arc (also .gz) in FOLDER and below it, reads each one whole
(the check is that of 'warcmill check'), and makes one launch of them in the root of
imported launches, [engine.imported] of luigi.cfg. From there it goes the way of any
launch: 'warcmill scan' stores and verifies it. That it has no logs is not a gap.

Of FILE.wacz, one or more, it takes the WARCs, the lists of pages with their titles, and the
logs, each compared with datapackage.json. What is damaged, or differs, is named, and the rest
taken. The index in it is not used: the line makes its own, and names lines of records that
the WARCs do not have.

A WARC that nobody but this user or root can change is hard-linked where the disk
allows it; any other is copied. What is imported is never changed. A broken WARC is imported too:
it stays refused, as one of a crawl would. Links are not followed; other files are left
out. All of these are named here and in the launch's marker.

JOB is a new name, or that of an earlier import: never that of a job that an engine
crawls. The launch's id is the date of the earliest record, unless you give one.
The same folder again: nothing new. If files have come since, they make a second launch.
Killed or out of room: run it again, and it continues where it stopped.

--json: {"launch": "JOB/ID", or "" if nothing is new, "first", "last": dates of its records,
"files", "bytes", "refused", "linked": numbers, "imported": [{"name", "origin", "size",
"sha512", "outcome", "why", "offset"}], "missing", "left_out", "remarks": ["path: why"],
"papers": {path in the launch: path in the WACZ}, "known": {path: where}, "mended": launches
whose import was cut short, and is complete now}

exit codes: 0 imported, or nothing is new, 1 imported, and some file is refused, bad, or may
be missing; or nothing can be imported, 2 usage, also a job that an engine crawls, and a
folder of this line, 3 configuration, 4 a disk is unavailable or full, 5 another import
of the job is running
"""
MOST = 20  # names of a kind that are printed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """FOLDER or FILE.wacz, one or more, --job NAME [--launch-id LAUNCH] [--json]."""
    what = "a folder of WARCs, or WACZ files; only read"
    parser.add_argument("sources", type=Path, nargs="+", metavar="FOLDER", help=what)
    parser.add_argument("--job", type=job, required=True, metavar="NAME", help="the job that the launch is of")
    parser.add_argument("--launch-id", type=_launch_id, metavar="LAUNCH", help="its id: 14 digits, a UTC time")
    add_json(parser)


def _launch_id(text: str) -> str:
    """LAUNCH of a day that a scan can find."""
    if why := why_never_found(parsed := launch_id(text)):
        raise argparse.ArgumentTypeError(why)
    return parsed


def run(args: argparse.Namespace) -> int:
    """Refuse what is not a folder to import; import it; print what became of each file."""
    configured, line = settings(), open_line()
    root, places = configured.open_imported(), [Path(os.path.realpath(source)) for source in args.sources]
    if why := _refusal(configured, line.rootmap, places) or folder_import.why_not(line.rootmap, line.state, args.job):
        err(f"warcmill import: {why}", "nothing was imported")
        return 2
    if holder := locks.take(line.state, f"import.{args.job}"):
        raise Busy(f"an import of job '{args.job}' (process {holder})")
    order = ImportOrder(args.job, _user(), args.launch_id or "")
    with _opened(places) as source:
        result = folder_import.import_folder(line.state, root, source, order, partial(bytes_done, "importing"))
    if args.json:
        print(as_json(_json(result)))
    else:
        lines(console(), *_texts(result))
    return int(bool(result.bad) or (result.claim is not None and _is_partial(result.claim)))


def _is_wacz(place: Path) -> bool:
    return place.name.lower().endswith(".wacz") and not place.is_dir()


@contextmanager
def _opened(places: list[Path]) -> Iterator[WarcSource]:
    """Open what is to be imported: WACZ files, or one folder."""
    if _is_wacz(places[0]):
        from warcmill.decisions.wacz_source import WaczFiles

        with closing(WaczFiles(places)) as files:
            yield files
    else:
        yield BareFolder(places[0])


def _refusal(configured: Settings, rootmap: RootMap, places: list[Path]) -> str:
    """Why these cannot be imported: a file that is not a WACZ, folders, what is in the line's own; '' for any other."""
    for place in places:
        if place.exists() and not place.is_dir() and not _is_wacz(place):
            return f"{place} is a file; name the folder that it is in"
    if len(places) > 1 and not all(map(_is_wacz, places)):
        return "several folders, or folders and WACZ files; name one folder, or WACZ files alone"
    uploads = Path(configured.state, UPLOADS).resolve()  # which the pages took in, for this
    places = [place for place in places if uploads not in place.parents]
    own = (configured.state, configured.store, configured.index, chains.destination(), *rootmap.levels())
    for place, root in product(places, filter(None, own)):
        if not is_remote(root) and folder_import.is_inside(place, root):
            why = f"of {place} and the root {root} of this line, one is inside the other"
            return f"{why}; import a folder outside its roots"
    return ""


def _user() -> str:
    """The name of the user who imports; the number of one without a name."""
    number = os.geteuid()
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def _refused(claim: Claim) -> list[Item]:
    return [item for item in claim.items if item.outcome is Outcome.REFUSED]


def _bytes(claim: Claim) -> int:
    return sum(item.file.size for item in claim.items)


def _is_partial(claim: Claim) -> bool:
    return bool(_refused(claim) or Imported.from_claim(claim).missing)


def _texts(result: ImportResult) -> Iterator[Text | str]:
    for launch in result.completed:
        yield f"{launch}: its import was cut short, and is complete now"
    if result.claim:
        yield from _imported(result, result.claim)
    else:
        known = counted(len(result.known), "WARC is", "WARCs are")
        yield Text.assemble(("nothing new: ", "bold"), f"{known} imported already")
        yield from _some((f"{path}: {where}" for path, where in result.known.items()), "")
        yield from _some(result.bad, "missing", "bold red")
    launches = [*result.completed, *([layout.launch_of(result.claim.key)] if result.claim else [])]
    if launches:
        yield Text("Next:", style="bold")
        yield from (f"  warcmill scan {day}" for day in dict.fromkeys(launch.day for launch in launches))


def _imported(result: ImportResult, claim: Claim) -> Iterator[Text | str]:
    facts, refused = Imported.from_claim(claim), _refused(claim)
    copied = len(claim.items) - result.linked
    how = f"{copied} copied, {result.linked} linked"
    head = f": {counted(len(claim.items), 'WARC', 'WARCs')}, {_bytes(claim):,} bytes ({how})"
    yield Text.assemble((str(layout.launch_of(claim.key)), "bold green"), head)
    yield f"  records from {facts.first} to {facts.last}"
    renamed = (item for item in claim.items if facts.origins[item.file].rpartition("/")[2] != item.file.name)
    yield from _some((f"{facts.origins[item.file]}: its name is {item.file.name}" for item in renamed), "renamed")
    yield from _some((_why(item, facts.origins[item.file]) for item in refused), "refused", "bold red")
    yield from _some(facts.missing, "missing", "bold red")
    yield from _some(facts.left_out, "left out")
    yield from _some(facts.remarks, "note")
    if facts.papers:
        yield f"  with {counted(len(facts.papers), 'log or list of pages', 'logs and lists of pages')}"


def _why(item: Item, origin: str) -> str:
    return f"{origin}: {item.why}" if item.offset is None else f"{origin}: at offset {item.offset}: {item.why}"


def _some(texts: Iterable[str], word: str, style: str = "yellow") -> Iterator[Text]:
    """The first of some texts, each after a word, and how many more there are."""
    rest = iter(texts)
    for text in islice(rest, MOST):
        yield Text.assemble("  ", (f"{word}: " if word else "", style), printable(text))
    if more := sum(1 for _ in rest):
        yield Text(f"  and {more} more; --json has all", style=style)


def _json(result: ImportResult) -> dict[str, Json]:
    claim = result.claim
    facts = Imported.from_claim(claim) if claim else None
    launch: Launch | str = layout.launch_of(claim.key) if claim else ""
    return {
        "launch": str(launch),
        "first": facts.first if facts else "",
        "last": facts.last if facts else "",
        "files": len(claim.items) if claim else 0,
        "bytes": _bytes(claim) if claim else 0,
        "refused": len(_refused(claim)) if claim else 0,
        "linked": result.linked,
        "imported": [_item(item, facts.origins[item.file]) for item in claim.items] if claim and facts else [],
        "missing": [*(facts.missing if facts else result.bad)],
        "papers": dict(facts.papers) if facts else {},
        "remarks": list(facts.remarks) if facts else [],
        "left_out": list(facts.left_out) if facts else [],
        "known": dict(result.known),
        "mended": [str(each) for each in result.completed],
    }


def _item(item: Item, origin: str) -> Json:
    file = item.file
    return {
        "name": file.name,
        "origin": origin,
        "size": file.size,
        "sha512": file.sha512,
        "outcome": str(item.outcome),
        "why": item.why,
        "offset": item.offset,
    }
