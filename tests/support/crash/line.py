"""What is run, killed and run again: the whole line over a launch, and the verbs that change something."""

from __future__ import annotations

import atexit
import json
import os
import re
import shutil
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import configured
import luigi
import sample
from crash import sink, solr
from line import without_dead_seed, without_index
from luigi.date_interval import Custom
from mirroring.mirrored import CONFIGURATION, JOB, SECONDS, small_index, wait_for_end
from packing import foreign_waczs

from commands.main import main
from servers import distributions
from servers.package_index import PackageIndex
from tasks import documents, files, index, output, package, pypi, reports
from tasks.config.settings import settings
from tasks.line import open_line
from warcmill.base import clock
from warcmill.formats.index.urlkey import urlkey
from warcmill.launches import discovery
from warcmill.launches.view import how_ended
from warcmill.layout import SENTINEL
from warcmill.markers.state import MarkerStore
from warcmill.stores import temporary_names
from warcmill.stores.file import FileStore
from warcmill.versions import hidden_list

HONEST = (3, 4, 5)  # exit codes of configuration, unavailable, busy
WGET = sample.SAMPLE.parents[1] / "wget"
WGET_LAUNCH = "20260214090000"
HIDDEN = urlkey("http://127.0.0.1:17071/b.html")
LAUNCH = (sample.JOB, sample.LAUNCH_ID)
ENDS = re.compile("STOPPING|EMPTY|FINISHED|discarded")
FROZEN = "2030-01-02T03:04:05Z"
ALL_DAYS = Custom(date(1996, 1, 1), date(2100, 1, 1))
ROOTS: tuple[type[luigi.Task], ...] = (output.ScanForOutputs, files.ScanForOutputFiles, reports.ScanForReports)


@dataclass(frozen=True)
class Scenario:
    """`prepare` lays out a folder once; `act` works in a copy of it, and reports whether it succeeded."""

    name: str
    prepare: Callable[[Path], None]
    act: Callable[[Path], bool]


def freeze_clock() -> None:
    """The zip of logs holds the times of its run: with one time for all, two runs give the same bytes."""
    clock.now = lambda: FROZEN
    clock.stamp = lambda: "".join(filter(str.isdigit, FROZEN))


def bare_sample(folder: Path) -> None:
    """The bundled launch, and nothing of Warcmill's."""
    folder.mkdir()
    at = without_dead_seed(sample.lay_out(folder / "output"))
    (at / "jobs").rename(folder / "jobs")


def line_of_sample(folder: Path) -> None:
    """A line around the bundled launch, told to remove what is safe in the store: no step is left out."""
    bare_sample(folder)
    _line(folder)
    allow_retire(folder)


def allow_retire(folder: Path) -> None:
    config = folder / "luigi.cfg"
    config.write_text(config.read_text().replace("retire=false", "retire=true"))


def init(folder: Path) -> bool:
    """`warcmill init`."""
    return verb("init", str(folder))


def _line(folder: Path) -> None:
    """A new line that is not indexed."""
    assert init(folder)
    without_index(folder / "luigi.cfg")


def verb(*words: str) -> bool:
    """A verb of the `warcmill` command; to end with a traceback is not an honest failure."""
    code = main(words)
    assert code in (0, *HONEST), f"{words}: exit code {code}"
    return code == 0


def run_line(folder: Path) -> bool:
    """The scans, one after the other, as cron starts them; whether all went well."""
    return _run(folder, *(partial(root, date_interval=ALL_DAYS) for root in ROOTS))


def _run(folder: Path, *tasks: Callable[[], luigi.Task]) -> bool:
    try:
        configured.read(folder / "luigi.cfg")
        done = [_luigi(task()) for task in tasks]
        return all(done)
    except Exception:  # noqa: BLE001 - before there is any task; Luigi's own command ends with exit 40
        traceback.print_exc()
        return False


def _luigi(task: luigi.Task) -> bool:
    """As a process of its own: a scan's summary is written when that ends."""
    fine = luigi.build([task], local_scheduler=True, workers=1)
    atexit._run_exitfuncs()
    return fine


