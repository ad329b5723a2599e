"""luigi.cfg edited as a person wrote it: list a job under [engine.crawl], schedule it by [job.NAME].

Every byte that is not of the edit stays. Writes luigi.cfg, and has Luigi read it again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from configparser import RawConfigParser
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from configupdater import ConfigUpdater, Option, Section

from tasks.config import engines, roots
from tasks.config.source import read_again
from tasks.line import open_line
from warcmill.crawl import durable
from warcmill.crawl.frontier.link import read_place
from warcmill.errors import BadConfig
from warcmill.markers import locks

if TYPE_CHECKING:
    from warcmill.crawl.engine import WarcmillEngine

SECTION, SHARED = "engine.crawl", "engine.shared"
LONGEST = 63
_TOP = re.compile(r"\A(?:[ \t]*(?:[#;].*)?\n)*")  # ConfigUpdater takes no indented comment above the first section


def job_of(url: str) -> str:
    """A job's name from a URL's host: `www-example-org`."""
    host = urlsplit(url).hostname or ""
    name = re.sub(r"[^A-Za-z0-9]+", "-", host).strip("-")[:LONGEST]
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
    if not engines.section_of(name):  # asked once more under the lock: another command may just have added it

        def change(text: str) -> EditedConfig:
            return EditedConfig(text, {}) if engines.section_of(name) else with_job(text, name, frontier)

        edit(config, change)


class _Parser(RawConfigParser):
    def optionxform(self, optionstr: str) -> str:
        return optionstr  # keys keep their case


class EditedConfig(NamedTuple):
    """A luigi.cfg after an edit. `holds`: the sections that it changes, and what each then holds; None: it is gone."""

    text: str
    holds: Mapping[str, Mapping[str, str] | None]


def edit(config: Path, change: Callable[[str], EditedConfig]) -> bool:
    """Change luigi.cfg, and have Luigi read it again; return whether it is another one now.

    BadConfig, and nothing is written, if more would change than the edit says, as in a file that is written in an
    unusual way.
    """
    with locks.alone(open_line().state, config.name):
        read_again()
        before = read(config)
        is_dos = "\n" in before and before.count("\n") == before.count("\r\n")
        text = before.replace("\r\n", "\n") if is_dos else before
        body = _TOP.sub("", text, count=1)
        top = text.removesuffix(body)
        after, holds = change(body)
        after = (top + after).replace("\n", "\r\n") if is_dos else top + after
        if after == before:
            return False
        wanted = {name: dict(keys) for name, keys in {**parsed(before), **holds}.items() if keys is not None}
        if parsed(after) != wanted:
            raise BadConfig(str(config), f"edit {' and '.join(f'[{name}]' for name in holds)} by hand: it is unusual")
        durable.replace(config.resolve(), after.encode())
        read_again()
    return True


def read(config: Path) -> str:
    """The text of luigi.cfg with its own ends of lines; BadConfig if it is not UTF-8."""
    try:
        return config.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise BadConfig(str(config), f"byte {error.start + 1} is not UTF-8; correct it") from error


def parsed(text: str) -> dict[str, dict[str, str]]:
    """The sections of a luigi.cfg as Luigi reads them, without interpolation; configparser.Error for a broken one."""
    parser = _Parser(default_section="")  # else each section would hold the keys of [DEFAULT], too
    parser.read_file(StringIO(text, newline=None))
    return {name: dict(parser.items(name)) for name in parser.sections()}


def with_job(text: str, name: str, frontier: str = "") -> EditedConfig:
    """A luigi.cfg with a job more in [engine.crawl], or in that of a frontier; it is added when it is not there."""
    section = SHARED if frontier else SECTION
    before = parsed(text).get(section)
    if before is None:
        place = {"frontier": frontier} if frontier else {}
        return _with_section(text, section, {"kind": engines.WARCMILL, **place, "jobs": name})
    if "jobs" not in before:
        raise BadConfig(f"[{section}] jobs", "is not set; add the jobs that it crawls, separated by commas")
    above, there, below = _around(text, section)
    (listed,) = (option for option in there.iter_options() if option.raw_key == "jobs")
    lines = listed.lines  # of a long list several, and comments may be between them
    last = max(number for number, line in enumerate(lines) if number == 0 or not _is_aside(line))
    line, end = lines[last].rstrip(), lines[last][len(lines[last].rstrip("\r\n")) :]
    more = f",{name}" if before["jobs"] and not line.endswith(",") else name
    lines[last] = f"{line}{more}{end}"
    return EditedConfig(f"{above}{there}{below}", {section: {**before, "jobs": before["jobs"] + more}})


def scheduled(text: str, name: str, wanted: Mapping[str, str]) -> EditedConfig:
    """A luigi.cfg with these keys of [job.NAME], in place of those that it may have; an empty one is left out."""
    section, keys = f"job.{name}", {key: text for key, text in wanted.items() if text}
    before = parsed(text).get(section)
    if before is None:
        return _with_section(text, section, keys)
    above, there, below = _around(text, section)
    head = "".join(there.lines).rstrip("\n")
    lines = "".join(f"{key}={value}\n" for key, value in keys.items())
    rest = "".join(
        "".join(filter(_is_aside, block.lines)) if isinstance(block, Option) and block.raw_key in wanted else str(block)
        for block in there.iter_blocks()
    )
    kept = {key: text for key, text in before.items() if key not in wanted}
    return EditedConfig(f"{above}{head}\n{lines}{rest}{below}", {section: {**kept, **keys}})


def unscheduled(text: str, name: str) -> EditedConfig:
    """A luigi.cfg without [job.NAME]. Comments above the next section stay: they are of that one."""
    section = f"job.{name}"
    if section not in parsed(text):
        return EditedConfig(text, {})
    above, there, below = _around(text, section)
    lines = str(there).splitlines(keepends=True)
    last = max(number for number, line in enumerate(lines) if number == 0 or not _is_aside(line))
    kept = "".join([*lines[last + 1 :], below])
    return EditedConfig("\n\n".join(filter(None, (above.rstrip("\n"), kept.strip("\n")))) + "\n", {section: None})


def _around(text: str, name: str) -> tuple[str, Section, str]:
    """The text above a section, the section, and the text below it."""
    updater = ConfigUpdater().read_string(text)
    blocks, at = [str(block) for block in updater.iter_blocks()], updater[name].container_idx
    return "".join(blocks[:at]), updater[name], "".join(blocks[at + 1 :])


def _with_section(text: str, section: str, keys: Mapping[str, str]) -> EditedConfig:
    """A luigi.cfg with one more section at its end."""
    lines = "".join(f"{key}={value}\n" for key, value in keys.items())
    above = text.rstrip("\n")
    return EditedConfig(f"{above}\n\n[{section}]\n{lines}".lstrip("\n"), {section: keys})


def _is_aside(line: str) -> bool:
    """True for an empty line and for a comment: neither is part of a value."""
    return not line.strip() or line.lstrip().startswith(("#", ";"))
