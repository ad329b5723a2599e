"""The verdict on bags, by RFC 8493 section by section: each fault is named with its place, and nothing else is."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from packing import bags
from packing.bags import PAYLOAD, Files, judged, make, manifest, sealed

from warcmill.formats.bagit.findings import BagResult, FetchLine

KINDS = ("folder", "tar", "tar.gz", "zip")
NFC = "data/caf\u00e9.txt"
NFD = unicodedata.normalize("NFD", NFC)


def faults(files: Files, at: Path, kind: str = "folder") -> list[str]:
    return list(map(str, judged(files, at, kind).faults))


def warnings(files: Files, at: Path) -> list[str]:
    found = judged(files, at)
    assert not found.faults
    return list(map(str, found.warnings))


@pytest.mark.parametrize("kind", KINDS)
def test_a_valid_bag_wherever_it_lies(tmp_path: Path, kind: str) -> None:
    found = judged(make(), tmp_path, kind)
    assert (found.result, found.faults, found.warnings) == (BagResult.VALID, (), ())
    assert (found.version, found.encoding, found.files, found.size) == ("1.0", "UTF-8", 2, 12)
    assert found.manifests == ("manifest-sha512.txt", "tagmanifest-sha512.txt")


@pytest.mark.parametrize("kind", KINDS)
def test_a_changed_payload_byte(tmp_path: Path, kind: str) -> None:
    files = make() | {"data/hello.txt": b"hellO\n"}
    found, listed = (hashlib.sha512(data).hexdigest() for data in (b"hellO\n", b"hello\n"))
    assert faults(files, tmp_path, kind) == [
        f"data/hello.txt: its sha512 is {found}, but manifest-sha512.txt has {listed}"
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_a_changed_tag_byte(tmp_path: Path, kind: str) -> None:
    files = make()
    files["bag-info.txt"] += b"Contact-Name: somebody\n"
    [fault] = faults(files, tmp_path, kind)
    assert fault.startswith("bag-info.txt: its sha512 is ")


@pytest.mark.parametrize("kind", KINDS)
def test_an_absent_file_and_one_too_many(tmp_path: Path, kind: str) -> None:
    files = make(info=b"")
    del files["data/hello.txt"]
    files["data/stray"] = b""
    assert faults(files, tmp_path, kind) == [
        "data/hello.txt: not there, but manifest-sha512.txt lists it",
        "data/stray: manifest-sha512.txt does not list it",
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_one_pass_or_two(tmp_path: Path, kind: str) -> None:
    """Tag files that come last: what came before is read again."""
    files = dict(reversed(make(algorithms=("md5", "sha512")).items()))
    assert judged(files, tmp_path, kind).result == BagResult.VALID
    files["data/hello.txt"] = b"hellO\n"
    assert len(judged(files, tmp_path / "changed" if kind == "folder" else tmp_path, kind).faults) == 2


# --- 2.1.1: bagit.txt

DECLARED = "its two lines have to be 'BagIt-Version: M.N' and 'Tag-File-Character-Encoding: ENCODING'"
SPACES = "white space other than the one space after each colon"


@pytest.mark.parametrize(
    ("declaration", "why"),
    [
        (b"\xef\xbb\xbfBagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n", "begins with a byte order mark"),
        (b"BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-\xe9\n", "not UTF-8, at offset 52"),
        (b"BagIt-Version: 1.0\n", DECLARED),
        (b"Tag-File-Character-Encoding: UTF-8\nBagIt-Version: 1.0\n", DECLARED),
        (b"BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\nmore: 1\n", DECLARED),
        (b"", DECLARED),
        (b"BagIt-Version: 2.0\nTag-File-Character-Encoding: UTF-8\n",
            "version '2.0' is none of 0.93, 0.94, 0.95, 0.96, 0.97, 1.0"),
        (b"BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-5\n", "unknown encoding 'UTF-5' of the tag files"),
        (b"BagIt-Version: 1.0\nTag-File-Character-Encoding: base64\n", "unknown encoding 'base64' of the tag files"),
        (b"BagIt-Version : 1.0\nTag-File-Character-Encoding: UTF-8\n", SPACES),
        (b"BagIt-Version:  1.0\nTag-File-Character-Encoding: UTF-8\n", SPACES),
        (b"BagIt-Version: 1.0 \nTag-File-Character-Encoding: UTF-8\n", SPACES),
    ],
)  # fmt: skip
def test_a_declaration_that_is_none(tmp_path: Path, declaration: bytes, why: str) -> None:
    assert faults(make(tags={"bagit.txt": declaration}), tmp_path) == [f"bagit.txt: {why}"]


@pytest.mark.parametrize("end", [b"\r\n", b"\r", b"\n"])
def test_lines_may_end_in_three_ways_and_the_last_one_in_none(tmp_path: Path, end: bytes) -> None:
    declaration = end.join([b"BagIt-Version: 1.0", b"Tag-File-Character-Encoding: UTF-8"])
    listed = manifest(PAYLOAD).replace(b"\n", end)
    files = make(tags={"bagit.txt": declaration, "manifest-sha512.txt": listed})
    assert judged(files, tmp_path).result == BagResult.VALID


def test_no_declaration(tmp_path: Path) -> None:
    files = make()
    del files["bagit.txt"]
    assert faults(files, tmp_path) == ["no bagit.txt: not a bag"]


def test_tag_files_in_latin_1_and_in_utf_16(tmp_path: Path) -> None:
    payload = {NFC: b"coffee"}
    for number, encoding in enumerate(("ISO-8859-1", "UTF-16", "UTF-16LE")):
        declaration = f"BagIt-Version: 1.0\nTag-File-Character-Encoding: {encoding}\n".encode()
        listed = manifest(payload).decode().encode(encoding)
        files = make(payload, tags={"bagit.txt": declaration, "manifest-sha512.txt": listed, "bag-info.txt": b""})
        tags = {path: data for path, data in files.items() if "/" not in path and not path.startswith("tagm")}
        files["tagmanifest-sha512.txt"] = manifest(tags).decode().encode(encoding)
        assert faults(files, tmp_path / str(number)) == []


def test_a_manifest_that_is_not_in_the_encoding(tmp_path: Path) -> None:
    files = make(info=b"", tags={"manifest-sha512.txt": manifest({NFC: b""}).decode().encode("latin-1")})
    assert faults(files, tmp_path)[0] == (
        "manifest-sha512.txt: not in UTF-8, the encoding that bagit.txt declares, at offset 138"
    )


# --- 2.1.2, 2.1.3: payload and its manifests


def test_no_payload_folder(tmp_path: Path) -> None:
    files = make({})
    at = tmp_path / "bag.tar"
    at.write_bytes(bags.tar_bytes(files | {"other/x": b""}))
    assert [str(fault) for fault in bags.verdict(at).faults] == []
    files = {path: data for path, data in files.items() if not path.startswith("data/")}
    (tmp_path / "bag").mkdir()
    for path, data in files.items():
        (tmp_path / "bag" / path).write_bytes(data)
    assert [str(fault) for fault in bags.verdict(tmp_path / "bag").faults] == ["no folder data/"]


def test_no_payload_manifest(tmp_path: Path) -> None:
    files = make(info=b"")
    del files["manifest-sha512.txt"]
    assert faults(sealed(files), tmp_path) == ["no payload manifest"]


@pytest.mark.parametrize(
    "algorithm",
    ["md5", "sha1", "sha224", "sha256", "sha384", "sha512", "sha3_256", "sha3-512", "SHA-256", "blake2b", "blake2s"],
)
def test_every_algorithm_of_hashlib(tmp_path: Path, algorithm: str) -> None:
    name = algorithm.lower().replace("sha-", "sha").replace("sha3-", "sha3_")
    files = make(tags={f"manifest-{algorithm}.txt": manifest(PAYLOAD, name)}, info=b"")
    assert faults(files, tmp_path) == []
    files["data/hello.txt"] = b"hellO\n"
    assert len(faults(files, tmp_path)) == (1 if algorithm == "sha512" else 2)


def test_an_algorithm_without_a_length_of_its_own(tmp_path: Path) -> None:
    lines = "".join(f"{hashlib.shake_256(data).hexdigest(32)}  {path}\n" for path, data in PAYLOAD.items())
    assert faults(make(tags={"manifest-shake256.txt": lines.encode()}), tmp_path) == []


def test_an_algorithm_that_nobody_knows(tmp_path: Path) -> None:
    assert faults(make(tags={"manifest-crc7.txt": b"00  data/hello.txt\n"}), tmp_path) == [
        "manifest-crc7.txt: nothing can be checked by it: no digest called 'crc7' is known here"
    ]


@pytest.mark.parametrize(
    "path", ["data/100%.txt", "data/a\nb.txt", "data/a\r\nb", "data/%0A", "data/%25", "data/ two  "]
)
@pytest.mark.parametrize("kind", KINDS)
def test_names_that_a_manifest_escapes(tmp_path: Path, path: str, kind: str) -> None:
    assert faults(make({path: b"x"}), tmp_path, kind) == []


def test_before_1_0_a_percent_is_itself(tmp_path: Path) -> None:
    listed = hashlib.sha512(b"x").hexdigest()
    files = make(
        {"data/%25.txt": b"x"}, version="0.97", tags={"manifest-sha512.txt": f"{listed} data/%25.txt".encode()}
    )
    assert faults(files, tmp_path) == []


def test_a_percent_that_is_not_escaped(tmp_path: Path) -> None:
    listed = hashlib.sha512(b"x").hexdigest()
    files = make({"data/9%7E.txt": b"x"}, tags={"manifest-sha512.txt": f"{listed} data/9%7E.txt".encode()})
    assert warnings(files, tmp_path) == ["manifest-sha512.txt: a % that is not written %25 (1 lines)"]


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("data/../../escape", "a path with '..', which leads out of the bag"),
        ("../data/escape", "a path with '..', which leads out of the bag"),
        ("data\\..\\..\\escape", "a path with '..', which leads out of the bag"),
        ("/etc/passwd", "an absolute path: a bag's paths begin in the bag"),
        ("\\\\server\\share", "an absolute path: a bag's paths begin in the bag"),
        ("C:\\windows", "an absolute path: a bag's paths begin in the bag"),
        ("~root/.profile", "a path that begins with '~', which a shell takes for a home folder"),
        ("data//x", "not a plain path: it has an empty part, or '.'"),
        ("data/./x", "not a plain path: it has an empty part, or '.'"),
        ("data/x/", "not a plain path: it has an empty part, or '.'"),
        ("data/\0", "a path with a NUL"),
        ("bag-info.txt", "not a payload file: it is not in data/"),
    ],
)
@pytest.mark.parametrize("place", ["manifest-sha512.txt", "fetch.txt"])
def test_a_path_that_leaves_the_bag(tmp_path: Path, path: str, why: str, place: str) -> None:
    head = "http://x.example/y - " if place == "fetch.txt" else f"{hashlib.sha512(b'').hexdigest()}  "
    lines = (b"" if place == "fetch.txt" else manifest(PAYLOAD)) + f"{head}{path}\n".encode()
    number = lines.count(b"\n")
    assert faults(make(tags={place: lines}), tmp_path) == [f"{place}: line {number}: {path}: {why}"]


def test_a_path_that_leaves_the_bag_in_a_tag_manifest(tmp_path: Path) -> None:
    files = make()
    files["tagmanifest-sha512.txt"] += f"{hashlib.sha512(b'').hexdigest()}  ../../etc/passwd\n".encode()
    assert faults(files, tmp_path) == [
        "tagmanifest-sha512.txt: line 4: ../../etc/passwd: a path with '..', which leads out of the bag"
    ]


@pytest.mark.parametrize("line", ["hello", "xyz  data/hello.txt", "abc  data/hello.txt", "abcd  data/hello.txt", "00"])
def test_a_line_that_is_none(tmp_path: Path, line: str) -> None:
    files = make(tags={"manifest-sha512.txt": manifest(PAYLOAD) + line.encode()})
    why = "line 3 is not a sha512 digest in hex, white space and a path"
    assert faults(files, tmp_path) == [f"manifest-sha512.txt: {why}"]


def test_digests_in_upper_case_and_tabs(tmp_path: Path) -> None:
    lines = "".join(f"{hashlib.sha512(data).hexdigest().upper()}\t \t{path}\n" for path, data in PAYLOAD.items())
    assert faults(make(tags={"manifest-sha512.txt": lines.encode()}), tmp_path) == []


def test_a_path_that_is_listed_twice(tmp_path: Path) -> None:
    twice = manifest(PAYLOAD) + manifest({"data/hello.txt": b"hello\n"})
    assert faults(make(tags={"manifest-sha512.txt": twice}), tmp_path) == [
        "manifest-sha512.txt: data/hello.txt is listed twice"
    ]
    assert warnings(make(version="0.97", tags={"manifest-sha512.txt": twice}), tmp_path) == [
        "manifest-sha512.txt: data/hello.txt is listed twice"
    ]
    other = manifest(PAYLOAD) + manifest({"data/hello.txt": b"another"})
    assert faults(make(version="0.97", tags={"manifest-sha512.txt": other}), tmp_path) == [
        "manifest-sha512.txt: data/hello.txt is listed twice, with two digests"
    ]


def test_manifests_that_disagree(tmp_path: Path) -> None:
    """On a digest: whichever is wrong. On the files: since 1.0 all of them list all."""
    wrong = manifest(PAYLOAD | {"data/hello.txt": b"another"}, "sha256")
    [fault] = faults(make(tags={"manifest-sha256.txt": wrong}), tmp_path)
    assert fault.startswith("data/hello.txt: its sha256 is ")
    fewer = {"manifest-sha256.txt": manifest({"data/hello.txt": b"hello\n"}, "sha256")}
    said = "data/more/other.txt: manifest-sha256.txt does not list it"
    assert faults(make(tags=fewer), tmp_path) == [said]
    assert warnings(make(tags=fewer, version="0.97"), tmp_path) == [said]


# --- 2.2: tag files


def test_tag_manifests(tmp_path: Path) -> None:
    files = make(tags={"notes.txt": b"x"})
    listed = {path: files[path] for path in ("bagit.txt", "bag-info.txt", "tagmanifest-sha512.txt")}
    files["tagmanifest-sha512.txt"] = manifest({path: listed[path] for path in ("bagit.txt", "bag-info.txt")})
    found = judged(files, tmp_path)
    assert [str(fault) for fault in found.faults] == [
        "manifest-sha512.txt: tagmanifest-sha512.txt does not list it",
    ]
    assert [str(warning) for warning in found.warnings] == [
        "notes.txt: tagmanifest-sha512.txt does not list it: nothing shows a change of it"
    ]
    files["tagmanifest-md5.txt"] = manifest({path: files[path] for path in files if "/" not in path}, "md5")
    assert "tagmanifest-md5.txt: lists a tag manifest, tagmanifest-sha512.txt" in faults(files, tmp_path)


def test_a_tag_file_in_a_folder_is_digested(tmp_path: Path) -> None:
    files = make()
    files["metadata/mods.xml"] = b"<mods/>"
    files["tagmanifest-sha512.txt"] += manifest({"metadata/mods.xml": b"<mods/>"})
    assert faults(files, tmp_path) == []
    files["metadata/mods.xml"] = b"<mods>"
    [fault] = faults(files, tmp_path)
    assert fault.startswith("metadata/mods.xml: its sha512 is ")


@pytest.mark.parametrize(
    ("info", "found"),
    [
        (b"Payload-Oxum: 13.2\n", "Payload-Oxum is 13.2, but the payload has 12.2"),
        (b"Payload-Oxum: 12.3\n", "Payload-Oxum is 12.3, but the payload has 12.2"),
        (b"payload-oxum: 1\n  2.2\n", "Payload-Oxum is '1 2.2', not OCTETS.FILES"),
        (b"no colon\n", "line 1 has no label and colon"),
        (b" continues nothing: 1\n", "line 1 has no label and colon"),
        (b"Label : value\n", "line 1: white space before the colon"),
    ],
)
def test_a_bag_info_that_does_not_fit(tmp_path: Path, info: bytes, found: str) -> None:
    assert faults(make(info=info), tmp_path) == [f"bag-info.txt: {found}"]


def test_a_bag_info_with_all_that_it_may_have(tmp_path: Path) -> None:
    info = (
        b"Source-Organization: Spengler University\nExternal-Description: images from the\n\t Yoshimuri collection\n"
        b"Label: 1\nLabel: 2\nlabel:\nBagging-Date: 2026-11-22\nBag-Count: 1 of ?\nPayload-Oxum: 12.2\n\n"
    )
    assert warnings(make(info=info), tmp_path) == []
    info = b"Bagging-Date: yesterday\nBag-Count: 1/2\nPayload-Oxum: 12.2\nPayload-Oxum: 12.2\n"
    assert warnings(make(info=info), tmp_path) == [
        "bag-info.txt: Bagging-Date is 'yesterday', not YYYY-MM-DD",
        "bag-info.txt: Bag-Count is '1/2', not N of T",
        "bag-info.txt: Payload-Oxum is there more than once",
    ]


# --- 2.2.3: fetch.txt

URL = "http://store.example/hello.txt"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("length", ["6", "-"])
def test_an_incomplete_bag_lists_what_is_to_be_fetched(tmp_path: Path, kind: str, length: str) -> None:
    files = make(tags={"fetch.txt": f"{URL} {length} data/hello.txt\n".encode()})
    assert judged(files, tmp_path / "filled" if kind == "folder" else tmp_path, kind).result == BagResult.VALID
    del files["data/hello.txt"]
    found = judged(files, tmp_path, kind)
    assert (found.result, found.faults) == (BagResult.INCOMPLETE, ())
    assert found.to_fetch == (FetchLine(URL, 6 if length == "6" else None, "data/hello.txt"),)


def test_what_is_to_be_fetched_counts_in_the_oxum(tmp_path: Path) -> None:
    files = make(tags={"fetch.txt": f"{URL} 7 data/hello.txt\n".encode()})
    del files["data/hello.txt"]
    said = "bag-info.txt: Payload-Oxum is 12.2, but the payload has 13.2, with the 1 to be fetched"
    assert faults(files, tmp_path) == [said]


@pytest.mark.parametrize("line", ["data/hello.txt", f"{URL} six data/hello.txt", "x - data/hello.txt", f"{URL} -"])
def test_a_fetch_line_that_is_none(tmp_path: Path, line: str) -> None:
    why = "fetch.txt: line 1 is not a URL, a length or '-', and a path"
    assert faults(make(tags={"fetch.txt": line.encode()}), tmp_path) == [why]


def test_what_is_fetched_is_in_every_manifest_and_named_once(tmp_path: Path) -> None:
    lines = f"{URL} 6 data/hello.txt\n{URL} 6 data/hello.txt\n{URL} - data/third.txt\n"
    assert faults(make(info=b"", tags={"fetch.txt": lines.encode()}), tmp_path) == [
        "fetch.txt: line 2: data/hello.txt is listed twice",
        "data/third.txt: fetch.txt names it, but manifest-sha512.txt does not list it",
    ]


# --- names that are alike


def test_nfc_beside_nfd_and_case(tmp_path: Path) -> None:
    found = warnings(make({NFC: b"1", NFD: b"2", "data/HELLO": b"", "data/hello": b""}), tmp_path)
    assert sorted(found) == sorted(
        [
            f"{NFC}: differs from {NFD} only in the form of its characters (Unicode's NFC and NFD)",
            "data/hello: differs from data/HELLO only in case",
        ]
    )


def test_a_file_system_that_changed_the_form_of_a_name(tmp_path: Path) -> None:
    files = make({NFC: b"coffee"})
    files[NFD] = files.pop(NFC)
    [warning, _] = warnings(files, tmp_path)
    assert warning == f"{NFD}: manifest-sha512.txt writes its name in another form of Unicode"
    files[NFD] = b"tea"
    assert faults(files, tmp_path)[0].startswith(f"{NFC}: its sha512 is ")


def test_md5sum_and_dot_slash(tmp_path: Path) -> None:
    def changed(by: Callable[[bytes], bytes]) -> list[str]:
        return warnings(make(tags={"manifest-sha512.txt": by(manifest(PAYLOAD))}), tmp_path)

    assert changed(lambda lines: lines.replace(b"  data", b" *data")) == [
        "manifest-sha512.txt: an asterisk before the path, as md5sum writes it (2 lines)"
    ]
    assert changed(lambda lines: lines.replace(b" data", b" ./data")) == [
        "manifest-sha512.txt: './' before the path (2 lines)"
    ]
