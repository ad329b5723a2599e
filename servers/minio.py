"""MinIO: a second S3 server, which keeps the client honest. For the full tests: Go compiles it in five minutes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from servers import packages, pins, process
from servers.pins import HOST, Ports
from servers.versitygw import ACCESS_KEY, BUCKET, SECRET_KEY, S3Server

NAME = "minio"
READY_SECONDS = 120


class Minio(S3Server):
    """One server on one folder, in a form of its own: an object is a folder there."""

    name = NAME

    @property
    def environment(self) -> Mapping[str, str]:
        """The keys as the server reads them, and no console."""
        return {"MINIO_ROOT_USER": ACCESS_KEY, "MINIO_ROOT_PASSWORD": SECRET_KEY, "MINIO_BROWSER": "off"}

    def start(self) -> None:
        """Start it, and wait until it has its bucket."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.write_secret_key()
        address = f"{HOST}:{self.ports['http']}"
        argv: list[str | Path] = [packages.minio(), "server", "--quiet", "--address", address, self.buckets]
        process.start(self.folder, NAME, argv, self.environment)
        process.wait_ready(self.folder, NAME, self._has_bucket, READY_SECONDS)

    def _has_bucket(self) -> bool:
        try:
            names = [one["Name"] for one in client(self.endpoint).list_buckets()["Buckets"]]
            if BUCKET not in names:
                client(self.endpoint).create_bucket(Bucket=BUCKET)
        except (BotoCoreError, ClientError):
            return False
        return True


def client(endpoint: str):  # type: ignore[no-untyped-def]
    """A client of the server that is not the store's own."""
    keys = {"aws_access_key_id": ACCESS_KEY, "aws_secret_access_key": SECRET_KEY, "region_name": "us-east-1"}
    config = Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1})
    return boto3.client("s3", endpoint_url=endpoint, config=config, **keys)


def at(work: Path, ports: Ports = pins.MINIO) -> Minio:
    """The server of this work folder, running or not."""
    return Minio(work / NAME, ports)


def up(work: Path, ports: Ports = pins.MINIO) -> Minio:
    """Start it unless it runs, with the bucket `archive`."""
    return at(work, ports).up()


def down(work: Path) -> list[str]:
    """End it; files stay."""
    return at(work).stop()
