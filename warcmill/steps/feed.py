"""The feed of a due crawl: fetched, judged against the last good one, kept; then written for the engine."""

from __future__ import annotations

import hashlib
import io
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass

from warcmill import layout
from warcmill.clients import heritrix_job
from warcmill.clients.heritrix_sheets import Caps
from warcmill.clock import stamp_text
from warcmill.errors import BadConfig, BadInput, Mismatch, Unavailable
from warcmill.evidence import Claim, Evidence
from warcmill.fixity import sha512 as digest_of
from warcmill.formats import feed, profile
from warcmill.formats.feed import Feed, Target
from warcmill.layout import KINDS, OutputLayout
from warcmill.model import FileRef, Json, Key, Launch, stamp_time
from warcmill.schedule import Frequency
from warcmill.state import State

log = logging.getLogger(__name__)
LEAST_DIGITS = 16
MOST_NAMED = 10
_MONTH = re.compile(r"[0-9]{4}-[0-9]{2}")


@dataclass(frozen=True, slots=True)
class Due:
    """A job that is crawled by a feed, how often, and the moment for which, in 14 digits."""

    job: str
    moment: str
    frequency: Frequency

    @property
    def key(self) -> Key:
        return layout.feed_key(self.job, self.moment)

    def select(self, targets: list[Target]) -> list[Target]:
        """The targets that are crawled then."""
        return heritrix_job.selected(targets, self.frequency, stamp_time(self.moment))


@dataclass(frozen=True, slots=True)
class Source:
    """Where feeds come from. `shown` is its name without secrets.

    `fallback`: crawl by the last good feed when there is no good new one.
    `accept`: the first digits of the SHA-512 of a feed that may be sharply smaller than the one before.
    `most_faulty`: the percentage of faulty targets up to which the sound ones are crawled.
    """

    read: Callable[[], bytes]
    shown: str
    fallback: bool = False
    accept: str = ""
    most_faulty: int = 0


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a job's files are made of, besides targets. `output` is the output root as the engine sees it."""

    profile: str
    contact: str
    output: str
    output_layout: OutputLayout
    excluded: tuple[str, ...]
    caps: Caps


def crawl(state: State, due: Due, source: Source) -> Claim:
    """Fetch the feed, refuse one that cannot be right, keep it in the state root; the claim of 00.feed.

    Refused (BadInput): one that has too many faulty targets, is empty, or has lost
    more than half of its targets, or of this job's, since this job's last good one.
    """
    last = last_good(state, due)
    try:
        data = source.read()
        found = feed.read(data, source.shown)
        counts = _judged(found, data, due, source, last)
    except (Unavailable, BadInput) as error:
        if last is None or not source.fallback:
            raise
        log.warning("%s; crawling by the feed of %s once more, as [feed] fallback says", error, last.claim.key["due"])
        return _again(due, last)
    _tell(due, "left out, for they are faulty", found.faults)
    _tell(due, "read as best they could be", found.notes)
    faulty: dict[str, Json] = {"faulty": [str(one) for one in found.faults]} if found.faults else {}
    return Claim(due.key, outputs=(_keep(state, data),), counts=counts, facts={"source": source.shown, **faulty})


def _tell(due: Due, what: str, some: list[BadInput]) -> None:
    """Name the first of what is wrong in a feed; `warcmill feed check` names all."""
    if some:
        log.warning("%s: of the feed's targets %d are %s", due.job, len(some), what)
    for one in some[:MOST_NAMED]:
        log.warning("%s: %s", due.job, one)


def last_good(state: State, due: Due) -> Evidence | None:
    """The newest feed that an earlier due crawl of this job took for good."""
    months = [entry.name for entry in state.store.list("") if _MONTH.fullmatch(entry.name)]
    for month in sorted(months, reverse=True):
        names = (layout.parse_marker_name(entry.name) for entry in state.store.list(f"{month}/{due.job}"))
        dues = [key["due"] for key in names if key and key.task == due.key.task and key["job"] == due.job]
        for earlier in sorted((one for one in dues if one < due.moment), reverse=True):
            if found := state.read(layout.feed_key(due.job, earlier)):
                return found
    return None


