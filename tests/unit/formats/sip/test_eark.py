"""formats/eark, mets, dublin_core, xml_text: a whole package, valid by its own schemas, the same bytes each time."""

from __future__ import annotations

import hashlib
import tracemalloc
import unicodedata
from pathlib import Path
from random import Random
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree
from msgspec.structs import replace
from packing.packages import HOSTILE, IDENTIFIER, package, schema_of, write
from packing.premis_checker import faults

from warcmill.errors import BadInput
from warcmill.formats.sip import eark, mets, xml

METS = "{http://www.loc.gov/METS/}"
HREF = "{http://www.w3.org/1999/xlink}href"
CSIP = "{https://DILCIS.eu/XML/METS/CSIPExtensionMETS}"
FILES: dict[tuple[eark.Kind, str], bytes] = {
    ("warcs", "a.warc.gz"): b"one",
    ("warcs", "b.warc"): b"two",
    ("viral", "v.warc.gz"): b"bad",
    ("logs", "02.logs.weekly.20261121081735.final.zip"): b"PK",
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return write(package(FILES), tmp_path, FILES)


def documents(home: Path) -> list[Path]:
    return sorted(home.rglob("METS.xml"))


def test_every_mets_is_valid_by_the_schemas_it_carries(home: Path) -> None:
    schema = schema_of(home)
    assert len(documents(home)) == 4
    for path in documents(home):
        assert schema.validate(etree.parse(path)), schema.error_log


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'CHECKSUMTYPE="SHA-512"', b'CHECKSUMTYPE="SHA-513"'),
        (b'CONTENTINFORMATIONTYPE="OTHER"', b'CONTENTINFORMATIONTYPE="WARC"'),
        (b'OAISPACKAGETYPE="SIP"', b'OAISPACKAGETYPE="ZIP"'),
        (b"structMap", b"structMop"),
        (b'xlink:type="simple"', b'xlink:type="plain"'),
    ],
)
def test_the_schemas_notice(home: Path, old: bytes, new: bytes) -> None:
    root = (home / "METS.xml").read_bytes()
    assert old in root
    assert not schema_of(home).validate(etree.fromstring(root.replace(old, new)))


def test_ids_are_unique_in_the_package_and_every_reference_names_one(home: Path) -> None:
    """libxml2 does not compare IDs with references to them."""
    known: list[str] = []
    for document in documents(home):
        elements = list(etree.parse(document).iter())
        here = [one.get("ID") for one in elements if one.get("ID")]
        named = [one.get(name) for one in elements for name in ("DMDID", "ADMID", "FILEID") if one.get(name)]
        assert named
        assert set(named) <= set(here)
        known += here
    assert len(known) == len(set(known))


def test_every_file_is_listed_once_with_its_size_and_digest(home: Path) -> None:
    """By another way than the writer's: what the METS files name, beside what is there."""
    listed = {}
    for document in documents(home):
        for element in etree.parse(document).iter(f"{METS}file", f"{METS}mdRef"):
            where = element if element.get(HREF) else element[0]
            path = document.parent / unquote(where.get(HREF))
            assert path not in listed
            listed[path] = (int(element.get("SIZE")), element.get("CHECKSUM"))
    there = {path for path in home.rglob("*") if path.is_file()} - {home / "METS.xml"}
    assert listed == {path: (path.stat().st_size, hashlib.sha512(path.read_bytes()).hexdigest()) for path in there}


def test_the_root_says_what_the_package_is(home: Path) -> None:
    root = etree.parse(home / "METS.xml").getroot()
    assert (root.get("OBJID"), root.get("TYPE"), root.get("PROFILE")) == (home.name, "Websites", mets.PROFILE)
    assert root.get(f"{CSIP}CONTENTINFORMATIONTYPE") == "OTHER"
    header = root[0]
    assert header.get("RECORDSTATUS") == "NEW"
    assert [name.text for name in header.iter(f"{METS}name")] == ["Warcmill", "National Library & Archive"]
    assert [one.text for one in header.iter(f"{METS}altRecordID")] == ["agreement 2026/1"]


def test_a_package_made_anew_names_the_one_it_replaces(tmp_path: Path) -> None:
    home = write(package(FILES, replaces=f"{IDENTIFIER}.1"), tmp_path, FILES)
    header = etree.parse(home / "METS.xml").getroot()[0]
    assert header.get("RECORDSTATUS") == "REPLACEMENT"
    named = {one.get("TYPE"): one.text for one in header.iter(f"{METS}altRecordID")}
    assert named == {"SUBMISSIONAGREEMENT": "agreement 2026/1", "REPLACES": f"{IDENTIFIER}.1"}
    assert schema_of(home).validate(etree.parse(home / "METS.xml"))


