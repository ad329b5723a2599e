"""Edit luigi.cfg as a person wrote it, comments and all: list a job under [engine.crawl], schedule it by [job.NAME].

Writes luigi.cfg, and has Luigi read it again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from configparser import RawConfigParser
from pathlib import Path
from urllib.parse import urlsplit

from luigi.configuration import get_config

from tasks.config import engines, roots
from tasks.step import open_line
from warcmill.base.schedule import Frequency
from warcmill.crawl import durable
from warcmill.crawl.engine import WarcmillEngine
from warcmill.crawl.frontier.link import read_place
from warcmill.errors import BadConfig
from warcmill.markers import locks

SECTION, SHARED = "engine.crawl", "engine.shared"
_LONGEST = 63


def job_of(url: str) -> str:
    """A job's name from a URL's host: `www-example-org`."""
    host = urlsplit(url).hostname or ""
    name = re.sub(r"[^A-Za-z0-9]+", "-", host).strip("-")[:_LONGEST]
    return name or "crawl"


def engine_for(name: str, frontier: str = "") -> WarcmillEngine:
    """The engine that crawls a job, or will when it is listed; BadConfig for another's. Nothing is written yet.

    `frontier` is the Redis that it is to have; a job without an engine yet will be of one that has it.
    """
    section = engines.section_of(name)
    wanted = read_place("--frontier", frontier) if frontier else None
    there = section or (SHARED if frontier and SHARED in roots.engines() else "")
    if wanted and there and not wanted.is_at(found := engines.frontier_of(there)):
        has = found.shown if found else "none"
        raise BadConfig("--frontier", f"job {name} is of [{there}], whose frontier is {has}; choose another --job")
    if section and engines.kind_of(section) != engines.WARCMILL:
        raise BadConfig(f"[{section}] kind", f"job {name} is another engine's; choose a name by --job")
    return engines.own_engine(section or SECTION)


def list_job(config: Path, name: str, frontier: str = "") -> None:
    """Add a job that no engine crawls to [engine.crawl] of luigi.cfg, or to that of a frontier; and read it again."""
    if engines.section_of(name):
        return
    with locks.alone(open_line().state, config.name):
        get_config().reload()  # another command may just have added this job, or another
        if not engines.section_of(name):
            durable.replace(config.resolve(), with_job(config.read_text("utf-8"), name, frontier).encode())
            get_config().reload()


def with_job(text: str, name: str, frontier: str = "") -> str:
    """A luigi.cfg with a job more in [engine.crawl], or in that of a frontier; it is added when it is not there."""
    section = SHARED if frontier else SECTION
    head = re.search(rf"^\[{re.escape(section)}\][ \t]*$", text, re.MULTILINE)
    if not head:
        more = f"frontier={frontier}\n" if frontier else ""
        return f"{text.rstrip()}\n\n[{section}]\nkind={engines.WARCMILL}\n{more}jobs={name}\n"
    end = re.compile(r"^\[", re.MULTILINE).search(text, head.end())
    part = text[head.end() : end.start() if end else len(text)]
    jobs = re.search(r"^jobs[ \t]*=[ \t]*(.*)$", part, re.MULTILINE)
    if not jobs:
        raise BadConfig(f"[{section}] jobs", "is not set; add the jobs that it crawls, separated by commas")
    at = head.end() + jobs.end()
    return f"{text[:at].rstrip()},{name}{text[at:]}"


def scheduled(text: str, name: str, frequency: Frequency, start: str) -> str:
    """A luigi.cfg with this [job.NAME], in place of the one that it may have."""
    keys = {"frequency": str(frequency).lower(), "start": start}
    section = _section(text, name)
    if not section:
        return f"{text.rstrip()}\n\n[job.{name}]\n" + "".join(f"{key}={value}\n" for key, value in keys.items())
    first, last = section
    head, *lines = text[first:last].splitlines(keepends=True)
    for key, value in keys.items():
        lines = [line for line in lines if not re.match(rf"{key}\s*[=:]", line)]
        lines.insert(0 if key == "frequency" else 1, f"{key}={value}\n")
    return text[:first] + head.rstrip("\n") + "\n" + "".join(lines) + text[last:]


def unscheduled(text: str, name: str) -> str:
    """A luigi.cfg without [job.NAME]. Comments above the next section stay: they are of that one."""
    section = _section(text, name)
    if not section:
        return text
    first, last = section
    lines = text[first:last].splitlines(keepends=True)
    while len(lines) > 1 and (not lines[-1].strip() or lines[-1].lstrip().startswith(("#", ";"))):
        last -= len(lines.pop())
    return f"{text[:first].rstrip()}\n\n{text[last:].lstrip()}".rstrip() + "\n"


def _section(text: str, name: str) -> tuple[int, int] | None:
    """Where [job.NAME] is in a luigi.cfg: from its head to the next one's; None if there is none."""
    head = re.search(rf"^\[job\.{re.escape(name)}\]", text, re.MULTILINE)
    if not head:
        return None
    end = re.compile(r"^\[", re.MULTILINE).search(text, head.end())
    return head.start(), end.start() if end else len(text)


def edit(config: Path, change: Callable[[str], str], expected: Mapping[str, Mapping[str, str] | None]) -> bool:
    """Change luigi.cfg, and have Luigi read it again; return whether it is another one now.

    `expected`: the sections that it changes, and what they then hold (None: there is none). BadConfig, and nothing is
    written, if anything else would change, as in a file that is written in an unusual way.
    """
    with locks.alone(open_line().state, config.name):
        before = config.read_text("utf-8")
        after = change(before)
        if after == before:
            return False
        ours, theirs = _parsed(after), _parsed(before)
        theirs = {name: keys for name, keys in theirs.items() if name not in expected}
        theirs |= {name: dict(keys) for name, keys in expected.items() if keys is not None}
        if ours != theirs:
            raise BadConfig(
                str(config), f"edit {' and '.join(f'[{name}]' for name in expected)} by hand: it is unusual"
            )
        durable.replace(config.resolve(), after.encode())
        get_config().reload()
    return True


def _parsed(text: str) -> dict[str, dict[str, str]]:
    parser = RawConfigParser(strict=False)
    parser.read_string(text)
    return {name: dict(parser.items(name)) for name in parser.sections()}
