"""The feed of a due crawl: fetched, compared with the last good one, kept, written for the engine. Writes job files.

A job's files are made from the targets of its feed and one recipe for each kind of engine.
"""

from __future__ import annotations

import hashlib
import io
import logging
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from warcmill import layout
from warcmill.base import clock
from warcmill.base.clock import stamp_text
from warcmill.base.digests import sha512 as digest_of
from warcmill.base.schedule import DAILY, Frequency
from warcmill.clients.heritrix import job as heritrix_job
from warcmill.crawl.job import file, text
from warcmill.errors import BadConfig, BadInput, Mismatch, Unavailable
from warcmill.formats import feed, profile
from warcmill.formats import targets as chosen
from warcmill.formats.feed import Feed, Target
from warcmill.formats.targets import Caps, plan
from warcmill.layout import KINDS, OutputLayout
from warcmill.markers.claim import Claim, Evidence
from warcmill.markers.facts.pulse import Fed
from warcmill.markers.state import MarkerStore
from warcmill.model import FileRef, Json, Key, Launch, stamp_time

log = logging.getLogger(__name__)
LEAST_DIGITS = 16
MOST_NAMED = 10
LATEST = "99991231235959"
_MONTH = re.compile(r"[0-9]{4}-[0-9]{2}")


class Due(Struct, frozen=True):
    """A due crawl of a job that has a feed: how often it is crawled, and the moment it is due, in 14 digits."""

    job: str
    moment: str
    frequency: Frequency

    @property
    def key(self) -> Key:
        """The key of this due crawl's 00.feed."""
        return layout.feed_key(self.job, self.moment)

    def select(self, targets: list[Target], *, paused: bool = False) -> list[Target]:
        """The targets to crawl at that moment; with those that are `paused`, if it is true."""
        return chosen.selected(targets, self.frequency, stamp_time(self.moment), paused=paused)


class Source(Struct, frozen=True):
    """Where feeds come from. `shown`: the source's name, without secrets.

    `fallback`: crawl by the last good feed when the new one is missing or refused.
    `accept`: the first digits of the SHA-512 of a feed that may be much smaller than the last; '' without one.
    `most_faulty`: crawl the valid targets while at most this percentage is faulty.
    """

    read: Callable[[], bytes]
    shown: str
    fallback: bool = False
    accept: str = ""
    most_faulty: int = 0


def crawl(state: MarkerStore, due: Due, source: Source) -> Claim:
    """Fetch the feed, check it, and keep it in the state root; return the claim of 00.feed.

    BadInput for a feed that is empty, has too many faulty targets, or has lost more
    than half of its targets, or of this job's, since this job's last good feed.
    """
    last = last_good(state, due)
    before = Fed.from_claim(last.claim).counts if last else {}
    try:
        data = source.read()
        fetched = feed.read(data, source.shown)
        counts = _judged(fetched, data, due, source, before)
    except (Unavailable, BadInput) as error:
        if last is None or not source.fallback:
            raise
        log.warning("%s; crawling by the feed of %s once more, as [feed] fallback allows", error, last.claim.key["due"])
        return _again(due, last)
    _warn_about(due, "faulty, and left out", fetched.faults)
    _warn_about(due, "kept without a faulty seed or schedule", fetched.parts)
    _warn_about(due, "kept, with corrections", fetched.notes)
    facts = _facts(source.shown, [str(fault) for fault in fetched.left_out])
    return Claim(due.key, outputs=(_keep(state, data),), counts=counts, facts=facts)


def _warn_about(due: Due, what: str, findings: list[BadInput]) -> None:
    """Log the first MOST_NAMED findings; `warcmill feed check` lists all."""
    if findings:
        log.warning("%s: of the feed's targets %d are %s", due.job, len(findings), what)
    for finding in findings[:MOST_NAMED]:
        log.warning("%s: %s", due.job, finding)


