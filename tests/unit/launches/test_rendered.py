"""WARCs of other writers: rendered ones, told by prefixes; another engine's, in folders of the same launch."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from launches import chain
from launches.engine import LAUNCH, Engine, line_of
from msgspec.structs import replace
from records.warcs import http, record, warc_gz, warcinfo

from warcmill import layout
from warcmill.audit import gaps, survey
from warcmill.errors import BadConfig, Conflict, NotReady
from warcmill.formats.logs import logzip
from warcmill.formats.logs.crawlcounts import Tally
from warcmill.formats.logs.crawllog import CrawlRecord, Unread, parse
from warcmill.formats.logs.logzip import LogToPack
from warcmill.launches.roots import JobRoots, Rendered, WriterRoots
from warcmill.layout import OutputLayout
from warcmill.markers.claim import Claim
from warcmill.markers.state import MarkerStore
from warcmill.model import FINAL, FileRef, Launch, Stage, writer_root
from warcmill.output import process, stage_report
from warcmill.stores.file import FileStore

CP1 = Stage.parse("cp00001-20161020000000")
WEB, WORKER = writer_root("web"), writer_root("worker")
WHOLE = warc_gz(warcinfo(), record(block=http(b"rendered", b"Content-Length: 8")))
EARLY, LATE = "20161019234500123", "20161020003000123"


class Several(Engine):
    """An engine, a renderer and a second engine that work for it, each with a root."""

    @property
    def roots(self) -> JobRoots:
        web, worker = (FileStore(root, self.folders[root]) for root in (WEB, WORKER))
        workers = (WriterRoots(worker, OutputLayout.KIND_FIRST),)
        return replace(super().roots, writers=workers, rendered=(Rendered(web),))

    def render(self, path: str, data: bytes = WHOLE) -> Path:
        return self._write(self.folders[WEB] / path, data)

    def work(self, path: str, data: bytes = WHOLE) -> Path:
        kind, _, name = path.partition("/")
        return self._write(self.folders[WORKER] / kind / LAUNCH.job / LAUNCH.id / name, data)


@pytest.fixture
def several(tmp_path: Path) -> Several:
    made = Several(tmp_path)
    for root in (WEB, WORKER):
        made.folders[root] = tmp_path / root
        made.folders[root].mkdir()
        (made.folders[root] / layout.SENTINEL).write_text('{"roots": ["writer"], "schema": 1}\n')
    return made


def named(*prefixes: object) -> list[str]:
    """Lines of a crawl log that name prefixes."""
    line = line_of("http://a/", None)
    return [line.replace("{}", json.dumps({"contentSize": 1, "warcPrefix": one})) for one in prefixes]


def taken(claim: Claim) -> set[str]:
    return {file.label for file in claim.outputs}


# Names.


@pytest.mark.parametrize("name", ["X-10.warc.gz", "X-10-20161019234500.warc.gz", "X-1", "XX-1-a.warc.gz", "X-1é.warc"])
def test_a_prefix_ends_at_its_end(name: str) -> None:
    assert layout.prefixes_of(name, {"X-1"}) == []


@pytest.mark.parametrize("name", ["X-1-20161019234500.warc.gz", "X-1_a.warc", "X-1.warc.gz.open"])
def test_a_dash_an_underscore_or_a_dot_ends_a_prefix(name: str) -> None:
    assert layout.prefixes_of(name, {"X-1", "X-10"}) == ["X-1"]


@pytest.mark.parametrize(
    "text", ["", "abc", "a/bcd", "*abcd", "ab?cd", "../../etc", "abc\n", "-abcd", "ab cd", "a" * 201]
)
def test_what_is_no_prefix(text: str) -> None:
    assert not layout.is_prefix(text)


@pytest.mark.parametrize(
    ("name", "time"),
    [
        ("-20161019234500123-00000-x.warc.gz", "20161019234500"),
        ("-20161019234500.warc.gz", "20161019234500"),
        ("-201610192345001.warc.gz", ""),
        ("-00000-1234.warc.gz", ""),
    ],
)
def test_the_time_in_a_name(name: str, time: str) -> None:
    assert layout.name_time(name) == time


# The crawl log.


def test_prefixes_are_counted_also_in_lines_that_cannot_be_read() -> None:
    whole, empty, number = (line.encode() for line in named("daily-web", "", 7))
    found = parse(whole)
    assert isinstance(found, CrawlRecord)
    assert found.warc_prefix == "daily-web"
    cut = whole[:-1]
    assert isinstance(parse(cut), Unread)
    tally = Tally()
    tally.add(io.BytesIO(b"\n".join([whole, empty, number, cut.replace(b"daily", b"other"), b""])))
    assert tally.counts().prefixes == {"daily-web", "", "7", "other-web"}
    assert (tally.counts().lines, tally.counts().unread) == (3, 1)


# Which stage has which.


def test_a_stage_has_the_closed_ones_begun_before_it_and_final_the_rest(several: Several) -> None:
    several.logs(*named("daily-web"), stage=str(CP1))
    several.logs()
    several.finish()
    several.render(f"daily-web-{EARLY}-0.warc.gz")
    several.render(f"20161019/daily-web-{EARLY}-1.warc.gz")
    at_work = several.render(f"2016/10/daily-web-{EARLY}-2.warc.gz.open")
    several.render(f"2016/10/19/daily-web-{EARLY}-deeper.warc.gz")
    several.render(f"daily-web-{LATE}-3.warc.gz")
    several.render("daily-web-untimed.warc.gz")
    several.render("daily-website-0.warc.gz")
    several.render("daily-web-0.txt")
    first = chain.assembled(several, CP1)
    assert taken(first) == {
        f"writer.web:daily-web-{EARLY}-0.warc.gz",
        f"writer.web:20161019/daily-web-{EARLY}-1.warc.gz",
        "writer.web:daily-web-untimed.warc.gz",
    }
    with pytest.raises(NotReady, match="rename the file to its closed name"):
        chain.assembled(several)
    at_work.rename(at_work.with_suffix(""))
    final = chain.assembled(several)
    assert taken(final) == {
        f"writer.web:2016/10/daily-web-{EARLY}-2.warc.gz",
        f"writer.web:daily-web-{LATE}-3.warc.gz",
    }
    assert (first.facts["prefixes"], "prefixes" in final.facts) == (["daily-web"], False)
    assert "absent_prefix" not in final.facts


def test_of_two_launches_that_name_a_prefix_each_has_what_was_begun_while_it_was_the_newest(several: Several) -> None:
    later = Launch(LAUNCH.job, "20161020001000")
    several.logs(*named("daily-web"))
    several.finish()
    several.job_log(f"PREPARING {later.id}", f"FINISHED {later.id}", launch=later)
    for time in ("20161019234427", EARLY, LATE):
        several.render(f"daily-web-{time}.warc.gz")
    assert taken(chain.assembled(several)) == {f"writer.web:daily-web-{EARLY}.warc.gz"}
    second = Several(several.base, launch=later)
    second.folders |= several.folders
    second.logs(*named("daily-web"))
    assert taken(chain.assembled(second)) == {f"writer.web:daily-web-{LATE}.warc.gz"}


def test_a_prefix_without_a_warc_and_one_that_cannot_be_one_are_findings(several: Several) -> None:
    several.logs(*named("daily-web", "daily-none", "", "../daily", "b*d\u001b[2J"))
    several.finish()
    several.render(f"daily-web-{EARLY}.warc.gz")
    final = chain.assembled(several)
    assert final.facts["absent_prefix"] == ["daily-none"]
    assert final.facts["refused_prefix"] == ["''", "'../daily'", r"'b*d\x1b[2J'"]
    stage_report.rewrite(several.state, several.roots, LAUNCH, FINAL)
    with several.state.store.open(layout.report_path(LAUNCH, FINAL, "package")) as file:
        assert json.load(file)["absent_prefix"] == ["daily-none"]
    seen = survey.survey(several.state, several.roots, LAUNCH, {})
    kinds = sorted(gap.kind for gap in gaps.find(seen)[0] if "prefix" in gap.kind)
    assert kinds == ["absent prefix", *["refused prefix"] * 3]
    assert set(kinds) <= set(gaps.ACCEPTABLE)


def test_where_no_prefix_is_named_a_claim_has_nothing_of_them(several: Several) -> None:
    several.logs(line_of("http://a/", "a.warc.gz", 0))
    several.warc("a.warc.gz", WHOLE)
    several.render("a.warc.gz")
    several.finish()
    assert not any("prefix" in fact for fact in chain.assembled(several).facts)


def test_one_that_is_rendered_after_all_was_assembled_is_late(several: Several) -> None:
    several.logs(*named("daily-web"))
    several.finish()
    several.render(f"daily-web-{EARLY}.warc.gz")
    chain.assembled(several)
    claim = process.process(several.state, several.roots, LAUNCH)
    several.state.publish(claim.key, claim)
    several.render(f"daily-web-{LATE}.warc.gz")
    found, _ = gaps.find(survey.survey(several.state, several.roots, LAUNCH, {}))
    assert [gap.name for gap in found if gap.kind == "late"] == [f"writer.web:daily-web-{LATE}.warc.gz"]


# Another engine's.


def test_another_engine_s_files_of_the_launch_are_packed_counted_and_claimed(several: Several) -> None:
    several.logs(line_of("http://a/", "a.warc.gz", 0))
    several.warc("a.warc.gz", WHOLE)
    several.work("logs/crawl.log", f"{line_of('http://b/', 'b.warc.gz')}\n".encode())
    several.work("warcs/b.warc.gz")
    several.work("viral/v.warc.gz")
    several.finish()
    final = chain.assembled(several)
    folder = f"{LAUNCH.job}/{LAUNCH.id}"
    b, v = f"writer.worker:warcs/{folder}/b.warc.gz", f"writer.worker:viral/{folder}/v.warc.gz"
    assert taken(final) == {f"warcs/{folder}/a.warc.gz", b, v}
    assert (final.counts["lines"], final.facts["unnamed"], final.facts["absent"]) == (2, [v], [])
    packed = several.state.require(layout.key("output.PackageLogs", LAUNCH, stage=FINAL)).claim
    assert "logs/writer.worker/crawl.log" in {str(item.facts["member"]) for item in packed.items}


def test_files_of_every_root_go_all_the_way_and_are_retired(several: Several) -> None:
    several.logs(line_of("http://a/", "a.warc.gz", 0), *named("daily-web"))
    sources = [
        several.warc("a.warc.gz", WHOLE),
        several.work("viral/a.warc.gz"),
        several.render(f"d/daily-web-{EARLY}.warc.gz"),
    ]
    cut = several.render("daily-web-cut.warc.gz", WHOLE[:-5])
    several.finish()
    chain.assembled(several)
    retired = chain.upto(several, "Retire")
    assert not any(path.exists() for path in sources)
    assert cut.exists(), "it was refused"
    assert {item.outcome for item in retired.items if item.file.name == cut.name} == {"refused"}
    folder = f"{LAUNCH.job}/{LAUNCH.id}"
    stored = {str(path.relative_to(several.folders["store"])) for path in several.folders["store"].rglob("*.warc*")}
    assert stored >= {
        f"warcs/{folder}/a.warc.gz",
        f"viral/{folder}/a.warc.gz",
        f"warcs/{folder}/daily-web-{EARLY}.warc.gz",
        f"warcs/{folder}/daily-web-cut.warc.gz",
    }


@pytest.mark.parametrize("root", ["web", "worker"])
def test_two_files_that_would_have_one_name_in_the_store_are_a_conflict(several: Several, root: str) -> None:
    name = f"daily-web-{EARLY}.warc.gz"
    several.logs(*named("daily-web"))
    several.warc(name, b"another")
    (several.render if root == "web" else several.work)(name if root == "web" else f"warcs/{name}")
    several.finish()
    with pytest.raises(Conflict, match="would both have this name") as error:
        chain.assembled(several)
    assert f"writer.{root}:" in str(error.value)
    assert several.state.read(layout.key("output.AssembleOutput", LAUNCH, stage=FINAL)) is None


def test_a_root_that_markers_name_and_the_configuration_does_not_is_reported(several: Several) -> None:
    with pytest.raises(BadConfig, match=r"\[writer\.gone\]"):
        several.roots.root(writer_root("gone"))


def test_markers_name_the_writer(several: Several) -> None:
    file = FileRef(WEB, "d/x.warc.gz", 1)
    key = layout.key("files.Verify", LAUNCH, stage=FINAL)
    several.state.publish(key, Claim(key, outputs=(file,)))
    assert MarkerStore(several.state.store).require(key).claim.outputs == (file,)


def test_the_zip_takes_members_in_folders_of_writers(tmp_path: Path) -> None:
    data = b"line\n"
    member = LogToPack("logs/writer.worker/crawl.log", len(data), lambda: io.BytesIO(data))
    with (tmp_path / "zip").open("xb") as target:
        logzip.write(target, [member], lambda _: b"{}")
    with (tmp_path / "zip").open("rb") as file:
        assert logzip.open_member(file, member.name).read() == data
