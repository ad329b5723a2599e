"""warcmill init: create a new line, or one around the folders of an engine."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from commands.console.show import out
from tasks.config import chains
from tasks.config import roots as config_roots
from tasks.config.folders import config_file
from tasks.config.settings import Settings, settings
from warcmill.errors import BadConfig, Unavailable
from warcmill.layout import OutputLayout
from warcmill.model import Root
from warcmill.stores import opening as places
from warcmill.stores import sentinel
from warcmill.stores.opening import Access
from warcmill.stores.s3.place import S3Access

SUMMARY = "create a folder with luigi.cfg and the five roots"
EPILOG = """\
examples:
  warcmill init /srv/archive
  warcmill init /srv/archive --output /data/heritrix/output --jobs /data/heritrix/jobs
  warcmill init /srv/archive --output /data/heritrix/jobs --layout job-first
  warcmill init /srv/line --store 'webhdfs://nn1:9870,nn2:9870/archive?user=archivist'
  warcmill init /srv/line --store s3://archive/warcmill --endpoint https://s3.example --access-key archivist \\
      --secret-key-file /etc/warcmill/s3
  warcmill init /srv/archive --requests
  warcmill init --adopt engine.second --adopt writer.render
  warcmill init --adopt index
  warcmill init --adopt engine.imported
  warcmill init --adopt package
  warcmill init /srv/line --output sftp://crawl@engine1/data/output --jobs sftp://crawl@engine1/data/jobs \\
      --known-hosts /etc/warcmill/known_hosts --key-file /etc/warcmill/key

The output and jobs folders may exist already: init only writes a small .warcmill.json
into them, which shows the line later that their disk is mounted. A named folder that is
missing is refused, because its disk may not be mounted; --create creates it. Running
init again changes nothing. --adopt writes .warcmill.json into the roots of a section of
luigi.cfg, and nothing else. --adopt index does so for the index of a line without one;
if luigi.cfg names no folder for it, that is the folder index beside the state.
--adopt engine.imported does so for the root of imported launches; if luigi.cfg has no
such section, that is the folder imported beside the state.
--adopt package does so for [package] destination, which has to be empty; the folder that
the ingesting system watches is ingest in it.

exit codes: 0 done, 2 usage, 3 a folder or luigi.cfg is set up differently already,
4 a disk or server reported an error
"""
SCHEDULER = """\
# Each luigi schedules for itself. With a luigid: scheduler_host=HOST instead of this line.
local_scheduler=true

"""
# The day is before every launch's: what is imported counts by its own days.
PUBLISHED = """\
# Every launch can be searched and replayed: warcmill serve. since: of launches from that day on; empty: off
[index]
since=1990-01-01

[text]
since=1990-01-01
"""
ONDEMAND: Final = "ondemand"
LOCAL_SETTINGS: Final = "localsettings.py"
REQUESTS: Final = """\
# Requests of applications, by Scrapy Cluster's API: warcmill run requests
[requests]
job={job}
prefix=demo
bus=spool
settings=localsettings.py

[engine.requests]
kind=warcmill
jobs={job}

# A launch a day
[job.{job}]
frequency=daily
start={start}
"""
JOB: Final = """\
# The job that serves requests: it ends only when it is stopped, and each page of a request is one of its URIs.
endless = true
requests = true
results_log = true
queue_by = "domain"

