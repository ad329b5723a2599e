"""Actions are backed up with the state, once each has its end; tokens are not."""

from __future__ import annotations

import json
from pathlib import Path

from launches.engine import Engine

from warcmill.backup import archive
from warcmill.web.access import Role, add_token
from warcmill.web.actions import FOLDER, TakenAction, output_of

OVER = TakenAction("20161019234428-0123456789ab", "scan", ("scan",), "anna", exit_code=0)
RUNS = TakenAction("20161019234429-0123456789ab", "scan", ("scan",), "anna")


def record(engine: Engine, action: TakenAction) -> None:
    engine.state.store.replace(f"{FOLDER}/{action.id}.json", json.dumps(action.record()).encode())
    engine.state.store.replace(f"{FOLDER}/{action.id}.log", f"{action.exit_code}\n".encode())


def test_an_action_is_copied_once_it_has_its_end_and_comes_back(tmp_path: Path) -> None:
    engine, other = Engine(tmp_path / "one"), Engine(tmp_path / "two")
    add_token(engine.state.store, "anna", Role.OPERATOR, None)
    record(engine, OVER)
    record(engine, RUNS)
    engine.state.store.replace(f"{FOLDER}/20161019234430-0123456789ab.json", b"torn")
    paths = tuple(f"{archive.FOLDER}/{FOLDER}/{OVER.id}.{kind}" for kind in ("json", "log"))
    assert archive.back_up(engine.state.store, engine.store) == archive.CopyOutcome(paths, (), ())
    assert archive.back_up(engine.state.store, engine.store) == archive.CopyOutcome((), (), ())
    record(engine, TakenAction(RUNS.id, "scan", ("scan",), "anna", exit_code=1))
    assert len(archive.back_up(engine.state.store, engine.store).copied) == 2
    back = archive.restore(other.state.store, engine.store)
    assert len(back.copied) == 4
    assert (back.different, back.damaged) == ((), ())
    assert output_of(other.state.store, OVER.id)[0] == "0\n"
    assert not other.state.store.names("web/tokens"), "one that was withdrawn would open the pages again"
