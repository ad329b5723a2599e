"""warcmill wacz: write a launch as one file that replays in a browser."""

from __future__ import annotations

import argparse
from pathlib import Path

from commands.arguments import add_launch, add_stage
from commands.new_file import new_file, refuse_existing
from commands.printing import out
from commands.progress import bytes_done
from commands.show import counted
from tasks.step import open_line
from warcmill.audit.survey import did_you_mean_launch
from warcmill.errors import BadInput
from warcmill.model import Launch
from warcmill.package.wacz import Sources, write
from warcmill.package.wacz_contents import contents

SUMMARY = "write a launch, or a stage of it, as a WACZ: one file that replays in a browser"
EPILOG = """\
examples:
  warcmill wacz daily 20161019234428 -o daily-20161019234428.wacz
  warcmill wacz daily 20161019234428 final -o final.wacz

Writes WACZ 1.1.1 from the store: all WARCs that are whole or salvaged, their index, and
as pages the captures of seeds and of what seeds redirected to. Without STAGE it takes all
stages that the launch has; each must be verified. It needs no disk of an engine, so it can
be made years later; the same version of zlib makes the same bytes of it.

Every WARC is compared with its marker while it is written. A FILE that is there already is
never replaced. What is left out is named: WARCs that are cut or viral, ARCs, and captures
in which the virus scan had a hit. To look at it: https://replayweb.page, which reads it in
the browser and sends it nowhere.

exit codes: 0 written, 1 no such launch or stage, it is not verified yet, it has no WARC to
replay, a stored WARC is missing or changed, or FILE is there already; 2 usage,
3 configuration, 4 a root or the folder of FILE is unavailable or full
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """JOB LAUNCH [STAGE] -o FILE."""
    add_launch(parser)
    add_stage(parser)
    parser.add_argument("-o", dest="output", type=Path, required=True, metavar="FILE", help="the file to write")


def run(args: argparse.Namespace) -> int:
    """Write the file; print what it holds, and what it does not."""
    line, launch, path = open_line(), Launch(args.job, args.launch_id), args.output
    refuse_existing(path)
    if not line.state.folder(launch):
        hint = did_you_mean_launch(line.state, line.roots_of(launch.job), launch)
        raise BadInput(str(launch), f"it has no marker; 'warcmill status INTERVAL' lists the launches{hint}")
    what = contents(line.state, launch, args.stage)
    with new_file(path) as file, bytes_done("writing", what.size) as advance:
        written = write(Sources(line.state, line.store, line.extracts, path.parent), what, file, advance)
    captures, pages = counted(written.captures, "capture", "captures"), counted(written.pages, "page", "pages")
    out(f"{path}: {counted(len(what.warcs), 'WARC', 'WARCs')}, {captures}, {pages}, {path.stat().st_size:,} bytes")
    for name, why in (*what.left_out, *written.left_out):
        out(f"  left out: {name}: {why}")
    return 0
