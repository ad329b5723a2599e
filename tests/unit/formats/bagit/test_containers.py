"""Bags in archives: nothing is extracted or followed, damage is named, a tar of ours takes one pass, memory is flat."""

from __future__ import annotations

import io
import os
import stat
import tarfile
import tracemalloc
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packing import bags
from packing.bags import BASE, judged, link, make, tar_bytes, zip_bytes
from records.warcs import warc_gz, warcinfo

from warcmill.base.digests import CHUNK
from warcmill.errors import BadInput
from warcmill.formats.bagit import bag
from warcmill.formats.bagit.containers import FROM_INSIDE, Tar, Zip, gunzipped
from warcmill.formats.bagit.findings import BagResult, BagVerdict


class Opened(io.BytesIO):
    """A stream that counts how often it is opened, and what is read of it."""

    times = 0

    def __enter__(self) -> Opened:
        type(self).times += 1
        self.seek(0)
        return self

    def __exit__(self, *_: object) -> None: ...


def tar_verdict(data: bytes) -> BagVerdict:
    return bag.examine(Tar("bag.tar", lambda: Opened(data)))


def faults(data: bytes) -> list[str]:
    return [str(fault) for fault in tar_verdict(data).faults]


def test_a_tar_whose_tag_files_come_first_takes_one_pass() -> None:
    Opened.times = 0
    assert tar_verdict(tar_bytes(make())).result == BagResult.VALID
    assert Opened.times == 1
    assert tar_verdict(tar_bytes(dict(reversed(make().items())))).result == BagResult.VALID
    assert Opened.times == 3


def test_a_manifest_that_comes_late_costs_a_second_pass_and_no_digest() -> None:
    files = make(algorithms=("md5", "sha512"))
    late = files.pop("manifest-md5.txt")
    files["manifest-md5.txt"] = late
    assert tar_verdict(tar_bytes(files)).result == BagResult.VALID
    files["data/hello.txt"] = b"hellO\n"
    assert [fault.split()[2] for fault in faults(tar_bytes(files))] == ["md5", "sha512"]


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (tarfile.SYMTYPE, "a symbolic link"),
        (tarfile.LNKTYPE, "a hard link"),
        (tarfile.CHRTYPE, "a device"),
        (tarfile.BLKTYPE, "a device"),
        (tarfile.FIFOTYPE, "a pipe"),
    ],
)
def test_what_is_no_file_in_a_tar(kind: bytes, why: str) -> None:
    files = make()
    listed = files.pop("data/hello.txt")
    assert faults(tar_bytes(files | {"data/x": listed}, link("data/hello.txt", kind)))[0] == (
        f"data/hello.txt: {why}: a bag holds files and folders alone"
    )


@pytest.mark.parametrize(
    "name", ["../escape", "/etc/passwd", f"{BASE}/data/../../x", "~root/x", f"{BASE}/data/a\\..\\b"]
)
def test_a_name_in_a_tar_or_zip_that_leaves_it(name: str) -> None:
    header = tarfile.TarInfo(name)
    [fault] = faults(tar_bytes(make(), header))
    assert fault.startswith(f"{name}: a")
    data = io.BytesIO(zip_bytes(make()))
    with zipfile.ZipFile(data, "a") as archive:
        archive.writestr(name, b"")
    assert [str(found) for found in bag.examine(Zip("bag.zip", data)).faults] == [fault]


def test_links_and_pipes_in_a_folder(tmp_path: Path) -> None:
    at = bags.as_folder(make(info=b""), tmp_path / BASE)
    (at / "data/hello.txt").unlink()
    (at / "data/hello.txt").symlink_to("/etc/passwd")
    (at / "data/more/up").symlink_to("..")
    os.mkfifo(at / "data/pipe")
    assert [str(fault) for fault in bags.verdict(at).faults] == [
        "data/hello.txt: a symbolic link: a bag holds files and folders alone",
        "data/pipe: a pipe: a bag holds files and folders alone",
        "data/more/up: a symbolic link: a bag holds files and folders alone",
    ]


