"""The conformance suite over a second S3 server, MinIO: nothing of the store is fitted to the first one."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest
from storing.remote_places import InS3, work_folder
from storing.store_conformance import *  # noqa: F403 - the tests of every store
from storing.store_conformance import Place

from servers import minio, pins
from servers.minio import BUCKET, Minio
from warcmill.layout import SENTINEL
from warcmill.stores import temporary_names

HASH, BLOCK = 32, 1 << 20  # bytes; MinIO keeps a part as blocks, each behind its hash


class InMinio(InS3):
    """A root in a bucket of MinIO, looked at by another client: its objects are not files of this host."""

    def files(self) -> dict[str, bytes]:
        found = {path: self.read(path) for path in self._paths() if path != SENTINEL}
        return {
            path: self._uploaded(data) if temporary_names.is_temporary(path.rpartition("/")[2]) else data
            for path, data in found.items()
        }

    def _paths(self) -> Iterator[str]:
        pages = minio.client(self.server.endpoint).get_paginator("list_objects_v2")
        for page in pages.paginate(Bucket=BUCKET, Prefix=f"{self.place.prefix}/"):
            for found in page.get("Contents", ()):
                yield found["Key"].removeprefix(f"{self.place.prefix}/")

    def _uploaded(self, note: bytes) -> bytes:
        upload, _, path = note.decode("utf-8", "replace").partition("\n")
        if not path:
            return note
        name = base64.urlsafe_b64decode(f"{upload}==").decode().partition(".")[2]
        parts = (self.server.buckets / ".minio.sys/multipart").glob(f"*/{name}/*/part.*[0-9]")
        return b"".join(map(kept, sorted(parts, key=lambda part: int(part.suffix[1:]))))

    def read(self, path: str) -> bytes:
        found = minio.client(self.server.endpoint).get_object(Bucket=BUCKET, Key=f"{self.place.prefix}/{path}")
        return bytes(found["Body"].read())

    def delete(self, path: str) -> None:
        minio.client(self.server.endpoint).delete_object(Bucket=BUCKET, Key=f"{self.place.prefix}/{path}")


def kept(part: Path) -> bytes:
    """The bytes of a part, as the server keeps them on its only disk."""
    raw = part.read_bytes()
    return b"".join(raw[at + HASH : at + HASH + BLOCK] for at in range(0, len(raw), HASH + BLOCK))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Minio]:
    made = minio.up(tmp_path_factory.mktemp("minio"), pins.free(pins.MINIO))
    yield made
    made.stop()


@pytest.fixture
def there(server: Minio, tmp_path: Path) -> Place:
    return InMinio(server, work_folder(tmp_path))
