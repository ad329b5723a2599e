"""What an operator says of a launch: a claim with a reason, where no program can know.

Who and when is no part of a claim: host and time stand in the marker's run.
"""

from __future__ import annotations

from warcmill import layout
from warcmill.errors import BadInput
from warcmill.evidence import Claim
from warcmill.launches import Engines
from warcmill.model import Launch


def is_known(engines: Engines, launch: Launch) -> bool:
    """Whether the engines have a folder of this launch, of any kind."""
    folders = [(engines.output, engines.layout.folder(kind, launch)) for kind in layout.KINDS]
    folders.append((engines.jobs, f"{launch.job}/{launch.id}"))
    return any(entry is not None and entry.kind == "folder" for store, path in folders for entry in [store.stat(path)])


def close(engines: Engines, launch: Launch, reason: str) -> Claim:
    """The claim of 01.closed; BadInput when no engine knows the launch. Ask `launches.how_ended` first."""
    if not is_known(engines, launch):
        raise BadInput(str(launch), "no engine has a folder of this launch; look at the job's name and the 14 digits")
    return Claim(layout.key("operator.Close", launch), facts={"reason": reason})