def sweep_up(folder: Path) -> None:
    """What every later run of a step does for its launch: remove what dead processes left half-made."""
    if not all((folder / root / SENTINEL).exists() for root in ("state", "store")):
        return
    state, store = MarkerStore(FileStore("state", folder / "state")), FileStore("store", folder / "store")
    for path in sorted((folder / "state").glob("[0-9]*")):
        state.store.sweep(path.name)
    for path in sorted((folder / "state").glob("*/*/*")):
        if not path.parent.parent.name.startswith("."):
            state.sweep(str(path.relative_to(folder / "state")))
    for pattern in ("*/*/*", "dumps/*/*/*/input_lists"):  # these as the update does that leaves the next
        for path in sorted((folder / "store").glob(pattern)):
            store.sweep(str(path.relative_to(folder / "store")))
    # As the next extract in that folder does; and as the next fold, which finds its folder again.
    for pattern in ("extracts/*/*", "versions/**/"):
        for path in sorted((folder / "index").glob(pattern)):
            FileStore("index", folder / "index").sweep(str(path.relative_to(folder / "index")))
    _sweep_databases(folder / "index")


def _sweep_databases(index: Path) -> None:
    """As the next one who makes a database, or reads one."""
    for path in (*index.glob("making/*/.*"), *index.glob("reading/.*")):
        if temporary_names.is_dead(path.name):
            shutil.rmtree(path)


