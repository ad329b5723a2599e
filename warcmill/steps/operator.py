"""What an operator says of a launch: a claim with a reason, where no program can know.

Who and when is no part of a claim: host and time stand in the marker's run.
"""

from __future__ import annotations

from collections.abc import Iterator

from warcmill import gaps, layout
from warcmill.errors import BadInput, NotReady
from warcmill.evidence import Claim, Input
from warcmill.gaps import Gap
from warcmill.launches import Engines
from warcmill.model import Key, Launch, Stage
from warcmill.survey import Survey


def is_known(engines: Engines, launch: Launch) -> bool:
    """Whether the engines have a folder of this launch, of any kind."""
    folders = [(store, known.folder(kind, launch)) for store, known in engines.sources() for kind in layout.KINDS]
    folders.append((engines.jobs, f"{launch.job}/{launch.id}"))
    return any(entry is not None and entry.kind == "folder" for store, path in folders for entry in [store.stat(path)])


def close(engines: Engines, launch: Launch, reason: str) -> Claim:
    """The claim of 01.closed; BadInput when no engine knows the launch. One that ended by its logs needs none."""
    if not is_known(engines, launch):
        raise BadInput(str(launch), "no engine has a folder of this launch; look at the job's name and the 14 digits")
    return Claim(layout.key("operator.Close", launch), facts={"reason": reason})


def findings(seen: Survey) -> list[Gap]:
    """The findings of a launch that an operator may take note of, those that are accepted included."""
    return [gap for found in gaps.find(seen) for gap in found if gap.kind in gaps.ACCEPTABLE]


def accept(seen: Survey, name: str, reason: str) -> Claim:
    """The claim of an accepted finding: all that is found under this name, and the markers it stands in.

    NotReady while files.Checksum has not judged a file: more may be wrong with it than is known.
    """
    alike = [gap for gap in findings(seen) if gap.name == name]
    if not alike:
        raise BadInput(name, f"nothing is found under this name in {seen.launch}")
    markers = sorted({key for gap in alike for key in _stands_in(seen, gap)})
    inputs = tuple(Input(layout.marker_path(key), seen.markers[key].digest) for key in markers)
    key = layout.key("operator.Accept", seen.launch, finding=layout.finding_id(name))
    kinds = ", ".join(sorted({gap.kind for gap in alike}))
    return Claim(key, inputs, facts={"name": name, "kind": kinds, "reason": reason})


def _stands_in(seen: Survey, gap: Gap) -> Iterator[Key]:
    """The markers that a finding is told by."""
    if not gap.stage:
        yield seen.key("process")
        return
    stage = Stage.parse(gap.stage)
    if gap.kind == "absent log":
        yield seen.key("pack", stage)
        return
    yield seen.key("assemble", stage)
    if gap.name in seen.items("assemble", stage):  # a file that is there
        if not seen.marker("checksum", stage):
            raise NotReady(
                f"{seen.launch} {stage}", f"files.Checksum has not read {gap.name} yet; accept it after that"
            )
        yield seen.key("checksum", stage)
