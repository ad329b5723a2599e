"""The fold of documents: crawls that change are joined anew, and what is hidden or viral is in no version."""

from __future__ import annotations

import itertools
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from indexing.document_archive import ONE, THREE, TWO, DocumentArchive, id_of, revisits, warc
from records.pdfs import pdf

from warcmill.extracts.harvest import HarvestWorkers
from warcmill.model import FINAL, Launch, Stage
from warcmill.versions import fold as folding
from warcmill.versions import hidden_list
from warcmill.versions.documents import published, segment
from warcmill.versions.documents.dataset import Documents
from warcmill.versions.verify import verify

BEES, WASPS, ANTS = (pdf(f"Of {name}", title="untitled") for name in ("bees", "wasps", "ants"))
PAGE = "<title>List</title><h1>Insects</h1><a href=/bees.pdf>All about bees (PDF)</a> <a href=/wasps.pdf>On wasps</a>"
CP1, CP2 = Stage.parse("cp00001-20161019234500"), Stage.parse("cp00002-20161019235500")
S = "http://s.example"


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[DocumentArchive]:
    made = DocumentArchive(tmp_path)
    with HarvestWorkers(1) as made.readers:
        yield made


def titles(archive: DocumentArchive) -> dict[str, str]:
    return {url.removeprefix(S): one.shown("title") for url, one in archive.entries().items()}


def hide(archive: DocumentArchive, surt: str, *, hides: bool = True) -> None:
    hidden_list.decide(archive.state.store, lambda: archive.store, surt, "an order", hides=hides)


def test_a_launch_is_published_and_a_second_fold_does_nothing(archive: DocumentArchive) -> None:
    archive.add(
        ONE, {"a.warc.gz": warc({f"{S}/": PAGE}), "b.warc.gz": warc({f"{S}/bees.pdf": BEES, f"{S}/wasps.pdf": WASPS})}
    )
    assert archive.fold() == folding.Folded(1, new=True)
    assert titles(archive) == {"/bees.pdf": "All about bees", "/wasps.pdf": "On wasps"}
    one = archive.entries()[f"{S}/bees.pdf"]
    assert (one.id, one.type, one.shown("landing_page_url")) == (id_of(BEES), "application/pdf", f"{S}/")
    (capture,) = one.captures
    assert (capture.job, capture.launch, capture.warc) == ("daily", ONE, f"warcs/daily/{ONE}/b.warc.gz")
    assert archive.fold() == folding.Folded(1, new=False)
    assert verify(archive.state.store, archive.index, "documents").findings == ()


def test_a_recrawl_whose_pages_and_documents_are_revisits_keeps_what_is_known(archive: DocumentArchive) -> None:
    archive.add(ONE, {"a.warc.gz": warc({f"{S}/": PAGE, f"{S}/bees.pdf": BEES, f"{S}/wasps.pdf": WASPS})})
    archive.fold()
    archive.add(TWO, {
        "r.warc.gz": revisits({f"{S}/bees.pdf": BEES}, "2016-10-20T23:44:28Z"),
        "n.warc.gz": warc({f"{S}/wasps.pdf": ANTS}, "2016-10-20T23:44:28Z"),
    })  # fmt: skip
    assert archive.fold().number == 2
    found = {one.id: one for one in published.entries(archive.index, archive.published)}
    assert len(found) == 3
    assert [one.is_revisit for one in found[id_of(BEES)].captures] == [False, True]
    new = found[id_of(ANTS)]
    assert (new.version_of, new.shown("title"), new.shown("landing_page_url")) == (id_of(WASPS), "On wasps", f"{S}/")


