"""What is hidden: prefixes that never hide a neighbour, decisions in their order, and folds that keep to them."""

from __future__ import annotations

from pathlib import Path

import pytest
from indexing.indexed import Archive
from records.captures import capture, response
from records.warcs import warc_gz, warcinfo

from warcmill.errors import BadInput
from warcmill.versions import fold, hidden_list
from warcmill.versions.hidden_list import Hidden
from warcmill.versions.segments import made_of
from warcmill.versions.verify import READINGS

ONE, TWO = "20161019234428", "20161020234428"
URLS = ("a.example/", "a.example/x", "b.example/", "www.sub.b.example/", "b.example:8080/", "bb.example/", "c.example/")
KEYS = [
    "example,a)/", "example,a)/x", "example,b)/", "example,b,sub)/", "example,b:8080)/", "example,bb)/", "example,c)/",
]  # fmt: skip


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    made = Archive(tmp_path)
    made.add(ONE, {"a.warc.gz": warc_gz(warcinfo(), *(response(f"http://{url}") for url in URLS))})
    made.fold()
    return made


def hide(archive: Archive, surt: str, *, hides: bool = True) -> None:
    hidden_list.decide(archive.state.store, lambda: archive.store, surt, "a court's order", hides=hides)


def shown(entries: list[str], lines: list[str]) -> tuple[list[str], set[str]]:
    met: set[str] = set()
    prefixes = Hidden(1, dict.fromkeys(entries, "")).prefixes()
    return [line.decode() for line in hidden_list.visible((one.encode() for one in lines), prefixes, met)], met


@pytest.mark.parametrize(
    ("entry", "gone"),
    [
        ("example,b", ["example,b)/", "example,b,sub)/", "example,b:8080)/"]),
        ("example,b,", ["example,b,sub)/"]),
        ("example,b)", ["example,b)/"]),
        ("example,a)/", ["example,a)/", "example,a)/x"]),
        ("example,a)/x", ["example,a)/x"]),
        ("example", KEYS),
        ("example,a)/ 20161019234428", ["example,a)/"]),
        ("example,a)/ 2016", ["example,a)/"]),
        ("example,a)/ 2017", []),
        ("org", []),
    ],
)
def test_an_entry_hides_what_it_means_and_no_neighbour(archive: Archive, entry: str, gone: list[str]) -> None:
    hide(archive, entry)
    archive.fold()
    assert archive.keys() == [key for key in KEYS if key not in gone]
    hide(archive, entry, hides=False)
    archive.fold()
    assert archive.keys() == KEYS
    assert archive.lists.numbers() == [1, 2, 3]


@pytest.mark.parametrize(
    "text", ["", "http://a.example/", "example,ä", "example,a)/ x", "a b c", "a\n", "a)/ " + "1" * 15]
)
def test_what_is_no_surt_is_refused(archive: Archive, text: str) -> None:
    with pytest.raises(BadInput):
        hide(archive, text)
    assert hidden_list.decisions(archive.state.store) == []


def test_a_person_may_spell_a_host_in_any_way() -> None:
    assert hidden_list.entry_of("https://Stra\u00dfe.example/A") == "example,xn--strae-oqa)/a "
    assert hidden_list.entry_of("example,b\u00fccher)/a/") == "example,xn--bcher-kva)/a/"
    assert hidden_list.entry_of("ORG,Example") == "org,example"
    assert hidden_list.entry_of("http://3232235521/") == hidden_list.entry_of("http://192.168.0.1./")


DNS = ["dns:a.example 1", "dns:b.example 1", "dns:sub.b.example 1", "dns:www.b.example 1", "dns:bb.example 1"]


@pytest.mark.parametrize(
    ("entry", "gone"),
    [
        ("example,b", DNS[1:4]),
        ("example,b)/", [DNS[1], DNS[3]]),
        ("example,b)", [DNS[1], DNS[3]]),
        ("example,b,", [DNS[2]]),
        ("example", DNS),
        ("example,b)/page", []),
        ("example,b)/ 1", []),
        ("dns:b.example", [DNS[1]]),
        ("dns:", DNS),
    ],
)
def test_who_hides_a_host_hides_its_dns_records(entry: str, gone: list[str]) -> None:
    lines = [*DNS, "example,a)/ 1", "example,b)/page 1"]
    assert [line for line in DNS if line not in shown([entry], lines)[0]] == gone
    prefixes = tuple(Hidden(1, {entry: ""}).prefixes())
    assert [line for line in DNS if hidden_list.is_hidden(line.encode(), prefixes)] == gone

    def look_up(prefix: bytes) -> list[bytes]:
        return [line.encode() for line in lines if line.encode().startswith(prefix)]

    found = [line.decode() for line in hidden_list.hidden_lines(look_up, prefixes)]
    assert sorted(found) == sorted(set(lines) - set(shown([entry], lines)[0]))


def test_a_version_published_with_the_dns_record_of_a_hidden_host_loses_it(archive: Archive) -> None:
    record = capture("resource", "dns:b.example", b"b.example. 3600 IN A 10.0.0.1", "text/dns")
    archive.add(TWO, {"b.warc.gz": warc_gz(warcinfo(), record)})
    archive.fold()
    assert archive.keys()[0] == "dns:b.example"
    hide(archive, "example,b")
    archive.fold()
    assert archive.keys() == [key for key in KEYS if not key.startswith("example,b") or key == "example,bb)/"]


