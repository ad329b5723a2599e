"""warcmill versions: list, compare, verify and retire what was published of an index; hide captures in it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from contextlib import closing

from rich.table import Table

from commands.console.arguments import add_json, reason
from commands.console.person import person
from commands.console.scanner import run_once
from commands.console.show import as_json, counted, err, out
from commands.console.terminal import console, styled
from tasks.config.settings import NO_INDEX, settings
from tasks.line import OpenRoots, open_line
from warcmill.base import clock
from warcmill.errors import BadConfig, BadInput
from warcmill.formats.pypi import data_sets
from warcmill.markers import decisions
from warcmill.model import Json
from warcmill.pypi import update_leveldb
from warcmill.stores import LocalStore
from warcmill.stores.opening import open_folder
from warcmill.versions import cdx, hidden_list, text
from warcmill.versions.documents import dataset as documents
from warcmill.versions.fold import retire
from warcmill.versions.hidden_list import Hidden
from warcmill.versions.inputs import Lists, VersionList, difference
from warcmill.versions.publication import CdxLookup, Payloads, Published
from warcmill.versions.search import hidden_documents
from warcmill.versions.verify import verify

SUMMARY = "list, compare, verify or retire the versions of an index; hide captures in it"
EPILOG = """\
examples:
  warcmill versions list
  warcmill versions diff 6 7
  warcmill versions verify
  warcmill versions verify --of text
  warcmill versions retire --keep 2
  warcmill versions hide https://example.org/private/letter.html --reason 'the author asked for it'
  warcmill versions hide org,example --reason 'order of the court of 2026-11-20'
  warcmill versions hide 'org,example)/private/ 20161019' --reason 'the family asked for it'
  warcmill versions unhide org,example --reason 'the order was lifted'

A version is a numbered list of WARCs, and the index of their captures, or, with --of text,
of the words in them. 'warcmill scan' publishes a new one when there is something new.
--of documents is of publications; each counts once for each launch that has it.
--of modules, depgraph and distributions are of a package index: each is a LevelDB, made of
the files of dumps, which pypi.UpdateLevelDb publishes ("warcs" of --json counts these).
list shows them all; diff lists the WARCs by which two differ, and what was hidden or shown
again, with its captures; verify reads one again to its end, the current one by default; of a
LevelDB its copy in the store too.
retire removes the files of all but the newest versions, by default two; their lists stay.

hide takes a URL, which means this one page, of all times; or a SURT prefix: a domain,
which means its subdomains too (org,example), or the begin of a key
('org,example)/private/'; warcmill surt prints the key of a URL). A domain, or a whole
host ('org,example)/'), means its DNS records too (dns:example.org); a page means its text
and pictures too, which crawlers keep beside it (urn:text:URL). A time after a key hides
captures of this one key. What is hidden stays in the store and in the lists. hide and
unhide publish at once: what is hidden leaves the index with the version that they make,
and stays out of every later one, until unhide.
The decision is in the store too before hide returns 0; exit 4: it stands in the state alone,
and the same command again copies it, and publishes.

--json (list): {"current", "data_set", "hidden": [{"reason", "surt"}], "versions":
[{"bytes", "current", "lines", "number", "segments", "time", "warcs"}]}; bytes, lines and
segments are null where the files were retired. With --of text each version has "hidden" too:
how many of its lines no search shows now

exit codes: 0 done, or nothing is wrong, 1 no such version, something is wrong with it, or
hidden or shown already, 2 usage, 3 configuration, 4 a root did not answer, 5 a fold is
running
"""
LINES = {
    cdx.NAME: "captures",
    text.NAME: "documents",
    documents.NAME: "documents",
    **dict.fromkeys(data_sets.NAMES, "keys"),
}  # what a line is
INPUTS = dict.fromkeys(data_sets.NAMES, ("dump file", "dump files"))
WARCS = "WARC", "WARCs"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """list [--json], diff OLD NEW, verify [NUMBER], retire [--keep N], hide and unhide URL or SURT, --reason TEXT."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="list|diff|verify|retire|hide|unhide")
    add_json(_add(actions, "list"))
    diff = _add(actions, "diff")
    diff.add_argument("old", type=_number, metavar="OLD", help="the number of a version")
    diff.add_argument("new", type=_number, metavar="NEW", help="the number of another one")
    of_verify = _add(actions, "verify")
    of_verify.add_argument("number", type=_number, nargs="?", metavar="NUMBER", help="by default the current one")
    of_retire = _add(actions, "retire")
    of_retire.add_argument("--keep", type=_number, default=2, metavar="N", help="of how many versions; by default 2")
    for action in ("hide", "unhide"):
        one = actions.add_parser(action, allow_abbrev=False)
        one.add_argument("surt", metavar="WHAT", help="a URL, or a SURT such as org,example or 'org,example)/private/'")
        one.add_argument("--reason", type=reason, required=True, metavar="TEXT", help="why; it is kept with it")


def _add(actions: argparse._SubParsersAction[argparse.ArgumentParser], action: str) -> argparse.ArgumentParser:
    """An action on the versions of one data set."""
    parser = actions.add_parser(action, allow_abbrev=False)
    parser.add_argument("--of", choices=list(LINES), default=cdx.NAME, help="of which index; by default the CDX")
    return parser