def test_types_are_of_the_list_that_validators_know(home: Path) -> None:
    kinds = {
        unquote(file[0].get(HREF)): file.get("MIMETYPE")
        for document in documents(home)[1:]
        for file in etree.parse(document).iter(f"{METS}file")
    }
    assert {kind.partition(".")[2]: mime for kind, mime in kinds.items()} == {
        "warc.gz": "application/gzip",
        "warc": "application/octet-stream",
        "logs.weekly.20261121081735.final.zip": "application/zip",
    }


def test_the_preservation_metadata_is_as_the_dictionary_has_it(home: Path) -> None:
    assert faults((home / eark.PRESERVATION).read_bytes()) == []


def test_hostile_names_have_a_path_that_every_reader_takes_and_keep_their_own(tmp_path: Path) -> None:
    files: dict[tuple[eark.Kind, str], bytes] = {("warcs", name): name.encode() for name in HOSTILE}
    made = package(files)
    home = write(made, tmp_path, files)
    written = {path.name: path.read_bytes().decode() for path in (home / "representations/warcs/data").iterdir()}
    assert written == {one.renamed or one.name: one.name for one in made.files}
    schema, document = schema_of(home), etree.parse(home / "representations/warcs/METS.xml")
    assert schema.validate(document), schema.error_log
    hrefs = [where.get(HREF) for where in document.iter(f"{METS}FLocat")]
    assert [unquote(one) for one in hrefs] == [f"data/{one.renamed or one.name}" for one in made.files]
    assert all(one.isascii() and not set(one) & set(' "+<>\\^`{|}') for one in hrefs)
    preserved = (home / eark.PRESERVATION).read_bytes()
    assert faults(preserved) == []
    objects = list(etree.fromstring(preserved).iter("{*}object"))[1:]
    located = [unquote(one.findtext(".//{*}contentLocationValue")) for one in objects]
    assert located == [one.path for one in made.files]
    assert [one.findtext("{*}originalName") for one in objects] == [
        "".join(char if char.isprintable() or char in "\r\n\t\x7f" else "\ufffd" for char in name) for name in HOSTILE
    ]
    own = [unquote(one.findtext(".//{*}objectIdentifierValue")).rpartition("/")[2] for one in objects]
    assert own == list(HOSTILE), "each byte is in the identifier, also where XML cannot carry it"


def renamed(*names: str) -> dict[str, str]:
    """The names in a package of files with these names."""
    files = eark.placed(package({("warcs", name): b"" for name in names}).files)
    assert [one.name for one in files] == list(names)
    return {one.name: one.path.rpartition("/")[2] for one in files}


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        (["b.warc.gz", "a.warc.gz"], ["b.warc.gz", "a.warc.gz"]),
        (["a.warc.gz", "A.WARC.GZ", "A.warc.gz"], ["a~3.warc.gz", "A.WARC.GZ", "A~2.warc.gz"]),
        (["cafe\u0301.warc", "caf\u00e9.warc"], ["cafe\u0301~2.warc", "caf\u00e9.warc"]),
        (["STRASSE.warc", "stra\u00dfe.warc"], ["STRASSE.warc", "stra\u00dfe~2.warc"]),
        (["\ufb01.warc", "fi.warc"], ["\ufb01~2.warc", "fi.warc"]),
        (["a%20b.warc.gz", "a_20b.warc.gz"], ["a_20b~2.warc.gz", "a_20b.warc.gz"]),
        (["a%.warc", "a%.WARC"], ["a_~2.warc", "a_.WARC"]),
        (["a.warc", "A.warc", "a~2.warc"], ["a~3.warc", "A.warc", "a~2.warc"]),
        (["x.warc.gz.open", "X.warc.gz.open", "X.warc.gz"], ["x~2.warc.gz.open", "X.warc.gz.open", "X.warc.gz"]),
        (["a\r\nb\x85\u2028.warc"], ["a__b__.warc"]),
        ([f"{'n' * 247}.warc.gz", f"{'N' * 247}.warc.gz"], [f"{'n' * 245}~2.warc.gz", f"{'N' * 247}.warc.gz"]),
        (
            ["\u00fc" * 123 + ".warc.gz", "\u00dc" * 123 + ".warc.gz"],
            ["\u00fc" * 122 + "~2.warc.gz", "\u00dc" * 123 + ".warc.gz"],
        ),
    ],
)
def test_names_that_a_disk_takes_for_one_are_parted(names: list[str], wanted: list[str]) -> None:
    assert renamed(*names) == dict(zip(names, wanted, strict=True))


