"""warcmill depends: list the WARCs of other launches that have what a launch did not store again."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from msgspec.structs import asdict

from commands.console.arguments import add_json, add_launch
from commands.console.launches import launch_of
from commands.console.show import as_json, counted, err, out
from tasks.config.settings import NO_INDEX, settings
from tasks.line import open_line
from warcmill.errors import BadConfig
from warcmill.model import Json, Launch
from warcmill.stores.opening import open_folder
from warcmill.versions.revisits import Need, Needs, Revisit, Where, needs

SUMMARY = "list the WARCs of other launches that a launch's revisits need"
EPILOG = """\
examples:
  warcmill depends
  warcmill depends daily 20161020234428
  warcmill depends daily 20161020234428 --json | jq -r '.needs[].warc'

Without LAUNCH: the newest, of JOB or of all.

A revisit is a page of which only the header was stored, since the payload was stored
before. Lists each WARC of another launch that has such payloads: where it is (stored;
hidden: stored, and hidden from the index; viral: stored among the viral WARCs, which
no index has; missing from the store), how many revisits of the launch need it, its
name below the store's warcs/, or viral/. Then every revisit whose payload was not found.
Asks the current version of the CDX, once index.VerifyCdx has verified all stages of the
launch; reads viral WARCs where it has to. Nothing is changed.

--json: {"job", "launch_id", "needs": [{"job", "launch_id", "revisits", "warc", "where"}],
"nowhere": [{"digest", "offset", "time", "url", "warc"}], "unknown": why these may be
archived all the same, "" if they are not}

exit codes: 0 all is stored, 1 a payload or a WARC was not found, or the launch is not
verified in the index yet, 2 usage, 3 configuration, 4 a root did not answer
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """[JOB [LAUNCH]], --json."""
    add_launch(parser, optional=True)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Look up every revisit; print what has its payload."""
    place = settings().index
    if not place:
        raise BadConfig("[warcmill] index", f"is not set, {NO_INDEX}")
    line = open_line()
    launch = launch_of(line, args, in_state=True)
    if not args.launch_id:
        err(f"{launch}, the newest:")
    closure = needs(line.state, open_folder("index", place), line.store, launch)
    if args.json:
        print(as_json(_json(launch, closure)))
    else:
        out(*_texts(closure))
    missing = any(need.where is Where.MISSING for need in closure.warcs)
    return 1 if missing or closure.nowhere else 0


def _texts(closure: Needs) -> Iterator[str]:
    for need in closure.warcs:
        yield f"{need.where:<7}  {need.revisits:>7,}  {need.warc}"
    for one in closure.nowhere:
        yield f"nowhere  {one.warc} {one.time} {one.url}"
    if closure.unknown:
        yield f"These may be archived all the same: {closure.unknown}"
    launches = {need.launch for need in closure.warcs}
    needed = f"{counted(len(closure.warcs), 'WARC', 'WARCs')} of {counted(len(launches), 'launch', 'launches')}"
    if not closure.warcs and not closure.nowhere:
        yield "no WARC of another launch is needed"
        return
    lost = f"; the payload of {counted(len(closure.nowhere), 'revisit', 'revisits')} was not found"
    yield f"{needed} needed{lost if closure.nowhere else ''}"


def _json(launch: Launch, closure: Needs) -> dict[str, Json]:
    return {
        "job": launch.job,
        "launch_id": launch.id,
        "needs": [_need(one) for one in closure.warcs],
        "nowhere": [_revisit(one) for one in closure.nowhere],
        "unknown": closure.unknown,
    }


def _need(one: Need) -> dict[str, Json]:
    of = one.launch
    return {"job": of.job, "launch_id": of.id, "revisits": one.revisits, "warc": one.warc, "where": str(one.where)}


def _revisit(one: Revisit) -> dict[str, Json]:
    return {name: value for name, value in asdict(one).items() if name != "key"}