def run(args: argparse.Namespace) -> int:
    """Do what is asked."""
    if args.action in ("hide", "unhide"):
        return _decide(args.surt, args.reason, hides=args.action == "hide")
    if args.action == "list":
        return _list(args.of, in_json=args.json)
    if args.action == "diff":
        return _diff(args.of, args.old, args.new)
    return _verify(args.of, args.number) if args.action == "verify" else _retire(args.of, args.keep)


def _number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 on")
    return int(text)


def _index() -> LocalStore:
    place = settings().index
    if not place:
        raise BadConfig("[warcmill] index", f"is not set, {NO_INDEX}")
    return open_folder("index", place)


def _list(name: str, *, in_json: bool) -> int:
    state, index = open_line().state, _index()
    payloads, listed = Payloads(index, name), list(Lists(state.store, name).all())
    published = {one.number: one for one in payloads.all()}
    current = payloads.current()
    kept = hidden_list.read(state.store)
    hides = {one.number: _hidden_of(index, one, kept) for one in published.values()} if name == text.NAME else None
    if in_json:
        versions: list[Json] = [_json(one, published.get(one.number), current, hides) for one in listed]
        entries: list[Json] = [{"reason": kept.entries[surt], "surt": surt} for surt in sorted(kept.entries)]
        number = current.number if current else None
        print(as_json({"current": number, "data_set": name, "hidden": entries, "versions": versions}))
        return 0
    if not listed:
        switch = "[index]" if name == cdx.NAME else f"[{name}]"
        switch = switch if name not in INPUTS else "[pypi]"
        out(f"no version of {name} yet: 'warcmill scan' publishes the first, where {switch} is on")
    else:
        console().print(_table(name, listed, published, current, hides))
    for surt in sorted(kept.entries) if name not in INPUTS else ():
        out(f"hidden: {surt}  {kept.entries[surt]}")
    return 0


Hides = Mapping[int, int | None] | None  # documents by version; None for an index whose files have nothing hidden


def _hidden_of(index: LocalStore, found: Published, kept: Hidden) -> int | None:
    """The number of documents of a version that no search shows now; None, with an error line, if a segment is bad."""
    try:
        return hidden_documents(index, found, tuple(kept.prefixes()))
    except BadInput as error:
        err(str(error))
        return None


def _json(listed: VersionList, found: Published | None, current: Published | None, hides: Hides) -> Json:
    files: dict[str, Json] = {"bytes": None, "lines": None, "segments": None}
    if found:
        files = {"bytes": found.bytes, "lines": found.lines, "segments": len(found.segments)}
    if hides is not None:
        files["hidden"] = hides.get(listed.number)
    is_current = current is not None and current.number == listed.number
    return {
        "current": is_current, "number": listed.number, "time": listed.time, "warcs": len(listed.inputs), **files,
    }  # fmt: skip


def _table(
    name: str,
    listed: list[VersionList],
    published: dict[int, Published],
    current: Published | None,
    hides: Hides,
) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    apart = () if hides is None else ("hidden",)
    for head in (name, "time", INPUTS.get(name, WARCS)[1], LINES[name], *apart, "segments", "bytes", ""):
        table.add_column(head, justify="left" if head in ("time", "") else "right", no_wrap=True)
    for version in listed:
        found = published.get(version.number)
        cells = _cells(found, hides)
        word = "current" if current and current.number == version.number else "" if found else "retired: only its list"
        table.add_row(str(version.number), version.time, f"{len(version.inputs):,}", *cells, styled(word))
    return table


def _cells(published: Published | None, hides: Hides) -> list[str]:
    """The figures of a version: its lines that are shown, those that are hidden, and the bytes of its files."""
    if published is None:
        return ["-"] * (3 if hides is None else 4)
    files = [f"{len(published.segments):,}", f"{published.bytes:,}"]
    if hides is None:
        return [f"{published.lines:,}", *files]
    number = hides[published.number]
    if number is None:
        return ["?", "?", *files]
    return [f"{published.lines - number:,}", f"{number:,}", *files]


def _diff(name: str, old: int, new: int) -> int:
    store = open_line().state.store
    before, after = (Lists(store, name).read(number) for number in (old, new))
    found = difference(before, after)
    for sign, names in (("+", found.added), ("-", found.removed), ("~", found.changed)):
        out(*(f"{sign} {warc}" for warc in names))
    if name not in INPUTS:
        out(*_hidden_since(store, _index(), before, after))
    added, removed, changed = map(len, (found.added, found.removed, found.changed))
    out(f"{counted(added, *INPUTS.get(name, WARCS))} added, {removed} removed, {changed} changed")
    return 0


def _hidden_since(store: LocalStore, index: LocalStore, before: VersionList, after: VersionList) -> Iterator[str]:
    """The entries that are hidden, and those that are shown again, with their captures in the version that has them."""
    was, now = (set(hidden_list.at(store, one.hiding).entries) for one in (before, after))
    yield from (f"hidden: {surt}  {_counted(index, before, surt)}" for surt in sorted(now - was))
    yield from (f"shown again: {surt}  {_counted(index, after, surt)}" for surt in sorted(was - now))