def test_pages_of_a_later_stage_meet_the_documents_of_an_earlier_one(archive: DocumentArchive) -> None:
    launch = Launch("daily", ONE)
    archive.add(TWO, {"o.warc.gz": warc({f"{S}/ants.pdf": ANTS})}, job="other")
    archive.running(launch, CP1, {"a.warc.gz": warc({f"{S}/bees.pdf": BEES})})
    archive.fold()
    assert titles(archive) == {"/bees.pdf": "Of bees", "/ants.pdf": "Of ants"}
    before = archive.published
    archive.running(launch, CP2, {"b.warc.gz": warc({f"{S}/": PAGE})})
    archive.running(launch, FINAL, {"c.warc.gz": warc({f"{S}/wasps.pdf": WASPS})})
    archive.fold()
    assert titles(archive) == {"/bees.pdf": "All about bees", "/wasps.pdf": "On wasps", "/ants.pdf": "Of ants"}
    assert {*published.changed(archive.index, before, archive.published)} == {id_of(BEES), id_of(WASPS)}
    assert verify(archive.state.store, archive.index, "documents").findings == ()


def test_a_launch_that_is_gone_takes_its_documents_with_it(archive: DocumentArchive) -> None:
    many = {f"{S}/{number}.pdf": pdf(f"The number {number}") for number in range(40)}
    archive.add(ONE, {"a.warc.gz": warc(many)})
    archive.fold()
    gone = archive.add(TWO, {"b.warc.gz": warc({f"{S}/bees.pdf": BEES})})
    archive.fold()
    marker = next(archive.base.glob(f"line/state/*/daily/{gone.id}/documents.extracted.*"), None) or next(
        archive.base.rglob(f"documents.extracted.daily.{gone.id}.final*")
    )
    marker.rename(archive.base / "aside")
    archive.fold()
    assert len(archive.entries()) == 40
    archive.add(THREE, {"c.warc.gz": warc({f"{S}/ants.pdf": ANTS})})
    archive.fold()
    assert f"{S}/ants.pdf" in archive.entries()
    assert f"{S}/bees.pdf" not in archive.entries()
    assert verify(archive.state.store, archive.index, "documents").findings == ()


def test_what_is_hidden_is_in_no_entry_and_no_candidate(archive: DocumentArchive) -> None:
    archive.add(ONE, {"a.warc.gz": warc({f"{S}/": PAGE, f"{S}/bees.pdf": BEES, f"{S}/wasps.pdf": WASPS})})
    archive.add(TWO, {"b.warc.gz": warc({"http://t.example/ants.pdf": ANTS})})
    archive.fold()
    before = archive.published
    hide(archive, "example,s)/ ")
    archive.fold()
    assert titles(archive) == {"/bees.pdf": "Of bees", "/wasps.pdf": "Of wasps", "http://t.example/ants.pdf": "Of ants"}
    assert archive.entries()[f"{S}/bees.pdf"].shown("landing_page_url") == ""
    assert {*published.changed(archive.index, before, archive.published)} == {id_of(BEES), id_of(WASPS)}
    hide(archive, "example,s)/bees")
    archive.fold()
    assert titles(archive) == {"/wasps.pdf": "Of wasps", "http://t.example/ants.pdf": "Of ants"}
    assert verify(archive.state.store, archive.index, "documents").findings == ()
    for surt in ("example,s)/ ", "example,s)/bees"):
        hide(archive, surt, hides=False)
    archive.fold()
    assert titles(archive) == {
        "/bees.pdf": "All about bees",
        "/wasps.pdf": "On wasps",
        "http://t.example/ants.pdf": "Of ants",
    }
    assert [*published.changed(archive.index, before, archive.published)] == []


def test_a_record_with_a_virus_is_left_out(archive: DocumentArchive) -> None:
    data = warc({f"{S}/bees.pdf": BEES, f"{S}/wasps.pdf": WASPS})
    launch = archive.add(ONE, {"a.warc.gz": data})
    archive.fold()
    offset = archive.entries()[f"{S}/wasps.pdf"].captures[0].offset
    archive.scan(launch, {f"warcs/daily/{ONE}/a.warc.gz": offset, "a.warc.gz": offset})
    archive.fold()
    assert [*archive.entries()] == [f"{S}/bees.pdf"]


