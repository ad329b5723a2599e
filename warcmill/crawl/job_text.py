"""Write what configures a job of the built-in crawler: the files that `job_file` reads."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from warcmill.crawl.job_file import SEEDS, SURTS
from warcmill.crawl.job_values import CONFIGURATION
from warcmill.formats import surt
from warcmill.formats.feed import Scope

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
        SURTS: _lines(f"+{prefix}" for seed in seeds for prefix in _prefixes(seed, scope)),
    }


def render(settings: Mapping[str, Any]) -> str:
    """A crawl.toml with these keys: texts, numbers, times, lists, and tables of them."""
    plain = [_line(name, value) for name, value in settings.items() if not isinstance(value, Mapping)]
    tables = [
        "".join([f"\n[{name}]\n", *(_line(key, one) for key, one in value.items())])
        for name, value in settings.items()
        if isinstance(value, Mapping)
    ]
    return "".join([HEAD, *plain, *tables])


def _prefixes(seed: str, scope: Scope) -> Iterable[str]:
    if scope is Scope.SUBDOMAINS:
        return [surt.domain_prefix(seed)]
    if scope is Scope.ROOT:
        return map(surt.folder_prefix, surt.with_and_without_www(seed))
    return []


def _line(name: str, value: object) -> str:
    return f"{_key(name)} = {_value(value)}\n"


def _value(value: object) -> str:
    match value:
        case datetime():
            return value.isoformat()
        case Mapping():
            return "{ " + ", ".join(f"{_key(key)} = {_value(one)}" for key, one in value.items()) + " }"
        case list() | tuple():
            return f"[{', '.join(map(_value, value))}]"
    # A text in JSON is one in TOML, but for DEL.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    return name if name.isascii() and name.replace("_", "").isalnum() else json.dumps(name)


def _lines(lines: Iterable[str]) -> bytes:
    return "".join(f"{line}\n" for line in dict.fromkeys(lines)).encode()
