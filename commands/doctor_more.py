"""What doctor looks at beside the roots: launches, links, the keys of luigi.cfg, secrets, workers, and notices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from pathlib import Path

from tasks import known, sections
from tasks.settings import Settings, notice_channels
from warcmill import health_host, sites
from warcmill.errors import BadConfig, Unavailable
from warcmill.health import Check, Level

EVER = date(1970, 1, 1), date(9999, 12, 31)
SECRETS = ("password_file", "webhook_file", "key_file", "smtp_password_file")
NO_CRAWL = "nothing, when no crawl has run yet; else correct the path in luigi.cfg, or mount the disk"


def all_of(found: Settings, send: bool) -> Iterator[Check]:
    """All of these checks. `send`: a notice is sent too."""
    yield from keys()
    yield from secrets()
    yield health_host.check_workers()
    yield from launches(found)
    yield from notices(send)


def keys() -> Iterator[Check]:
    """Sections and keys that nobody reads: what they were to say is not in force."""
    unknown = list(known.unknown())
    for one in unknown:
        level = Level.FAIL if one.is_ours else Level.WARN
        todo = f"did you mean {one.meant}?" if one.meant else "remove it, unless other tasks of yours read it"
        yield Check("luigi.cfg", level, f"{one.name}: nothing reads it", todo)
    if not unknown:
        yield Check("luigi.cfg", Level.OK, "every section and key is known")


def secrets() -> Iterator[Check]:
    """The files that hold passwords, keys, or the URL of a webhook."""
    for section in sections.named(""):
        for key in SECRETS:
            if path := sections.value(section, key):
                yield health_host.check_secret(f"[{section}] {key}", path)


def launches(found: Settings) -> Iterator[Check]:
    """Whether each root holds a launch, and what in the roots is passed over."""
    try:
        seen = sites.find(found.sites(), *EVER)
    except Unavailable:
        return  # told as the root's
    for bare in seen.bare:
        level = Level.FAIL if bare.misplaced else Level.WARN
        yield Check("launches", level, bare.what, bare.todo or NO_CRAWL)
    if seen.launches and not seen.bare:
        yield Check("launches", Level.OK, f"{len(seen.launches)} lie in the roots as luigi.cfg says")
    yield from _passed_over(found, seen.odd)


def _passed_over(found: Settings, odd: Iterable[str]) -> Iterator[Check]:
    """Folders that are no launch, and links, those of a launch's kinds too, which only reading it would meet."""
    for folder in found.follow_links:
        if not Path(folder).is_dir():
            yield Check("follow_links", Level.FAIL, f"{folder} is not there", "mount its disk, or correct [warcmill]")
    links = list(found.links(found.sites()).all())
    told = {f"{link.path}: {link.why}" for link in links if link.why}
    for text in sorted(told.union(odd)):
        yield Check("passed over", Level.WARN, text, "look at it: nothing in it is read")
    followed = sum(not link.why for link in links)
    if followed:
        yield Check("follow_links", Level.OK, f"{followed} symbolic links are followed")


def notices(send: bool) -> Iterator[Check]:
    """Whether notices would arrive; with `send` by sending one."""
    try:
        channels = notice_channels()
    except BadConfig as error:
        yield Check("notices", Level.FAIL, str(error), "correct luigi.cfg")
        return
    if not channels.mail_to and not channels.webhook:
        level = Level.FAIL if send else Level.OK
        yield Check(
            "notices", level, "nowhere to send them is configured", "set [notice] mail_to, or webhook" if send else ""
        )
    yield from health_host.check_channels(channels, send)
