"""Inside addresses, and the addresses of hosts, as options of a verb name them."""

from __future__ import annotations

import argparse

from warcmill.crawl.fetch import addresses
from warcmill.crawl.fetch.addresses import Judge
from warcmill.errors import BadConfig


def networks(text: str) -> list[str]:
    """Networks of an option, separated by commas."""
    networks = [network for part in text.split(",") if (network := part.strip())]
    try:
        Judge(networks)
    except BadConfig as error:
        raise argparse.ArgumentTypeError(error.why) from error
    return networks


def resolved(text: str) -> str:
    """An option of the form HOST=ADDRESS."""
    try:
        addresses.parse_fixed([text])
    except BadConfig as error:
        raise argparse.ArgumentTypeError(error.why) from error
    return text
