"""An engine's output built by hand, for cases that the real launches do not show."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from warcmill.audit.answers.line import AuditedLine
from warcmill.launches.roots import EngineSection, JobRoots, RootMap
from warcmill.layout import ENGINE_LOGS, Kind, OutputLayout
from warcmill.markers.state import MarkerStore
from warcmill.model import Launch, Root
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore

LAUNCH = Launch("daily", "20161019234428")
PAPERS = ("crawler-beans.cxml", "seeds.txt", "surts.dump")


def line_of(uri: str, warc: str | None, offset: int = 0, status: int = 200) -> str:
    """One line of a crawl.log, as Heritrix writes it with extra info."""
    tail = {} if warc is None else {"contentSize": 100, "warcFilename": warc, "warcFileOffset": offset}
    begin = f"2016-10-20T00:00:01.000Z {status:>5} {90:>10} {uri} L http://via.example/ text/html"
    middle = f"#001 20161020000001000+5 sha1:{'A' * 32} - -"
    return f"{begin} {middle} {json.dumps(tail, separators=(',', ':'))}"


class FourRoots:
    """Four folders, as the modules of the line see them."""

    folders: dict[Root, Path]
    layout: OutputLayout

    @property
    def roots(self) -> JobRoots:
        return JobRoots(
            FileStore("output", self.folders["output"]), FileStore("jobs", self.folders["jobs"]), self.layout
        )

    @property
    def rootmap(self) -> RootMap:
        site = EngineSection("[warcmill]", str(self.folders["output"]), str(self.folders["jobs"]), self.layout)
        return RootMap(site, {}, (), lambda root, place: FileStore(root, Path(place)))

    @property
    def state(self) -> MarkerStore:
        return MarkerStore(FileStore("state", self.folders["state"]))

    @property
    def store(self) -> FileStore:
        return FileStore("store", self.folders["store"])

    @property
    def audited(self) -> AuditedLine:
        """The line as answers ask for it, with nothing switched on."""
        return AuditedLine(self.state, self.rootmap, {}, lambda: self.store)


@dataclass
class Engine(FourRoots):
    """The four roots in one folder, and the means to write into them as an engine would."""

    base: Path
    layout: OutputLayout = OutputLayout.KIND_FIRST
    launch: Launch = LAUNCH
    folders: dict[Root, Path] = field(default_factory=dict)

    def __post_init__(self) -> None:
        shared = self.layout is OutputLayout.JOB_FIRST
        self.folders = {
            "output": self.base / "output",
            "jobs": self.base / "output" if shared else self.base / "jobs",
            "state": self.base / "state",
            "store": self.base / "store",
        }
        sentinel.adopt(self.folders)

    def warc(self, name: str, data: bytes = b"", kind: Kind = "warcs") -> Path:
        """A file among the launch's WARCs."""
        return self._write(self.folders["output"] / self.layout.folder(kind, self.launch) / name, data)

    def logs(self, *lines: str, stage: str = "final") -> None:
        """The seven logs of a stage; `lines` are its crawl.log."""
        suffix = "" if stage == "final" else f".{stage}"
        for log in ENGINE_LOGS:
            text = "".join(f"{line}\n" for line in lines) if log == "crawl.log" else ""
            self.log(log + suffix, text.encode())

    def log(self, name: str, data: bytes = b"") -> Path:
        """One file in the launch's log folder."""
        return self._write(self.folders["output"] / self.layout.folder("logs", self.launch) / name, data)

    def job_log(self, *words: str, launch: Launch | None = None) -> None:
        """Lines of the launch's own job.log and of the job's: `FINISHED 20161019234428`."""
        one = launch or self.launch
        text = "".join(f"2016-10-20T00:10:00.123Z INFO {word}\n" for word in words)
        job = self.folders["jobs"] / one.job
        self._write(job / one.id / "job.log", text.encode())
        with (job / "job.log").open("a") as file:
            file.write(text)

    def finish(self) -> None:
        """What the engine logs at the end of the launch, and the papers that it keeps of it."""
        self.job_log(
            *(f"{word} {self.launch.id}" for word in ("PREPARING", "RUNNING", "STOPPING", "EMPTY", "FINISHED"))
        )
        self.papers()

    def papers(self) -> None:
        """What a launch was crawled by, and one of the reports that the engine writes when it ends."""
        for name in PAPERS:
            self._write(self.folders["jobs"] / self.launch.job / self.launch.id / name, b"")
        reports = self.folders["output"] / self.layout.folder("reports", self.launch)
        self._write(reports / "crawl-report.txt", f"crawl name: {self.launch.job}\n".encode())

    def _write(self, path: Path, data: bytes) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path
