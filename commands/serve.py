"""warcmill serve: search the archive in a browser, and replay what is found."""

from __future__ import annotations

import argparse
import signal
import sys
from functools import partial
from pathlib import Path

from commands.printing import err, out
from tasks import logs
from tasks.config.serve import Serving, index_of, serving, warcs
from tasks.config.settings import settings
from tasks.step import open_line
from warcmill.stores.opening import open_folder
from warcmill.web import access, replay, server
from warcmill.web.access import Token
from warcmill.web.app import App
from warcmill.web.archive import Archive
from warcmill.web.replay import LOOPBACK, Places, Pywb

SUMMARY = "search the archive in a browser, and replay what is found"
EPILOG = """\
examples:
  warcmill serve
  curl -H "Authorization: Bearer $TOKEN" 'http://127.0.0.1:8090/search?q=freedom&format=json'
  curl http://127.0.0.1:8090/healthz

Prints an address with a token; open it in a browser. It asks the current versions of the
text index and of the CDX at each request: a new version is seen at once. What is hidden
(warcmill versions hide) is not found at once, and is no longer replayed once it has left
the CDX with the next version.

pywb 2.10 replays. It is a program of its own, started and watched by this one; 'warcmill
doctor' says how to install it. Search is at 127.0.0.1 and replay at localhost, so that no
archived page gets the cookie of search. Both listen on loopback only. If the store is on
another host, pywb gets its WARCs from this program, and no login to it. Everyone with an
account on this machine can reach replay; search needs the token.

/healthz needs no token: {"replay", "versions": {"cdx", "text"}}, 200 if all is there, else 503
/search?q=WORDS&format=json: {"captures", "found": [{"capture", "line", "offset", "time",
"title", "type", "url", "warc"}], "page", "version"}; also site, from, to and page

It serves until it is interrupted. [serve] of luigi.cfg has the ports, pywb and the token.

exit codes: 0 ended by a signal, 2 usage, 3 configuration: pywb is missing or of another
version, too, 4 a root did not answer, or a port is taken
"""


def add_arguments(_: argparse.ArgumentParser) -> None:
    """None."""


def run(_: argparse.Namespace) -> int:
    """Serve until a signal."""
    config, asked = settings(), serving()
    program, cdx, store = replay.command(asked.pywb), index_of(config), config.open_store()
    archive = Archive(open_line().state.store, open_folder("index", config.index), store)
    replay.check_free(asked.replay_port, "replay_port")
    logs.configure()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)
    with warcs(config, store) as place:
        _serve(archive, program, Places(place, cdx), asked)
    return 0


def _serve(archive: Archive, program: Path, places: Places, asked: Serving) -> None:
    secret = asked.token or access.new_secret()
    pywb = Pywb(program, places, asked.replay_port, access.name_of_replay(secret), asked.replay_url)
    app = App(archive, pywb, Token(secret, f"warcmill-{asked.port}"))
    try:
        server.serve(app, asked.port, partial(_begin, pywb, asked, secret))
    finally:
        pywb.stop()


def _begin(pywb: Pywb, asked: Serving, secret: str) -> None:
    """Start replay, and print where to begin. A token that the operator knows is not printed."""
    pywb.start()
    out(f"http://{LOOPBACK}:{asked.port}/?token={'YOUR-TOKEN' if asked.token else secret}")
    err("Ctrl-C ends it")


def _end(*_: object) -> None:
    sys.exit(0)
