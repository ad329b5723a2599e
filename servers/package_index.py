"""A package index on loopback: projects with real files, whose days are played by methods. Writes to its folder.

It answers as the real one does: pages in HTML and JSON, files with ranges at a port of their own, the changelog by
XML-RPC (`servers/package_site.py`). `up` runs it as a process, `running` within a test; either way a line in its
journal (`servers/package_journal.py`) controls it, so that it outlives a kill.
"""

from __future__ import annotations

import email
import hashlib
import json
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict
from packaging.utils import parse_sdist_filename, parse_wheel_filename

from servers import distributions, package_site, pins, process
from servers.package_journal import HostedProject, IndexFault, IndexJournal, normalized
from servers.pins import HOST, Ports, answers

NAME = "package_index"
READY_SECONDS = 120
ROOT = Path(__file__).resolve().parent.parent


class IndexRequest(Struct, frozen=True):
    """A request that the index got, in the order of their ends; times are seconds since 1970."""

    method: str
    path: str
    range: str
    status: int
    agent: str
    accept: str
    sent: int
    began: float
    ended: float


class PackageIndex(process.SingleServer):
    """The index of a folder: its addresses, and methods that upload, yank, remove and break. Each is durable.

    A method that adds events returns the last serial then.
    """

    name = NAME

    @property
    def url(self) -> str:
        """The address of the index, without a path: `[pypi] index`."""
        return f"http://{HOST}:{self.ports['http']}"

    @property
    def simple(self) -> str:
        """The address for `pip --index-url`."""
        return f"{self.url}/simple/"

    @property
    def serial(self) -> int:
        """The last serial."""
        return self._journal().serial

    def project(self, name: str) -> HostedProject | None:
        """A project as it is now, even if its page is stale; None if there is none."""
        return self._journal().projects.get(normalized(name))

    def requests(self) -> list[IndexRequest]:
        """The requests that it got so far."""
        log = self.folder / package_site.REQUESTS
        lines = log.read_text("utf-8").splitlines() if log.exists() else []
        return [IndexRequest(**json.loads(line)) for line in lines]

    # --- what happens to projects

    def populate(self) -> int:
        """Upload all real files and the odd ones."""
        made = self.folder / "made"
        made.mkdir(parents=True, exist_ok=True)
        for path in [*distributions.real(), *distributions.odd(made)]:
            self.upload(path)
        return self.serial

    def upload(
        self,
        path: Path,
        project: str = "",
        version: str = "",
        *,
        sha256: str = "",
        size: int = -1,
        core: str | None = None,
    ) -> int:
        """Upload a file; its name has project and version unless they are given. Over one of that name it replaces it.

        `sha256`, `size`, `core`: what the page is to list instead of the truth; `core` is the digest of the METADATA
        beside a wheel, '' for none.
        """
        data = path.read_bytes()
        kept = self.folder / "uploads" / hashlib.sha256(data).hexdigest() / path.name
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(data)
        named = _named(path.name)
        blake = hashlib.blake2b(data, digest_size=32).hexdigest()
        paper = package_site.metadata_in(str(kept)) if path.suffix == ".whl" and not project else b""
        upload = {
            "filename": path.name,
            "version": version or named[1],
            "source": str(kept),
            "place": f"{blake[:2]}/{blake[2:4]}/{blake[4:]}",
            "size": len(data) if size < 0 else size,
            "sha256": sha256 or hashlib.sha256(data).hexdigest(),
            "md5": hashlib.md5(data, usedforsecurity=False).hexdigest(),
            "blake2b": blake,
            "requires_python": email.message_from_bytes(paper).get("Requires-Python", "") if paper else "",
            "metadata_sha256": core if core is not None else hashlib.sha256(paper).hexdigest() if paper else "",
        }
        return self._append("upload", project=project or named[0], tag=package_site.tag_of(path.name), upload=upload)

    def yank(self, project: str, version: str, reason: str = "") -> int:
        """Yank a release."""
        return self._append("yank", project=project, version=version, reason=reason)

    def unyank(self, project: str, version: str) -> int:
        """Take back a yank."""
        return self._append("unyank", project=project, version=version)

    def remove_file(self, project: str, filename: str) -> int:
        """Remove one file: it is sent no more."""
        return self._append("remove_file", project=project, filename=filename)

    def remove_release(self, project: str, version: str) -> int:
        """Remove all files of a version."""
        return self._append("remove_release", project=project, version=version)

    def remove_project(self, project: str) -> int:
        """Remove a project: its page is 404."""
        return self._append("remove_project", project=project)

    def quarantine(self, project: str) -> int:
        """Quarantine a project: its page has no files."""
        return self._append("quarantine", project=project, on=True)

    def clear_quarantine(self, project: str) -> int:
        """End a quarantine."""
        return self._append("quarantine", project=project, on=False)

    def set_status(self, project: str, status: str, reason: str = "") -> int:
        """Archive a project, deprecate it, or take that back: the changelog does not name it."""
        return self._append("status", project=project, status=status, reason=reason)

    def said(self) -> dict[int, dict[str, dict[str, str | None]]]:
        """The files on each project's page after each event, with the reasons of those that are yanked, by serial."""
        return self._journal().said()

    def event(self, project: str, action: str, version: str | None = None) -> int:
        """Add an event with any text, which changes no file; the project need not exist."""
        return self._append("event", project=project, version=version, action=action)

    def burst(self, count: int) -> int:
        """Add `count` events at once, over all projects in turn."""
        return self._append("burst", count=count)

    # --- what goes wrong

    def fail(self, path: str, status: int, *, times: int = 0, retry_after: int = -1, body: str = "") -> None:
        """Answer requests whose path begins with `path` with `status`: the next `times` of them, 0 for all."""
        headers = {"Content-Type": "text/html"} | ({"Retry-After": str(retry_after)} if retry_after >= 0 else {})
        self._fault(IndexFault(path, status, headers, body or f"<h1>{status}</h1>\n", times))

    def answer_html(self, path: str, *, times: int = 0) -> None:
        """Answer with a page in HTML that is not a page of an index, with 200, whatever was accepted."""
        headers = {"Content-Type": "text/html"}
        self._fault(IndexFault(path, 200, headers, "<!DOCTYPE html><title>Please wait</title>\n", times))

    def delay(self, path: str, seconds: float, *, times: int = 0) -> None:
        """Answer late."""
        self._fault(IndexFault(path, seconds=seconds, times=times))

    def cut(self, path: str, after: int, *, times: int = 0) -> None:
        """Hang up after `after` bytes of a body."""
        self._fault(IndexFault(path, cut=after, times=times))

    def refuse_ranges(self, project: str, status: int, *, others: bool = False) -> None:
        """Answer a range that counts from the end of a project's file with `status`, 206: as if it counted from the
        begin. `others`: so is every other range."""
        self._append("ranges", project=project, status=status, others=others)

    def limit_calls(self, method: str, *, times: int = 1) -> None:
        """Answer calls by XML-RPC as the real index does where there are too many: 200, with a fault."""
        self._fault(
            IndexFault(f"xmlrpc:{method}", fault=f"{package_site.TOO_MANY} Limit may reset in 1 seconds.", times=times)
        )

    def hold_page(self, project: str) -> None:
        """Show the project's page as it is now, whatever happens next, as a cache may: until `release_page`."""
        self._append("stale", project=project)

    def release_page(self, project: str) -> None:
        """Show the project's page as it is again."""
        self._append("fresh", project=project)

    def lag_page(self, project: str, serial: int) -> None:
        """Show the project's page as it is, but with this serial, until `recover`."""
        self._append("lag", project=project, serial=serial)

    def report_serial(self, serial: int | None) -> None:
        """Answer this as the last serial, even one that goes backwards; None ends that."""
        self._append("report_serial", serial=serial)

    def recover(self) -> None:
        """End all that goes wrong."""
        self._append("recover")

    # --- the process

    def start(self) -> None:
        """Start it as a process and wait until it answers; after a kill it begins where it was."""
        words: list[str | Path] = [
            sys.executable,
            "-m",
            "servers.package_site",
            self.folder,
            *map(str, self._numbers()),
        ]
        process.start(self.folder, NAME, words, {"PYTHONPATH": str(ROOT)})
        process.wait_ready(self.folder, NAME, lambda: all(map(answers, self._numbers())), READY_SECONDS)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Serve from threads of this process while the block runs."""
        self.folder.mkdir(parents=True, exist_ok=True)
        found = package_site.servers(self.folder, *self._numbers())
        try:
            for server in found:
                threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
            yield
        finally:
            for server in found:
                server.shutdown()
                server.server_close()

    def _numbers(self) -> tuple[int, int]:
        return self.ports["http"], self.ports["files"]

    def _journal(self) -> IndexJournal:
        journal = IndexJournal(self.folder)
        journal.refresh()
        return journal

    def _append(self, do: str, **what: Any) -> int:
        return self._journal().append(do, **what)

    def _fault(self, fault: IndexFault) -> None:
        self._append("fault", **asdict(fault))


def at(work: Path, ports: Ports = pins.PACKAGE_INDEX) -> PackageIndex:
    """The index of this work folder, running or not."""
    return PackageIndex(work / NAME, ports)


def up(work: Path, ports: Ports = pins.PACKAGE_INDEX) -> PackageIndex:
    """Start it unless it runs, and wait until it answers. A new one has all real files."""
    server = at(work, ports)
    if not server.serial:
        server.populate()
    return server.up()


def down(work: Path) -> list[str]:
    """End it; its journal stays."""
    return at(work).stop()


def _named(filename: str) -> tuple[str, str]:
    """Project and version that a file's name has, as its author writes the project."""
    if filename.endswith(".egg"):
        project, version = filename.split("-")[:2]
        return project, version
    if filename.endswith(".whl"):
        return filename.partition("-")[0], str(parse_wheel_filename(filename)[1])
    stem = re.sub(r"\.(tar\.\w+|tgz|zip)$", "", filename)
    return stem.rpartition("-")[0], str(parse_sdist_filename(f"{stem}.tar.gz")[1])
