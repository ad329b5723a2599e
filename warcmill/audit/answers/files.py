"""The answer of `warcmill files`: the files of launches, each with its state in every step. Reads only."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from warcmill.audit import survey
from warcmill.audit.answers.line import AuditedLine, away_json, each_once
from warcmill.audit.inventory import FileState, Inventory
from warcmill.errors import Unavailable, WarcmillError
from warcmill.launches.discovery import Discovery
from warcmill.model import Json, Launch


class LaunchFiles(Struct, frozen=True):
    """Files of one launch, or why they could not be listed. `total`: how many it has, also where `files` is a part.

    `away`: roots that do not answer, so that only files of its markers are listed.
    """

    launch: Launch
    files: tuple[FileState, ...]
    total: int = 0
    error: str = ""
    unavailable: bool = False
    away: tuple[Unavailable, ...] = ()


def one(line: AuditedLine, launch: Launch) -> Discovery:
    """A launch as the only one that is asked for; BadInput if there is no such launch."""
    seen = survey.known(line.state, line.roots, launch, line.wanted)
    return Discovery((seen.launch,), (), seen.away)


def read(
    line: AuditedLine, launch: Launch, lacking: str | None = None, *, skipped: int = 0, most: int | None = None
) -> LaunchFiles:
    """The files of a launch, or only those that lack a step: all, or at most `most` after those that are skipped.

    A slice costs the reading of the markers, and the states of its own files.
    """
    end = None if most is None else skipped + most
    try:
        seen = survey.look(line.state, line.roots, launch, line.wanted)
        listed = Inventory(seen)
        if lacking is None:
            return LaunchFiles(launch, tuple(listed.states(skipped, end)), len(listed), away=seen.away)
        those = [file for file in listed.states() if file.lacks(lacking)]
        return LaunchFiles(launch, tuple(those[skipped:end]), len(those), away=seen.away)
    except WarcmillError as error:
        return LaunchFiles(launch, (), 0, str(error), isinstance(error, Unavailable))


def answer(results: Iterable[LaunchFiles], away: Iterable[Unavailable] = ()) -> dict[str, Json]:
    """The answer. `away`: roots that do not answer, beside those of the launches."""
    results = list(results)
    every = each_once((*away, *(error for result in results for error in result.away)))
    return {
        "away": away_json(every),
        "files": [_file(result.launch, file) for result in results for file in result.files],
        "errors": [
            {"job": result.launch.job, "launch_id": result.launch.id, "error": result.error}
            for result in results
            if result.error
        ],
    }


def _file(launch: Launch, file: FileState) -> dict[str, Json]:
    return {
        "job": launch.job,
        "launch_id": launch.id,
        "stage": file.stage,
        "root": file.file.root,
        "path": file.file.path,
        "size": file.file.size,
        "on_disk": file.on_disk,
        "stored": file.stored,
        "steps": dict(file.steps),
        "why": file.why,
    }
