"""warcmill wacz: write a launch as one file that replays in a browser. Writes that file, whole or not at all."""

from __future__ import annotations

import argparse
import errno
import os
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from msgspec.structs import replace

from commands.console.arguments import add_launch, add_stage
from commands.console.launches import launch_of
from commands.console.progress import bytes_done
from commands.console.show import counted, err, out
from tasks.config.settings import NO_INDEX
from tasks.line import OpenRoots, open_line
from warcmill import layout
from warcmill.audit.survey import did_you_mean_launch
from warcmill.errors import BadConfig, BadInput, Conflict, NotReady, Unavailable
from warcmill.launches import crawl_parts
from warcmill.launches.view import LaunchView
from warcmill.model import Launch
from warcmill.package.wacz import WaczContents, WaczSources, WrittenWacz, contents, write
from warcmill.reports import pages
from warcmill.reports.pages import ListFilter
from warcmill.stores import temporary_names
from warcmill.stores.opening import open_folder
from warcmill.versions import cdx, hidden_list
from warcmill.versions.publication import open_version

if TYPE_CHECKING:
    from warcmill.reports.chosen_pages import ChosenPages

SUMMARY = "write a launch, or a stage of it, as a WACZ: one file that replays in a browser"
EPILOG = """\
examples:
  warcmill wacz
  warcmill wacz daily
  warcmill wacz daily 20161019234428 -o daily.wacz
  warcmill wacz daily 20161019234428 final --without-originals
  warcmill wacz daily --host www.example.org
  warcmill wacz daily --surt 'org,example)/maps/'
  warcmill wacz daily --pages urls.txt -o chosen.wacz

Writes WACZ 1.1.1 from the store: all WARCs that are whole or salvaged, the originals of
their revisits, an index, and as pages all captures of HTML, with titles and, where it was
extracted, text. Without LAUNCH it takes the newest that has ended, of JOB or of all jobs;
without STAGE the whole crawl: all stages of the launch, and of those that it continues. One
that still runs is refused. Each stage must be verified. It needs no disk of an engine, so it
can be made years later; the same version of zlib makes the same bytes of it.

A revisit is a page of which only the header was stored, since the payload was stored
before. The originals that are in other launches are copied from their WARCs, record by
record. --without-originals leaves them out, lists their WARCs and counts the captures that
will not replay without them.

--host, --surt, --words, --type and --status choose the pages of the launch that 'warcmill
pages' lists for them, --pages the URLs of a file, one a line. Then the WACZ has these pages
and their parts alone: what the crawl log has as led to by a page as its part, or by a part
of it (a last hop of E, I, X or R), and what the links of the page and of its style sheets
name, of all that the launch asked for. What a chosen page lacks is named. Pages that are
revisits have the parts of the crawl log alone.

Every WARC is compared with its marker while it is written. A FILE that is there already is
never replaced. What is hidden ('warcmill versions hide') is in no part of it. What is left
out is named: WARCs that are cut or viral, ARCs, and captures in which the virus scan had a
hit. To look at it: https://replayweb.page, which reads it in the browser and sends it
nowhere.

exit codes: 0 written, 1 written, but captures will not replay since their originals are not
to be had, a chosen page is not in it, or a part of the crawl is missing; or not written: no
such launch or stage, it runs, it is not verified yet, it has no WARC to replay, a stored WARC
is missing or changed, or FILE is there already; 2 usage, 3 configuration, 4 a root or the
folder of FILE is unavailable or full
"""
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS)  # of a file system without hard links, as on a USB stick


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """[JOB [LAUNCH [STAGE]]], -o FILE, --without-originals."""
    add_launch(parser, optional=True)
    add_stage(parser)
    where = "the file to write (default: JOB-LAUNCH[-STAGE].wacz in this folder)"
    parser.add_argument("-o", dest="output", type=Path, metavar="FILE", help=where)
    chosen = parser.add_argument_group("only some pages, with their parts")
    chosen.add_argument("--host", default="", metavar="HOST", help="those of a host")
    chosen.add_argument("--surt", default="", metavar="SURT", help="those whose key begins so; or a URL, alone")
    chosen.add_argument("--words", default="", metavar="WORDS", help="those with these words in the title or URL")
    chosen.add_argument("--type", default="", metavar="TYPE", help="those of a media type")
    chosen.add_argument("--status", type=int, metavar="NUMBER", help="those with a status of HTTP")
    chosen.add_argument("--pages", type=Path, metavar="FILE", help="the URLs of a file, one a line")
    parser.add_argument("--without-originals", action="store_true", help="leave out what is in WARCs of other launches")


