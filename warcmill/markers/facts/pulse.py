"""The facts of feeding, starting and stopping a crawl: 00.feed, 00.due, 01.started, .checkpointed, .confirmed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Self

from msgspec import Struct

from warcmill.markers.claim import Claim
from warcmill.markers.facts.reading import ClaimFields, number, object_of, stage, stamp, text, texts, true
from warcmill.model import FileRef, Json, Launch, Stage, Window


class Continued(Struct, frozen=True):
    """The launch that another one continues, and the checkpoint from which it was resumed."""

    launch: Launch
    checkpoint: Stage

    def facts(self) -> dict[str, Json]:
        """Return the fact as claims and reports contain it."""
        return {"continues": {"launch_id": self.launch.id, "checkpoint": str(self.checkpoint)}}


def continues(claim: Claim) -> Continued | None:
    """Return what a claim's launch continues, by its facts; None for a fresh one."""
    return ClaimFields.facts(claim).maybe("continues", partial(_continued, claim.key["job"]))


def follows(launch_id: str) -> dict[str, Json]:
    """Return the fact of a launch that takes over what waits in another one; none for ''."""
    return {"follows": {"launch_id": launch_id}} if launch_id else {}


def _followed(job: str, value: Json) -> Launch:
    members = object_of(text)(value)
    if "launch_id" not in members:
        raise ValueError("not a launch_id")
    return Launch.parse(job, members["launch_id"])


def _continued(job: str, value: Json) -> Continued:
    members = object_of(text)(value)
    if not {"launch_id", "checkpoint"} <= set(members):
        raise ValueError("not a launch_id and a checkpoint")
    return Continued(Launch.parse(job, members["launch_id"]), Stage.parse(members["checkpoint"]))


class Fed(Struct, frozen=True):
    """00.feed: the source of a feed, its faulty targets, its number of targets, and the file in which it is kept.

    The feed of a package index has a `window` of serials, a file of the `projects` that are wanted; None: all are; and
    a file of the `events` of the window; None: it kept none.
    `is_simple`: it was made of an index without a changelog; `listed` is the ETag of their list, or ''; and
    `lost` the number of projects that the list had lost at once. `swept`: the project that a sweep asked for last.
    """

    source: str
    faulty: tuple[str, ...]
    again: str | None
    counts: Mapping[str, int]
    kept: FileRef
    projects: FileRef | None
    window: Window | None
    events: FileRef | None = None
    is_simple: bool = False
    listed: str = ""
    lost: int = 0
    swept: str = ""

    @classmethod
    def from_claim(cls, claim: Claim) -> Self:
        facts, counts = ClaimFields.facts(claim), ClaimFields.counts(claim)
        listed, events = facts.maybe("projects", text), facts.maybe("events", text)
        files = [file for file in claim.outputs if file.sha512 not in (listed, events)]
        if len(files) != 1:
            raise facts.bad("source", "is of no feed that is kept, or of several")
        after = facts.maybe("serial_from", number)
        return cls(
            facts.require("source", text),
            facts.maybe("faulty", texts) or (),
            facts.maybe("again", stamp),
            {name: counts.require(name, number) for name in ("targets", "of_job")},
            files[0],
            next((file for file in claim.outputs if file.sha512 == listed), None),
            None if after is None else Window(after, facts.require("serial_to", number)),
            next((file for file in claim.outputs if events and file.sha512 == events), None),
            facts.maybe("changes", text) == "simple",
            facts.maybe("listed", text) or "",
            facts.maybe("lost", number) or 0,
            facts.maybe("swept", text) or "",
        )


class Launched(Struct, frozen=True):
    """00.due: the launch that a due crawl got. `nothing_new`: nothing was launched, as the newest launch has it all."""

    launch: Launch
    nothing_new: bool

    @classmethod
    def from_claim(cls, claim: Claim) -> Self:
        facts = ClaimFields.facts(claim)
        launch = Launch.parse(claim.key["job"], facts.require("launch_id", stamp))
        return cls(launch, facts.maybe("nothing_new", true) or False)


class Started(Struct, frozen=True):
    """01.started: the due time of a launch, its feed's digest and number of targets, and the job's files.

    `engine` is the kind of its engine; None in a marker from before there were kinds. A launch of an `endless` job ends
    only when it is stopped. One that `retries` asks again for what the one that it follows missed. `mends`: the launch,
    JOB/LAUNCH, that it patches; '' for none.
    """

    due: str
    continues: Continued | None
    follows: Launch | None
    endless: bool
    engine: str | None
    feed: str | None
    targets: int | None
    files: Mapping[str, str]
    without_login: tuple[str, ...]
    retries: bool = False
    mends: str = ""

    @classmethod
    def from_claim(cls, claim: Claim) -> Self:
        facts = ClaimFields.facts(claim)
        return cls(
            facts.require("due", stamp),
            continues(claim),
            facts.maybe("follows", partial(_followed, claim.key["job"])),
            facts.maybe("endless", true) or False,
            facts.maybe("engine", text),
            facts.maybe("feed", text),
            facts.maybe("targets", number),
            facts.maybe("files", object_of(text)) or {},
            facts.maybe("without_login", texts) or (),
            facts.maybe("retries", true) or False,
            facts.maybe("mends", text) or "",
        )


class Checkpointed(Struct, frozen=True):
    """01.checkpointed: the checkpoint that was taken."""

    stage: Stage

    @classmethod
    def from_claim(cls, claim: Claim) -> Self:
        return cls(ClaimFields.facts(claim).require("stage", stage))


class Confirmed(Struct, frozen=True):
    """01.confirmed: the state of the launch that the engine reported."""

    engine: str

    @classmethod
    def from_claim(cls, claim: Claim) -> Self:
        return cls(ClaimFields.facts(claim).require("engine", text))
