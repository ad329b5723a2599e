"""warcmill init: lay out a new line, or put one around the folders an engine has."""

from __future__ import annotations

import argparse
from pathlib import Path

from warcmill import roots
from warcmill.errors import BadConfig, Unavailable
from warcmill.layout import OutputLayout
from warcmill.model import Root

SUMMARY = "make a folder with luigi.cfg and the four roots"
EPILOG = """\
examples:
  warcmill init /srv/archive
  warcmill init /srv/archive --output /data/heritrix/output --jobs /data/heritrix/jobs
  warcmill init /srv/archive --output /data/heritrix/jobs --layout job-first

The output and jobs folders may be there already: only a small .warcmill.json is
written into them, by which the line knows that a disk is mounted. Running init
again changes nothing.

exit codes: 0 done, 2 usage, 3 a folder or luigi.cfg says something else already, 4 a disk gave an error
"""
SCHEDULER = """\
# Each luigi schedules for itself. With a luigid: scheduler_host=HOST instead of this line.
local_scheduler=true

"""
TEMPLATE = Path(__file__).resolve().parent.parent / "luigi.cfg"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """FOLDER, --output, --jobs, --layout."""
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="where luigi.cfg, the markers and the archive go")
    parser.add_argument("--output", type=Path, metavar="DIR", help="where engines write (default: FOLDER/output)")
    parser.add_argument(
        "--jobs", type=Path, metavar="DIR", help="engines' job folders (default: FOLDER/jobs; job-first: the output)"
    )
    parser.add_argument(
        "--layout",
        choices=[str(one) for one in OutputLayout],
        default=str(OutputLayout.KIND_FIRST),
        help="kind-first: {kind}/{job}/{launch}/, job-first: {job}/{launch}/{kind}/ (default: kind-first)",
    )


def run(args: argparse.Namespace) -> int:
    """Make the roots, then luigi.cfg. Safe to repeat, also after a kill."""
    try:
        config = _make(args)
    except OSError as error:
        why = f"{error.strerror or error}. When that is mended run 'warcmill init' again: it goes on where it stopped"
        raise Unavailable(str(error.filename or args.folder), why) from error
    print(f"{config} is written. Next:\n\n  export LUIGI_CONFIG_PATH={config}\n  warcmill doctor\n")
    return 0


def _make(args: argparse.Namespace) -> Path:
    base: Path = args.folder.resolve()
    layout = OutputLayout(args.layout)
    output = args.output.resolve() if args.output else base / "output"
    shared = layout is OutputLayout.JOB_FIRST  # Heritrix's default: its jobs folder is its output
    jobs = args.jobs.resolve() if args.jobs else output if shared else base / "jobs"
    folders: dict[Root, Path] = {"output": output, "jobs": jobs, "state": base / "state", "store": base / "store"}
    text = configuration(folders, layout)
    config = base / "luigi.cfg"
    if config.exists() and config.read_text() != text:
        raise BadConfig(str(config), "is there and says something else; edit it by hand, or choose another folder")
    roots.adopt(folders)
    if not config.exists():
        roots.write_whole(config, text)
    return config


def configuration(folders: dict[Root, Path], layout: OutputLayout) -> str:
    """The hardened template, with the roots and a scheduler of its own process."""
    template = TEMPLATE.read_text().replace("[core]\n", f"[core]\n{SCHEDULER}", 1)
    lines = [f"{root}={folder}" for root, folder in folders.items()]
    return "\n".join([template.rstrip(), "", "[warcmill]", *lines, f"output_layout={layout}", ""])
