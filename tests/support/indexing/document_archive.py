"""Launches whose documents are extracted, and the data set that is folded of them; without Luigi."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

from indexing.indexed import Archive
from launches import chain as steps
from launches.engine import Engine, line_of
from records.captures import response
from records.captures import revisit as revisit_record
from records.warcs import sha1, warc_gz, warcinfo

from warcmill.documents.extract import extract
from warcmill.extracts.extracts import Extracts
from warcmill.extracts.harvest import HarvestWorkers
from warcmill.extracts.per_warc import LocalExtractor
from warcmill.model import FINAL, Launch, Stage
from warcmill.versions.documents import published
from warcmill.versions.documents.dataset import Documents
from warcmill.versions.documents.entries import Entry
from warcmill.versions.inputs import Lists
from warcmill.versions.publication import Payloads, Published

ONE, TWO, THREE = "20161019234428", "20161020234428", "20161021234428"
_HTML, _PDF = b"Content-Type: text/html; charset=utf-8", b"Content-Type: application/pdf"
Captures = Mapping[str, str | bytes]


class DocumentArchive(Archive):
    """A line whose launches are searched for documents."""

    readers: HarvestWorkers

    @property
    def making(self) -> LocalExtractor:
        return LocalExtractor(self.store, Extracts(self.index), readers=self.readers)

    @property
    def data(self) -> Documents:  # type: ignore[override]
        return Documents(self.state, self.making, self.index)

    @property
    def lists(self) -> Lists:
        return Lists(self.state.store, "documents")

    @property
    def payloads(self) -> Payloads:
        return Payloads(self.index, "documents")

    def reindex(self, launch: Launch, stage: Stage = FINAL) -> None:
        claim = extract(self.state, self.making, Extracts(self.index), launch, stage)
        self.state.publish(claim.key, claim)

    def running(self, launch: Launch, stage: Stage, warcs: Mapping[str, bytes]) -> None:
        """A stage of a launch, up to its extract."""
        engine = Engine(self.base / "line", launch=launch)
        engine.logs(*(line_of("http://e.x/", name) for name in warcs), stage=str(stage))
        for name, data in warcs.items():
            engine.warc(name, data)
        if stage.is_final:
            engine.finish()
        else:
            engine.job_log(f"PREPARING {launch.id}", f"RUNNING {launch.id}", f"CHECKPOINTED {stage}")
        steps.assembled(engine, stage)
        steps.upto(engine, "Verify", stage)
        self.reindex(launch, stage)

    @property
    def published(self) -> Published:
        found = self.payloads.current()
        assert found
        return found

    def entries(self) -> dict[str, Entry]:
        """The entries of the current version by their first URL."""
        return {one.urls[0]: one for one in published.entries(self.index, self.published)}


def warc(captures: Captures, time: str = "2016-10-19T23:44:28Z") -> bytes:
    """A WARC of pages, which are text, and of PDFs."""
    records = (
        response(url, _HTML, body=f"<!doctype html><meta charset=utf-8>{body}".encode(), WARC_Date=time)
        if isinstance(body, str)
        else response(url, _PDF, body=body, WARC_Date=time, WARC_Payload_Digest=sha1(body))
        for url, body in captures.items()
    )
    return warc_gz(warcinfo(), *records)


def revisits(captures: Mapping[str, bytes], time: str) -> bytes:
    """A WARC of revisits of PDFs."""
    return warc_gz(warcinfo(), *(revisit_record(url, sha1(body), WARC_Date=time) for url, body in captures.items()))


def id_of(body: bytes) -> str:
    return sha256(body).hexdigest()
