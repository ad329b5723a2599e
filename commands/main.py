"""`warcmill VERB ...`: find the verb, run it, and turn the outcome into an exit code.

A verb is a module `commands/{verb}.py` with four names: `SUMMARY`, `EPILOG`
(examples, shown under its help), `add_arguments(parser)` and `run(args)`,
which returns 0 or 1. Only the module of the given verb is imported, so
`warcmill --help` answers at once.
"""

from __future__ import annotations

import configparser
import gc
import io
import os
import sys
import traceback
import warnings
from collections.abc import Sequence

from tasks.config import folders
from warcmill import __version__
from warcmill.base.escapes import escape_last_resort, printable, printable_lines
from warcmill.errors import BadConfig, WarcmillError

# Each line is also the SUMMARY of its module; a test compares them.
VERBS: dict[str, dict[str, str]] = {
    "set up": {
        "init": "create a folder with luigi.cfg and the five roots",
        "doctor": "check that this machine, the configuration and the roots are ready",
    },
    "look": {
        "status": "show how far each launch has come, by day",
        "jobs": "list all jobs: the newest launch of each, when it is due, and what needs a person",
        "why": "explain why a launch or a step is not done yet",
        "pages": "list the pages of a launch, what it did not get and why, and what changed",
        "quality": "open pages of a launch in replay with the network cut, and name what they lack",
        "report": "show what a launch brought, and what became of each of its seeds",
        "plan": "show what a scan would run, without running it",
        "files": "list every WARC with its state in each step",
        "reconcile": "compare disk, packages and archive, and list the gaps",
        "depends": "list the WARCs of other launches that a launch's revisits need",
        "search": "find pages and PDFs of the archive by their words, or by their URL",
        "health": "ask engines, disks and servers whether they answer, and what runs and waits",
        "serve": "look at the line and its crawls in a browser, search the archive, and replay",
    },
    "do": {
        "crawl": "crawl some sites, and bring what came into an archive in this folder",
        "render": "open pages in a browser for another engine, such as Heritrix, each into a WARC of its own",
        "request": "ask for pages by Scrapy Cluster's API, and see what comes back",
        "run": "run a part of a crawl on this machine until a signal, such as a worker",
        "script": "run pyspider's scripts: pages of Python that crawl, into the archive",
        "schedule": "have a job crawled daily, weekly, ..., and the archive run by cron or systemd",
        "pulse": "start, checkpoint or stop a crawl, once however often called; or show its progress",
        "pypi": "crawl a package index, in full or what has changed; ask what is known of its packages",
        "group": "see and keep a group of clusters: endless jobs whose URIs one PostgreSQL has",
        "uri": "look at the URIs of a group of clusters, and change them",
        "job": "edit a job of the built-in crawler; look at its running crawl, and steer it",
        "scan": "bring some days up to date: run the scans, then reconcile",
        "backfill": "run the line over a long interval, day by day",
        "make": "run the step that publishes a marker, and first the steps that it rests on",
        "redo": "have a step, and all that depends on it, done again",
        "close": "record that a launch has ended, when its engine cannot",
        "import": "make a launch of a folder of WARCs that has no launch and no log, or of WACZ files",
        "accept": "accept a finding, such as a refused file, so that it is no longer a gap",
        "verify": "read archived files again and compare them with their markers",
        "backup": "put the state into the store: the markers of some days, decisions, editions",
        "restore": "bring the markers of archived launches and of due crawls back from the store",
        "check": "check that WARC files and bags are whole, anywhere, without a line",
        "cdxj": "print the index lines (CDXJ) of WARC files",
        "surt": "print the key under which a CDX index sorts a URL",
        "feed": "check a crawl feed; list, add, edit, pause its targets; exchange them, and jobs of brozzler",
        "catalogue": "find SIPs, WARCs and ARKs in the catalogue, or make it anew from the markers",
        "versions": "list, compare, verify or retire the versions of an index; hide captures in it",
        "documents": "list the publications that crawls brought, decide which are kept, hand them on",
        "wacz": "write a launch, or a stage of it, as a WACZ: one file that replays in a browser",
    },
    "learn": {
        "completion": "print the completion script for bash, zsh or fish",
        "man": "print the manual page of warcmill, for man",
    },
}

