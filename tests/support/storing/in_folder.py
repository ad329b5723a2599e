"""A place of the conformance suite whose files are in a folder of this host, whatever store is over it."""

from __future__ import annotations

from pathlib import Path

from warcmill.layout import SENTINEL


class InFolder:
    """What the suite does to files beside the store."""

    base: Path

    def files(self) -> dict[str, bytes]:
        found = {str(path.relative_to(self.base)): path for path in self.base.rglob("*") if path.is_file()}
        return {name: path.read_bytes() for name, path in found.items() if name != SENTINEL}

    def read(self, path: str) -> bytes:
        return (self.base / path).read_bytes()

    def write(self, path: str, data: bytes) -> None:
        target = self.base / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)

    def delete(self, path: str) -> None:
        (self.base / path).unlink()

    def many(self, folder: str, count: int) -> list[str]:
        (self.base / folder).mkdir(parents=True)
        names = [f"{number:05}.warc.gz" for number in range(count)]
        for name in names:
            (self.base / folder / name).touch()
        return names
