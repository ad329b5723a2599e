"""Two honest runs of the whole line, at other times and in other folders, leave the same claims and the same zips."""

from __future__ import annotations

from pathlib import Path

import pytest
from launches import chain
from launches.engine import LAUNCH, Engine, line_of
from records.warcs import warc_gz, warcinfo

from warcmill import layout
from warcmill.audit.survey import survey
from warcmill.base import clock
from warcmill.decisions import statements
from warcmill.errors import Conflict
from warcmill.formats.logs import logzip
from warcmill.markers.claim import UNKNOWN, Claim, Evidence
from warcmill.markers.state import MarkerStore
from warcmill.model import FINAL, Key, Stage
from warcmill.output import gather, process

WHOLE = warc_gz(warcinfo())
NAMES = [f"BL-20161019234430000-0000{serial}-1~crawler~8443.warc.gz" for serial in range(3)]
CP1 = Stage.parse("cp00001-20161019234500")
GOLDEN = Path(__file__).parent.parent / "data" / "markers" / "schema-1.zip"
PACKED = layout.key("output.PackageLogs", LAUNCH, stage=FINAL)


def crawled(base: Path) -> Engine:
    """A launch of two stages, with a WARC that is cut and one that no log names."""
    engine = Engine(base)
    engine.logs(line_of("http://a.example/", NAMES[0]), stage=str(CP1))
    engine.logs(line_of("http://a.example/b", NAMES[1]))
    for name, data in zip(NAMES, (WHOLE, WHOLE[:10], WHOLE), strict=True):
        engine.warc(name, data)
    engine.finish()
    return engine


def whole_line(engine: Engine) -> dict[str, Evidence]:
    """Every step, each one's claim published, and a finding accepted."""
    for stage in (CP1, FINAL):
        chain.assembled(engine, stage)
        chain.upto(engine, "Retire", stage)
    for claim in (
        process.process(engine.state, engine.roots, LAUNCH),
        statements.accept_all(
            survey(engine.state, engine.roots, LAUNCH, {}), [f"warcs/daily/{LAUNCH.id}/{NAMES[2]}"], "known"
        )[0],
    ):
        engine.state.publish(claim.key, claim)
    return engine.state.folder(LAUNCH)


def test_every_step_of_two_runs_leaves_the_same_claim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = whole_line(crawled(tmp_path / "one"))
    monkeypatch.setattr(clock, "now", lambda: "2031-01-01T00:00:00Z")
    other = whole_line(crawled(tmp_path / "another folder"))
    assert {name: found.digest for name, found in one.items()} == {name: found.digest for name, found in other.items()}
    tasks = {found.claim.key.task.partition(".")[2] for found in one.values()}
    assert tasks >= {"CheckJobStopped", "PackageLogs", "AssembleOutput", "ProcessOutputs", "Accept", *chain.TRANSFER}
    zips = [(tmp_path / base / "state" / layout.marker_path(PACKED)).read_bytes() for base in ("one", "another folder")]
    assert zips[0] == zips[1]
    assert {found.run.finished for name, found in other.items() if ".zip" not in name} == {"2031-01-01T00:00:00Z"}


def test_the_run_of_a_zip_is_beside_it_and_the_first_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = Engine(tmp_path).state
    publish(state)
    found, path = state.require(PACKED), state.store.real(layout.run_path(PACKED))
    assert found.run == UNKNOWN
    assert state.run_of(found).tools["warcmill"]
    assert layout.parse_marker_name(path.name) is None
    before = path.read_bytes()
    monkeypatch.setattr(clock, "now", lambda: "2031-01-01T00:00:00Z")
    publish(state)  # the same claim: another worker proved the same
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [None, b"", b"{}", b"[]", b"\xff", b'{"host": 1}'])
def test_a_run_that_is_missing_is_unknown_and_the_zip_as_good(tmp_path: Path, content: bytes | None) -> None:
    state = Engine(tmp_path).state
    publish(state)
    path = state.store.real(layout.run_path(PACKED))
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    assert state.run_of(state.require(PACKED)) == UNKNOWN


def test_a_zip_that_was_killed_before_it_was_published_left_its_run_and_no_marker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine(tmp_path)

    def killed(*_: object) -> bool:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(MarkerStore, "_commit", killed)
        with pytest.raises(KeyboardInterrupt):
            publish(engine.state)
    assert engine.state.store.real(layout.run_path(PACKED)).exists()
    assert engine.state.folder(LAUNCH) == {}
    publish(engine.state)
    assert list(engine.state.folder(LAUNCH)) == [layout.marker_name(PACKED)]


def publish(state: MarkerStore) -> None:
    claim = Claim(PACKED)
    with state.scratch() as folder:
        with (folder / "x.zip").open("xb", buffering=0) as file:
            logzip.write(file, [], lambda _: state.plain_document(claim))
        state.publish(PACKED, claim, folder / "x.zip")


def test_an_older_zip_with_its_run_inside_reads_as_ever(tmp_path: Path) -> None:
    """The golden file is as the first Warcmill packed: it is never written anew."""
    state = Engine(tmp_path).state
    path = state.store.real(layout.marker_path(PACKED))
    path.parent.mkdir(parents=True)
    path.write_bytes(GOLDEN.read_bytes())
    found = state.require(PACKED)
    assert found.digest.startswith("5fae20b22aea6c1852dac2a474c43736")
    assert found.claim.facts == {"absent": ["alerts.log"]}
    assert state.run_of(found) == found.run
    assert (found.run.host, found.run.finished) == ("crawler01", "2016-10-20T00:00:01Z")
    assert gather.count_logs(state, found)[0].lines == 1


def test_a_conflict_names_the_time_that_is_beside_the_zip(tmp_path: Path) -> None:
    state = Engine(tmp_path).state
    publish(state)
    since = state.run_of(state.require(PACKED)).finished
    with pytest.raises(Conflict, match=f"is there since {since}"):
        state.publish(PACKED, Claim(Key(PACKED.task, PACKED.params), facts={"other": 1}), _zip(tmp_path))


def _zip(folder: Path) -> Path:
    (folder / "other.zip").write_bytes(b"x")
    return folder / "other.zip"