def test_a_link_and_an_encrypted_file_in_a_zip(tmp_path: Path) -> None:
    data = io.BytesIO(zip_bytes(make()))
    with zipfile.ZipFile(data, "a") as archive:
        up = zipfile.ZipInfo(f"{BASE}/data/up")
        up.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(up, b"../..")
    assert [str(fault) for fault in bag.examine(Zip("bag.zip", data)).faults] == [
        "data/up: a symbolic link: a bag holds files and folders alone"
    ]
    locked = bytearray(zip_bytes({"bagit.txt": b""}))
    for signature, at in ((b"PK\1\2", 8), (b"PK\3\4", 6)):
        locked[locked.rindex(signature) + at] |= 1
    [fault] = bag.examine(Zip("bag.zip", io.BytesIO(locked))).faults
    assert str(fault) == "bagit.txt: encrypted: nobody can check it"


def test_one_bag_in_one_folder() -> None:
    files = make()
    beside = tarfile.TarInfo("._bag")
    assert faults(tar_bytes(files, beside)) == [
        "._bag: outside the bag's folder bag/: an archive holds one bag in one folder"
    ]
    assert faults(tar_bytes(files, base="./bag/")) == []
    for base in ("", "./"):
        assert faults(tar_bytes(files, base=base)) == [FROM_INSIDE]
        found = bag.examine(Zip("bag.zip", io.BytesIO(zip_bytes(files, base=base)))).faults
        assert [str(fault) for fault in found] == [FROM_INSIDE]


