"""warcmill init: lay out a new line, or put one around the folders an engine has."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from pathlib import Path

from commands.printing import out
from tasks import places as configured
from tasks.settings import Settings, settings
from warcmill import roots
from warcmill.errors import BadConfig, Unavailable
from warcmill.layout import OutputLayout
from warcmill.model import Root
from warcmill.stores import places
from warcmill.stores.places import Access

SUMMARY = "make a folder with luigi.cfg and the four roots"
EPILOG = """\
examples:
  warcmill init /srv/archive
  warcmill init /srv/archive --output /data/heritrix/output --jobs /data/heritrix/jobs
  warcmill init /srv/archive --output /data/heritrix/jobs --layout job-first
  warcmill init /srv/line --store 'webhdfs://nn1:9870,nn2:9870/archive?user=archivist'
  warcmill init --adopt engine.second --adopt writer.render
  warcmill init /srv/line --output sftp://crawl@engine1/data/output --jobs sftp://crawl@engine1/data/jobs \\
      --known-hosts /etc/warcmill/known_hosts --key-file /etc/warcmill/key

The output and jobs folders may be there already: only a small .warcmill.json is
written into them, by which the line knows that a disk is mounted. One that is named
and not there is refused, for it may be a disk that is not mounted: --create makes it.
Running init again changes nothing. --adopt does that for the roots that a section of luigi.cfg
names, and writes nothing else.

exit codes: 0 done, 2 usage, 3 a folder or luigi.cfg says something else already, 4 a disk or server gave an error
"""
SCHEDULER = """\
# Each luigi schedules for itself. With a luigid: scheduler_host=HOST instead of this line.
local_scheduler=true

"""
_CREATE = "To have it made: --create"
TEMPLATE = Path(__file__).with_name("luigi.cfg")  # a link to the one at the top, so that a wheel holds it too


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """FOLDER or --adopt, the roots that lie elsewhere, how to reach them, --layout."""
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "folder", nargs="?", type=Path, metavar="FOLDER", help="where luigi.cfg, the markers and the archive go"
    )
    what.add_argument(
        "--adopt", action="append", metavar="SECTION", help="the roots of engine.NAME or writer.NAME in luigi.cfg"
    )
    parser.add_argument("--output", metavar="DIR|URL", help="where engines write (default: FOLDER/output)")
    parser.add_argument(
        "--jobs", metavar="DIR|URL", help="engines' job folders (default: FOLDER/jobs; job-first: the output)"
    )
    parser.add_argument("--store", metavar="DIR|URL", help="the archive (default: FOLDER/store)")
    parser.add_argument("--create", action="store_true", help="make folders of --output and --jobs that are not there")
    parser.add_argument("--known-hosts", default="", metavar="FILE", help="host keys to trust, for sftp:// roots")
    parser.add_argument("--key-file", default="", metavar="FILE", help="our private key, for sftp:// roots")
    parser.add_argument(
        "--layout",
        choices=[str(one) for one in OutputLayout],
        default=str(OutputLayout.KIND_FIRST),
        help="kind-first: {kind}/{job}/{launch}/, job-first: {job}/{launch}/{kind}/ (default: kind-first)",
    )


def run(args: argparse.Namespace) -> int:
    """Make the roots, then luigi.cfg. Safe to repeat, also after a kill."""
    try:
        if args.adopt:
            _adopt(settings(), args.adopt, args.create)
        else:
            config = _make(args)
            out(f"{config} is written. Next:", "", f"  export LUIGI_CONFIG_PATH={config}", "  warcmill doctor", "")
    except OSError as error:
        why = f"{error.strerror or error}. When that is mended run 'warcmill init' again: it goes on where it stopped"
        raise Unavailable(str(error.filename or args.folder), why) from error
    return 0


def _adopt(found: Settings, sections: list[str], create: bool) -> None:
    """Write the sentinels of the roots that these sections name; each must be there, unless it is to be made."""
    for section in sections:
        for place, names in configured.roots_of(section).items():
            if places.is_remote(place):
                places.adopt(place, names, found.access)
            elif create or Path(place).is_dir():
                roots.adopt({root: Path(place) for root in names})
            else:
                raise Unavailable(place, f"there is no such folder; mount its disk, or correct [{section}]. {_CREATE}")
            out(f"[{section}] {place} is adopted as {' and '.join(names)}")


def _make(args: argparse.Namespace) -> Path:
    base: Path = args.folder.resolve()
    layout = OutputLayout(args.layout)
    found, access = _roots(args, base, layout), Access(known_hosts=args.known_hosts, key_file=args.key_file)
    text = configuration(found, layout, access)
    config = base / "luigi.cfg"
    if config.exists() and config.read_text() != text:
        raise BadConfig(str(config), "is there and says something else; edit it by hand, or choose another folder")
    if not args.create:
        _check_there(given for given in (args.output, args.jobs) if given and not places.is_remote(given))
    roots.adopt({root: Path(place) for root, place in found.items() if not places.is_remote(place)})
    for url in dict.fromkeys(filter(places.is_remote, found.values())):
        places.adopt(url, [root for root, place in found.items() if place == url], access)
    if not config.exists():
        roots.write_whole(config, text)
    return config


def _check_there(folders: Iterable[str]) -> None:
    """Unavailable for a folder of the engines that is not there: made anew, it would stay empty for ever."""
    for folder in folders:
        if not Path(folder).is_dir():
            raise Unavailable(folder, f"there is no such folder; mount its disk, or correct the path. {_CREATE}")


def _roots(args: argparse.Namespace, base: Path, layout: OutputLayout) -> dict[Root, str]:
    """Where the four roots are to be: absolute paths, or URLs."""
    output = _place(args.output, base / "output")
    shared = layout is OutputLayout.JOB_FIRST  # Heritrix's default: its jobs folder is its output
    jobs = output if shared and not args.jobs else _place(args.jobs, base / "jobs")
    return {"output": output, "jobs": jobs, "state": str(base / "state"), "store": _place(args.store, base / "store")}


def _place(given: str | None, default: Path) -> str:
    if given and places.is_remote(given):
        return given
    return str(Path(given).resolve() if given else default)


def configuration(found: Mapping[Root, Path | str], layout: OutputLayout, access: Access | None = None) -> str:
    """The hardened template, with the roots and a scheduler of its own process."""
    template = TEMPLATE.read_text().replace("[core]\n", f"[core]\n{SCHEDULER}", 1)
    lines = ["[warcmill]", *(f"{root}={place}" for root, place in found.items()), f"output_layout={layout}", ""]
    if access and (access.known_hosts or access.key_file):
        lines += ["[sftp]", f"known_hosts={access.known_hosts}", f"key_file={access.key_file}", ""]
    return "\n".join([template.rstrip(), "", *lines])
