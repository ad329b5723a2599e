"""warcmill serve: look at the line and its crawls in a browser, search the archive, and replay."""

from __future__ import annotations

import argparse
import os

from commands.console.arguments import add_json
from commands.console.show import err
from tasks.config import folders
from warcmill.web.access import ROLES

SUMMARY = "look at the line and its crawls in a browser, search the archive, and replay"
EPILOG = """\
examples:
  warcmill serve
  warcmill serve --get-replay
  warcmill serve --port 8190
  warcmill serve --no-replay
  warcmill serve token add anna --role operator
  warcmill serve token add monitor --role reader --days 365
  warcmill serve token list
  warcmill serve token withdraw anna
  curl -H "Authorization: Bearer $TOKEN" 'http://127.0.0.1:8090/search?q=freedom&format=json'
  curl http://127.0.0.1:8090/healthz

In a folder without an archive it makes one, as 'warcmill crawl' does. Open the printed address
in a browser: where nothing was crawled yet it opens on "Archive a site". Without tokens it has a
one-time token, which makes that browser an operator's until serve ends: who starts serve can run
every verb. 'token add' prints a token, once, for a person or a program; only its digest is kept.
A browser changes it for a cookie at /sign-in, a program sends 'Authorization: Bearer TOKEN', or
the token as the password of Basic, with any user. A reader looks, searches and replays; a curator
also makes and edits jobs, and starts, steers and stops their crawls; an operator may do all, such
as to let inside addresses in, or to leave robots.txt aside.

Each page sends by ?format=json the document of the verb of its name. Pages show the state
folder, and how old it is: they ask no engine, store or server. Those of a group of clusters,
/groups/GROUP, ask its PostgreSQL, for some seconds.

It asks the current versions of the text index and of the CDX at each request: a new version
is seen at once. What is hidden (warcmill versions hide) is neither found nor replayed from
then on. Replay shows the very URL that is asked for, another one of its key in the CDX only
where that has no capture, and says so.

pywb 2.10 replays: of [serve] pywb, else of --get-replay, else on PATH. --get-replay installs
it by pip, with the hash of every file, into the folder replay beside the state, and then
serves. pywb is under the GNU GPL 3; it is a program of its own, started and watched by this
one. Without it, or without an index, serve starts too, and names on its page and here what is
missing and which command brings it; so it does while the store or the index is away. A URL in
place of words finds its captures.

The pages are at 127.0.0.1 and replay at localhost, so that no archived page gets the cookie
of the pages. Both listen on loopback, unless [serve] listen has another address for the
pages. If the store is on another host, pywb gets its WARCs from this program, and no login
to it. Everyone with an account on this machine can reach replay; the pages need a token.

/metrics: the figures of the archive for Prometheus, from what warcmill health last wrote
/healthz needs no token: {"replay", "versions": {"cdx", "text"}}, 200 if all is there, else 503
/search?q=WORDS&format=json: {"captures", "found": [{"capture", "line", "offset", "time",
"title", "type", "url", "warc"}], "page", "version"}; also site, from, to, year, type (html,
pdf, text, other) and page
/search?q=URL&format=json: {"captures", "found": [{"capture", "status", "time", "type",
"url"}], "page", "version"}
token list --json: {"tokens": [{"made", "name", "role", "until", "used", "why"}]};
used: when it was last used, to the minute

It serves until it is interrupted. [serve] of luigi.cfg has the address, the ports, pywb and
the proxies that sign people in. --port and --no-replay go before it: with --port, replay
has the port after it.

exit codes: 0 ended by a signal, or the token is made, listed or withdrawn, 1 there is a
token of this name, or none, 2 usage, 3 configuration: also if [serve] pywb is not pywb 2.10,
or others than this machine may ask and there is no token, 4 the state did not answer, a port is
taken, or pywb could not be installed
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """--get-replay, --port, --no-replay; or `token` and what to do with tokens."""
    parser.add_argument("--get-replay", action="store_true", help="install pywb, which is GPL, unless it is there")
    parser.add_argument("--port", type=_port, metavar="NUMBER", help="of the pages; replay has the next one")
    parser.add_argument("--no-replay", action="store_true", help="the pages alone: pywb is not started")
    token = parser.add_subparsers(dest="what", metavar="token").add_parser("token", allow_abbrev=False)
    actions = token.add_subparsers(dest="action", required=True, metavar="add|list|withdraw")
    add = actions.add_parser("add", allow_abbrev=False)
    add.add_argument("name", metavar="NAME", help="whose it is")
    add.add_argument("--role", choices=ROLES, required=True, help="what it allows; each role allows the ones before")
    add.add_argument("--days", type=int, metavar="NUMBER", help="it ends after so many days; by default never")
    add_json(actions.add_parser("list", allow_abbrev=False))
    actions.add_parser("withdraw", allow_abbrev=False).add_argument("name", metavar="NAME", help="whose it is")


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 1 << 16:
        raise argparse.ArgumentTypeError(f"'{text}' is not a port from 1 to 65535")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Serve until a signal; or what else is asked of the server."""
    if args.what is None and folders.find() is None:
        from commands.console import crawl_options  # it imports what crawls, which others do without

        os.environ[folders.VARIABLE] = str(crawl_options.new_archive(err))

    from commands.console import serving  # with the web, which --help does without

    return serving.run(args)