def run(args: argparse.Namespace) -> int:
    """Write the file; print what it holds, and what it does not."""
    wanted = ListFilter(True, True, args.host, args.status, args.type, "", args.words)
    is_chosen = bool(args.pages or args.surt or wanted != ListFilter(True, True))
    if is_chosen and args.stage is not None:
        err("warcmill wacz: pages are chosen of a whole launch, not of a STAGE")
        return 2
    if sum(map(bool, (args.pages, args.surt, wanted != ListFilter(True, True)))) > 1:
        err("warcmill wacz: --pages, --surt or the words of a filter, not two of them")
        return 2
    line = open_line()
    launch = launch_of(line, args, in_state=True, passes_over=_runs)
    if not line.state.folder(launch):
        hint = did_you_mean_launch(line.state, line.roots_of(launch.job), launch)
        raise BadInput(str(launch), f"it has no marker; 'warcmill status INTERVAL' lists the launches{hint}")
    if args.stage is None and (why := _runs(line, launch)):
        raise NotReady(str(launch), f"it has not ended, and its WACZ would lack what it still gets: {why}")
    path = args.output or Path("-".join(map(str, filter(None, (launch.job, launch.id, args.stage)))) + ".wacz")
    refuse_existing(path)
    what = contents(line.state, launch, args.stage)
    no_index = f"not looked for: [warcmill] index is not set, {NO_INDEX}"
    sources = WaczSources(line.state, line.store, line.extracts, path.parent, no_index)
    with ExitStack() as stack:
        choice = stack.enter_context(_choice(line, what, args, wanted)) if is_chosen else None
        what = replace(what, title=f"{what.title}, chosen pages") if choice else what
        with new_file(path) as file, bytes_done("writing", what.size) as advance:
            written = write(sources, what, file, advance, with_originals=not args.without_originals, choice=choice)
        out(*_texts(path, what, written, with_originals=not args.without_originals, is_chosen=is_chosen))
        lost = choice.lost()[0] if choice else 0
        if choice:
            out(*_lacking(choice))
    if args.stage is None and (after := crawl_parts.later(line.state, launch)):
        out(f"  launch {after[-1].id} continues it: warcmill wacz {launch.job} {after[-1].id} has all of it")
    return 1 if written.lost or what.missing or lost else 0


@contextmanager
def _choice(line: OpenRoots, what: WaczContents, args: argparse.Namespace, wanted: ListFilter) -> Iterator[ChosenPages]:
    """The choice among the pages of the launch, whose list is made where it is missing or old."""
    from warcmill.reports.chosen_pages import ChosenPages  # with the crawler's readers of links

    if not line.settings.index:
        raise BadConfig("[warcmill] index", f"is not set, {NO_INDEX}")
    index = open_folder("index", line.settings.index)
    pages.make(line.state, line.store, index, what.launch)
    with ExitStack() as stack:
        listed = stack.enter_context(pages.opened(line.state, index, what.launch))
        scratch, lookup = stack.enter_context(line.state.scratch()), None
        with suppress(NotReady):  # no CDX is published yet
            lookup = stack.enter_context(closing(open_version(index, cdx.NAME)[1]))
        if listed is None:
            raise NotReady(f"the list of pages of {what.launch}", "another process removed it; run the same again")
        choice = ChosenPages(listed, hidden_list.read(line.state.store).prefixes(), lookup)
        if args.pages:
            choice.add_urls(_lines_of(args.pages))
        elif args.surt:
            choice.add_below(args.surt)
        else:
            choice.add_rows(wanted)
        if not choice:
            why = f"none of its pages is what was chosen: warcmill pages {what.launch.job} {what.launch.id}"
            raise BadInput(str(what.launch), why)
        choice.find_parts(line.store, {one.name.removesuffix(".open"): one.stored.path for one in what.warcs}, scratch)
        yield choice


def _lines_of(path: Path) -> Iterator[str]:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            yield from file
    except OSError as error:
        raise BadInput(str(path), f"{error.strerror or error}; it is to have URLs, one a line") from error