# Time-outs, refused connections and 504 are tried three times more, as soon as the rate allows.
[retries]
times = 4
wait = 0.0
statuses = [504]
"""
NO_SEEDS: Final = "# None: what is crawled is in requests.jsonl.\n"
SETTINGS_FILE: Final = """\
# Settings by Scrapy Cluster's names: read, never executed. The defaults of some:
# QUEUE_HITS = 10
# QUEUE_WINDOW = 60
# QUEUE_MODERATED = True
# KAFKA_APPID_TOPICS = False
# STATS_DUMP = 60
# LOG_JSON = False
"""
INDEX: Final = "index"
IMPORTED: Final = "imported"  # the folder beside the state
PACKAGE: Final = "package"
_CREATE = "To create it: --create"
TEMPLATE = Path(__file__).with_name("luigi.cfg")  # a link to the one at the top, so that the wheel contains it


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """FOLDER or --adopt, roots in other places, how to reach them, --layout."""
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "folder", nargs="?", type=Path, metavar="FOLDER", help="where luigi.cfg, the markers and the archive go"
    )
    what.add_argument(
        "--adopt",
        action="append",
        metavar="SECTION",
        help="the roots of engine.NAME or writer.NAME in luigi.cfg; or index; or package, for its destination",
    )
    parser.add_argument("--output", metavar="DIR|URL", help="where engines write (default: FOLDER/output)")
    parser.add_argument(
        "--jobs", metavar="DIR|URL", help="engines' job folders (default: FOLDER/jobs; job-first: the output)"
    )
    parser.add_argument("--store", metavar="DIR|URL", help="the archive (default: FOLDER/store)")
    parser.add_argument(
        "--requests", action="store_true", help="a job that serves requests of applications, and its settings"
    )
    parser.add_argument("--create", action="store_true", help="create missing folders of --output and --jobs")
    parser.add_argument("--known-hosts", default="", metavar="FILE", help="host keys to trust, for sftp:// roots")
    parser.add_argument("--key-file", default="", metavar="FILE", help="our private key, for sftp:// roots")
    parser.add_argument(
        "--endpoint", default="", metavar="URL", help="the server of an s3:// store (default: Amazon's)"
    )
    parser.add_argument("--access-key", default="", metavar="NAME", help="our key there (default: as boto3 finds it)")
    parser.add_argument("--secret-key-file", default="", metavar="FILE", help="file with the secret of that key")
    parser.add_argument(
        "--layout",
        choices=[str(layout) for layout in OutputLayout],
        default=str(OutputLayout.KIND_FIRST),
        help="kind-first: {kind}/{job}/{launch}/, job-first: {job}/{launch}/{kind}/ (default: kind-first)",
    )


def run(args: argparse.Namespace) -> int:
    """Create the roots, then luigi.cfg. Safe to repeat, also after a kill."""
    try:
        if args.adopt:
            for section in args.adopt:
                _adopt(settings(), section, args.create)
        else:
            config = _make(args)
            if args.requests:
                jobs = _roots(args, config.parent, OutputLayout(args.layout))["jobs"]
                if places.is_remote(jobs):
                    raise BadConfig("--requests", f"the job needs a folder of this machine for the jobs, not {jobs}")
                _serve_requests(config, Path(jobs))
            export = f"  export LUIGI_CONFIG_PATH={shlex.quote(str(config))}"
            out(f"{config} is written. Next:", "", export, "  warcmill doctor", "")
    except OSError as error:
        why = f"{error.strerror or error}. Correct that, then run 'warcmill init' again; it resumes where it stopped"
        raise Unavailable(str(error.filename or args.folder), why) from error
    return 0


def _serve_requests(config: Path, jobs: Path) -> None:
    """Add the sections of requests to luigi.cfg, the job, and its settings; what is there stays."""
    job = jobs / ONDEMAND
    text = config.read_text()
    if "[requests]" not in _keys(text):
        start = f"{datetime.now(UTC).date()}T00:00:00Z"
        sentinel.write_whole(config, f"{text.rstrip()}\n\n{REQUESTS.format(job=ONDEMAND, start=start)}")
    job.mkdir(parents=True, exist_ok=True)
    files = {job / "crawl.toml": JOB, job / "seeds.txt": NO_SEEDS, config.parent / LOCAL_SETTINGS: SETTINGS_FILE}
    for path, content in files.items():
        if not path.exists():
            sentinel.write_whole(path, content)


def _adopt(configured: Settings, section: str, create: bool) -> None:
    """Write the sentinels of the roots in a section. Each root must exist, unless it is to be created."""
    if section == INDEX:
        _adopt_index(configured, create)
        return
    if section == config_roots.IMPORTED and not config_roots.imported():
        _adopt_imported(configured)
        return
    for place, names in (_destination() if section == PACKAGE else config_roots.roots_of(section)).items():
        if places.is_remote(place):
            places.adopt(place, names, configured.access)
        else:
            _adopt_folder(place, names, section, create)
        out(f"[{section}] {place} is adopted as {' and '.join(names)}")


def _destination() -> dict[str, list[Root]]:
    """The root of the section [package], or BadConfig."""
    place = chains.destination()
    if not place:
        raise BadConfig("[package] destination", "is not set; it names the place where SIPs are submitted")
    return {place: ["destination"]}


def _adopt_folder(place: str, names: list[Root], section: str, create: bool) -> None:
    if not create and not Path(place).is_dir():
        raise Unavailable(place, f"there is no such folder; mount its disk, or correct [{section}]. {_CREATE}")
    sentinel.adopt({root: Path(place) for root in names})


def _adopt_index(configured: Settings, create: bool) -> None:
    """Adopt the index folder of luigi.cfg. If none is set, create one beside the state and print the line to add."""
    place = configured.index or str(Path(configured.state).resolve().parent / INDEX)
    replace(configured, index=place).check_index()
    _adopt_folder(place, [INDEX], "warcmill", create or not configured.index)
    out(f"[warcmill] {place} is adopted as {INDEX}")
    if not configured.index:
        out(f"Add this line to the section [warcmill] of {config_file()}:", "", f"{INDEX}={place}", "")


def _adopt_imported(configured: Settings) -> None:
    """Create the root of imported launches of a line without one, and print the lines to add to luigi.cfg."""
    place = Path(configured.state).resolve().parent / IMPORTED
    sentinel.adopt({"output": place, "jobs": place})
    out(f"[{config_roots.IMPORTED}] {place} is adopted as jobs and output")
    out(f"Add these lines to {config_file()}:", "", *_imported_section(str(place)), "")


def _imported_section(place: str) -> list[str]:
    return [f"[{config_roots.IMPORTED}]", f"output={place}"]


def _make(args: argparse.Namespace) -> Path:
    base: Path = args.folder.resolve()
    layout = OutputLayout(args.layout)
    s3 = S3Access(args.endpoint, access_key=args.access_key, secret_key_file=args.secret_key_file)
    config, access = base / "luigi.cfg", Access(known_hosts=args.known_hosts, key_file=args.key_file, s3=s3)
    roots = _roots(args, base, layout)
    imported = str(base / IMPORTED)
    if config.exists():
        roots, imported = _as_written(config, roots, imported, layout, access)
    if not args.create:
        _check_there(given for given in (args.output, args.jobs) if given and not places.is_remote(given))
    folders: dict[Root, Path] = {root: Path(place) for root, place in roots.items() if not places.is_remote(place)}
    if INDEX in folders:
        _check_index(folders)
    sentinel.adopt(folders)
    if imported:
        sentinel.adopt({"output": Path(imported), "jobs": Path(imported)})
    for url in dict.fromkeys(filter(places.is_remote, roots.values())):
        places.adopt(url, [root for root, place in roots.items() if place == url], access)
    if not config.exists():
        sentinel.write_whole(config, f"{configuration(roots, layout, access, imported)}\n{PUBLISHED}")
    return config


def _as_written(
    config: Path, roots: dict[Root, str], imported: str, layout: OutputLayout, access: Access
) -> tuple[dict[Root, str], str]:
    """The roots that the existing luigi.cfg has: a line from before the index, or imports, stays without them."""
    own, published = _keys(config.read_text().partition(REQUESTS.partition("\n")[0])[0]), _keys(PUBLISHED)
    written = own[: -len(published)] if own[-len(published) :] == published else own
    before: dict[Root, str] = {root: place for root, place in roots.items() if root != INDEX}
    for candidate in ((roots, imported), (roots, ""), (before, "")):
        if written == _keys(configuration(candidate[0], layout, access, candidate[1])):
            return candidate
    raise BadConfig(str(config), "exists with other content; edit it by hand, or choose another folder")


def _keys(text: str) -> list[str]:
    """The sections and keys of a luigi.cfg. Its comments are another version's, or the operator's."""
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def _check_index(folders: Mapping[Root, Path]) -> None:
    places = {root: str(folder) for root, folder in folders.items() if root != INDEX}
    own = [place for root, place in places.items() if root in sentinel.OWN]
    sentinel.check_index(str(folders[INDEX]), own, places.values())


def _check_there(folders: Iterable[str]) -> None:
    """Unavailable for a missing folder of the engines: a new one would stay empty for ever."""
    for folder in folders:
        if not Path(folder).is_dir():
            raise Unavailable(folder, f"there is no such folder; mount its disk, or correct the path. {_CREATE}")


def _roots(args: argparse.Namespace, base: Path, layout: OutputLayout) -> dict[Root, str]:
    """The places of the five roots: absolute paths, or URLs."""
    output = _place(args.output, base / "output")
    shared = layout is OutputLayout.JOB_FIRST  # Heritrix's default: its jobs folder is its output
    jobs = output if shared and not args.jobs else _place(args.jobs, base / "jobs")
    return {
        "output": output,
        "jobs": jobs,
        "state": str(base / "state"),
        "store": _place(args.store, base / "store"),
        INDEX: str(base / INDEX),
    }


def _place(given: str | None, default: Path) -> str:
    if given and places.is_remote(given):
        return given
    return str(Path(given).resolve() if given else default)


def configuration(
    roots: Mapping[Root, Path | str], layout: OutputLayout, access: Access | None = None, imported: str = ""
) -> str:
    """The hardened template, with the roots and without luigid."""
    template = TEMPLATE.read_text().replace("[core]\n", f"[core]\n{SCHEDULER}", 1)
    lines = [*_imported_section(imported), ""] if imported else []
    lines += ["[warcmill]", *(f"{root}={place}" for root, place in roots.items()), f"output_layout={layout}", ""]
    if access and (access.known_hosts or access.key_file):
        lines += ["[sftp]", f"known_hosts={access.known_hosts}", f"key_file={access.key_file}", ""]
    if access and access.s3 != S3Access():
        keys = ((key, getattr(access.s3, key)) for key in ("endpoint", "access_key", "secret_key_file"))
        lines += ["[s3]", *(f"{key}={value}" for key, value in keys if value), ""]
    return "\n".join([template.rstrip(), "", *lines])
