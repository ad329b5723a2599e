"""warcmill script: run pyspider's scripts; every page that they read is archived."""

from __future__ import annotations

import argparse
from pathlib import Path

from commands.console import crawl_options
from warcmill.errors import BadInput
from warcmill.model import parse_job

STATUSES = ("TODO", "STOP", "DEBUG", "RUNNING")
SUMMARY = "run pyspider's scripts: pages of Python that crawl, into the archive"
EPILOG = """\
examples:
  warcmill script run quotes.py
  warcmill script run shop.py news.py --job papers --limit 500 > results.jsonl
  warcmill script new papers/shop --start https://shop.example/
  warcmill script check shop.py
  warcmill script step shop.py
  warcmill script step shop.py --callback index_page --url https://shop.example/ --page index.html
  warcmill script set papers/shop --status RUNNING --rate 0.5 --burst 3 --group shops
  warcmill script start papers/shop
  warcmill script list papers
  warcmill script try papers/shop --last 50
  warcmill script history papers/shop
  warcmill script show papers/shop --edition 3
  warcmill script tasks papers/shop --status failed
  warcmill script results papers/shop --format csv > shop.csv
  warcmill script again papers/shop c1f2a5d09b3e4f6c8d7a90b1e2f3a4b5

A script is a page of Python as pyspider has it: a class that inherits from BaseHandler, whose
methods read pages and ask for more by self.crawl. It runs unchanged on the Python of today.
'pip install warcmill[scripts]' brings what it needs.

'run' calls on_start of each script, and ends when only what they do every so often is left.
Each result is a line of JSON on stdout, once its page is in the archive. What a script prints
or logs is on stderr. Pages are in WARCs and logs of a launch of --job, which is named after
the first script. A page whose callback failed is kept, and is tried again after 30 seconds,
then after hours: the same command continues there.

'new' writes a script to begin with into a job. 'check' loads one, and prints what it does.
'step' runs one callback, by default on_start, asks no site, and prints all that came of it;
a follow that it prints may be the --task of the next.

In a job that runs, 'set' gives a script its status, pace and group: one that is RUNNING, or in
DEBUG, crawls. After an edit it is CHECKING, and does nothing, until it is set RUNNING again.
'start' has on_start called. 'list' has what each did in 5 minutes, an hour, a day (success,
retry, failed), and what a person should look at: a script is offline, its site has changed, it
is silent, or late. 'try' runs the present text over the last pages that each callback has read,
from their WARCs, asks no site, and prints each field before and after. 'results' prints the
newest result of each task; --after continues one. 'again' has a task visited once more.
'delete' forgets a script, its tasks and results; its pages stay in the archive.

Each text of a script is an edition of its job: what a command or a page saves, and what was
edited by hand, once a command looks at the job. 'history' lists those in which a script is
new, changed or removed: who, when, made from which, and why. 'show' prints the text of one.

A script runs behind walls, bubblewrap's: no network, no file but Python's, 30 seconds and 1 GB
for a callback. Where they cannot stand it does not run, unless luigi.cfg says so: [scripts]
walls.

exit codes: 0 done, 1 a callback has failed, the script cannot be loaded or uses a name that
nothing defines, or a page of 'try' is worse than before, 2 usage, 3 configuration, also where
the walls cannot stand, 4 a disk or a server did not answer, 5 the job runs already, 130
stopped by Ctrl-C: the same command continues
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The action, its scripts, and what a run may reach."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    run = actions.add_parser("run", allow_abbrev=False)
    run.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a script: NAME.py")
    run.add_argument("--job", type=_job, metavar="NAME", help="the job whose launch this is")
    run.add_argument("--limit", type=_whole, metavar="NUMBER", help="at most so many documents (default: no limit)")
    run.add_argument("--config", type=Path, metavar="FILE", help="a crawl.toml with further settings")
    crawl_options.add_inside(run, several="several")
    run.add_argument(
        "--no-sandbox", action="store_true", help="let the browser of fetch_type run without its sandbox, as for root"
    )
    new = actions.add_parser("new", allow_abbrev=False)
    new.add_argument("script", type=_script, metavar="JOB/NAME", help="the job, and the name of the script")
    new.add_argument("--start", required=True, metavar="URL", help="where the script begins")
    check = actions.add_parser("check", allow_abbrev=False)
    check.add_argument("file", type=Path, metavar="FILE", help="a script")
    check.add_argument("--json", action="store_true", help="print JSON, for programs")
    step = actions.add_parser("step", allow_abbrev=False)
    step.add_argument("file", type=Path, metavar="FILE", help="a script")
    step.add_argument("--callback", default="", metavar="NAME", help="the method to call (default: on_start)")
    step.add_argument("--url", default="", metavar="URL", help="the address of the --page")
    step.add_argument("--page", type=Path, metavar="FILE", help="the page that the method reads")
    step.add_argument("--task", metavar="JSON", help="a task, as a step prints its follows, in place of --callback")
    step.add_argument("--json", action="store_true", help="print JSON, for programs")
    _of_job(actions)


def _of_job(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    for name in ("set", "start", "again", "delete"):
        action = actions.add_parser(name, allow_abbrev=False)
        action.add_argument("script", type=_script, metavar="JOB/NAME", help="the job, and the name of the script")
        if name == "set":
            action.add_argument("--status", choices=STATUSES, help="RUNNING and DEBUG: as it is now it may run")
            action.add_argument("--rate", type=_number, metavar="NUMBER", help="fetches a second (default: 1)")
            action.add_argument("--burst", type=_number, metavar="NUMBER", help="at once, after a rest (default: 3)")
            action.add_argument("--group", metavar="TEXT", help="the group in which it is listed")
        elif name == "again":
            action.add_argument("taskid", metavar="TASKID", help="the task, as 'tasks' prints it with --json")
    tried = actions.add_parser("try", allow_abbrev=False)
    tried.add_argument("script", type=_script, metavar="JOB/NAME", help="the job, and the name of the script")
    tried.add_argument("--last", type=_whole, default=20, metavar="NUMBER", help="so many of a callback (default: 20)")
    tried.add_argument("--json", action="store_true", help="print JSON, for programs")
    history = actions.add_parser("history", allow_abbrev=False)
    history.add_argument("script", type=_script, metavar="JOB/NAME", help="the job, and the name of the script")
    history.add_argument("--json", action="store_true", help="print JSON, for programs")
    show = actions.add_parser("show", allow_abbrev=False)
    show.add_argument("script", type=_script, metavar="JOB/NAME", help="the job, and the name of the script")
    show.add_argument("--edition", type=_whole, metavar="NUMBER", help="as this edition has it (default: the newest)")
    listed = actions.add_parser("list", allow_abbrev=False)
    listed.add_argument("job", type=_job, metavar="JOB", help="the job")
    listed.add_argument("--json", action="store_true", help="print JSON, for programs")
    tasks = actions.add_parser("tasks", allow_abbrev=False)
    tasks.add_argument("what", type=_job_or_script, metavar="JOB[/NAME]", help="the job, or one script of it")
    tasks.add_argument("--status", choices=("active", "success", "failed"), help="only these")
    tasks.add_argument("--limit", type=_whole, default=100, metavar="NUMBER", help="at most so many (default: 100)")
    tasks.add_argument("--json", action="store_true", help="print JSON, for programs")
    results = actions.add_parser("results", allow_abbrev=False)
    results.add_argument("what", type=_job_or_script, metavar="JOB[/NAME]", help="the job, or one script of it")
    results.add_argument("--format", choices=("jsonl", "json", "csv"), default="jsonl", help="(default: jsonl)")
    results.add_argument("--after", type=_whole, default=0, metavar="NUMBER", help="only those after this number")


def run(args: argparse.Namespace) -> int:
    """Do what the action says."""
    from commands.console import script_jobs, scripts  # they import Luigi, which --help does without

    return {**scripts.ACTIONS, **script_jobs.ACTIONS}[args.action](args)


def _job(text: str) -> str:
    try:
        return parse_job(text)
    except BadInput as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _script(text: str) -> tuple[str, str]:
    job, slash, name = text.partition("/")
    if not slash:
        raise argparse.ArgumentTypeError(f"'{text}' is not JOB/NAME")
    return _job(job), name


def _job_or_script(text: str) -> str:
    _job(text.partition("/")[0])
    return text


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number") from error


def _whole(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 12:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number")
    return int(text)