def test_an_extract_that_is_lost_or_damaged_is_made_again(archive: DocumentArchive) -> None:
    launch = archive.add(ONE, {"a.warc.gz": warc({f"{S}/": PAGE, f"{S}/bees.pdf": BEES})})
    (path,) = (archive.base / "index/extracts").rglob("*.jsonl.gz")
    path.write_bytes(path.read_bytes()[:-9])
    archive.fold()
    assert titles(archive) == {"/bees.pdf": "All about bees"}
    path.unlink()
    assert archive.fold(base=True).number == 2
    assert titles(archive) == {"/bees.pdf": "All about bees"}
    assert launch.id == ONE


def test_a_damaged_segment_is_named_and_made_anew(archive: DocumentArchive) -> None:
    archive.add(ONE, {"a.warc.gz": warc({f"{S}/": PAGE, f"{S}/bees.pdf": BEES})})
    archive.fold()
    (path,) = (archive.base / "index/versions/documents").rglob("*.sqlite")
    data = bytearray(path.read_bytes())
    data[5000:5100] = b"\xff" * 100
    path.chmod(0o600)
    path.write_bytes(data)
    assert verify(archive.state.store, archive.index, "documents").findings
    path.write_bytes(bytes(data)[:4096])
    archive.add(TWO, {"b.warc.gz": warc({f"{S}/wasps.pdf": WASPS})})
    archive.fold()
    assert titles(archive) == {"/bees.pdf": "All about bees", "/wasps.pdf": "Of wasps"}


def test_many_launches_are_in_few_segments(archive: DocumentArchive) -> None:
    for number in range(12):
        one = pdf(f"The number {number}")
        archive.add(f"201610{number + 10}234428", {"a.warc.gz": warc({f"{S}/{number}.pdf": one})})
        archive.fold()
    assert len(archive.published.segments) <= 3
    assert len(archive.entries()) == 12
    assert len(segment.crawls(archive.index, archive.published.segments)) == 12


def test_a_launch_without_documents_is_read_once(archive: DocumentArchive, monkeypatch: pytest.MonkeyPatch) -> None:
    archive.add(ONE, {"a.warc.gz": warc({f"{S}/": PAGE})})
    assert archive.fold() == folding.Folded(1, new=True)
    assert archive.entries() == {}
    read = list[str]()
    archive.add(TWO, {"b.warc.gz": warc({f"{S}/bees.pdf": BEES})})
    records = Documents._records
    monkeypatch.setattr(Documents, "_records", lambda self, one: read.append(one.name) or records(self, one))
    archive.fold()
    assert {*read} == {f"daily/{TWO}/b.warc.gz"}


def _fold_and_die(archive: DocumentArchive, at: int) -> bool:
    """Fold in a child that is killed as it opens, links, renames or removes for the n-th time; True if it was."""
    if not (child := os.fork()):
        left = itertools.count(-at)

        def hook(event: str, _: object) -> None:
            if event in ("open", "os.link", "os.rename", "os.remove", "sqlite3.connect") and next(left) == 0:
                os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)
        archive.fold()
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def test_a_fold_that_is_killed_anywhere_is_ended_by_the_next(archive: DocumentArchive) -> None:
    archive.add(ONE, {"a.warc.gz": warc({f"{S}/": PAGE, f"{S}/bees.pdf": BEES})})
    archive.fold()
    archive.add(TWO, {"b.warc.gz": warc({f"{S}/wasps.pdf": WASPS}, "2016-10-20T23:44:28Z")})
    kills = 0
    while _fold_and_die(archive, 7 * kills):
        kills += 1
        assert titles(archive) in (
            {"/bees.pdf": "All about bees"},
            {"/bees.pdf": "All about bees", "/wasps.pdf": "Of wasps"},
        )
    assert kills > 5
    archive.fold()
    assert titles(archive) == {"/bees.pdf": "All about bees", "/wasps.pdf": "Of wasps"}
    assert verify(archive.state.store, archive.index, "documents").findings == ()
    assert [path for path in (archive.base / "index/versions").iterdir() if path.is_file()] == []