_CHARS = st.sampled_from("aA%_~2\u00e9\u00c9e\u0301\u00df\u0130\r\x85.")
_NAMES = st.lists(st.text(_CHARS, min_size=1, max_size=4).map(lambda stem: f"{stem}.warc.gz"), unique=True, max_size=8)


@given(_NAMES, st.randoms(use_true_random=False))
def test_any_names_are_unlike_on_every_disk_whatever_their_order(names: list[str], mixed: Random) -> None:
    found = renamed(*names)
    places = [unicodedata.normalize("NFC", place.casefold()) for place in found.values()]
    assert len(set(places)) == len(names)
    assert not any(set(place) & set("%\r\n\x85") for place in found.values())
    assert renamed(*mixed.sample(names, len(names))) == found


def test_names_of_two_kinds_are_in_two_folders() -> None:
    files = eark.placed(package({("warcs", "a.warc"): b"1", ("viral", "A.warc"): b"2"}).files)
    assert [one.renamed for one in files] == ["", ""]


def test_a_representation_without_a_file_is_left_out(tmp_path: Path) -> None:
    files = {key: data for key, data in FILES.items() if key[0] == "logs"}
    home = write(package(files), tmp_path, files)
    assert [path.name for path in (home / "representations").iterdir()] == ["logs"]
    assert schema_of(home).validate(etree.parse(home / "METS.xml"))


def test_a_package_without_a_file_is_sound_too(tmp_path: Path) -> None:
    home = write(package({}), tmp_path, {})
    assert schema_of(home).validate(etree.parse(home / "METS.xml"))
    assert faults((home / eark.PRESERVATION).read_bytes()) == []


def test_the_same_values_give_the_same_bytes_and_documents_can_be_read_again() -> None:
    first, second = eark.documents(package(FILES)), eark.documents(package(FILES))
    for one, other in zip(first, second, strict=True):
        data = b"".join(one.chunks())
        assert data == b"".join(other.chunks()) == b"".join(one.chunks())
        assert (one.size, one.sha512) == (len(data), hashlib.sha512(data).hexdigest())


def test_members_come_in_the_order_of_their_paths() -> None:
    made = package(FILES)
    paths = [member.path for member in eark.members(made.files, eark.documents(made))]
    assert paths == sorted(paths)
    assert len(paths) == len(FILES) + 11


@pytest.mark.parametrize("name", ["", ".", "..", "a/b.warc", "../METS.xml", "a\0b"])
def test_a_name_that_leaves_its_folder_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match="not a name"):
        eark.documents(package({("warcs", name): b""}))


def test_two_files_of_one_name_are_refused_within_a_kind_only() -> None:
    made = package({("warcs", "a.warc"): b"1", ("viral", "a.warc"): b"2"})
    assert eark.documents(made)
    with pytest.raises(BadInput, match="would be in viral of one package twice"):
        eark.documents(replace(made, files=[*made.files, made.files[-1]]))


def test_a_large_package_is_never_in_memory() -> None:
    """5,000 files: about 10 MB of documents."""
    one = package(FILES).files[0]
    made = replace(package(FILES), files=[one._replace(name=f"{number}.warc.gz") for number in range(5_000)])
    tracemalloc.start()
    sizes = sum(document.size for document in eark.documents(made))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sizes > 8_000_000
    assert peak < 2_000_000


def test_a_description_has_each_element_as_often_as_its_values() -> None:
    described = xml.Description(("a & b",), creator=("",), source=("http://a.example/?x=<1>", "http://b.example/"))
    root = etree.fromstring(b"".join(xml.write(described)))
    assert [(etree.QName(one).localname, one.text) for one in root] == [
        ("title", "a & b"),
        ("type", "Collection"),
        ("source", "http://a.example/?x=<1>"),
        ("source", "http://b.example/"),
    ]


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]) | st.sampled_from("\t\n\r\"'&<>]")))
def test_text_is_read_back_equal(text: str) -> None:
    escaped = xml.escape(text.replace("\ufffe", "").replace("\uffff", ""))
    read = etree.fromstring(f'<a b="{escaped}">{escaped}</a>'.encode())
    assert (read.text or "") == read.get("b") == text.replace("\ufffe", "").replace("\uffff", "")


@given(st.text(st.characters(codec="utf-8")))
def test_any_text_gives_sound_xml(text: str) -> None:
    etree.fromstring(f"<a>{xml.escape(text)}</a>".encode())
    assert unquote(xml.href(text)) == text


def test_a_header_without_an_organisation_has_only_the_software() -> None:
    header = mets.Header("x", "2026-11-21T09:00:00Z", "Warcmill", "0.9")
    root = etree.fromstring(b"".join(mets.representation(header, "warcs", [])))
    assert [name.text for name in root.iter(f"{METS}name")] == ["Warcmill"]