def _lacking(choice: ChosenPages) -> Iterator[str]:
    """The lacks of the chosen pages, the first of them by name."""
    number, some = choice.lost()
    if number:
        yield f"not in it: {counted(number, 'chosen page', 'chosen pages')}"
        yield from (f"  {url}: {why}" for url, why in some)
    number, some = choice.lost_parts()
    if number:
        yield f"lacking: {counted(number, 'part', 'parts')} of chosen pages"
        yield from (f"  {url}: {why}" for url, why in some)
    if choice.unread:
        pages_ = counted(choice.unread, "page or style sheet", "pages or style sheets")
        yield f"known by the crawl log alone: the parts of {pages_}, whose record is a revisit, or not to be read"


def _runs(line: OpenRoots, launch: Launch) -> str:
    """Why a launch counts as running; '' if it has ended."""
    if line.state.holds(layout.step("stop", launch)):
        return ""
    try:
        return LaunchView(line.state, launch, line.roots_of).not_ended
    except Unavailable as error:
        return f"it is not known whether it has ended: {error}"


def _texts(
    path: Path, what: WaczContents, written: WrittenWacz, *, with_originals: bool, is_chosen: bool
) -> Iterator[str]:
    warcs, captures = counted(written.warcs, "WARC", "WARCs"), counted(written.captures, "capture", "captures")
    listed = "chosen page" if is_chosen else "page"
    text, of_what = ", with text" if written.has_text else "", "" if is_chosen else " of seeds"
    more = f"{counted(written.pages, listed, f'{listed}s')}{of_what} and {written.extra_pages:,} more{text}"
    yield f"{path}: {warcs}, {captures}, {more}, {path.stat().st_size:,} bytes"
    if before := sorted({launch.id for launch, _ in what.stages} - {what.launch.id}):
        yield f"  with {counted(len(before), 'launch', 'launches')} that it continues: {', '.join(before)}"
    for name, why in what.missing:
        yield f"  missing: {name}: {why}"
    for name, why in (*what.left_out, *written.left_out):
        yield f"  left out: {name}: {why}"
    for entry, number in sorted(written.hidden.items()):
        yield f"  left out: {counted(number, 'capture', 'captures')} that '{entry}' hides"
    for warc, number in sorted(written.originals.items()):
        word = "with" if with_originals else "left out"
        yield f"  {word}: the originals of {counted(number, 'capture', 'captures')}, from {warc}"
    wanting = 0 if with_originals else written.originals.total()
    for gone in written.lost:
        wanting += gone.captures
        lost = counted(gone.captures, "capture", "captures")
        yield f"  will not replay: {lost}: the original is {gone.why}: {', '.join(gone.where)}"
    if wanting:
        yield f"{counted(wanting, 'capture', 'captures')} will not replay"


@contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """Yield a file to write; at the end it is durable, and gets its name. After an error nothing is left.

    Conflict if there is a file of that name; Unavailable if the folder is missing, full, or not to be written to. The
    rest of a killed run is removed.
    """
    refuse_existing(path)
    try:
        _sweep(path)
        temp = path.parent / temporary_names.name(path.name)
        try:
            with temp.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            _name(temp, path)
            _sync_folder(path.parent)
        finally:
            with suppress(FileNotFoundError):
                temp.unlink()
    except FileExistsError:
        raise _conflict(path) from None
    except OSError as error:
        raise Unavailable(str(error.filename or path), f"{error.strerror or error}; {path} was not written") from error


def refuse_existing(path: Path) -> None:
    """Raise Conflict if there is a file of that name."""
    if os.path.lexists(path):
        raise _conflict(path)


def _name(temp: Path, path: Path) -> None:
    try:
        os.link(temp, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        refuse_existing(path)
        os.rename(temp, path)


def _sync_folder(folder: Path) -> None:
    """Make the new name durable, too."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _conflict(path: Path) -> Conflict:
    return Conflict(str(path), "is there already and was left as it is; remove it, or choose another name")


def _sweep(path: Path) -> None:
    for entry in os.scandir(path.parent):
        if entry.name.startswith(f".{path.name}.") and temporary_names.is_dead(entry.name):
            with suppress(FileNotFoundError):
                os.unlink(entry.path)
