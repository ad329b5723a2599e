"""warcmill serve: search the archive in a browser, and replay what is found."""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
from functools import partial
from pathlib import Path

from commands.console.show import err, out
from tasks import logs
from tasks.config.serve import Serving, index_of, program_of, replay_folder, serving, warcs
from tasks.config.settings import Settings, settings
from tasks.step import open_line
from warcmill.errors import BadConfig
from warcmill.markers import locks
from warcmill.stores.opening import open_folder
from warcmill.web import http, replay
from warcmill.web.app import App
from warcmill.web.archive import NO_INDEX, Archive
from warcmill.web.http import Token
from warcmill.web.replay import LOOPBACK, NAME, NoReplay, Pywb, ReplaySources

SUMMARY = "search the archive in a browser, and replay what is found"
EPILOG = """\
examples:
  warcmill serve
  warcmill serve --get-replay
  curl -H "Authorization: Bearer $TOKEN" 'http://127.0.0.1:8090/search?q=freedom&format=json'
  curl http://127.0.0.1:8090/healthz

Prints an address with a token; open it in a browser. It asks the current versions of the
text index and of the CDX at each request: a new version is seen at once. What is hidden
(warcmill versions hide) is not found at once, and is no longer replayed once it has left
the CDX with the next version.

pywb 2.10 replays: of [serve] pywb, else of --get-replay, else on PATH. --get-replay installs
it by pip, with the hash of every file, into the folder replay beside the state, and then
serves. pywb is under the GNU GPL 3; it is a program of its own, started and watched by this
one. Without it, or without an index, serve starts too, and names on its page and here what is
missing and which command brings it. A URL in place of words finds its captures.

Search is at 127.0.0.1 and replay at localhost, so that no archived page gets the cookie of
search. Both listen on loopback only. If the store is on another host, pywb gets its WARCs
from this program, and no login to it. Everyone with an account on this machine can reach
replay; search needs the token.

/healthz needs no token: {"replay", "versions": {"cdx", "text"}}, 200 if all is there, else 503
/search?q=WORDS&format=json: {"captures", "found": [{"capture", "line", "offset", "time",
"title", "type", "url", "warc"}], "page", "version"}; also site, from, to and page
/search?q=URL&format=json: {"captures", "found": [{"capture", "status", "time", "type",
"url"}], "page", "version"}

It serves until it is interrupted. [serve] of luigi.cfg has the ports, pywb and the token.

exit codes: 0 ended by a signal, 2 usage, 3 configuration: also if [serve] pywb is no pywb
2.10, 4 a root did not answer, a port is taken, or pywb could not be installed
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """--get-replay."""
    parser.add_argument("--get-replay", action="store_true", help="install pywb, which is GPL, unless it is there")


def run(args: argparse.Namespace) -> int:
    """Serve until a signal."""
    config, asked, line = settings(), serving(), open_line()
    if args.get_replay:
        with locks.alone(line.state, replay.FOLDER):
            replay.install(replay_folder(config), err)
    store, index = config.open_store(), open_folder("index", config.index) if config.index else None
    archive = Archive(line.state.store, index, store)
    program = _program(config, asked)
    replay.check_free(asked.replay_port, "replay_port")
    logs.configure()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)
    with warcs(config, store) as place:
        secret = asked.token or http.new_secret()
        _serve(archive, _replay(config, program, place, asked, secret), asked, secret)
    return 0


def _program(config: Settings, asked: Serving) -> Path | str:
    """The pywb that replays, or why there is none. One that luigi.cfg names has to be there."""
    try:
        return program_of(config, asked)
    except BadConfig as error:
        if asked.pywb:
            raise
        why = error.why if shutil.which("wayback") else f"pywb, which shows them, is not installed; {replay.INSTALL}"
        return f"Archived pages cannot be shown yet: {why}"


def _replay(config: Settings, program: Path | str, place: str, asked: Serving, secret: str) -> Pywb | NoReplay:
    if isinstance(program, str) or not config.index:
        why = program if isinstance(program, str) and config.index else NO_INDEX
        return NoReplay(why, asked.replay_url or f"http://{NAME}")
    places = ReplaySources(place, index_of(config))
    return Pywb(program, places, asked.replay_port, http.name_of_replay(secret), asked.replay_url)


def _serve(archive: Archive, pywb: Pywb | NoReplay, asked: Serving, secret: str) -> None:
    app = App(archive, pywb, Token(secret, f"warcmill-{asked.port}"))
    try:
        replay.serve(app, asked.port, partial(_begin, app, pywb, asked, secret))
    finally:
        pywb.stop()


def _begin(app: App, pywb: Pywb | NoReplay, asked: Serving, secret: str) -> None:
    """Start replay, and print where to begin, and what is missing. A token that the operator knows is not printed."""
    pywb.start()
    err(*app.missing())
    out(f"http://{LOOPBACK}:{asked.port}/?token={'YOUR-TOKEN' if asked.token else secret}")
    err("Ctrl-C ends it")


def _end(*_: object) -> None:
    sys.exit(0)