def dead_sample(folder: Path) -> None:
    """The bundled launch as if its engine had been killed: no end in its job.log, a WARC still open and cut."""
    bare_sample(folder)
    _line(folder)
    for job_log in (folder / "jobs").glob("**/job.log"):
        lines = job_log.read_text().splitlines(keepends=True)
        job_log.write_text("".join(line for line in lines if not ENDS.search(line)))
    (warc,) = (folder / "output" / "warcs").glob("*/*/*.warc.gz")
    data = warc.read_bytes()
    warc.with_name(f"{warc.name}.open").write_bytes(data[: len(data) // 8])
    warc.unlink()


def line_of(source: Path, layout: str, folder: Path) -> None:
    """A line around a copy of an engine's folders; a launch that says nothing of its end is closed by an operator."""
    folder.mkdir()
    shutil.copytree(source, folder / "output", symlinks=True)
    if layout == "kind-first":
        (folder / "output" / "jobs").rename(folder / "jobs")
    assert verb("init", str(folder), "--layout", layout)
    allow_retire(folder)
    configured.read(folder / "luigi.cfg")
    known = settings().rootmap()
    for launch in discovery.find(known, ALL_DAYS.date_a, ALL_DAYS.date_b).launches:
        if not how_ended(known.of(launch.job), launch):
            assert verb("close", launch.job, launch.id, "--reason", "nothing says that it goes on")


def close(folder: Path) -> bool:
    """`warcmill close`."""
    configured.read(folder / "luigi.cfg")
    return verb("close", *LAUNCH, "--reason", "its engine was killed")


def refused_sample(folder: Path) -> None:
    """The dead launch, all the way in the store; what is cut is refused."""
    dead_sample(folder)
    assert close(folder)
    assert run_line(folder)


def accept(folder: Path) -> bool:
    """`warcmill accept`, for the WARC that was cut."""
    configured.read(folder / "luigi.cfg")
    (warc,) = (sample.SAMPLE / "warcs").glob("*/*/*.warc.gz")
    return verb("accept", f"{warc.name}.open", "--reason", "its engine was killed")


def done_sample(folder: Path) -> None:
    """The bundled launch, all the way in the store, and still where its engine left it."""
    bare_sample(folder)
    _line(folder)
    assert run_line(folder)


def switched_on(folder: Path) -> None:
    """The bundled launch, in the store, whose scan for viruses is switched on; CLAMD names the socket of a clamd."""
    done_sample(folder)
    with (folder / "luigi.cfg").open("a") as config:
        config.write(f"\n[viruses]\nclamd={os.environ['CLAMD']}\nsince=2026-01-01\n")
    for summary in (folder / "state").glob("*/status.*.json"):
        summary.unlink()  # a report, which the scan writes anew: else the sweep would take the old one for lost


def index_on(folder: Path) -> None:
    """A line around the bundled launch, assembled, whose index is switched on: Checksum hears the lines."""
    bare_sample(folder)
    _line(folder)
    _index(folder)
    assert _run(folder, partial(output.ScanForOutputs, date_interval=ALL_DAYS))


def index_on_late(folder: Path) -> None:
    """The bundled launch, in the store, whose index is switched on after that: its lines come from the store."""
    done_sample(folder)
    _index(folder)


def text_on(folder: Path) -> None:
    """A launch of one small WARC, in the store, whose text is switched on after that. Of two, one would be extracted in
    another process, whose calls nobody sees.
    """
    _on(folder, _one_warc(folder), "text")


def documents_on(folder: Path) -> None:
    """The same, whose documents are switched on."""
    _on(folder, _one_warc(folder), "documents")


def _one_warc(folder: Path) -> Path:
    source = folder.with_name("wget")
    source.mkdir()
    shutil.copy(WGET / "WGET-one.warc.gz", source)
    return source


def _on(folder: Path, source: Path, section: str) -> None:
    line_without_a_launch(folder)
    assert import_warcs(folder, source)
    assert run_line(folder)
    with (folder / "luigi.cfg").open("a") as config:
        config.write(f"\n[{section}]\nsince=2016-01-01\n")


def run_documents(folder: Path) -> bool:
    """Extract the documents and pages of its only stage, and verify them by its logs."""
    return _run(folder, lambda: documents.ScanForDocuments(date_interval=ALL_DAYS))


def run_text(folder: Path) -> bool:
    """Extract the text of its only stage."""
    return _run(folder, lambda: index.SolrIndex(job="wget", launch_id=WGET_LAUNCH, stage="final"))


def extracted_wget(folder: Path) -> None:
    """A launch of two, whose text is extracted; no version has it."""
    _on(folder, WGET, "text")
    assert run_text(folder)


def fold_text(folder: Path) -> bool:
    """The first version of the text index."""
    return _run(folder, lambda: index.FoldText(date_interval=ALL_DAYS))


def posted_wget(folder: Path) -> None:
    """The same, published, and a Solr that has all of it; then a host of it is hidden."""
    extracted_wget(folder)
    with (folder / "luigi.cfg").open("a") as config:
        config.write(f"solr={solr.HOST}/solr/{solr.COLLECTION}\n")
    with solr.beside(folder) as server:
        assert fold_text(folder)
        assert any(map(_is_hidden, server.shown[solr.COLLECTION].values()))
    os.rename(sink.disk_of(folder), folder / solr.FIRST)
    _hide(HIDDEN)


def _is_hidden(document: Mapping[str, Any]) -> bool:
    return urlkey(document["url"]).startswith(HIDDEN)


def post_text(folder: Path) -> bool:
    """One more version of the text, here and in Solr: it must have all but what is hidden."""
    try:
        with solr.beside(folder) as server:
            first = json.loads((folder / solr.FIRST).read_text())[1][solr.COLLECTION]
            shown = {key: one for key, one in first.items() if not _is_hidden(one)}
            return fold_text(folder) and server.shown == {solr.COLLECTION: shown} != {solr.COLLECTION: first}
    except OSError:
        traceback.print_exc()
        return False


def _index(folder: Path) -> None:
    with (folder / "luigi.cfg").open("a") as config:
        config.write("\n[index]\nsince=2016-01-01\n")


def run_index(folder: Path) -> bool:
    """Index its only stage, with all that this requires."""
    return _run(folder, lambda: index.CdxIndex(job=LAUNCH[0], launch_id=LAUNCH[1], stage="final"))


def indexed_sample(folder: Path) -> None:
    """The bundled launch, indexed; a version of the CDX is published; then a part of it is hidden."""
    index_on(folder)
    assert run_index(folder)
    assert _fold(folder)
    _hide("example,docs")


def _hide(surt: str) -> None:
    """Decide that a part is hidden, as `warcmill versions hide` does before it publishes."""
    opened = open_line()
    hidden_list.decide(opened.state.store, lambda: opened.store, surt, "order of a court", hides=True)


def fold(folder: Path) -> bool:
    """One more version, without what is hidden."""
    return _fold(folder)


def _fold(folder: Path) -> bool:
    return _run(folder, lambda: index.FoldCdx(date_interval=ALL_DAYS))


def served_sample(folder: Path) -> None:
    """The same, and a CDX server that has the first version."""
    index_on(folder)
    with (folder / "luigi.cfg").open("a") as config:
        config.write(f"cdx_server={sink.URL}\n")
    assert run_index(folder)
    with sink.beside(folder):
        assert _fold(folder)
    os.rename(sink.disk_of(folder), folder / sink.FIRST)
    _hide("example,docs")


def serve(folder: Path) -> bool:
    """One more version, here and at the server: it must have all but what is hidden."""
    try:
        with sink.beside(folder) as server:
            first = sink.read(folder / sink.FIRST)["main"]
            hides = re.compile(r"(https?://|dns:)docs\.example\b")
            shown = {key for key, fields in first.items() if not hides.match(fields["url"])}
            return _fold(folder) and server.collections["main"].keys() == shown != first.keys()
    except OSError:
        traceback.print_exc()
        return False


def retire(folder: Path) -> bool:
    """`warcmill versions retire`, of all but the current version."""
    configured.read(folder / "luigi.cfg")
    return verb("versions", "retire", "--keep", "1")


def folded_sample(folder: Path) -> None:
    """Two versions of the CDX, the first one to be retired."""
    indexed_sample(folder)
    assert _fold(folder)


def packages_on(folder: Path) -> None:
    """The bundled launch, all the way in the store, and SIPs switched on."""
    done_sample(folder)
    with (folder / "luigi.cfg").open("a") as config:
        config.write("\n[package]\nsince=2016-01-01\norganisation=National Library\nnaan=12345\n")


def run_packages(folder: Path) -> bool:
    """Build its SIP."""
    return _run(folder, lambda: package.BuildSip(job=LAUNCH[0], launch_id=LAUNCH[1], stage="final"))


def redo(folder: Path) -> bool:
    """`warcmill redo`; where nothing is left to move, it has been done."""
    configured.read(folder / "luigi.cfg")
    code = main(["redo", *LAUNCH, "checksum", "final", "--downstream"])
    assert code in (0, 1, *HONEST), f"redo: exit code {code}"
    return code == 0 or (code == 1 and not list((folder / "state").glob("*/*/*/files.checksums.*")))


def built_sample(folder: Path) -> None:
    """The bundled launch with its SIP in the store; the next scan hands it over and catalogues it."""
    bare_sample(folder)
    _line(folder)
    config = folder / "luigi.cfg"
    section = (
        "since=2016-01-01",
        "organisation=National Library",
        f"destination={folder}/destination",
        f"verified_at={folder}/ingested",
    )
    config.write_text("\n".join([config.read_text(), "[package]", *section, ""]))
    configured.read(config)
    assert verb("init", "--adopt", "package", "--create")
    assert run_line(folder)
    assert _luigi(package.BuildSip(job=LAUNCH[0], launch_id=LAUNCH[1], stage="final"))


def submit(folder: Path) -> bool:
    """Hand its SIP over, and catalogue it when the ingesting system, which empties the watched folder before and after,
    has it. What that takes away a second time lies beside the first, where no undisturbed run leaves anything.
    """
    job, launch_id = LAUNCH
    try:
        ingest(folder)
        done = _run(folder, lambda: package.SubmitSip(job=job, launch_id=launch_id, stage="final"))
        ingest(folder)
    except OSError:
        traceback.print_exc()
        return False
    catalogued = done and _run(folder, lambda: package.IndexSip(job=job, launch_id=launch_id, stage="final"))
    return catalogued and main(["reconcile", "2026"]) == 0


def ingest(folder: Path) -> None:
    """Take away what is in the watched folder."""
    ingested = folder / "ingested"
    ingested.mkdir(exist_ok=True)
    watched = folder / "destination" / "ingest"
    for name in os.listdir(watched) if watched.is_dir() else []:
        there = len([one for one in os.listdir(ingested) if one.startswith(name)])
        os.rename(watched / name, ingested / f"{name}{'+' * there}")


def line_without_a_launch(folder: Path) -> None:
    """A new line, with nothing in it."""
    folder.mkdir()
    _line(folder)


def import_warcs(folder: Path, source: Path = WGET) -> bool:
    """`warcmill import` of what wget left."""
    configured.read(folder / "luigi.cfg")
    return verb("import", str(source), "--job", "wget", "--launch-id", WGET_LAUNCH)


def line_beside_a_wacz(folder: Path) -> None:
    """A new line, and a WACZ with what wget left, a list of pages and a log."""
    line_without_a_launch(folder)
    warcs = {f"archive/{path.name}": path.read_bytes() for path in sorted(WGET.glob("*.warc*"))}
    more = {"pages/pages.jsonl": foreign_waczs.pages(), "logs/wget.log": b"done\n"}
    foreign_waczs.write(folder.with_name("wget.wacz"), foreign_waczs.whole(warcs | more))


def import_wacz(folder: Path) -> bool:
    """`warcmill import` of it."""
    return import_warcs(folder, folder.with_name("wget.wacz"))


def import_between_scans(folder: Path) -> bool:
    """The first scan finds what a killed import left, if anything, and must take none of it for a launch."""
    configured.read(folder / "luigi.cfg")
    before = run_line(folder)
    assert not list((folder / "state").glob("*/*/*/0[2-4].*")) or list((folder / "state").glob("*/*/*/01.*.imported"))
    forget_tasks()
    return before and import_warcs(folder) and run_line(folder)


def changed_index(folder: Path) -> None:
    """A small package index, crawled in full, dumped and published; then a day of changes, crawled and stored."""
    with mirror(folder) as (index, files):
        crawl(folder, "trigger_full")
        assert dump_and_publish(folder)
        index.upload(distributions.wheel(files, "alpha", "2.0"))
        index.remove_project("gamma")
        crawl(folder, "trigger_incremental")


@contextmanager
def mirror(folder: Path) -> Iterator[tuple[PackageIndex, Path]]:
    """An index beside a line that mirrors it, while it answers; and a folder for new files of it."""
    line_without_a_launch(folder)
    files = folder.with_name("packages")
    files.mkdir()
    with small_index(files) as index:
        with (folder / "luigi.cfg").open("a") as config:
            config.write(f"{CONFIGURATION.format(job=JOB, index=index.url)}concurrency=1\n")
        os.environ["LUIGI_CONFIG_PATH"] = str(folder / "luigi.cfg")
        yield index, files


def crawl(folder: Path, how: str) -> None:
    """Crawl an index, and bring the launch into the store. Two launches need two times: another process starts each."""
    subprocess.run([sys.executable, "-m", "commands.main", "pypi", how, JOB], check=True, timeout=SECONDS)
    wait_for_end(folder / "jobs")
    forget_tasks()
    assert run_line(folder)


def dump_and_publish(folder: Path) -> bool:
    """Read the facts of what is stored, dump them, read the dump back, and publish the data sets."""
    forget_tasks()
    return _run(folder, lambda: pypi.ScanForDistributions(date_interval=ALL_DAYS))


def forget_tasks() -> None:
    """Let the next scan be as in a process of its own, as cron starts it."""
    luigi.task_register.Register.clear_instance_cache()


SCENARIOS = {
    one.name: one
    for one in (
        Scenario("init", bare_sample, init),
        Scenario("line", line_of_sample, run_line),
        Scenario("dead", dead_sample, lambda folder: close(folder) and run_line(folder)),
        Scenario("close", dead_sample, close),
        Scenario("accept", refused_sample, accept),
        Scenario("redo", done_sample, redo),
        Scenario("viruses", switched_on, run_line),
        Scenario("index", index_on, run_index),
        Scenario("index-late", index_on_late, run_index),
        Scenario("text", text_on, run_text),
        Scenario("documents", documents_on, run_documents),
        Scenario("fold", indexed_sample, fold),
        Scenario("text-fold", extracted_wget, fold_text),
        Scenario("sink", served_sample, serve),
        Scenario("solr", posted_wget, post_text),
        Scenario("retire", folded_sample, retire),
        Scenario("package", packages_on, run_packages),
        Scenario("submit", built_sample, submit),
        Scenario("pypi", changed_index, dump_and_publish),
        Scenario("import", line_without_a_launch, import_warcs),
        Scenario("import-wacz", line_beside_a_wacz, import_wacz),
        Scenario("import-line", line_without_a_launch, import_between_scans),
    )
}
