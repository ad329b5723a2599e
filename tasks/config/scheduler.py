"""Where luigid is, by [core] of luigi.cfg."""

from __future__ import annotations

from urllib.parse import urlsplit

from luigi.interface import core


def luigid() -> tuple[str, int] | None:
    """Host and port of luigid; None where each luigi schedules for itself."""
    config = core()
    if config.local_scheduler:
        return None
    if not config.scheduler_url:
        return config.scheduler_host, config.scheduler_port
    url = urlsplit(config.scheduler_url)
    return url.hostname or "", url.port or 80
