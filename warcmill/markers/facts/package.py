"""The facts of the SIPs: 05.packaged and 06.submitted, and the ARKs that a minter gave."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from msgspec import Struct

from warcmill import layout
from warcmill.markers.claim import Claim
from warcmill.markers.facts.reading import ClaimFields, object_of, stage, stages, text, texts
from warcmill.model import FileRef, Json, Stage


class Packaged(Struct, frozen=True):
    """05: the SIP, the stages that it covers, and the stage of the SIP before it."""

    covers: tuple[Stage, ...]
    before: Stage | None
    form: str  # value or reference
    bag: str  # the folder in the tar
    sip: FileRef
    ark: str = ""  # of the SIP; '' where it has none
    zone: str = ""  # NAAN/shoulder of the derived ARKs of files, where that of the SIP is not derived
    orphaned: tuple[str, ...] = ()  # stored SIPs of these stages that no 05 ever named
    renamed: Mapping[str, str] = {}  # the own names of files that have another one in the bag, by kind and that one

    @classmethod
    def from_claim(cls, claim: Claim) -> Self:
        facts = ClaimFields.facts(claim)
        if len(claim.outputs) != 1:
            raise facts.bad("bag", "is of no SIP that is stored, or of several")
        return cls(
            facts.require("covers", stages),
            facts.require("before", _stage_or_none),
            facts.require("form", text),
            facts.require("bag", text),
            claim.outputs[0],
            facts.maybe("ark", text) or "",
            facts.maybe("zone", text) or "",
            facts.maybe("orphaned", texts) or (),
            facts.maybe("renamed", object_of(text)) or {},
        )

    def facts(self) -> dict[str, Json]:
        """Return the facts as the claim contains them."""
        return {
            "covers": [str(one) for one in self.covers],
            "before": str(self.before or ""),
            "form": self.form,
            "bag": self.bag,
            **({"ark": self.ark} if self.ark else {}),
            **({"zone": self.zone} if self.zone else {}),
            **({"orphaned": list(self.orphaned)} if self.orphaned else {}),
            **({"renamed": dict(self.renamed)} if self.renamed else {}),
        }

    def is_named(self, path: str) -> bool:
        """True if a stored SIP is this one, or one that it replaces and that an earlier 05 named."""
        (folder, _, name), (own_folder, _, own_name) = path.rpartition("/"), self.sip.path.rpartition("/")
        known, own = layout.parse_sip_name(name), layout.parse_sip_name(own_name)
        if path in self.orphaned or known is None or own is None:
            return path == self.sip.path
        return folder == own_folder and known[0] == own[0] and known[1] <= own[1]


class Submitted(Struct, frozen=True):
    """06: the name of the SIP's file at the destination, its digest, and the key of its submission."""

    name: str
    sha512: str
    key: str

    @classmethod
    def from_claim(cls, claim: Claim) -> Self:
        facts = ClaimFields.facts(claim)
        return cls(facts.require("name", text), facts.require("sha512", text), facts.require("key", text))

    def facts(self) -> dict[str, Json]:
        """Return the facts as the claim contains them."""
        return {"name": self.name, "sha512": self.sha512, "key": self.key}


class SipVerified(Struct, frozen=True):
    """07: the WARCs that the gate finds whole and warcio cannot read, and those whose digests the two find unlike.

    Each: its name, and what was found.
    """

    unread: tuple[tuple[str, str], ...] = ()
    differing: tuple[tuple[str, str], ...] = ()

    @classmethod
    def from_claim(cls, claim: Claim) -> Self:
        facts = ClaimFields.facts(claim)
        listed = (facts.maybe(name, texts) or () for name in ("unread", "differing"))
        return cls(*(tuple((name, why) for name, _, why in (one.partition(": ") for one in each)) for each in listed))

    def facts(self) -> dict[str, Json]:
        """Return the facts as the claim contains them: none where the two readers agree."""
        return {
            **({"unread": [f"{name}: {why}" for name, why in self.unread]} if self.unread else {}),
            **({"differing": [f"{name}: {why}" for name, why in self.differing]} if self.differing else {}),
        }


class GivenArks(Struct, frozen=True):
    """The ARKs that a minter gave for a stage: for its files, by stored path and digest, and for a SIP of it."""

    files: Mapping[tuple[str, str | None], str]
    sip: str
    minter: str  # its URL

    @classmethod
    def from_claim(cls, claim: Claim) -> Self:
        files = {
            (item.file.path, item.file.sha512): facts.require("ark", text) for item, facts in ClaimFields.items(claim)
        }
        own = ClaimFields.facts(claim)
        return cls(files, own.require("sip", text), own.require("minter", text))


def _stage_or_none(value: Json) -> Stage | None:
    return None if value == "" else stage(value)
