"""List a job of 'warcmill crawl' in luigi.cfg, under [engine.crawl]; and name a job after a host."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

from luigi.configuration import get_config

from tasks.config import engines
from tasks.step import open_line
from warcmill.crawl import durable
from warcmill.errors import BadConfig
from warcmill.markers import locks

SECTION = "engine.crawl"
_LONGEST = 63


def job_of(url: str) -> str:
    """A job's name from a URL's host: `www-example-org`."""
    host = urlsplit(url).hostname or ""
    name = re.sub(r"[^A-Za-z0-9]+", "-", host).strip("-")[:_LONGEST]
    return name or "crawl"


def list_job(config: Path, name: str) -> None:
    """Add a job that no engine crawls to [engine.crawl] of luigi.cfg, and read that again."""
    if engines.section_of(name):
        return
    with locks.alone(open_line().state, config.name):
        get_config().reload()  # another command may just have added this job, or another
        if not engines.section_of(name):
            durable.replace(config.resolve(), with_job(config.read_text("utf-8"), name).encode())
            get_config().reload()


def with_job(text: str, name: str) -> str:
    """A luigi.cfg with a job more in [engine.crawl], which is added when it is not there."""
    head = re.search(rf"^\[{re.escape(SECTION)}\][ \t]*$", text, re.MULTILINE)
    if not head:
        return f"{text.rstrip()}\n\n[{SECTION}]\nkind={engines.WARCMILL}\njobs={name}\n"
    end = re.compile(r"^\[", re.MULTILINE).search(text, head.end())
    part = text[head.end() : end.start() if end else len(text)]
    jobs = re.search(r"^jobs[ \t]*=[ \t]*(.*)$", part, re.MULTILINE)
    if not jobs:
        raise BadConfig(f"[{SECTION}] jobs", "is not set; add the jobs that it crawls, separated by commas")
    at = head.end() + jobs.end()
    return f"{text[:at].rstrip()},{name}{text[at:]}"