OF_PAGES = [
    "screenshot:https://b.example 1", "thumbnail:https://b.example/p/1 2",
    "urn:pageinfo:https://www.b.example/p?a=1&b=2 1",
    "urn:text:http://b.example:8080/p 1", "urn:view:https://bb.example/p 1", "youtube-dl:00001:https://b.example/p 1",
    "youtube-dl:https://sub.b.example/p 1",
]  # fmt: skip
OTHERS = ["urn:uuid:6d06 1", "urn:x-wpull:log 1", "urn:text:b.example/p 1"]


@pytest.mark.parametrize(
    ("entry", "gone"),
    [
        ("example,b", [*OF_PAGES[:4], *OF_PAGES[5:]]),
        ("example,b)/", [*OF_PAGES[:3], OF_PAGES[5]]),
        ("example,b)/p", [*OF_PAGES[1:3], OF_PAGES[5]]),
        ("example,b)/p 1", [OF_PAGES[5]]),
        ("example,b:8080)/p", [OF_PAGES[3]]),
        ("urn:text:", [OF_PAGES[3], OTHERS[2]]),
    ],
)
def test_who_hides_a_page_hides_what_a_crawler_kept_beside_it(entry: str, gone: list[str]) -> None:
    lines = sorted([*OF_PAGES, *OTHERS, "example,a)/ 1"])
    assert sorted(set(lines) - set(shown([entry], lines)[0])) == sorted(gone)
    prefixes = tuple(Hidden(1, {entry: ""}).prefixes())
    assert [line for line in lines if hidden_list.is_hidden(line.encode(), prefixes)] == sorted(gone)

    def look_up(prefix: bytes) -> list[bytes]:
        return [line.encode() for line in lines if line.encode().startswith(prefix)]

    assert sorted(line.decode() for line in hidden_list.hidden_lines(look_up, prefixes)) == sorted(gone)


def test_a_version_published_with_the_text_of_a_hidden_page_loses_it_and_verify_names_it_before(
    archive: Archive,
) -> None:
    record = capture("resource", "urn:text:http://d.example/", b"its words", "text/plain")
    archive.add(TWO, {"b.warc.gz": warc_gz(warcinfo(), record)})
    archive.fold()
    assert archive.keys()[-1] == "urn:text:http://d.example"
    published = archive.payloads.current()
    assert published
    said = Hidden(1, {"example,d": ""})
    found = [one for segment in published.segments for one in READINGS["cdx"].shown(archive.index, segment, said)]
    assert len(found) == 1
    hide(archive, "example,d")
    archive.fold()
    assert archive.keys() == KEYS


def test_of_prefixes_that_begin_alike_the_shortest_counts() -> None:
    lines = ["a)/ 1", "a)/x 1", "a)/xy 1", "b)/ 1"]
    assert shown(["a)/x", "a)/", "a)/xy"], lines) == (["b)/ 1"], {"a)/"})
    assert shown(["a)/xy", "a)/x 1"], lines) == (["a)/ 1", "b)/ 1"], {"a)/xy", "a)/x 1"})
    assert shown([], lines) == (lines, set())


def test_hidden_stays_hidden_in_new_launches_and_through_a_base(archive: Archive) -> None:
    hide(archive, "example,b")
    archive.fold()
    more = (response("http://b.example/new"), response("http://d.example/"))
    archive.add(TWO, {"b.warc.gz": warc_gz(warcinfo(), *more)})
    archive.fold()
    visible = [*(key for key in KEYS if not key.startswith("example,b") or key == "example,bb)/"), "example,d)/"]
    assert archive.keys() == visible
    archive.fold(base=True)
    assert archive.keys() == visible
    assert [one.hiding.decisions for one in archive.lists.all()] == [0, 1, 1, 1]
    assert len({one.hiding.sha512 for one in archive.lists.all()}) == 2


def test_a_segment_without_what_is_hidden_is_kept(archive: Archive) -> None:
    before = archive.payloads.current()
    hide(archive, "org,elsewhere")
    assert archive.fold() == fold.Folded(2, new=True)
    after = archive.payloads.current()
    assert before
    assert after
    assert [one.name for one in before.segments] == [one.name for one in after.segments]
    hide(archive, "example,c")
    archive.fold()
    after = archive.payloads.current()
    assert after
    assert made_of(archive.index, after.segments[0]).hidden == {"example,c"}


def test_all_hidden_is_a_version_without_a_line(archive: Archive) -> None:
    hide(archive, "example")
    assert archive.fold() == fold.Folded(2, new=True)
    assert archive.keys() == []
    assert archive.fold() == fold.Folded(2, new=False)
    hide(archive, "example", hides=False)
    archive.fold()
    assert archive.keys() == KEYS


def test_the_same_list_again_makes_no_version(archive: Archive) -> None:
    hide(archive, "example,c")
    hide(archive, "example,c", hides=False)
    assert archive.fold() == fold.Folded(1, new=False)
    state = hidden_list.read(archive.state.store)
    assert (state.decisions, dict(state.entries)) == (2, {})
    assert hidden_list.read(archive.state.store, 1).entries == {"example,c": "a court's order"}


def test_a_damaged_decision_stops_the_fold(archive: Archive) -> None:
    hide(archive, "example,c")
    path = archive.state.store.real("decisions/access/000001.json")
    path.chmod(0o644)
    path.write_bytes(path.read_bytes().replace(b"example,c", b"example,d"))
    with pytest.raises(BadInput, match="cut or altered; move it out of the state, then bring it back from the store"):
        archive.fold()
    assert archive.keys() == KEYS
