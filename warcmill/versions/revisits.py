"""The revisits that index.cdx-verified counts as `elsewhere`: their original is in no WARC of their launch."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from warcmill import layout
from warcmill.errors import BadInput, NotReady
from warcmill.formats.warc.digest import comparable
from warcmill.launches import revisit_extracts
from warcmill.launches.extracts import Extracts
from warcmill.launches.revisit_extracts import REVISITS
from warcmill.markers.claim import Evidence
from warcmill.markers.facts import Found, Indexed
from warcmill.markers.state import MarkerStore
from warcmill.model import Launch, Stage
from warcmill.versions.cdx_inputs import WARCS

_VERIFIED = "index.cdx-verified."


@dataclass(frozen=True, order=True, slots=True)
class Revisit:
    """A revisit, as its line has it. `digest` is that of the payload, '' if the record has none."""

    key: str
    time: str
    url: str
    digest: str
    warc: str  # below the store's warcs/
    offset: int

    @classmethod
    def parse(cls, line: bytes) -> Revisit:
        """Read a line that has its filename."""
        key, time, text = line.decode().split(" ", 2)
        fields = json.loads(text)
        return cls(key, time, fields["url"], fields.get("digest", ""), fields["filename"], int(fields["offset"]))

    @property
    def wanted(self) -> bytes:
        """What its original has: this payload digest, to be compared. Without one: this key, and a blank."""
        return comparable(self.digest.encode()) or f"{self.key} ".encode()


def with_revisits(state: MarkerStore, launch: Launch) -> list[Stage]:
    """The stages of a launch whose index.cdx-verified counts revisits as `elsewhere`."""
    names = (name for name in sorted(state.store.names(layout.state_folder(launch))) if name.startswith(_VERIFIED))
    keys = filter(None, map(layout.parse_marker_name, names))
    return sorted(Stage.parse(key["stage"]) for key in keys if _elsewhere(state.read(key)))


def _elsewhere(marker: Evidence | None) -> int:
    """The count of a marker; 0 if its facts do not fit, which the audit reports as a broken marker."""
    try:
        return Found.from_claim(marker.claim).elsewhere if marker else 0
    except BadInput:
        return 0


def of_stage(state: MarkerStore, extracts: Extracts, launch: Launch, stage: Stage) -> Iterator[Revisit]:
    """The revisits of a stage. Their extract may be lost: then they are found again, among the lines of the WARCs.

    NotReady until the stage is verified, or where those lines are lost, too.
    """
    verified = state.require(layout.step("verify-cdx", launch, stage))
    if not Found.from_claim(verified.claim).elsewhere:
        return
    rests_on = {_stage(one.marker): one.claim for one in verified.claim.inputs}
    key = revisit_extracts.key([rests_on[one] for one in sorted(rests_on)])
    lines = extracts.lines(REVISITS, key)
    if extracts.digest(REVISITS, key) is None:
        lines = _found_again(state, extracts, launch, sorted(rests_on))
    try:
        yield from map(Revisit.parse, lines)
    except BadInput as error:
        raise NotReady(f"index:{error.path}", error.why) from error


def _stage(path: str) -> Stage:
    key = layout.parse_marker_path(path)
    if key is None:
        raise BadInput(path, "no marker of a stage")
    return Stage.parse(key["stage"])


def _found_again(state: MarkerStore, extracts: Extracts, launch: Launch, stages: list[Stage]) -> Iterator[bytes]:
    *before, own = [state.require(layout.step("cdx", launch, one)) for one in stages]
    return revisit_extracts.elsewhere(extracts, warcs_of(own), [one for marker in before for one in warcs_of(marker)])


def warcs_of(marker: Evidence) -> list[tuple[str, str]]:
    """The WARCs of an index.cdx, sorted: the name of each below the store's `warcs/`, and its SHA-512."""
    files = Indexed.from_claim(marker.claim).files
    return sorted((file.path.removeprefix(WARCS), str(file.sha512)) for file in files)
