"""The verbs that ask what is published of a package index."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from configured import configured
from mirroring.package_dumps import JOB, DumpedIndex, listed, row, state

from commands import pypi as command
from commands.init import configuration
from commands.main import main
from warcmill import layout
from warcmill.clients.package_index import IndexClient, IndexedProject, ProjectList
from warcmill.errors import NotReady
from warcmill.formats.pypi.lives import LifeEvent
from warcmill.layout import OutputLayout
from warcmill.markers.claim import Claim
from warcmill.model import Json, Launch, Root, Window
from warcmill.pypi import answers, feed, journal, providers
from warcmill.pypi.answers import PublishedData
from warcmill.pypi.feed import IndexSource
from warcmill.stores import sentinel

YAML = row("pyyaml", "6.0", "yaml", "yaml.nodes")
NEWER = row("pyyaml", "6.1", "yaml", requires=("six>=1 ; python_version < '3'", "not a requirement"))
OTHER = row("ruamel-yaml", "0.1", "yaml", requires=None)


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DumpedIndex:
    made = DumpedIndex(tmp_path)
    made.dump(0, 100, [YAML, OTHER], [state("pyyaml", 40, YAML), state("ruamel-yaml", 7, OTHER)])
    made.dump(100, 120, [NEWER], [state("pyyaml", 110, listed(YAML, "broken"), NEWER), state("ruamel-yaml", 105)])
    made.update()
    roots: tuple[Root, ...] = ("output", "jobs", "state", "store", "index")
    for root in roots[:2]:
        sentinel.adopt({root: tmp_path / root})
    config = tmp_path / "luigi.cfg"
    config.write_text(configuration({root: tmp_path / root for root in roots}, OutputLayout.KIND_FIRST))
    configured(monkeypatch, config)
    monkeypatch.setenv("LUIGI_CONFIG_PATH", str(config))
    return made


def asked(*words: str) -> int:
    return main(["pypi", *words])


def test_who_provides_a_module(index: DumpedIndex, capsys: pytest.CaptureFixture[str]) -> None:
    assert asked("provides", "yaml") == 0
    assert capsys.readouterr().out == f"pyyaml  2 files, such as {NEWER.filename}\n"
    assert asked("provides", "pyyaml") == 1
    assert "no distribution is known" in capsys.readouterr().out
    assert asked("provides", "yaml.nodes", "--json") == 0
    files = [{"filename": YAML.filename, "project": "pyyaml", "version": "6.0"}]
    found = json.loads(capsys.readouterr().out)
    (project,) = found.pop("projects")
    assert found == {"files": files, "module": "yaml.nodes", "serial": 120}
    assert (project["project"], project["newest"], project["marks"]) == ("pyyaml", "6.1", ["old"])
    for module in ("yam", "yaml.node", ""):
        assert asked("provides", module) == 1
        assert "no distribution is known" in capsys.readouterr().out


def test_which_projects_a_file_needs(index: DumpedIndex, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "app" / "main.py"
    source.parent.mkdir()
    source.write_text("import os\nfrom yaml import load\n")
    assert asked("provides", "--of", str(source)) == 0
    assert capsys.readouterr().out == "pyyaml 6.1  for yaml\n"
    source.write_text(
        "from yaml import load\nimport nothing.here\ntry:\n    import more\nexcept ImportError:\n    pass\n"
    )
    (source.parent / "old.py").write_text("print 'old'\n")
    assert asked("provides", "--of", str(source.parent)) == 1
    said = capsys.readouterr()
    assert said.out.splitlines() == [
        "pyyaml 6.1  for yaml",
        "no distribution is known that gives more, which is optional, of main.py:4",
        "no distribution is known that gives nothing, of main.py:2",
    ]
    assert said.err.startswith("old.py is left out: line 1 is not Python 3.")
    assert asked("provides", "--of", str(source), "--json") == 1
    found = json.loads(capsys.readouterr().out)
    assert found == {
        "files": 1,
        "projects": [{"modules": ["yaml"], "optional": False, "others": [], "project": "pyyaml", "version": "6.1"}],
        "serial": 120,
        "unknown": [
            {"module": "more", "optional": True, "place": "main.py:4"},
            {"module": "nothing", "optional": False, "place": "main.py:2"},
        ],
        "unread": [],
    }
    for words in ((), ("yaml", "--of", str(source))):
        with pytest.raises(SystemExit) as refused:
            asked("provides", *words)
        assert refused.value.code == 2


def test_what_a_file_requires(index: DumpedIndex, capsys: pytest.CaptureFixture[str]) -> None:
    assert asked("requires", NEWER.filename) == 0
    assert capsys.readouterr().out == "python >=3.9\nsix>=1 ; python_version < '3'\nnot a requirement\n"
    assert asked("requires", NEWER.filename, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["sha256"], found["type"], tuple(found["requires_dist"])) == (
        NEWER.sha256,
        "WHEEL",
        NEWER.requires_dist,
    )
    for name in (OTHER.filename, "pyyaml-6.0", "../etc/passwd", "pyyaml-7.0-py3-none-any.whl"):
        assert asked("requires", name) == 1
        assert "not known here" in capsys.readouterr().out


def test_what_requires_a_project(index: DumpedIndex, capsys: pytest.CaptureFixture[str]) -> None:
    assert asked("requires", "Six", "--reverse") == 0
    assert capsys.readouterr().out == "pyyaml 6.1  six>=1 ; python_version < '3'\n"
    assert asked("requires", "--reverse", "six", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {
        "project": "six",
        "required_by": [
            {
                "extras": [],
                "marker": 'python_version < "3"',
                "project": "pyyaml",
                "requirement": "six>=1 ; python_version < '3'",
                "specifier": ">=1",
                "version": "6.1",
            }
        ],
        "serial": 120,
    }
    assert asked("requires", "--reverse", "pyyaml") == 1
    assert capsys.readouterr().out == "no newest release is known that requires pyyaml, up to serial 120\n"


def test_the_files_of_a_project_now_and_then(index: DumpedIndex, capsys: pytest.CaptureFixture[str]) -> None:
    assert asked("show", "PyYAML") == 0
    first = f"{YAML.filename}  from serial 40 on  yanked: broken\n"
    assert capsys.readouterr().out == f"{first}{NEWER.filename}  from serial 110 on\n"
    assert asked("show", "pyyaml", "--as-of", "100") == 0
    assert capsys.readouterr().out == f"{YAML.filename}  from serial 40 on\n"
    assert asked("show", "ruamel.yaml", "--as-of", "104", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [(one["from"], one["to"], one["modules"]) for one in found["files"]] == [(7, 104, ["yaml"])]
    assert asked("show", "ruamel.yaml") == 1
    assert "no file at serial 120 is known" in capsys.readouterr().out


def fed(index: DumpedIndex, due: str, window: Window, *events: LifeEvent) -> None:
    """Leave the feed of a launch, and that it was started."""
    kept = [journal.keep(index.state, [f"{window}\n".encode()])]
    facts: dict[str, Json] = {"source": "http://index.example", **feed.serials(window)}
    if events:
        kept.append(journal.keep_events(index.state, (("pyyaml", event) for event in events), window.after))
        facts["events"] = kept[-1].sha512
    key = layout.feed_key(JOB, due)
    index.state.publish(key, Claim(key, outputs=tuple(kept), counts={"targets": 0, "of_job": 0}, facts=facts))
    started = layout.key("pulse.Started", Launch(JOB, due))
    index.state.publish(started, Claim(started, facts={"due": due}))


def test_a_time_is_the_serial_of_the_last_event_before_it(
    index: DumpedIndex, capsys: pytest.CaptureFixture[str]
) -> None:
    fed(index, "20261126100000", Window(0, 100))
    day = 1_795_824_000  # 2026-11-28T00:00:00Z
    late, added, yanked = (50, day - 90_000, ""), (110, day - 60, "add py3 file x"), (111, day + 60, "yank release")
    events = (LifeEvent(serial, time, "6.0", action) for serial, time, action in (late, added, yanked))
    fed(index, "20261128100000", Window(100, 120), *events)
    for when, serial in (
        ("2026-11-26T10:00:00Z", 100),
        ("2026-11-26", 100),
        ("2026-11-27T23:59:00Z", 110),
        ("2026-11-27", 110),
        ("2026-11-28", 111),
        ("2026-11-28T00:59:30+01:00", 110),
    ):
        assert asked("show", "pyyaml", "--as-of", when, "--json") in (0, 1)
        assert json.loads(capsys.readouterr().out)["serial"] == serial, when
    for when, why in (("2026-11-29", "the last serial that is published is 120"), ("2026-11-25", "before the first")):
        assert asked("show", "pyyaml", "--as-of", when) == 1
        assert why in capsys.readouterr().err
    with pytest.raises(SystemExit):
        asked("show", "pyyaml", "--as-of", "soon")


def test_nothing_published_is_too_early_and_not_an_answer(tmp_path: Path) -> None:
    empty = DumpedIndex(tmp_path)
    data = PublishedData(empty.state.store, empty.index)
    for ask in (
        lambda: providers.provides(data, "yaml"),
        lambda: providers.required_by(data, "yaml"),
        lambda: answers.requires(data, YAML.filename),
        lambda: answers.show(data, "pyyaml"),
    ):
        with pytest.raises(NotReady, match=r"pypi\.UpdateLevelDb"):
            ask()
    lag = {"job": "pypi", "index": 7, "crawled": None, "dumped": None, "published": None}
    assert answers.lag(empty.state, data, "pypi", 7) == lag


def test_the_last_serial_of_a_list_without_one_is_the_greatest_of_its_projects(
    index: DumpedIndex, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [IndexedProject("pyyaml", 130), IndexedProject("Ruamel.YAML", 7), IndexedProject("unwanted", 150)]
    for serial, at_index in ((0, 130), (140, 140)):
        client = IndexClient("https://index.example", "https://archive.example/")
        monkeypatch.setattr(client, "projects", lambda _note=None, serial=serial: ProjectList(serial, rows, ""))
        by = IndexSource(client, frozenset({"pyyaml", "ruamel-yaml"}), has_changelog=False)
        monkeypatch.setattr(command.indexes, "jobs", lambda: (JOB,))
        monkeypatch.setattr(command.indexes, "source", lambda by=by: by)
        assert asked("lag", "--json") == 0
        assert json.loads(capsys.readouterr().out)["index"] == at_index


def test_the_verbs_are_those_of_the_help() -> None:
    assert set(command.ANSWERS) == {"provides", "requires", "show", "lag"}
