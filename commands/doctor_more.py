"""warcmill doctor: check launches, links, the keys of luigi.cfg, secrets, workers, and notices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from pathlib import Path

from tasks.config import known, sections
from tasks.config.settings import Settings, notice_channels
from warcmill.audit import health_host
from warcmill.audit.health import Check, Level
from warcmill.errors import BadConfig, Unavailable
from warcmill.launches import discovery

EVER = date(1970, 1, 1), date(9999, 12, 31)
SECRETS = ("password_file", "webhook_file", "key_file", "smtp_password_file", "token_file")
NO_CRAWL = "nothing, if no crawl has run yet; else correct the path in luigi.cfg, or mount the disk"


def all_of(config: Settings, send: bool) -> Iterator[Check]:
    """All of these checks. `send`: also send a test notice."""
    yield from keys()
    yield from secrets()
    yield health_host.check_workers()
    yield from launches(config)
    yield from notices(send)


def keys() -> Iterator[Check]:
    """Sections and keys that nothing reads: they have no effect."""
    unknown = list(known.unknown())
    for key in unknown:
        level = Level.FAIL if key.is_ours else Level.WARN
        todo = f"did you mean {key.meant}?" if key.meant else "remove it, unless your own tasks read it"
        yield Check("luigi.cfg", level, f"{key.name}: nothing reads it", todo)
    if not unknown:
        yield Check("luigi.cfg", Level.OK, "every section and key is known")


def secrets() -> Iterator[Check]:
    """The files with passwords, keys, or the URL of a webhook."""
    for section in sections.named(""):
        for key in SECRETS:
            if path := sections.value(section, key):
                yield health_host.check_secret(f"[{section}] {key}", path)


def launches(config: Settings) -> Iterator[Check]:
    """Check that each root holds a launch, and name what is skipped in the roots."""
    try:
        seen = discovery.find(config.rootmap(), *EVER)
    except Unavailable:
        return  # reported with the root
    for bare in seen.bare:
        level = Level.FAIL if bare.misplaced else Level.WARN
        yield Check("launches", level, bare.what, bare.todo or NO_CRAWL)
    if seen.launches and not seen.bare:
        yield Check("launches", Level.OK, f"{len(seen.launches)} found in the roots of luigi.cfg")
    yield from _passed_over(config, seen.unexpected)


def _passed_over(config: Settings, unexpected: Iterable[str]) -> Iterator[Check]:
    """Folders that are not launches, and links, including those inside launches, which only reading them would find."""
    for folder in config.follow_links:
        if not Path(folder).is_dir():
            yield Check("follow_links", Level.FAIL, f"{folder} is not there", "mount its disk, or correct [warcmill]")
    links = list(config.links(config.rootmap()).all())
    skipped = {f"{link.path}: {link.why}" for link in links if link.why}
    for text in sorted(skipped.union(unexpected)):
        yield Check("passed over", Level.WARN, text, "look at it: nothing in it is read")
    followed = sum(not link.why for link in links)
    if followed:
        yield Check("follow_links", Level.OK, f"{followed} symbolic links are followed")


def notices(send: bool) -> Iterator[Check]:
    """Check that notices would arrive; with `send`, by sending one."""
    try:
        channels = notice_channels()
    except BadConfig as error:
        yield Check("notices", Level.FAIL, str(error), "correct luigi.cfg")
        return
    if not channels.mail_to and not channels.webhook:
        level = Level.FAIL if send else Level.OK
        yield Check(
            "notices", level, "no address for them is configured", "set [notice] mail_to, or webhook" if send else ""
        )
    yield from health_host.check_channels(channels, send)
