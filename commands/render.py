"""warcmill render: open pages in a browser for another engine, each into a WARC of its own."""

from __future__ import annotations

import argparse
import asyncio
import fcntl
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TextIO

from msgspec.structs import replace

from commands.console.crawl_options import networks, resolved
from commands.console.show import err, out
from tasks import logs
from warcmill.base import disk
from warcmill.crawl.beside.page import PageRenderer, rendering
from warcmill.crawl.beside.service import PATH, application
from warcmill.crawl.fetch.addresses import Resolver, parse_fixed, read_hosts
from warcmill.crawl.job.job import Job
from warcmill.crawl.render import BrowserSettings, check_browser
from warcmill.crawl.render.proxy import LOOPBACK, Proxy, ProxyKeys
from warcmill.errors import BadConfig, Busy, Unavailable
from warcmill.web import access, server

SUMMARY = "open pages in a browser for another engine, such as Heritrix, each into a WARC of its own"
PORT = 8095
ADDRESS = ".render-address"
EPILOG = """\
examples:
  warcmill render serve --root /srv/rendered
  warcmill render serve --root /srv/rendered --port 8096 --allow-private 10.20.0.0/16
  curl --data '{"url": "https://www.example.org/", "warc_prefix": "daily-rendered"}' \\
    "$(cat /srv/rendered/.render-address)"

'serve' listens on loopback, and prints its address with a token; so does the file
.render-address in the root, for who may read it. POST has a page rendered:

  {"url": URL, "warc_prefix": PREFIX}
  {"links": [...], "notes": [...], "status": 200, "warc_prefix": PREFIX}

The answer comes when the page's WARC is closed and durable. The root is that of a
[writer.NAME] with layout=prefix: a launch has the WARCs whose prefix its log names. 4xx:
the page may not be fetched, by its robots.txt or as its address is inside; 502: its
server did not answer; 503: the disk takes nothing, or no browser starts. Then nothing
was kept.

Heritrix asks by the processor 'renderSeeds' of the profile that Warcmill ships, which is
off until a copy of it sets renderSeeds.enabled=true.

It serves until it is interrupted. Chromium's sandbox is on; root cannot have that.

exit codes: 0 ended by a signal, 2 usage, 3 configuration: the root is not there, what
renders is not installed, or root has no sandbox, 4 the port is taken or the disk took
nothing, 5 another process serves this root
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`serve`, the folder of its WARCs, its port, and what it may reach."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="serve")
    serve = actions.add_parser("serve", allow_abbrev=False)
    serve.add_argument("--root", type=Path, required=True, metavar="FOLDER", help="the folder of the WARCs")
    serve.add_argument(
        "--port", type=_port, default=PORT, metavar="NUMBER", help=f"where it listens, on loopback (default: {PORT})"
    )
    serve.add_argument(
        "--allow-private", action="extend", type=networks, default=[], metavar="NETWORK",
        help="inside addresses that may be reached, such as 10.20.0.0/16",
    )  # fmt: skip
    serve.add_argument(
        "--resolve", action="append", type=resolved, default=[], metavar="HOST=ADDRESS",
        help="the address of a host, instead of asking a name server; may be repeated",
    )  # fmt: skip
    serve.add_argument("--no-sandbox", action="store_true", help="let Chromium run without its sandbox, as for root")


def run(args: argparse.Namespace) -> int:
    """Serve until a signal."""
    settings = BrowserSettings(sandbox=not args.no_sandbox)
    check_browser(settings)
    if not args.root.is_dir():
        raise BadConfig("--root", f"{args.root} is not a folder; make it, and name it in a [writer.NAME] of luigi.cfg")
    logs.configure()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)
    with _address_file(args.root / ADDRESS) as file:
        asyncio.run(_serve(args, settings, file))
    return 0


async def _serve(args: argparse.Namespace, settings: BrowserSettings, file: TextIO) -> None:
    from warcmill.crawl.render.browser import Browser  # of the extra `render`

    job = Job("render", (), allow_private=tuple(args.allow_private))
    keys = ProxyKeys()
    browser = Browser(replace(settings, user_agent=job.user_agent), keys)
    resolver = Resolver(parse_fixed(args.resolve), read_hosts())
    async with rendering(PageRenderer(args.root, job, resolver, browser, Proxy(keys, job.user_agent))) as renderer:
        token = access.new_secret()
        address = f"http://{LOOPBACK}:{args.port}{PATH}?token={token}"
        await server.serve_in_loop(
            application(renderer, token), LOOPBACK, args.port, "--port", partial(_begin, address, file)
        )


def _begin(address: str, file: TextIO) -> None:
    file.write(f"{address}\n")
    file.flush()
    out(address)
    err("Ctrl-C ends it")


@contextmanager
def _address_file(path: Path) -> Iterator[TextIO]:
    """The file that has the address while it serves; Busy if another process serves this root."""
    try:
        file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+", encoding="ascii")
    except OSError as error:
        raise Unavailable(str(path), disk.reason(error, path)) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Busy(f"rendering into {path.parent}") from error
        file.truncate(0)
        try:
            yield file
        finally:
            file.truncate(0)


def _end(*_: object) -> None:
    sys.exit(0)


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 1 << 16:
        raise argparse.ArgumentTypeError(f"'{text}' is not a port")
    return int(text)
