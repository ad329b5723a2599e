"""warcmill import: make a launch of a folder of WARCs."""
# ruff: noqa: N999 - the parser finds this module by the verb's name, and nothing imports it by a statement

from __future__ import annotations

import argparse
import os
import pwd
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
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
from warcmill.decisions.folder_layouts import ImportOrder, ImportResult, why_never_found
from warcmill.errors import Busy
from warcmill.launches.roots import RootMap
from warcmill.markers import locks
from warcmill.markers.claim import Claim
from warcmill.markers.facts.operator import Imported
from warcmill.model import Item, Json, Launch, Outcome
from warcmill.stores.engine_folder import SourceFolder
from warcmill.stores.opening import is_remote

SUMMARY = "make a launch of a folder of WARCs that has no launch and no log"
EPILOG = """\
examples:
  warcmill import /mnt/old/2009-elections --job elections
  warcmill import wget-2026 --job wget --launch-id 20260214090000
  warcmill import /mnt/old/2009-elections --job elections --json | jq -r '.left_out[]'

Takes every *.warc and *.arc (also .gz) in FOLDER and below it, reads each one whole
(the check is that of 'warcmill check'), and makes one launch of them in the root of
imported launches, [engine.imported] of luigi.cfg. From there it goes the way of any
launch: 'warcmill scan' stores and verifies it. That it has no logs is not a gap.

A WARC that nobody but this user or root can change is hard-linked where the disk
allows it; any other is copied. FOLDER is never changed. A broken WARC is imported too:
it stays refused, as one of a crawl would. Links are not followed; other files are left
out. All of these are named here and in the launch's marker.

JOB is a new name, or that of an earlier import: never that of a job that an engine
crawls. The launch's id is the date of the earliest record, unless you give one.
The same folder again: nothing new. If files have come since, they make a second launch.
Killed or out of room: run it again, and it continues where it stopped.

--json: {"launch": "JOB/ID", or "" if nothing is new, "first", "last": dates of its records,
"files", "bytes", "refused", "linked": numbers, "imported": [{"name", "origin", "size",
"sha512", "outcome", "why", "offset"}], "missing", "left_out": ["path: why"], "known":
{path: where}, "mended": launches whose import was cut short, and is complete now}

exit codes: 0 imported, or nothing is new, 1 imported, and some WARC is refused or may be
missing; or FOLDER cannot be imported, 2 usage, also a job that an engine crawls, and a
folder of this line, 3 configuration, 4 a disk is unavailable or full, 5 another import
of the job is running
"""
MOST = 20  # names of a kind that are printed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """FOLDER --job NAME [--launch-id LAUNCH] [--json]."""
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="the WARCs; only read")
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
    root, folder = configured.open_imported(), Path(os.path.realpath(args.folder))
    if why := _refusal(configured, line.rootmap, folder) or folder_import.why_not(line.rootmap, line.state, args.job):
        err(f"warcmill import: {why}", "nothing was imported")
        return 2
    if holder := locks.take(line.state, f"import.{args.job}"):
        raise Busy(f"an import of job '{args.job}' (process {holder})")
    order = ImportOrder(args.job, _user(), args.launch_id or "")
    result = folder_import.import_folder(
        line.state, root, SourceFolder(folder), order, partial(bytes_done, "importing")
    )
    if args.json:
        print(as_json(_json(result)))
    else:
        lines(console(), *_texts(result))
    return int(_is_partial(result.claim)) if result.claim else 0


def _refusal(configured: Settings, rootmap: RootMap, folder: Path) -> str:
    """Why this folder is none to import: a file, or a folder of the line's own; '' for any other."""
    if folder.exists() and not folder.is_dir():
        return f"{folder} is a file; name the folder that it is in"
    own = (configured.state, configured.store, configured.index, chains.destination(), *rootmap.levels())
    for place in filter(None, own):
        if not is_remote(place) and folder_import.is_inside(folder, place):
            why = f"of {folder} and the root {place} of this line, one is inside the other"
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
        "missing": list(facts.missing) if facts else [],
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
