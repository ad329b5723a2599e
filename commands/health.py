"""warcmill health: ask engines, roots and servers, each within a bound; write the answers down for pages and programs.

Writes `status/now.json` of the state.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.text import Text

from commands.console.arguments import add_json
from commands.console.show import as_json, counted
from commands.console.terminal import console, lines, styled
from tasks import health as line_health
from tasks.config.settings import settings
from warcmill.audit.answers import metrics
from warcmill.audit.answers.health import BOUND, Asker
from warcmill.audit.health import GIB
from warcmill.audit.progress_grid import STYLES, Mark
from warcmill.crawl import durable

SUMMARY = "ask engines, disks and servers whether they answer, and what runs and waits"
EPILOG = f"""\
examples:
  warcmill health
  warcmill health --json | jq -r '.asked[] | select(.answered | not) | .name'
  warcmill health --json | jq .backlog
  warcmill health --prometheus /var/lib/prometheus/node-exporter/warcmill.prom

Asks every engine, root and server that luigi.cfg names, all at once, and waits at most
{BOUND:.0f} seconds; one that is still silent is named as hanging. A server is also the Redis of
a frontier, a bus of requests, and whoever takes these. Prints what answers, the
running crawls, the room of each disk, when each scan and the backup last ended, how many
launches are in which state, and what waits at each step, by the summaries of all days.
Writes the same as status/now.json into the state root, as scans do when they end. Changes
nothing else. --prometheus writes it for Prometheus, too: into a file that is replaced by
rename, as node_exporter's textfile collector wants it.

--json: {{"written": UTC, "well", "asked": [{{"kind": engine, root, server or scheduler,
"name", "answered", "text", "why", "todo", "milliseconds"}}], "crawls": the running ones
[{{"job", "engine", "running", "launch_id", "state", "done", "queued", "per_minute",
"kib_per_second", "alerts", "said"}}], "roots": [{{"root", "level": ok, warn or fail,
"bytes_free", "bytes", "inodes_free": null if unknown}}], "scans": [{{"name", "ended",
"first_day", "last_day", "troubles"}}], "overdue": the scans that ended too long
ago [{{"name", "why", "todo"}}], "backup": {{"ended": "" if none ended}}, "first_day" and
"last_day" of the summaries, "" without any; "launches": {{state: number}}, "gaps": {{kind:
number}}, "files": {{step: {{"warcs", "bytes"}}}}, "backlog": {{step: {{"launches", "warcs",
"bytes"}}}}}}

exit codes: 0 all is well, 1 something did not answer, a disk is nearly full, or no scan
ended for two days, 2 usage, 3 configuration, 4 the state root did not answer, or FILE
could not be written
"""
_MARKS = {"ok": Mark.DONE, "warn": Mark.PARTIAL, "fail": Mark.FAILED}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """--json, --prometheus."""
    add_json(parser)
    parser.add_argument("--prometheus", type=Path, metavar="FILE", help="write the figures for Prometheus into a file")


def run(args: argparse.Namespace) -> int:
    """Ask; write; print."""
    settings()
    found: Any = line_health.look(Asker())
    if args.prometheus:
        durable.replace(args.prometheus, metrics.read(settings().open_state()).encode())
    if args.json:
        print(as_json(found))
    else:
        lines(console(), *_texts(found))
    return 0 if found["well"] else 1


def _texts(found: Any) -> Iterator[Text]:
    levels = {one["root"]: one for one in found["roots"]}
    for one in found["asked"]:
        root = levels.get(one["name"]) if one["kind"] == "root" else None
        mark = _MARKS[root["level"] if root else "ok" if one["answered"] else "fail"]
        said = one["why"] or (_room(root) if root else "") or one["text"]
        yield Text.assemble((f"{mark.shape} ", STYLES[mark]), styled(f"{one['kind']} {one['name']}: {said}"))
        if one["todo"]:
            yield styled(f"  -> {one['todo']}", "cyan")
    for one in found["crawls"]:
        rate = f"{one['per_minute']:,} a minute, {one['kib_per_second']:,} KiB/s"
        text = f" {one['job']}/{one['launch_id']}: {one['done']:,} done, {one['queued']:,} queued, {rate}"
        yield Text.assemble((Mark.RUNNING.shape, STYLES[Mark.RUNNING]), styled(text))
    for one in found["scans"]:
        bad = f", {counted(one['troubles'], 'trouble', 'troubles')}" if one["troubles"] else ""
        yield styled(f"{one['name']} ended {one['ended']}, days {one['first_day']} to {one['last_day']}{bad}")
    for one in found["overdue"]:
        yield Text.assemble((f"{Mark.FAILED.shape} ", STYLES[Mark.FAILED]), styled(f"{one['name']}: {one['why']}"))
        yield styled(f"  -> {one['todo']}", "cyan")
    yield styled(f"backup ended {found['backup']['ended'] or 'never'}")
    launches = ", ".join(f"{number} {word.replace('_', ' ')}" for word, number in found["launches"].items() if number)
    yield styled(f"launches of the scanned days: {launches or 'none'}")
    for step, numbers in found["backlog"].items():
        size = f", {numbers['warcs']:,} WARCs, {numbers['bytes']:,} bytes" if "warcs" in numbers else ""
        yield styled(f"waits for {step}: {counted(numbers['launches'], 'launch', 'launches')}{size}")


def _room(root: Any) -> str:
    if root["bytes_free"] is None:
        return ""
    return f"{root['bytes_free'] // GIB} GiB free of {root['bytes'] // GIB}"