def test_the_same_path_twice_in_an_archive() -> None:
    twice = tarfile.TarInfo(f"{BASE}/data/hello.txt")
    assert faults(tar_bytes(make(), twice)) == ["data/hello.txt: twice in the archive"]
    data = io.BytesIO(zip_bytes(make()))
    with zipfile.ZipFile(data, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr(f"{BASE}/bagit.txt", b"other")
    found = bag.examine(Zip("bag.zip", data)).faults
    assert [str(fault) for fault in found] == ["bagit.txt: twice in the archive"]


def test_a_sparse_file() -> None:
    data = bytearray(tar_bytes({"bagit.txt": b"", "data/x": b""}))
    data[156:157] = tarfile.GNUTYPE_SPARSE
    data[148:156] = b" " * 8
    data[148:156] = b"%06o\0 " % sum(data[:512])
    [fault, *_] = faults(bytes(data))
    assert fault == "bagit.txt: a sparse file: archive it without holes"


def test_where_a_tar_is_cut_or_damaged() -> None:
    whole = tar_bytes(make())
    at = whole.index(b"bag/data/hello.txt")
    for cut in (0, 100, 512, at, at + 100, at + 514, at + 1024):
        [fault] = faults(whole[:cut])
        assert fault.startswith("not a whole tar: "), cut
    damaged = bytearray(whole)
    damaged[at] ^= 1
    assert faults(bytes(damaged)) == [f"not a whole tar: at offset {at}: bad checksum"]
    assert faults(b"x" * 2000) == ["not a whole tar: at offset 0: invalid header"]


def test_a_header_that_wants_all_memory() -> None:
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.XHDTYPE, 1 << 40
    data = header.tobuf(tarfile.GNU_FORMAT)
    assert faults(data) == [f"not a whole tar: an extended header of {1 << 40} bytes"]


def test_where_a_gzip_or_zip_is_cut_or_damaged(tmp_path: Path) -> None:
    whole = tar_bytes(make(), compression="gz")
    for data in (whole[:-4], whole[:100], b"no gzip", whole[:-8] + bytes(8), b""):
        (tmp_path / "bag.tgz").write_bytes(data)
        [fault] = bags.verdict(tmp_path / "bag.tgz").faults
        assert fault.why.startswith(("not whole gzip: ", "not a whole tar: "))
    whole = zip_bytes(make({"data/x": b"x" * 1000}))
    broken = bytearray(whole)
    broken[whole.index(b"data/x") + len(b"data/x") + 2] ^= 0xFF
    for data in (whole[:-10], b"no zip", bytes(broken)):
        (tmp_path / "bag.zip").write_bytes(data)
        [fault] = bags.verdict(tmp_path / "bag.zip").faults
        assert fault.why.startswith("not a whole zip: ")


def test_a_zip_whose_names_are_utf_8_without_saying_so() -> None:
    cleared = bytearray(zip_bytes(make({"data/caf\u00e9": b"x"})))
    for signature, at in ((b"PK\1\2", 9), (b"PK\3\4", 7)):
        place = cleared.find(signature)
        while place >= 0:
            cleared[place + at] &= 0xF7
            place = cleared.find(signature, place + 4)
    assert bag.examine(Zip("bag.zip", io.BytesIO(cleared))).faults == ()


TAR, ZIP = tar_bytes(make()), zip_bytes(make())


@given(st.sampled_from([TAR, ZIP]), st.data())
def test_no_change_goes_unseen_or_ends_the_program(whole: bytes, data: st.DataObject) -> None:
    """One changed byte: the verdict is a fault, or the very same: then it was in a field that is nobody's."""
    at = data.draw(st.integers(0, len(whole) - 1))
    changed = bytearray(whole)
    changed[at] ^= data.draw(st.integers(1, 255))
    found = tar_verdict(bytes(changed)) if whole is TAR else bag.examine(Zip("bag.zip", io.BytesIO(changed)))
    assert found.faults or (found.files, found.size) == (2, 12)


@given(st.binary(max_size=3000))
def test_no_bytes_end_the_program(data: bytes) -> None:
    assert tar_verdict(data).faults
    assert bag.examine(Zip("bag.zip", io.BytesIO(data))).faults
    assert bag.examine(Tar("bag.tgz", lambda: gunzipped("bag.tgz", io.BytesIO(data)))).faults


@given(st.sampled_from(sorted(make(algorithms=("md5",)))), st.binary(max_size=200))
def test_no_tag_file_ends_the_program(path: str, data: bytes) -> None:
    files = make(algorithms=("md5",), tags={"fetch.txt": b""})
    changed = files[path] != data
    assert bool(faults(tar_bytes(files | {path: data}))) == changed


class Endless:
    """A tar with one file of `size` zeros, made as it is read."""

    def __init__(self, head: bytes, size: int, tail: bytes) -> None:
        self._pieces = [head]
        self._left, self._tail = size, tail

    def __enter__(self) -> Endless:
        return self

    def __exit__(self, *_: object) -> None: ...

    def read(self, size: int, /) -> bytes:
        if self._pieces:
            return self._pieces.pop()
        if self._left:
            length = min(size, self._left)
            self._left -= length
            return bytes(length)
        tail, self._tail = self._tail, b""
        return tail


def test_memory_does_not_grow_with_the_bag() -> None:
    size = 64 * CHUNK
    files = make(info=b"")
    header = tarfile.TarInfo(f"{BASE}/data/large.bin")
    header.size = size
    head = tar_bytes(files)
    end = len(head.rstrip(b"\0")) + 511 & ~511
    tar = Tar("bag.tar", lambda: Endless(head[:end] + header.tobuf(), size, bytes(1024)))
    tracemalloc.start()
    contents = bag.read(tar)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert contents.files["data/large.bin"].size == size
    assert peak < 8 * CHUNK


def test_a_bag_that_cannot_be_read_on_names_its_archive() -> None:
    with pytest.raises(BadInput, match=r"bag\.tar: not a whole tar"):
        bag.read(Tar("bag.tar", lambda: Opened(TAR[:600])))


@pytest.mark.parametrize("kind", ["folder", "tar", "zip"])
def test_warcs_inside_are_judged_by_the_gate(tmp_path: Path, kind: str) -> None:
    good = warc_gz(warcinfo())
    payload = {"data/good.warc.gz": good, "data/cut.warc.gz.open": good[:-1], "data/x.warc.gz.txt": b"no WARC"}
    found = judged(make(payload), tmp_path, kind)
    assert found.result == BagResult.VALID
    assert {path: verdict.ok for path, verdict in found.warcs} == {
        "data/good.warc.gz": True,
        "data/cut.warc.gz.open": False,
    }