DESCRIPTION = "A production line for web archives: from the crawler's disk to a verified, reconciled archive."
_GARBAGE = 20_000  # objects more before the collector looks: it takes as long as the import that makes them
USAGE = "usage: warcmill VERB [ARGUMENT ...]"
CODES = "exit codes: 0 yes or done, 1 the answer is no, 2 usage, 3 configuration, 4 unavailable, 5 busy, 70 a bug"


def main(argv: Sequence[str] | None = None) -> int:
    """The `warcmill` command. Returns its exit code; argparse leaves by SystemExit 2 on wrong usage."""
    words = list(sys.argv[1:] if argv is None else argv)
    _print_harmlessly()
    if argv is None:  # a process of its own, whose environment is ours
        _find_archive()
        gc.set_threshold(_GARBAGE)
    try:
        code = _dispatch(words)
        sys.stdout.flush()
    except WarcmillError as error:
        print(printable(f"warcmill: {error}"), file=sys.stderr)
        return error.exit_code
    except configparser.Error as error:  # Luigi reads luigi.cfg when it is imported
        print(printable(f"warcmill: configuration, luigi.cfg cannot be read: {error}"), file=sys.stderr)
        return BadConfig.exit_code
    except BrokenPipeError:
        from commands.console.show import silence  # the overview imports no module of a verb

        silence(sys.stdout)
        return 141  # the shell's code for a program that SIGPIPE ended
    except KeyboardInterrupt:
        print("warcmill: interrupted", file=sys.stderr)
        return 130
    except Exception:  # noqa: BLE001 the one place that catches everything: an unforeseen error is a bug
        print(printable_lines(traceback.format_exc().rstrip()), file=sys.stderr)
        print("warcmill: this is a bug in Warcmill; please report the lines above", file=sys.stderr)
        return 70
    if argv is None:
        gc.freeze()  # the process ends: what was imported is not looked through for garbage
    return code


def _print_harmlessly() -> None:
    """Make output safe: a character that the encoding lacks is escaped, in what is printed and in what is logged."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    escape_last_resort()
    warnings.filterwarnings("ignore", "Config file does not exist", UserWarning)  # Luigi's; settings() reports it


def _find_archive() -> None:
    """Name the luigi.cfg of the archive to Luigi, which reads it when it is imported, and to the processes of scans."""
    if config := folders.find():
        os.environ.setdefault(folders.VARIABLE, str(config))


def _dispatch(words: list[str]) -> int:
    match words:
        case []:
            print(f"{USAGE}\n'warcmill --help' lists the verbs", file=sys.stderr)
            return 2
        case ["-h" | "--help" | "help", *_]:
            print(overview())
            return 0
        case ["--version", *_]:
            print(f"warcmill {__version__}")
            return 0
        case ["__complete", *rest]:
            return _complete(rest)
        case [verb, *rest] if verb in _verbs():
            return _run(verb, rest)
        case _:
            print(f"{USAGE}\nwarcmill: no verb '{printable(words[0])}'{_nearest(words[0])}", file=sys.stderr)
            return 2


def _run(verb: str, words: list[str]) -> int:
    from commands.console import parser  # the overview needs no verb

    args = parser.parser_of(verb).parse_args(words)
    return parser.verb(verb).run(args)


def _complete(words: list[str]) -> int:
    """Print what the last of these words may become, one per line, for the scripts of `warcmill completion`."""
    from commands.console.candidates import ArchiveNames, candidates  # the overview needs no verb

    for candidate in candidates(words, _verbs(), ArchiveNames()):
        print(candidate)
    return 0


def _verbs() -> list[str]:
    return [verb for group in VERBS.values() for verb in group]


def overview() -> str:
    """The text of `warcmill --help`: every verb, by purpose."""
    lines = [
        USAGE,
        "",
        DESCRIPTION,
    ]
    for group, verbs in VERBS.items():
        lines += ["", f"{group}:", *(f"  {verb:<10} {summary}" for verb, summary in verbs.items())]
    return "\n".join([*lines, "", "'warcmill VERB --help' explains a verb, with examples.", CODES])


def _nearest(unknown: str) -> str:
    from warcmill.base.escapes import did_you_mean  # needed only after a typing error

    return did_you_mean(unknown, _verbs()) or "; 'warcmill --help' lists them"


if __name__ == "__main__":
    sys.exit(main())
