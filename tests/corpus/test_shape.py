"""A launch of the built-in crawler beside every launch of the corpus: markers, packages and logs have one shape.

What one has and the other has not is listed here, with the reason; anything else is a fault.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest
from crawls import own_launch
from launches.corpus import Corpus
from launches.shapes import document, markers, of_log, of_marker, of_sip
from line import Line, line_at
from packing import built_sips
from packing.built_sips import Built

from warcmill import layout
from warcmill.extracts.extracts import Extracts
from warcmill.formats.logs import bounds
from warcmill.layout import OutputLayout
from warcmill.model import Launch
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore

OWN = Launch("daily", "20261121093000")
Shapes = dict[str, set[str]]

ITEM = "/claim/items[]"
AT_TIMES = {
    f"{ITEM}/facts/payload/as-transferred int",  # some answer came in chunks
    f"{ITEM}/why str", f"{ITEM}/offset int", f"{ITEM}/facts/whole int",  # the engine was killed while it wrote
    f"{ITEM}/facts/salvaged bool", f"{ITEM}/facts/bytes int",
    f"{ITEM}/facts/bad list", f"{ITEM}/facts/bad[]/offset int", f"{ITEM}/facts/bad[]/why str",
    f"{ITEM}/facts/odd list", f"{ITEM}/facts/sound int",  # its other records
    "/claim/facts/absent[] str",  # what a killed engine, or a resumed launch, does not write
    "/claim/facts/continues/checkpoint str", "/claim/facts/continues/launch_id str",
    "/claim/facts/seeds[]/added_from str", "/claim/facts/seeds[]/redirect str",  # a seed that redirects
    "/claim/facts/seeds[]/code int", "/claim/facts/seeds[]/why str", "/claim/facts/seeds[]/target int",
    "/claim/inputs[]/claim str", "/claim/inputs[]/marker str",  # an operator closed it
    "/claim/facts/requests_lost int", "/claim/facts/requests_without_page list",  # ours serves requests
}  # fmt: skip
FRONTIER = "frontier.recover.gz"
JOURNAL_OF_OURS = {"Fg", "Fn"}  # ends of groups, and the beginning
JOURNAL_OF_THEIRS = {"Fe", "Fd", "Fr"}
VIRAL = "/representations/viral/"


@pytest.fixture(scope="session", params=list(OutputLayout))
def ours(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Line:
    """A line with a launch of ours, after the scans."""
    made = line_at(tmp_path_factory.mktemp("ours"), request.param)
    own_launch.write(made.folders["output"], made.folders["jobs"], made.layout, OWN)
    assert made.scan() == [0, 0]
    return made


def test_markers_have_one_shape(ours: Line, corpora: list[Corpus]) -> None:
    mine = of_markers(ours.folders["state"], OWN)
    for corpus in corpora:
        for launch in corpus.launches():
            theirs = of_markers(corpus.base / "line/state", launch)
            assert set(theirs) - set(mine) <= {"operator.Close"}, launch
            for task in mine:
                assert mine[task] ^ theirs[task] <= AT_TIMES, (launch, task)


def of_markers(state: Path, launch: Launch) -> Shapes:
    return {
        task: {one for path in paths for one in of_marker(document(path))}
        for task, paths in markers(state, launch).items()
    }


def test_logs_have_one_shape(ours: Line, corpora: list[Corpus]) -> None:
    mine = of_logs(ours.folders["output"], ours.layout, OWN)
    every = merged(
        of_logs(corpus.base / "engine", corpus.layout, launch) for corpus in corpora for launch in corpus.launches()
    )
    assert mine.pop(FRONTIER) - every[FRONTIER] <= JOURNAL_OF_OURS
    assert not every.pop(FRONTIER) - JOURNAL_OF_THEIRS - {"F+", "Fs", "Ff"}
    assert mine == every


def of_logs(output: Path, kind: OutputLayout, launch: Launch) -> Shapes:
    """By the name of the log, all its stages together; and the names of the reports."""
    folder = output / kind.folder("logs", launch)
    found = {path: layout.split_log_name(path.name)[0] for path in folder.iterdir()}
    return merged({name: of_log(path)} for path, name in found.items() if name in layout.ENGINE_LOGS)


def test_reports_have_the_same_names_and_columns(ours: Line, corpora: list[Corpus]) -> None:
    mine = of_reports(ours.folders["output"], ours.layout, OWN)
    assert "[" in mine.pop(f"{bounds.REPORT}.txt")  # Heritrix has none of what its limits left out
    for corpus in corpora:
        for launch in corpus.launches():
            theirs = of_reports(corpus.base / "engine", corpus.layout, launch)
            assert theirs in (mine, {}), launch  # a killed engine wrote none


def of_reports(output: Path, kind: OutputLayout, launch: Launch) -> dict[str, str]:
    """The line with the columns of each report that is a table."""
    folder = output / kind.folder("reports", launch)
    paths = folder.iterdir() if folder.is_dir() else ()
    first = {path.name: path.read_text("utf-8").partition("\n")[0] for path in paths}
    return {name: line if line.startswith("[") else "" for name, line in first.items()}


def test_sips_have_one_shape(ours: Line, corpora: list[Corpus], tmp_path: Path) -> None:
    sentinel.adopt({"index": tmp_path})
    extracts, terms = Extracts(FileStore("index", tmp_path)), built_sips.terms_of(ours.store, "value")
    own = built_sips.of_launch(ours.state, ours.store, extracts, OWN, terms, "every")
    mine = of_sips(Built(OWN, tuple(own), ours.state, ours.store))
    theirs = [of_sips(one) for one in built_sips.of_corpora(corpora, "every", "value", tmp_path / "theirs")]
    for one in theirs:
        for kind in one:
            assert one[kind] <= mine[kind], kind
    assert merged(theirs) == mine


def of_sips(built: Built) -> Shapes:
    """Without the viral WARCs: ours met nothing infected."""
    found = merged(of_sip(built.store.base / sip.sip.path, built.launch) for sip in built.sips)
    return {kind: {one for one in shapes if VIRAL not in one} for kind, shapes in found.items() if VIRAL not in kind}


def merged(every: Iterable[Mapping[str, set[str]]]) -> Shapes:
    found: Shapes = {}
    for one in every:
        for name, shapes in one.items():
            found.setdefault(name, set()).update(shapes)
    return found
