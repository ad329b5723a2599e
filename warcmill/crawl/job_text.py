"""Write what configures a job of the built-in crawler: the files that `job_file` reads."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from warcmill.crawl.job_file import SEEDS, SURTS
from warcmill.crawl.job_values import CONFIGURATION
from warcmill.formats.feed import Scope
from warcmill.formats.targets import Plan, prefixes_of

FED = "# Written from the feed before each launch. To change it, change the feed, or [feed] settings of luigi.cfg.\n"
HEAD = "# Written by 'warcmill crawl', and written anew by the next. To keep your own, take this line away.\n"


def files(settings: Mapping[str, Any], seeds: Sequence[str], scope: Scope) -> dict[str, bytes]:
    """The files of a job that begins with these canonical URLs, and crawls what a feed's target of this scope does."""
    pages = dict.fromkeys(seeds, scope.value) if scope in (Scope.RESOURCE, Scope.PLUS1) else {}
    settings = {name: value for name, value in settings.items() if name != "pages"} | (
        {"pages": pages} if pages else {}
    )
    return {
        CONFIGURATION: render(settings).encode(),
        SEEDS: _lines(seeds),
        SURTS: _lines(f"+{prefix}" for seed in seeds for prefix in prefixes_of(seed, scope)),
    }


def of_plan(settings: Mapping[str, Any], plan: Plan, contact: str) -> dict[str, bytes]:
    """The files of a job that crawls what a feed's targets ask for. Its own keys come before those of `settings`."""
    pages = {seed: page.reach.value for seed, page in sorted(plan.pages.items())}
    keys = {**settings, "contact": contact, "pages": pages}
    return {CONFIGURATION: render(keys, FED).encode(), **plan.lists()}


def render(settings: Mapping[str, Any], head: str = HEAD) -> str:
    """A crawl.toml with these keys: texts, numbers, lists of texts, and tables of them."""
    plain = [_line(name, value) for name, value in settings.items() if not isinstance(value, Mapping)]
    tables = [
        "".join([f"\n[{name}]\n", *(_line(key, one) for key, one in value.items())])
        for name, value in settings.items()
        if isinstance(value, Mapping)
    ]
    return "".join([head, *plain, *tables])


def _line(name: str, value: object) -> str:
    # A text in JSON is one in TOML, but for DEL; a list of texts likewise.
    written = json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    key = name if name.isascii() and name.replace("_", "").isalnum() else json.dumps(name)
    return f"{key} = {written}\n"


def _lines(lines: Iterable[str]) -> bytes:
    return "".join(f"{line}\n" for line in dict.fromkeys(lines)).encode()