def last_good(state: MarkerStore, due: Due) -> Evidence | None:
    """The newest 00.feed of an earlier due crawl of this job; None when there is none."""
    months = [entry.name for entry in state.store.list("") if _MONTH.fullmatch(entry.name)]
    for month in sorted(months, reverse=True):
        names = (layout.parse_marker_name(entry.name) for entry in state.store.list(f"{month}/{due.job}"))
        dues = [key["due"] for key in names if key and key.task == due.key.task and key["job"] == due.job]
        for earlier in sorted((moment for moment in dues if moment < due.moment), reverse=True):
            if marker := state.read(layout.feed_key(due.job, earlier)):
                return marker
    return None


def kept(state: MarkerStore, job: str) -> bytes | None:
    """The newest good feed of a job, as it was kept; None if it has none."""
    last = last_good(state, Due(job, LATEST, DAILY))
    return _read(state, Fed.from_claim(last.claim).kept) if last else None


def unanswered(state: MarkerStore, dues: Collection[Due]) -> dict[Frequency, list[str]]:
    """The targets of the newest good feed of these jobs, by each frequency in force now that none of the jobs has."""
    feeds = [marker for due in dues if (marker := last_good(state, due))]
    if not feeds:
        return {}
    kept = Fed.from_claim(max(feeds, key=lambda marker: marker.claim.key["due"]).claim).kept
    now, answered = stamp_time(clock.stamp()), {due.frequency for due in dues}
    found: dict[Frequency, list[str]] = {}
    for target in feed.read(_read(state, kept), kept.path).targets:
        if target.paused:
            continue
        for frequency in {one.frequency for one in target.schedules if one.holds(now)} - answered:
            found.setdefault(frequency, []).append(str(target.id))
    return found


def prepare(state: MarkerStore, due: Due, recipe: Recipe) -> tuple[dict[str, bytes], dict[str, Json]]:
    """The files for the engine's job, name to bytes, and facts of them for the claim. BadConfig for a faulty recipe.

    Write them again before each start: the engine itself appends to its seeds.
    """
    kept = Fed.from_claim(state.require(due.key).claim).kept
    targets = due.select(feed.read(_read(state, kept), kept.path).targets)
    without_login = sorted(target.id for target in targets if target.needs_login)
    if without_login:
        _warn_about_logins(due, without_login)
    files = recipe.files(due.job, targets)
    digests: dict[str, Json] = {name: hashlib.sha512(data).hexdigest() for name, data in files.items()}
    logins: dict[str, Json] = {"without_login": list(without_login)} if without_login else {}
    return files, {"feed": kept.sha512, "targets": len(targets), "files": digests, **logins}


def _warn_about_logins(due: Due, targets: list[str]) -> None:
    named = ", ".join(targets[:MOST_NAMED]) + (", ..." if len(targets) > MOST_NAMED else "")
    log.warning(
        "%s: %d targets need a login, which crawls do not do: they are crawled as anybody sees them: %s",
        due.job,
        len(targets),
        named,
    )


def _judged(fetched: Feed, data: bytes, due: Due, source: Source, before: Mapping[str, int]) -> dict[str, int]:
    """The number of targets in a feed, and of those that are the job's; BadInput when the feed is refused."""
    fetched.refuse_faulty(source.shown, source.most_faulty)
    targets = fetched.targets
    new = {"targets": len(targets), "of_job": len(due.select(targets))}
    unpaused = len(due.select(targets, paused=True))  # who pauses targets loses none
    if not new["of_job"]:
        why = f"of its {len(targets)} targets none is to be crawled {due.frequency} at {stamp_text(due.moment)}"
        more = f"; {unpaused} are paused" if unpaused else ""
        raise BadInput(source.shown, why + more)
    if not _accepted(data, source):
        for what, number in (("targets", len(targets)), ("of_job", unpaused)):
            if why := feed.why_shrunken(number, before.get(what, 0)):
                raise BadInput(source.shown, f"{why}, counting {what}; {_how_to_accept(data)}")
    return new


