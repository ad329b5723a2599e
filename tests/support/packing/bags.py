"""Bags for tests, built file by file, and laid down as a folder, a tar, a tar.gz or a zip."""

from __future__ import annotations

import hashlib
import io
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

from commands import check
from warcmill.formats.bagit.findings import BagVerdict

Files = dict[str, bytes]
PAYLOAD: Mapping[str, bytes] = {"data/hello.txt": b"hello\n", "data/more/other.txt": b"other\n"}
BASE = "bag"


def escaped(path: str) -> str:
    """A path as a manifest of BagIt 1.0 writes it (RFC 8493, 2.1.3)."""
    return path.replace("%", "%25").replace("\n", "%0A").replace("\r", "%0D")


def manifest(files: Mapping[str, bytes], algorithm: str = "sha512") -> bytes:
    """A manifest of these files."""
    lines = [f"{hashlib.new(algorithm, data).hexdigest()}  {escaped(path)}\n" for path, data in files.items()]
    return "".join(lines).encode()


def make(
    payload: Mapping[str, bytes] = PAYLOAD,
    *,
    version: str = "1.0",
    algorithms: tuple[str, ...] = ("sha512",),
    info: bytes | None = None,
    tags: Mapping[str, bytes] | None = None,
) -> Files:
    """A valid bag, tag files first. `tags` are more of them, or others in place of those that it has."""
    size = sum(map(len, payload.values()))
    files: Files = {"bagit.txt": f"BagIt-Version: {version}\nTag-File-Character-Encoding: UTF-8\n".encode()}
    files["bag-info.txt"] = f"Payload-Oxum: {size}.{len(payload)}\n".encode() if info is None else info
    files |= {f"manifest-{name}.txt": manifest(payload, name) for name in algorithms}
    files |= tags or {}
    return sealed(files, algorithms) | dict(payload)


def sealed(files: Files, algorithms: tuple[str, ...] = ("sha512",)) -> Files:
    """The files of a bag with tag manifests that fit its tag files."""
    tags = {path: data for path, data in files.items() if "/" not in path and not path.startswith("tagmanifest-")}
    seals = {f"tagmanifest-{name}.txt": manifest(tags, name) for name in algorithms}
    return tags | seals | {path: data for path, data in files.items() if path not in tags and path not in seals}


def as_folder(files: Files, at: Path) -> Path:
    """Lay a bag down as a folder; `data/` is there even when it is empty."""
    (at / "data").mkdir(parents=True, exist_ok=True)
    for path, data in files.items():
        (at / path).parent.mkdir(parents=True, exist_ok=True)
        (at / path).write_bytes(data)
    return at


def tar_bytes(files: Files, *more: tarfile.TarInfo, base: str = f"{BASE}/", compression: str = "") -> bytes:
    """A tar of a bag, in the order of its files; `more` are headers without content."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=f"w:{compression}") as tar:  # type: ignore[call-overload]
        if not any(path.startswith("data/") for path in files):
            tar.addfile(_folder(f"{base}data"))
        for path, data in files.items():
            header = tarfile.TarInfo(base + path)
            header.size = len(data)
            tar.addfile(header, io.BytesIO(data))
        for header in more:
            tar.addfile(header)
    return buffer.getvalue()


def _folder(name: str) -> tarfile.TarInfo:
    header = tarfile.TarInfo(name)
    header.type = tarfile.DIRTYPE
    return header


def link(path: str, kind: bytes = tarfile.SYMTYPE, target: str = "/etc/passwd") -> tarfile.TarInfo:
    """The header of a link, a device or the like."""
    header = tarfile.TarInfo(f"{BASE}/{path}")
    header.type, header.linkname = kind, target
    return header


def zip_bytes(files: Files, base: str = f"{BASE}/") -> bytes:
    """A zip of a bag, in the order of its files."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.mkdir(f"{base}data")
        for path, data in files.items():
            archive.writestr(base + path, data)
    return buffer.getvalue()


def verdict(path: Path) -> BagVerdict:
    """The verdict on a bag in a file or folder."""
    checked = check.check(path, lambda stream: stream)
    assert checked.verdict, checked.why
    return checked.verdict


def judged(files: Files, at: Path, kind: str = "folder") -> BagVerdict:
    """The verdict on a bag that is laid down at `at`, as a folder or an archive of some kind."""
    if kind == "folder":
        return verdict(as_folder(files, at / BASE))
    archive = at / f"{BASE}.{kind}"
    archive.write_bytes(
        zip_bytes(files) if kind == "zip" else tar_bytes(files, compression="gz" if kind == "tar.gz" else "")
    )
    return verdict(archive)
