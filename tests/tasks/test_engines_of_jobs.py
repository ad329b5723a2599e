"""A line with several engines and other writers: whose files are where, and what happens when a root is away."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
import sample
from configured import configured
from launches.engine import LAUNCH as BUILT
from launches.engine import Engine, line_of
from line import Line, line_at, without_dead_seed
from records.warcs import http, record, warc_gz, warcinfo

from tasks.config import engines, roots
from tasks.config import feed as feeds
from tasks.config.settings import settings
from warcmill import layout
from warcmill.errors import BadConfig, Unavailable
from warcmill.launches.view import how_ended
from warcmill.layout import SENTINEL, OutputLayout
from warcmill.model import FINAL, Launch

WHOLE = warc_gz(warcinfo(), record(block=http(b"page", b"Content-Length: 4")))
SAMPLE = Launch(sample.JOB, sample.LAUNCH_ID)
INTERVAL = "2016-10-01-2026-12-01"
SECOND = """
[engine.second]
jobs={job}
output={base}/second
job_files={base}/second
output_layout=job-first
"""
WRITERS = """
[writer.web]
root={base}/web
jobs={job}
layout=prefix
[writer.worker]
root={base}/worker
jobs={job}
layout=kind-first
"""


@dataclass
class Two:
    """A line around the bundled launch, whose [engine.second] has a launch of its own in a root of its own."""

    line: Line
    second: Engine

    @property
    def base(self) -> Path:
        return self.line.config.parent

    def configure(self, more: str) -> None:
        with self.line.config.open("a") as file:
            file.write(more.format(base=self.base, job=BUILT.job))

    def adopt(self, *sections: str) -> None:
        done = self.line.warcmill("init", *(word for one in sections for word in ("--adopt", one)))
        assert done.returncode == 0, done.stderr

    def verified(self, launch: Launch) -> bool:
        return self.line.state.holds(layout.key("files.Verify", launch, stage=FINAL))


@pytest.fixture
def two(tmp_path: Path) -> Two:
    without_dead_seed(sample.lay_out(tmp_path / "output"))
    second = Engine(tmp_path / "made", OutputLayout.JOB_FIRST)
    second.logs(line_of("http://a/", "a.warc.gz"))
    second.warc("a.warc.gz", WHOLE)
    second.finish()
    shutil.copytree(second.folders["output"], tmp_path / "second", ignore=shutil.ignore_patterns(SENTINEL))
    found = Two(line_at(tmp_path), second)
    second.folders["output"] = second.folders["jobs"] = tmp_path / "second"
    found.configure(SECOND)
    return found


def test_each_job_is_processed_from_the_roots_of_its_engine(two: Two) -> None:
    two.adopt("engine.second")
    assert json.loads((two.base / "second" / SENTINEL).read_text()) == {"roots": ["jobs", "output"], "schema": 1}
    two.adopt("engine.second")
    assert two.line.scan(INTERVAL) == [0, 0]
    assert two.verified(BUILT)
    assert two.verified(SAMPLE)
    assert two.line.warcmill("reconcile", INTERVAL).returncode == 0
    claim = two.line.state.require(layout.key("output.AssembleOutput", BUILT, stage=FINAL)).claim
    assert [(file.root, file.path) for file in claim.outputs] == [("output", f"{BUILT}/warcs/a.warc.gz")]
    doctor = json.loads(two.line.warcmill("doctor", "--json").stdout)["checks"]
    levels = {check["name"]: check["level"] for check in doctor}
    assert levels["root output [engine.second]"] == levels["root jobs [engine.second]"] == "ok"
    redone = two.line.warcmill("redo", BUILT.job, BUILT.id, "assemble", "final", "--downstream")
    assert redone.returncode == 0, redone.stderr
    assert two.line.scan(INTERVAL) == [0, 0]
    assert two.line.state.require(claim.key).claim == claim


def test_a_root_that_is_away_holds_up_its_own_jobs_alone(two: Two) -> None:
    """It was never adopted: as an unmounted disk, it has no sentinel."""
    scan = ("--module", "tasks.output", "output.ScanForOutputs", "--date-interval", INTERVAL)
    done = two.line.luigi(*scan)
    assert done.returncode == 30
    assert f"{two.base}/second" in done.stderr
    assert "is unavailable" in done.stderr
    assert two.line.scan(INTERVAL) == [30, 30]
    assert two.verified(SAMPLE)
    assert not two.verified(BUILT)
    for words in (["status", INTERVAL], ["plan", INTERVAL], ["files", INTERVAL], ["reconcile", INTERVAL]):
        told = two.line.warcmill(*words)
        assert told.returncode == 4, words
        assert SAMPLE.id in told.stdout or words[0] == "plan"
        assert "launches only there are not listed" in told.stderr
    backfill = two.line.warcmill("backfill", INTERVAL)
    assert (backfill.returncode, SAMPLE.id[:4] in backfill.stdout) == (4, True)
    checks = json.loads(two.line.warcmill("doctor", "--json").stdout)["checks"]
    told_by = [check["todo"] for check in checks if check["name"] == "root output [engine.second]"]
    assert "warcmill init --adopt engine.second" in told_by[0]
    two.adopt("engine.second")
    assert two.line.scan(INTERVAL) == [0, 0]
    assert two.verified(BUILT)


def test_when_no_engine_s_roots_are_there_nothing_is_planned(two: Two) -> None:
    (two.base / "output" / SENTINEL).unlink()
    assert two.line.scan(INTERVAL) == [35, 35]
    assert two.line.warcmill("reconcile", INTERVAL).returncode == 4


def test_a_job_in_a_root_that_is_not_its_own_is_named_and_not_read(two: Two) -> None:
    two.adopt("engine.second")
    stray = two.base / "output" / "warcs" / BUILT.job / "20161021000000"
    stray.mkdir(parents=True)
    (stray / "b.warc.gz").write_bytes(WHOLE)
    done = two.line.luigi("--module", "tasks.output", "output.ScanForOutputs", "--date-interval", INTERVAL)
    assert done.returncode == 0, done.stderr
    assert f"output/warcs/{BUILT.job}: launches of these days: 1, of a job that lies elsewhere" in done.stderr
    (odd,) = json.loads(two.line.warcmill("reconcile", INTERVAL, "--json").stdout)["odd"]
    assert "[engine.second]" in odd
    assert not list((two.base / "state").rglob("*20161021000000*"))


def test_the_files_of_other_writers_go_all_the_way(two: Two) -> None:
    two.configure(WRITERS)
    prefixed = line_of("http://w/", None).replace("{}", '{"warcPrefix":"daily-web"}')
    two.second.logs(line_of("http://a/", "a.warc.gz"), prefixed)
    for folder in ("web/2016", f"worker/warcs/{BUILT}"):
        (two.base / folder).mkdir(parents=True)
    (two.base / "web/2016/daily-web-20161020000000123-0.warc.gz").write_bytes(WHOLE)
    (two.base / f"worker/warcs/{BUILT}/w.warc.gz").write_bytes(WHOLE)
    two.adopt("engine.second", "writer.web", "writer.worker")
    assert two.line.scan(INTERVAL) == [0, 0]
    accept = two.line.warcmill("accept", f"writer.worker:warcs/{BUILT}/w.warc.gz", "--reason", "no log names it")
    assert accept.returncode == 0, accept.stderr
    reconcile = two.line.warcmill("reconcile", INTERVAL)
    assert reconcile.returncode == 0, reconcile.stdout
    listed = json.loads(two.line.warcmill("files", BUILT.job, BUILT.id, "--json").stdout)["files"]
    writers = {one["root"]: (one["on_disk"], one["steps"]["verify"], one["stored"]) for one in listed}
    assert writers["writer.web"] == (True, "ok", f"warcs/{BUILT}/daily-web-20161020000000123-0.warc.gz")
    assert writers["writer.worker"] == (True, "ok", f"warcs/{BUILT}/w.warc.gz")
    assert two.line.warcmill("verify", BUILT.job, BUILT.id).returncode == 0
    package = json.loads((two.base / "state" / layout.report_path(BUILT, FINAL, "package")).read_text())
    assert f"writer.worker:warcs/{BUILT}/w.warc.gz" in package["hashes"]
    redone = two.line.warcmill("redo", BUILT.job, BUILT.id, "checksum", "final", "--downstream")
    assert redone.returncode == 0, redone.stderr
    assert two.line.scan(INTERVAL) == [0, 0]
    assert two.line.warcmill("doctor").returncode == 0
    (two.base / "web" / SENTINEL).unlink()
    assert two.line.warcmill("reconcile", INTERVAL).returncode == 4
    doctor = two.line.warcmill("doctor")
    assert (doctor.returncode, "warcmill init --adopt writer.web" in doctor.stdout) == (1, True)


def test_adopt_takes_only_what_is_there_and_is_named(two: Two) -> None:
    shutil.rmtree(two.base / "second")
    gone = two.line.warcmill("init", "--adopt", "engine.second")
    assert (gone.returncode, "mount its disk" in gone.stderr) == (4, True)
    unknown = two.line.warcmill("init", "--adopt", "engine.third")
    assert (unknown.returncode, "engine.second" in unknown.stderr) == (3, True)
    (two.base / "second").symlink_to(two.base / "store")
    another = two.line.warcmill("init", "--adopt", "engine.second")
    assert (another.returncode, "choose another" in another.stderr) == (3, True)
    assert two.line.warcmill("init").returncode == 2


def test_an_engine_without_an_interface_is_never_spoken_to(two: Two) -> None:
    two.adopt("engine.second")
    for action in ("checkpoint", "stop"):
        done = two.line.warcmill("pulse", action, BUILT.job)
        assert done.returncode == 3
        assert "[engine.second] url: is not set" in done.stderr
        assert "only processed here" in done.stderr
    assert two.line.warcmill("why", SAMPLE.job, SAMPLE.id).returncode == 1, "its engine is not asked"


def test_a_crawl_does_not_need_the_roots_of_other_writers(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    two.configure(WRITERS)
    two.adopt("engine.second")
    parsed(two.line, monkeypatch, "")
    rootmap = settings().rootmap()
    assert how_ended(rootmap.alone(BUILT.job), BUILT) == "finished"
    with pytest.raises(Unavailable, match="writer"):
        rootmap.of(BUILT.job)


# What luigi.cfg may say.


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("[engine.a]\njobs=x\n[engine.b]\njobs=x", "[engine.b] jobs: job 'x' is listed in [engine.a] too"),
        ("[engine.a]\njobs=x\noutput=data", "[engine.a] output: 'data' is neither an absolute path nor sftp://"),
        ("[engine.a]\njobs=x\njob_files=webhdfs://h:1/x", "[engine.a] job_files"),
        ("[engine.a]\njobs=x\noutput_layout=flat", "[engine.a] output_layout: is flat; one of kind-first, job-first"),
        ("[engine.a]\noutput=/x", "[engine.a] jobs: is not set"),
        ("[engine.a]\njobs=x\nouptut=/x", "[engine.a] ouptut: there is no such key"),
        ("[writer.a]\nroot=/x\njobs=x", "[writer.a] layout: is not set"),
        ("[writer.a]\nroot=/x\njobs=x\nlayout=flat", "[writer.a] layout: is flat; one of"),
        ("[writer.a]\njobs=x\nlayout=prefix", "[writer.a] root: is not set"),
        ("[writer.a]\nroot=x\njobs=x\nlayout=prefix", "[writer.a] root: 'x' is neither"),
        ("[writer.a]\nroot=/x\njobs=../x\nlayout=prefix", "[writer.a] jobs"),
        ("[writer.a]\nroot=/x\njobs=x\nlayout=prefix\nprefix=y", "[writer.a] prefix: there is no such key"),
        ("[writer.a.b]\nroot=/x\njobs=x\nlayout=prefix", "[writer.a.b]: not a job name"),
    ],
)
def test_what_cannot_be_is_refused_with_its_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str, said: str
) -> None:
    parsed(line_at(tmp_path), monkeypatch, more)
    with pytest.raises(BadConfig) as error:
        settings().rootmap()
    assert said in str(error.value)


def test_what_a_section_leaves_out_is_warcmill_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = line_at(tmp_path)
    parsed(line, monkeypatch, "[engine.a]\njobs=x, y\noutput=/far/\n[writer.w]\nroot=/w\njobs=y\nlayout=job-first")
    rootmap = settings().rootmap()
    assert (rootmap.section("x").output, rootmap.section("x").jobs) == ("/far", str(line.folders["jobs"]))
    assert rootmap.section("x").layout is OutputLayout.KIND_FIRST
    assert rootmap.section("z") == rootmap.default
    assert rootmap.places("y")[roots.writer_root("w")] == "/w"
    assert engines.crawled() == ()


@pytest.mark.parametrize(
    ("more", "seen"),
    [
        ("", "{output}"),
        ("engine_output=/e/o", "/e/o"),
        ("output=/far", "/far"),
        ("output=sftp://crawl@far:22/data/output", "/data/output"),
        ("output=sftp://crawl@far:22/data/output\nengine_output=/e/o", "/e/o"),
    ],
)
def test_a_fed_job_writes_where_its_own_engine_has_the_output_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str, seen: str
) -> None:
    line = line_at(tmp_path)
    parsed(line, monkeypatch, f"[feed]\ncontact=http://archive.example/\n[engine.a]\njobs=x\n{more}")
    assert feeds.recipe(settings(), "x").output == seen.format(output=line.folders["output"])


def test_engine_output_of_the_feed_is_for_warcmill_s_own_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engines_of = "[engine.a]\njobs=x\n[engine.b]\njobs=y\noutput=/far"
    parsed(line_at(tmp_path), monkeypatch, f"[feed]\ncontact=http://a.example/\nengine_output=/e/o\n{engines_of}")
    assert [feeds.recipe(settings(), job).output for job in ("x", "y", "z")] == ["/e/o", "/far", "/e/o"]


def parsed(line: Line, monkeypatch: pytest.MonkeyPatch, more: str) -> None:
    line.config.write_text(f"{line.config.read_text()}\n{more}\n")
    configured(monkeypatch, line.config)
