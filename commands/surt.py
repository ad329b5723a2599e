"""warcmill surt: the keys under which an index sorts URLs."""

from __future__ import annotations

import argparse

from commands.console.show import out
from warcmill.formats import hosts
from warcmill.formats.index.urlkey import urlkey

SUMMARY = "print the key under which a CDX index sorts a URL"
EPILOG = """\
examples:
  warcmill surt https://www.gov.example/News/?b=2&A=1
  warcmill surt "$(cat url.txt)"

Prints one key per URL on stdout: the host's labels in reverse order, without www
and scheme; all in lower case; the query sorted and without session ids. It asks
nothing of the network.

exit codes: 0 printed, 2 usage
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """URL..."""
    parser.add_argument("urls", nargs="+", metavar="URL", help="a URL, as an archive has it")


def run(args: argparse.Namespace) -> int:
    """Print a key per URL."""
    out(*(urlkey(hosts.in_url(url)) for url in args.urls))
    return 0
