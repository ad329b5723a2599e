"""The hosts that a crawl may ask, where other crawls ask the rest. It is told from outside, and keeps it in a file.

Until it was told of a host, the host is not surely its own: its URIs are *handed over*. The journal has each once, and
no row of the frontier waits for it; who reads the journal gives it to the crawl that has the host. Writes to disk.

A line of the file is a letter and a host: `+` its own, `-` another's, `!` forbidden, with the reason; the last line of
a host counts. An edition, before and after them, counts once both are there. `@` is before the seconds of `alone`. The
file is appended to, and written anew when it is opened. Its time is when the crawl was last told that others are there:
one that hears nothing for so long is alone, and asks nobody.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from warcmill.base import disk
from warcmill.crawl import durable
from warcmill.errors import BadInput, Unavailable
from warcmill.formats.logs import crawllog

NAME = "owners"
POLICY = "owner"
"""The policy that refuses a URI of a forbidden host."""
OURS, OTHERS, FORBIDDEN, _ALONE = "+", "-", "!", "@"
_LONGEST = 255
SET_BACK = 60.0  # seconds by which a clock is kept in time


class HostOwner(NamedTuple):
    """A host, and whose it is: `+`, `-` or `!`; `why` it is forbidden."""

    host: str
    owner: str
    why: str = ""


class HeardOwners:
    """The hosts that are known to be a crawl's own, or forbidden. All others are not surely its own."""

    def __init__(self) -> None:
        self._ours = set[str]()
        self._forbidden: dict[str, str] = {}

    def is_ours(self, uri: str) -> bool:
        """True if this crawl asks for a URI: of a host that is surely its own, or of none."""
        return not uri.startswith(("http://", "https://")) or crawllog.host(uri)[:_LONGEST] in self._ours

    def forbids(self, uri: str) -> str:
        """The reason for which nobody may ask the host of a URI; '' without one."""
        return self._forbidden.get(crawllog.host(uri)[:_LONGEST], "") if self._forbidden else ""

    @property
    def is_alone(self) -> bool:
        """True if it was not told for so long that others may have its hosts now."""
        return False

    async def refresh(self) -> None:
        """Hear what is new, where that must be asked for."""

    @property
    def known(self) -> list[HostOwner]:
        """Its own hosts, and the forbidden ones, sorted."""
        ours = [HostOwner(host, OURS) for host in sorted(self._ours)]
        return ours + [HostOwner(host, FORBIDDEN, why) for host, why in sorted(self._forbidden.items())]

    def _put(self, one: HostOwner) -> None:
        self._ours.discard(one.host)
        self._forbidden.pop(one.host, None)
        if one.owner == OURS:
            self._ours.add(one.host)
        elif one.owner == FORBIDDEN:
            self._forbidden[one.host] = " ".join(one.why.split())

    def _forget(self) -> None:
        self._ours.clear()
        self._forbidden.clear()


class Owners(HeardOwners):
    """The file at `path`; it is made when it is opened."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path, self.edition = path, 0
        self.alone_after = 0.0  # seconds
        heard = path.stat().st_mtime if path.exists() else time.time()
        self._read()
        self._write(heard)

    @property
    def is_alone(self) -> bool:
        """True if it was not told for so long that others may have its hosts now; or if the clock was set back, as then
        nobody knows for how long."""
        return bool(self.alone_after) and not -SET_BACK <= time.time() - self._heard <= self.alone_after

    @property
    def alone_in(self) -> float:
        """The seconds after which it is alone; without `alone_after` not more than 0."""
        return self.alone_after - (time.time() - self._heard) if self.alone_after else 0.0

    def hear(self, alone_after: float) -> None:
        """Hear that the others are there; be alone after so many seconds without it."""
        if alone_after != self.alone_after:
            self.alone_after = alone_after
            self._write(time.time())
        os.utime(self._path)
        self._heard = time.time()

    def tell(self, edition: int, hosts: Sequence[HostOwner], *, anew: bool = False) -> None:
        """Note whose hosts are. `anew`: forget all others."""
        if anew:
            self._forget()
        for one in hosts:
            self._put(one)
        self.edition = edition
        if anew:
            self._write(self._heard)
            return
        try:
            with self._path.open("ab") as file:
                file.write(f"{edition}\n".encode() + b"".join(_line(one) for one in hosts) + f"{edition}\n".encode())
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise Unavailable(str(self._path), disk.reason(error, self._path)) from error

    def _read(self) -> None:
        try:
            lines = self._path.read_bytes().split(b"\n")[:-1]  # a last line without its end was cut by a kill
        except FileNotFoundError:
            return
        except OSError as error:
            raise Unavailable(str(self._path), disk.reason(error, self._path)) from error
        before = 0  # the edition counts once all of its hosts are there: its number is before and after them
        for raw in lines:
            line = raw.decode("utf-8", "replace")
            if line.isdecimal():
                self.edition, before = (int(line) if int(line) == before else self.edition), int(line)
            elif line[:1] == _ALONE:
                self.alone_after = float(line[1:])
            elif line[:1] in (OURS, OTHERS, FORBIDDEN):
                host, _, why = line[1:].partition(" ")
                self._put(HostOwner(host, line[0], why))
            else:
                why = "it is damaged. Move it away: the updater tells the crawl all once more"
                raise BadInput(str(self._path), why)

    def _write(self, heard: float) -> None:
        """Write the file anew, as short as it can be."""
        number = f"{self.edition}\n".encode()
        alone = f"{_ALONE}{self.alone_after:.0f}\n".encode()
        durable.replace(self._path, alone + number + b"".join(map(_line, self.known)) + number)
        os.utime(self._path, (heard, heard))
        self._heard = heard


def _line(one: HostOwner) -> bytes:
    why = " ".join(one.why.split())
    return f"{one.owner}{one.host}{f' {why}' if why else ''}\n".encode("utf-8", "replace")