def _accepted(data: bytes, source: Source) -> bool:
    if source.accept and not re.fullmatch(rf"[0-9a-f]{{{LEAST_DIGITS},128}}", source.accept):
        raise BadConfig("[feed] accept", f"{source.accept!r} is not {LEAST_DIGITS} or more hex digits of a SHA-512")
    return bool(source.accept) and hashlib.sha512(data).hexdigest().startswith(source.accept)


def _how_to_accept(data: bytes) -> str:
    return f"the last good one is kept. If this one is right: accept={hashlib.sha512(data).hexdigest()[:32]} in [feed]"


def _again(due: Due, last: Evidence) -> Claim:
    """The claim of 00.feed that uses the last good feed."""
    fed = Fed.from_claim(last.claim)
    facts = _facts(fed.source, fed.faulty) | {"again": last.claim.key["due"]}
    return Claim(due.key, outputs=(fed.kept,), counts=fed.counts, facts=facts)


def _facts(source: str, faulty: Collection[str]) -> dict[str, Json]:
    """The source of a feed, and its faulty targets, if any."""
    return {"source": source, **({"faulty": list(faulty)} if faulty else {})}


def _keep(state: MarkerStore, data: bytes) -> FileRef:
    digest = hashlib.sha512(data).hexdigest()
    path = layout.feed_path(digest)
    state.store.commit_new(path, io.BytesIO(data), len(data), digest)
    return FileRef("state", path, len(data), digest)


def _read(state: MarkerStore, kept: FileRef) -> bytes:
    with state.store.open(kept.path) as file:
        actual = digest_of(file)
        if actual != (kept.size, kept.sha512):
            raise Mismatch(f"size and SHA-512 of state:{kept.path}", (kept.size, kept.sha512), actual)
        file.seek(0)
        return file.read()


class Recipe(Protocol):
    """Makes a job's files."""

    def files(self, job: str, targets: Sequence[Target]) -> dict[str, bytes]:
        """The files of a job that crawls these targets, name to bytes; BadConfig when it cannot be crawled by them."""
        ...

    def refuse_faults(self, job: str) -> None:
        """BadConfig, listing all faults, for what does not depend on the targets."""
        ...


class HeritrixRecipe(Struct, frozen=True):
    """For a job of Heritrix. `output`: the output root's path on the engine's machine."""

    profile: str
    contact: str
    output: str
    output_layout: OutputLayout
    excluded: tuple[str, ...]
    caps: Caps

    def files(self, job: str, targets: Sequence[Target]) -> dict[str, bytes]:
        """Its crawler-beans.cxml and lists."""
        made = heritrix_job.files(plan(targets, self.excluded), self.profile, self._values(job), self.caps)
        _refuse_faults(made[heritrix_job.CONFIGURATION], job)
        return made

    def refuse_faults(self, job: str) -> None:
        """BadConfig for a faulty profile."""
        _refuse_faults(self.profile.encode(), job)

    def _values(self, job: str) -> dict[str, str]:
        """Values for the profile's placeholders. The engine itself replaces `${launchId}`."""
        launch = Launch(job, "${launchId}")
        folders: dict[str, str] = {kind: f"{self.output}/{self.output_layout.folder(kind, launch)}" for kind in KINDS}
        return {"job": job, "contact": self.contact, **folders}


def _refuse_faults(configuration: bytes, job: str) -> None:
    faults = list(profile.faults(configuration, f"the configuration of job {job}"))
    if faults:
        raise BadConfig("[feed] profile", "; ".join(faults))


class OwnRecipe(Struct, frozen=True):
    """For a job of the built-in crawler. `settings` are keys of its crawl.toml that no feed decides."""

    settings: Mapping[str, Any]
    contact: str
    excluded: tuple[str, ...]
    caps: Caps

    def files(self, job: str, targets: Sequence[Target]) -> dict[str, bytes]:
        """Its crawl.toml and lists."""
        made = text.of_plan(self.settings, plan(targets, self.excluded), self.contact, self.caps)
        file.parse(made, job)
        return made

    def refuse_faults(self, job: str) -> None:
        """BadConfig for a faulty key."""
        self.files(job, [Target("", "", ("http://site.example/",))])