def prepare(state: State, due: Due, recipe: Recipe) -> tuple[dict[str, bytes], dict[str, Json]]:
    """The files of a due crawl for the engine's job, by name, and facts of them for the claim.

    To be written anew each time: the engine itself appends to its seeds.
    """
    kept = state.need(due.key).claim.outputs[0]
    targets = due.select(feed.read(_read(state, kept), kept.path).targets)
    without = sorted(target.id for target in targets if target.needs_login)
    if without:
        _tell_logins(due, without)
    files = heritrix_job.files(targets, recipe.profile, _values(due.job, recipe), recipe.excluded, recipe.caps)
    refuse_faults(files[heritrix_job.CONFIGURATION], due.job)
    digests: dict[str, Json] = {name: hashlib.sha512(data).hexdigest() for name, data in files.items()}
    logins: dict[str, Json] = {"without_login": list(without)} if without else {}
    return files, {"feed": kept.sha512, "targets": len(targets), "files": digests, **logins}


def _tell_logins(due: Due, without: list[str]) -> None:
    named = ", ".join(without[:MOST_NAMED]) + (", ..." if len(without) > MOST_NAMED else "")
    log.warning(
        "%s: %d targets need a login, which crawls do not do: they are crawled as anybody sees them: %s",
        due.job,
        len(without),
        named,
    )


def _judged(found: Feed, data: bytes, due: Due, source: Source, last: Evidence | None) -> dict[str, Json]:
    """How many targets a feed has, and how many are the job's; BadInput when that cannot be right."""
    found.refuse_faulty(source.shown, source.most_faulty)
    targets = found.targets
    new = {"targets": len(targets), "of_job": len(due.select(targets))}
    if not new["of_job"]:
        why = f"of its {len(targets)} targets none is to be crawled {due.frequency} at {stamp_text(due.moment)}"
        raise BadInput(source.shown, why)
    if not _accepted(data, source):
        for what, number in new.items():
            if why := feed.why_shrunken(number, _count(last, what)):
                raise BadInput(source.shown, f"{why}, counting {what}; {_how_to_accept(data)}")
    return dict(new)


def _count(last: Evidence | None, what: str) -> int:
    found = last.claim.counts[what] if last else 0
    assert isinstance(found, int)
    return found


def _accepted(data: bytes, source: Source) -> bool:
    if source.accept and not re.fullmatch(rf"[0-9a-f]{{{LEAST_DIGITS},128}}", source.accept):
        raise BadConfig("[feed] accept", f"{source.accept!r} is not {LEAST_DIGITS} or more hex digits of a SHA-512")
    return bool(source.accept) and hashlib.sha512(data).hexdigest().startswith(source.accept)


def _how_to_accept(data: bytes) -> str:
    return f"the last good one is kept. If this one is right: accept={hashlib.sha512(data).hexdigest()[:32]} in [feed]"


def _again(due: Due, last: Evidence) -> Claim:
    facts: dict[str, Json] = {**last.claim.facts, "again": last.claim.key["due"]}
    return Claim(due.key, outputs=last.claim.outputs, counts=last.claim.counts, facts=facts)


def _keep(state: State, data: bytes) -> FileRef:
    digest = hashlib.sha512(data).hexdigest()
    path = layout.feed_path(digest)
    state.store.commit_new(path, io.BytesIO(data), len(data), digest)
    return FileRef("state", path, len(data), digest)


def _read(state: State, kept: FileRef) -> bytes:
    with state.store.open(kept.path) as file:
        found = digest_of(file)
        if found != (kept.size, kept.sha512):
            raise Mismatch(f"size and SHA-512 of state:{kept.path}", (kept.size, kept.sha512), found)
        file.seek(0)
        return file.read()


def _values(job: str, recipe: Recipe) -> dict[str, str]:
    """What is filled into the profile. The engine itself replaces `${launchId}`."""
    launch = Launch(job, "${launchId}")
    folders: dict[str, str] = {kind: f"{recipe.output}/{recipe.output_layout.folder(kind, launch)}" for kind in KINDS}
    return {"job": job, "contact": recipe.contact, **folders}


def refuse_faults(configuration: bytes, job: str) -> None:
    """BadConfig, with all that a configuration, or the profile it is made of, lacks."""
    faults = list(profile.faults(configuration, f"the configuration of job {job}"))
    if faults:
        raise BadConfig("[feed] profile", "; ".join(faults))