def _counted(index: LocalStore, listed: VersionList, surt: str) -> str:
    name = listed.data_set
    if name == documents.NAME:
        return "(a version of the documents has nothing of it, also as a page that led to one)"
    found = Payloads(index, name).numbered(listed.number)
    if found is None:
        return f"(not counted: the files of version {listed.number} are not there)"
    return (
        f"(version {listed.number} {'has' if name == text.NAME else 'shows'} {_meant(index, found, name, surt)} of it)"
    )


def _meant(index: LocalStore, found: Published, name: str, surt: str) -> str:
    """The number of captures or documents of a version that an entry means, in words."""
    prefixes = hidden_list.prefixes_of(surt)
    if name == text.NAME:
        return counted(hidden_documents(index, found, prefixes), "document", "documents")
    with closing(CdxLookup(index, found.segments)) as lookup:
        number = sum(1 for _ in hidden_list.hidden_lines(lookup.beginning_with, prefixes))
    return counted(number, "capture", "captures")


def _verify(name: str, number: int | None) -> int:
    line, index = open_line(), _index()
    verified = verify(line.state.store, index, name, number)
    published = Payloads(index, name).current() if name in INPUTS else None
    is_left = published is not None and published.number == verified.number
    listed = Lists(line.state.store, name).read(verified.number)
    not_left = [*update_leveldb.not_left(line.store, published, listed)] if published and is_left else []
    findings = [*verified.findings, *not_left]
    out(*findings)
    warcs = counted(verified.warcs, *INPUTS.get(name, WARCS))
    what = f"version {verified.number} of {name}: {verified.lines:,} {LINES[name]} of {warcs}"
    if not findings:
        out(f"{what} read again, nothing is wrong")
        return 0
    folder = f"{settings().index}/versions/{name}"
    out(f"{what}: {counted(len(findings), 'thing is', 'things are')} wrong")
    if verified.findings:
        err(f"to build it anew: remove its folder in {folder}, then run: warcmill scan")
    if not_left:
        err("'warcmill scan' leaves in the store what is not there; first move away by hand what has other bytes")
    return 1


def _retire(name: str, keep: int) -> int:
    done = retire(open_line().state, _index(), name, keep)
    for number in done.numbers:
        out(f"version {number} of {name}: its files are removed, its list stays")
    if done.unfinished:
        out(f"{counted(done.unfinished, 'folder', 'folders')} of folds that were broken off removed")
    if not done.numbers and not done.unfinished:
        out("nothing to retire")
    return 0


def _decide(entry: str, why: str, *, hides: bool) -> int:
    line, index = open_line(), _index()
    state, surt = line.state.store, hidden_list.entry_of(entry)
    known = hidden_list.read(state).entries
    if (surt in known) == hides:
        not_hidden = "not hidden; 'warcmill versions list' lists what is"
        out(f"{surt}: " + (f"hidden already: {known[surt]}" if hides else not_hidden))
        copied = decisions.copy(state, lambda: line.store, decisions.ACCESS)
        out(*(f"decision {number} was in the state alone: it is in the store now" for number in copied))
        is_late = _is_late(line, index)  # who decided may have been killed before it was published
        return (_published(line, index, surt) if is_late else 0) or (0 if copied else 1)
    made = hidden_list.decide(state, lambda: line.store, surt, why, hides=hides, by=person())
    out(f"{surt}: {'hidden' if hides else 'shown again'} (decision {made.number})", *_shown(index, surt))
    return _published(line, index, surt)


def _publishes(line: OpenRoots) -> bool:
    return bool({"index", text.NAME, documents.NAME} & line.wanted.keys())


def _is_late(line: OpenRoots, index: LocalStore) -> bool:
    """True if the current version was made before the newest decision, and another can be published."""
    published, state = Payloads(index, cdx.NAME).current(), line.state.store
    if published is None or not _publishes(line):
        return False
    return Lists(state, cdx.NAME).hiding(published.number).sha512 != hidden_list.read(state).hiding.sha512


def _published(line: OpenRoots, index: LocalStore, surt: str) -> int:
    """Publish versions that follow the decision; return the exit code. Until then, the CDX is as it was."""
    if not _publishes(line):
        out("nothing is published: [index], [text] and [documents] are off")
        return 0
    day = clock.now()[:10]  # any: a fold takes all that is decided
    code = run_once(line, "index.ScanForIndexing", day)
    if documents.NAME in line.wanted:
        code = max(code, run_once(line, "documents.ScanForDocuments", day))
    if code == 0:
        out("published:", *_shown(index, surt))
    else:
        err(f"the decision is made, and not published yet; next: warcmill scan {day}")
    return code


def _shown(index: LocalStore, surt: str) -> Iterator[str]:
    """The number of captures of the current version that an entry means, in words; nothing if none is published."""
    if published := Payloads(index, cdx.NAME).current():
        yield f"  version {published.number}, the current one, shows {_meant(index, published, cdx.NAME, surt)} of it"
