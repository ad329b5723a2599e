"""versitygw: an S3 server over a folder of this host, one folder a bucket. It is strict about digests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from servers import packages, pins, process
from servers.pins import HOST, Ports, answers

NAME = "versitygw"
READY_SECONDS = 120
ACCESS_KEY, SECRET_KEY = "archivist", "for-tests-on-loopback"
BUCKET = "archive"


class S3Server(process.SingleServer):
    """An S3 server over a folder of this host: its address, its folder `buckets`, and the file of its secret key."""

    @property
    def endpoint(self) -> str:
        """The URL of the server."""
        return f"http://{HOST}:{self.ports['http']}"

    @property
    def buckets(self) -> Path:
        """The folder with a folder for each bucket."""
        return self.folder / "buckets"

    @property
    def secret_key_file(self) -> Path:
        """A file with the secret key as its only line."""
        return self.folder / "secret_key"

    def write_secret_key(self) -> None:
        """Write that file, for its owner alone."""
        self.secret_key_file.touch(mode=0o600)
        self.secret_key_file.write_text(SECRET_KEY + "\n", encoding="ascii")


class Versitygw(S3Server):
    """One gateway: its address and keys, and methods to start, stop and break it. A file in a bucket is an object."""

    name = NAME

    @property
    def environment(self) -> Mapping[str, str]:
        """The keys as the gateway reads them: in no command line, which others may read."""
        return {"ROOT_ACCESS_KEY_ID": ACCESS_KEY, "ROOT_SECRET_ACCESS_KEY": SECRET_KEY}

    def start(self) -> None:
        """Start it with its bucket, and wait until it listens."""
        (self.buckets / BUCKET).mkdir(parents=True, exist_ok=True)
        self.write_secret_key()
        argv: list[str | Path] = [packages.versitygw(), "--port", f"{HOST}:{self.ports['http']}", "posix", self.buckets]
        process.start(self.folder, NAME, argv, self.environment)
        process.wait_ready(self.folder, NAME, lambda: answers(self.ports["http"]), READY_SECONDS)

    def restart(self) -> None:
        """Kill and start again."""
        self.kill()
        self.start()


def at(work: Path, ports: Ports = pins.VERSITYGW) -> Versitygw:
    """The server of this work folder, running or not."""
    return Versitygw(work / NAME, ports)


def up(work: Path, ports: Ports = pins.VERSITYGW) -> Versitygw:
    """Start it unless it runs, with the bucket `archive`, and wait until it listens: 0.2 s. It is compiled once."""
    return at(work, ports).up()


def down(work: Path) -> list[str]:
    """End it; files stay."""
    return at(work).stop()
