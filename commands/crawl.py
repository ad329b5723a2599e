"""warcmill crawl: crawl some sites with the built-in crawler, and bring what came into the archive."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from commands.console import crawl_options
from commands.console.show import out
from tasks.config import folders
from warcmill.crawl.render import WHICH
from warcmill.crawl.uri import canonical
from warcmill.errors import BadInput
from warcmill.formats.feed import TargetScope
from warcmill.formats.seeds import route_of
from warcmill.model import parse_job

SUMMARY = "crawl some sites, and bring what came into an archive in this folder"
EPILOG = """\
examples:
  warcmill crawl https://www.example.org/
  warcmill crawl https://www.example.org/news/ --limit 500 --job news
  warcmill crawl https://example.org/ --scope subdomains --hops 5
  warcmill crawl https://example.org/report.html --scope page
  warcmill crawl https://example.org/app/ --render pages
  warcmill crawl https://members.example/ --cookies cookies.txt
  warcmill crawl http://intranet.example/ --allow-private 10.20.0.0/16 --no-delay
  warcmill crawl https://www.example.org/ --config crawl.toml --no-line
  warcmill crawl https://www.example.org/ --look
  warcmill crawl https://www.example.org/ --frontier redis://127.0.0.1:6379/0 --job shared

The archive is that of LUIGI_CONFIG_PATH, or of luigi.cfg in this folder, or the folder
archive here, which is made when there is none. A job that has no engine yet is added to
luigi.cfg, in [engine.crawl]; with --frontier in [engine.shared], which names the Redis.
The crawl runs in a process of its own, as 'warcmill pulse start' begins it; this command
shows its progress, then runs 'warcmill scan' for its day.

--scope names what belongs to the crawl: root (all below the URL's folder, the default),
subdomains (the whole domain), plus1 (the page, and what it links to), page (the page
alone, with all its parts: styles, pictures, fonts, frames, scripts, and what these
embed; a feed calls it resource). What pages embed belongs to each, from any host.
robots.txt is obeyed, and a host is asked again only after some seconds.

A job is its seeds and its scope. Other URLs or another scope on a host that has a job are
a job beside it, NAME-2, and the first line names it; the same ones are the same job. With
--job, a job that has others is refused, and nothing is written: --replace confirms. Limits,
politeness and rendering may change; those of a schedule's crawls do with --replace alone.

--cookies is a login: the cookies.txt that a browser's extension exports, for the hosts that it
names. The crawl keeps a copy in profiles/ beside the state, which no backup has, and leaves
the cookies out of the WARC's requests. Sign out when the crawl has ended.

Ctrl-C ends the crawl with a checkpoint; the same command continues from there. Ctrl-C
twice: at once, and what was under way is fetched again. --config takes the keys of a
crawl.toml; the options go before it.

A crawl outlives its terminal. The same command finds it again, prints since when it runs
and how far it is, watches it on, and brings it into the archive; Ctrl-C then asks whether
to leave it running or to stop it. One that ended meanwhile is brought in, and nothing is
begun. Off a terminal: exit 5, with the commands that watch and stop it.

--look asks each URL once, over its redirects, and its robots.txt; it prints the answers, and
crawls nothing. --json: {"looks": [{"url", "status", "to", "type", "robots", "forbidden",
"why"}]}; exit 1 if one does not answer, or its robots.txt forbids it.

exit codes: 0 crawled, and nothing of this launch is missing in the archive, 1 no URL may
be fetched, nothing was, the --job has other seeds or another scope, or the launch has a gap,
2 usage, 3 configuration, 4 a disk or a
server did not answer, 5 the job runs already, 130 after Ctrl-C
"""

SCOPES = {
    "root": TargetScope.ROOT,
    "subdomains": TargetScope.SUBDOMAINS,
    "plus1": TargetScope.PLUS1,
    "page": TargetScope.RESOURCE,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """URL..., what belongs to the crawl, when it ends, and what it may reach."""
    parser.add_argument("urls", nargs="+", type=_url, metavar="URL", help="where to begin")
    parser.add_argument(
        "--scope", choices=list(SCOPES), type=_scope, default="root", help="what belongs to it (default: root)"
    )
    parser.add_argument("--hops", type=_whole, metavar="NUMBER", help="at most so many links from a URL (default: 20)")
    parser.add_argument("--limit", type=_whole, metavar="NUMBER", help="at most so many documents (default: no limit)")
    parser.add_argument(
        "--render", choices=WHICH, metavar="WHICH",
        help=f"open these pages in a browser: {', '.join(WHICH)} (default: never)",
    )  # fmt: skip
    parser.add_argument(
        "--no-sandbox", action="store_true", help="let that browser run without its sandbox, as for root"
    )
    parser.add_argument(
        "--cookies", type=Path, metavar="FILE", help="be signed in: a cookies.txt of Netscape's format, for its hosts"
    )
    parser.add_argument("--job", type=_job, metavar="NAME", help="its name (default: the first URL's host)")
    parser.add_argument("--replace", action="store_true", help="give the --job these seeds, scope and settings")
    parser.add_argument("--config", type=Path, metavar="FILE", help="a crawl.toml with further settings")
    parser.add_argument("--no-line", action="store_true", help="only crawl: 'warcmill scan' does the rest later")
    parser.add_argument("--verbose", action="store_true", help="show the log of the steps too")
    parser.add_argument("--look", action="store_true", help="ask each URL once, and crawl nothing")
    parser.add_argument("--json", action="store_true", help="print JSON, for programs; with --look")
    crawl_options.add_inside(parser, several="six")
    parser.add_argument(
        "--frontier", metavar="URL", help="the Redis that keeps what is still to be fetched: redis://HOST:6379/0"
    )


def run(args: argparse.Namespace) -> int:
    """Refuse what cannot be crawled, before anything is written; then find or make the archive, and crawl into it."""
    if args.no_delay and not args.allow_private:
        sys.stderr.write("warcmill crawl: --no-delay is for the addresses that --allow-private names\n")
        return 2

    if args.replace and not args.job:
        sys.stderr.write("warcmill crawl: --replace is for the job that --job names\n")
        return 2

    if args.json and not args.look:
        sys.stderr.write("warcmill crawl: --json is for --look\n")
        return 2

    from commands.console import crawl  # it imports Luigi, which --help does without

    config = folders.find()
    if args.look:
        return crawl.look(args, SCOPES[args.scope], is_new=config is None)
    plan = crawl.plan(args, SCOPES[args.scope], is_new=config is None)
    if code := crawl.refused(plan):
        return code
    crawl.name_routes(plan)
    config = config or crawl_options.new_archive(out)
    os.environ[folders.VARIABLE] = str(config)
    return crawl.run(args, config, plan)


def _scope(text: str) -> str:
    """One of our words; what a feed calls `resource` is `page` here."""
    return "page" if text == TargetScope.RESOURCE else text


def _url(text: str) -> str:
    try:
        return canonical(text if "://" in text else f"https://{text}") + route_of(text)
    except BadInput as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _whole(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 12:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number")
    return int(text)


def _job(text: str) -> str:
    try:
        return parse_job(text)
    except BadInput as error:
        raise argparse.ArgumentTypeError(str(error)) from error
