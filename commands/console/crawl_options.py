"""The options that several verbs have to begin a crawl, the keys of crawl.toml that these set, and a new archive."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tasks.config import folders
from warcmill.crawl.fetch import addresses
from warcmill.crawl.fetch.addresses import Judge
from warcmill.errors import BadConfig


def add_inside(parser: argparse.ArgumentParser, *, several: str) -> None:
    """--allow-private, --no-delay, by which `several` pages are asked for at a time, and --resolve."""
    parser.add_argument(
        "--allow-private", action="extend", type=networks, default=[], metavar="NETWORK",
        help="inside addresses that may be crawled, such as 10.20.0.0/16; may be repeated",
    )  # fmt: skip
    parser.add_argument("--no-delay", action="store_true", help=f"{several} at a time from those, without a wait")
    parser.add_argument(
        "--resolve", action="append", type=resolved, default=[], metavar="HOST=ADDRESS",
        help="the address of a host, instead of asking a name server; may be repeated",
    )  # fmt: skip


def settings(args: argparse.Namespace) -> dict[str, Any]:
    """The keys of --config, with those of `add_inside` before them."""
    found: dict[str, Any] = {}
    if args.config:
        try:
            found = tomllib.loads(args.config.read_text("utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise BadConfig("--config", f"{args.config}: {error}") from error
    given = {"allow_private": args.allow_private, "no_delay": args.no_delay, "resolve": args.resolve}
    return found | {key: value for key, value in given.items() if value}


def new_archive(show: Callable[[str], None]) -> Path:
    """Make an archive in this folder, and return its luigi.cfg. `show` prints where it is."""
    folder = Path(folders.ARCHIVE).absolute()
    words = [sys.executable, "-P", "-m", "commands.main", "init", str(folder)]
    if subprocess.run(words, stdout=subprocess.DEVNULL, check=False).returncode:  # noqa: S603 our own words
        raise BadConfig("archive", f"{folder} could not be made; its error is above")
    show(f"made a new archive: {folder}")
    return folder / "luigi.cfg"


def networks(text: str) -> list[str]:
    """Networks of an option, separated by commas."""
    found = [network for part in text.split(",") if (network := part.strip())]
    try:
        Judge(found)
    except BadConfig as error:
        raise argparse.ArgumentTypeError(error.why) from error
    return found


def resolved(text: str) -> str:
    """An option of the form HOST=ADDRESS."""
    try:
        addresses.parse_fixed([text])
    except BadConfig as error:
        raise argparse.ArgumentTypeError(error.why) from error
    return text
