"""The WACZ of a second crawl: the originals of its revisits, what is not to be had of them, and what is hidden."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from zipfile import ZipFile

import pytest
from indexing.indexed import Archive
from records.captures import capture, posted, request, response, revisit
from records.warcs import member, sha1, warc_gz, warcinfo

from warcmill import layout
from warcmill.errors import Mismatch
from warcmill.extracts.extracts import Extracts
from warcmill.extracts.text import TEXT
from warcmill.model import FINAL, Launch
from warcmill.package.wacz import WaczSources, WrittenWacz, contents, write
from warcmill.versions import hidden_list

FIRST, SECOND = "20161001000000", "20161101000000"
THEN, NOW = "2016-10-01T00:00:00Z", "2016-11-01T00:00:00Z"
PAGE, PICTURE = "http://e.x/", "http://e.x/i.png"
HTML = b"<html><title>First &amp; last</title><p>words of the page</p></html>"
PROFILES = "http://netpreserve.org/warc/1.0/revisit/"


def page(url: str = PAGE, body: bytes = HTML, date: str = THEN) -> bytes:
    return response(url, b"Content-Type: text/html", body=body, WARC_Date=date, WARC_Payload_Digest=sha1(body))


def again(url: str = PAGE, body: bytes = HTML, *, of: str = "", date: str = NOW) -> bytes:
    """A revisit that names its original, as the built-in crawler and Heritrix write it."""
    named = {"WARC_Refers_To_Target_URI": of or url, "WARC_Refers_To_Date": THEN, "WARC_Date": date}
    return revisit(url, sha1(body), WARC_Profile=f"{PROFILES}identical-payload-digest", **named)


def unchanged(url: str = PAGE, **named: str) -> bytes:
    """A revisit that the server answered with 304."""
    about = {"WARC_Profile": f"{PROFILES}server-not-modified", "WARC_Date": NOW, **named}
    return capture("revisit", url, b"HTTP/1.1 304 Not Modified\r\n\r\n", "application/http; msgtype=response", **about)


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return Archive(tmp_path)


def of_second(archive: Archive, *records: bytes, name: str = "second.warc.gz") -> Launch:
    launch = archive.add(SECOND, {name: warc_gz(warcinfo(), *records)})
    archive.fold()
    return launch


def made(
    archive: Archive, launch: Launch, *, extracts: bool = True, originals: bool = True
) -> tuple[dict[str, bytes], WrittenWacz]:
    """The members of the WACZ of a launch, and what is reported of it."""
    target = io.BytesIO()
    sources = WaczSources(archive.state, archive.store, Extracts(archive.index) if extracts else None, archive.base)
    what = contents(archive.state, launch, None)
    written = write(sources, what, target, lambda _: None, with_originals=originals)
    with ZipFile(target) as opened:
        assert opened.testzip() is None
        return {name: opened.read(name) for name in opened.namelist()}, written


def lines(members: dict[str, bytes]) -> list[tuple[str, str, str]]:
    """URL, time and file of each line; the record of each is where the line has it."""
    found = []
    for line in gzip.decompress(members["indexes/index.cdx.gz"]).decode().splitlines():
        _, time, text = line.split(" ", 2)
        fields = json.loads(text)
        begin = int(fields["offset"])
        data = members[f"archive/{fields['filename']}"][begin : begin + int(fields["length"])]
        data = gzip.decompress(data) if fields["filename"].endswith(".gz") else data
        assert fields["url"].encode() in data
        found.append((fields["url"], time, fields["filename"]))
    return found


def listed(members: dict[str, bytes], name: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in members[f"pages/{name}.jsonl"].splitlines()[1:]]


def lost(written: WrittenWacz) -> Iterable[tuple[int, str, tuple[str, ...]]]:
    return [(one.captures, one.why, one.where) for one in written.lost]


def test_originals_are_copied_byte_for_byte_from_the_launch_that_has_them(archive: Archive) -> None:
    picture = response(PICTURE, b"Content-Type: image/png", WARC_Date=THEN, WARC_Payload_Digest=sha1(b"x"))
    archive.add(FIRST, {"first.warc.gz": warc_gz(warcinfo(), page(), picture, page("http://e.x/other", b"else"))})
    launch = of_second(archive, again(), again(PICTURE, b"x"))
    members, written = made(archive, launch)
    copied = "originals.daily.20161001000000.first.warc.gz"
    assert members[f"archive/{copied}"] == member(page()) + member(picture)
    assert lines(members) == [
        (PAGE, "20161001000000", copied),
        (PAGE, "20161101000000", "second.warc.gz"),
        (PICTURE, "20161001000000", copied),
        (PICTURE, "20161101000000", "second.warc.gz"),
    ]
    assert (written.captures, written.lost) == (2, [])
    assert written.originals == {"daily/20161001000000/first.warc.gz": 2}
    assert [(one["url"], one["ts"], one["title"]) for one in listed(members, "extraPages")] == [
        (PAGE, "2016-11-01T00:00:00Z", "First & last")
    ]
    assert listed(members, "pages") == []


def test_without_originals_they_are_counted_and_left_out(archive: Archive) -> None:
    archive.add(FIRST, {"first.warc.gz": warc_gz(warcinfo(), page())})
    members, written = made(archive, of_second(archive, again()), originals=False)
    assert [name for name in members if name.startswith("archive/")] == ["archive/second.warc.gz"]
    assert (written.originals, written.lost) == ({"daily/20161001000000/first.warc.gz": 1}, [])
    assert len(lines(members)) == 1


def test_what_players_show_as_empty_gives_way_to_its_original(archive: Archive) -> None:
    """A 304 with the time of its original, as the built-in crawler writes it; and one with a digest alone: Heritrix."""
    later = page(body=b"<p>newer", date="2016-10-05T00:00:00Z")
    archive.add(FIRST, {"first.warc.gz": warc_gz(warcinfo(), page(), later)})
    named = {"WARC_Refers_To_Target_URI": PAGE, "WARC_Refers_To_Date": THEN}
    one = of_second(archive, unchanged(**named))
    members, written = made(archive, one)
    assert [time for _, time, _ in lines(members)] == ["20161001000000"]
    assert (written.captures, [page["ts"] for page in listed(members, "extraPages")]) == (1, [NOW])
    other = archive.add(
        "20161102000000", {"a.warc.gz": warc_gz(warcinfo(), unchanged(WARC_Payload_Digest=sha1(b"<p>newer")))}
    )
    archive.fold()
    members, written = made(archive, other)
    assert ([time for _, time, _ in lines(members)], written.lost) == (["20161005000000"], [])
    members, written = made(archive, other, originals=False)
    assert [time for _, time, _ in lines(members)] == ["20161101000000"]


def test_originals_of_a_launch_that_was_retired_are_in_the_store(archive: Archive) -> None:
    archive.add(FIRST, {"first.warc.gz": warc_gz(warcinfo(), page())})
    launch = of_second(archive, again())
    shutil.rmtree(archive.base / "line/output")
    assert made(archive, launch)[1].lost == []


def test_a_revisit_of_another_url_needs_that_url(archive: Archive) -> None:
    archive.add(FIRST, {"first.warc.gz": warc_gz(warcinfo(), page("http://b.x/"), page("http://c.x/", b"other"))})
    launch = of_second(archive, again(of="http://b.x/"), again("http://d.x/", b"other", of="http://gone.x/"))
    members, written = made(archive, launch)
    assert [url for url, _, _ in lines(members)] == ["http://b.x/", "http://d.x/", PAGE]
    warc = "daily/20161001000000/first.warc.gz"
    assert lost(written) == [(1, "of another URL or time: players do not look there", (warc,))]


def test_an_original_is_of_the_very_url_also_where_another_one_has_its_key(archive: Archive) -> None:
    capital, small = page("http://e.x/A", b"<p>capital"), page("http://e.x/a", b"<p>small")
    archive.add(FIRST, {"first.warc.gz": warc_gz(warcinfo(), small, capital, page("http://www.e.x/b"))})
    named = {"WARC_Refers_To_Target_URI": "https://e.x/A", "WARC_Refers_To_Date": THEN}
    launch = of_second(archive, unchanged("http://e.x/A", **named), again("http://e.x/b"))
    members, written = made(archive, launch)
    assert [url for url, _, _ in lines(members)] == ["http://e.x/A", "http://e.x/b"]
    assert [(number, why) for number, why, _ in lost(written)] == [
        (1, "of another URL or time: players do not look there")
    ]


def test_an_original_in_the_launch_itself_is_not_copied(archive: Archive) -> None:
    launch = of_second(archive, page(), again(), unchanged("http://e.x/"))
    members, written = made(archive, launch, extracts=False)
    assert (len(lines(members)), written.captures, written.originals, written.lost) == (2, 3, {}, [])


def test_an_original_in_a_plain_warc_is_copied_as_it_is(archive: Archive) -> None:
    archive.add(FIRST, {"first.warc": warcinfo() + page() + page("http://e.x/2")})
    members, written = made(archive, of_second(archive, again("http://e.x/2"), again()))
    assert members["archive/originals.daily.20161001000000.first.warc"] == page() + page("http://e.x/2")
    assert (len(lines(members)), written.lost) == (4, [])


def test_why_an_original_is_not_to_be_had(archive: Archive) -> None:
    """Viral, hidden, with a hit, missing, nowhere: each is counted by why, and none is in the WACZ. A sound record of
    a refused WARC is."""
    bodies = {name: f"<p>{name}".encode() for name in ("viral", "refused", "hidden", "hit", "missing", "nowhere")}
    pages = {name: page(f"http://{name}.x/", body) for name, body in bodies.items()}
    archive.add("20160901000000", {"cut.warc.gz": warc_gz(warcinfo(), pages["refused"], page("http://y.x/"))[:-9]})
    archive.add("20160902000000", {"h.warc.gz": warc_gz(warcinfo(), pages["hidden"])})
    infected = archive.add("20160903000000", {"hit.warc.gz": warc_gz(warcinfo(), pages["hit"])})
    (archive.base / "line/state" / layout.marker_path(layout.step("cdx", infected, FINAL))).unlink()
    archive.scan(infected, {"hit.warc.gz": len(member(warcinfo()))})
    archive.reindex(infected)
    archive.add("20160904000000", {"m.warc.gz": warc_gz(warcinfo(), pages["missing"])})
    archive.add(
        FIRST, {"ok.warc.gz": warc_gz(warcinfo(), page())}, viral={"v.warc.gz": warc_gz(warcinfo(), pages["viral"])}
    )
    launch = of_second(archive, *(again(f"http://{name}.x/", body) for name, body in bodies.items()), again())
    archive.store.real("warcs/daily/20160904000000/m.warc.gz").unlink()
    hidden_list.decide(archive.state.store, lambda: archive.store, "x,hidden", "asked for", hides=True)
    hidden_list.decide(archive.state.store, lambda: archive.store, "x,e)/ 2010", "no capture", hides=True)
    members, written = made(archive, launch)
    assert sorted(lost(written)) == [
        (1, "from the engine's viral writer", ("daily/20161001000000/v.warc.gz",)),
        (1, "in no WARC of the archive", ("http://nowhere.x/",)),
        (1, "missing from the store", ("daily/20160904000000/m.warc.gz",)),
        (1, "the virus scan had a hit", ("daily/20160903000000/hit.warc.gz",)),
    ]
    assert written.hidden == {"x,hidden": 1}
    assert [name for name in members if "originals" in name] == [
        "archive/originals.daily.20160901000000.cut.warc.gz",
        "archive/originals.daily.20161001000000.ok.warc.gz",
    ]


def test_the_original_of_a_revisit_that_is_shown_may_be_hidden(archive: Archive) -> None:
    archive.add(FIRST, {"first.warc.gz": warc_gz(warcinfo(), page())})
    launch = of_second(archive, again())
    hidden_list.decide(archive.state.store, lambda: archive.store, "x,e)/ 20161001", "asked for", hides=True)
    members, written = made(archive, launch)
    assert lost(written) == [(1, "hidden", ("daily/20161001000000/first.warc.gz",))]
    assert (len(lines(members)), b"words of the page" in b"".join(members.values())) == (1, False)


@pytest.mark.parametrize("published", [False, True])
def test_without_an_index_nothing_is_called_whole(archive: Archive, *, published: bool) -> None:
    archive.add(FIRST, {"first.warc.gz": warc_gz(warcinfo(), page())})
    launch = archive.add(SECOND, {"second.warc.gz": warc_gz(warcinfo(), again())})
    ((number, why, where),) = lost(made(archive, launch, extracts=published)[1])
    assert (number, where) == (1, (PAGE,))
    assert why.startswith(
        "not looked for: the current version of cdx is not ready: no version" if published else "not looked for"
    )


def test_a_launch_that_is_not_indexed_may_have_it(archive: Archive) -> None:
    archive.add(FIRST, {"first.warc.gz": warc_gz(warcinfo(), page())})
    key = layout.step("cdx", Launch("daily", FIRST), FINAL)
    (archive.base / "line/state" / layout.marker_path(key)).unlink()
    ((_, why, _),) = lost(made(archive, of_second(archive, again()))[1])
    assert why == "1 launch is not indexed: daily/20161001000000; run 'warcmill scan' over their days"


def test_an_original_that_changed_in_the_store_is_refused(archive: Archive) -> None:
    archive.add(FIRST, {"first.warc.gz": warc_gz(warcinfo(), page())})
    launch = of_second(archive, again())
    path = archive.store.real("warcs/daily/20161001000000/first.warc.gz")
    path.unlink()
    path.write_bytes(warc_gz(warcinfo(), page("http://e.y/")))
    with pytest.raises(Mismatch, match=r"first\.warc\.gz changed since it was indexed; the record at offset"):
        made(archive, launch)


def test_what_is_hidden_is_in_no_part_of_it(archive: Archive) -> None:
    secret, body = "http://s.x/private/", b"<title>Sealed</title>secret words"
    asked = request(secret, method="GET", WARC_Date=NOW)
    about = capture("metadata", secret, b"via: http://e.x/\r\n", "application/warc-fields", WARC_Date=NOW)
    records = [page(date=NOW), page(secret, body, NOW), asked, about, page("http://e.x/b", b"<p>b", NOW)]
    search = posted("http://s.x/search?q=1", b"word=secret"), posted("http://s.x/search?q=1", b"word=open")
    data = warc_gz(warcinfo(), *records) + b"".join(search)
    launch = archive.add(SECOND, {"second.warc.gz": data, "plain.warc": warcinfo() + b"".join(records)})
    archive.fold()
    (entry,) = [line.partition(" ")[0] for line in archive.lines() if "word=secret" in line]
    before = made(archive, launch)[0]
    for one in ("x,s)/private", entry):
        hidden_list.decide(archive.state.store, lambda: archive.store, one, "asked for", hides=True)
    members, written = made(archive, launch)
    assert written.hidden == {"x,s)/private": 2, entry: 1}
    assert len(lines(members)) == len(lines(before)) - 3
    read = b"".join(gzip.decompress(data) if name.endswith(".gz") else data for name, data in members.items())
    assert [word for word in (b"secret", b"private", b"Sealed") if word in read] == []
    assert b"word=open" in gzip.decompress(members["indexes/index.cdx.gz"])
    assert members["archive/plain.warc"] == warcinfo() + page(date=NOW) + page("http://e.x/b", b"<p>b", NOW)
    assert [one["url"] for one in listed(members, "extraPages")] == [PAGE, "http://e.x/b"]


def test_all_pages_have_the_text_that_was_extracted_also_of_originals_and_beside_hidden_ones(archive: Archive) -> None:
    other = page("http://e.x/2", b"<title>In the record</title>", NOW)
    archive.add(FIRST, {"first.warc.gz": warc_gz(warcinfo(), page())})
    launch = of_second(archive, page("http://s.x/", b"secret", NOW), other, again())
    extracts = Extracts(archive.index)
    for path, words in (
        ("daily/20161001000000/first.warc.gz", "first"),
        ("daily/20161101000000/second.warc.gz", "second"),
    ):
        data = archive.store.real(f"warcs/{path}").read_bytes()
        offsets = [at for at in range(len(data)) if data.startswith(b"\x1f\x8b\x08", at)]
        texts = [
            json.dumps({"id": f"x/y/z-{at}", "title": f"{words} title", "content": f"{words} {at}"}).encode() + b"\n"
            for at in offsets
        ]
        extracts.leave(TEXT, hashlib.sha512(data).hexdigest(), [b" {}\n", *texts])
    members, written = made(archive, launch)
    first, extra, third = listed(members, "extraPages")
    assert (first["title"], first["text"].split()[0], first["url"]) == ("first title", "first", PAGE)
    assert (extra["url"], third["url"], third["title"]) == ("http://s.x/", "http://e.x/2", "second title")
    hidden_list.decide(archive.state.store, lambda: archive.store, "x,s", "asked for", hides=True)
    _, after = listed(made(archive, launch)[0], "extraPages")
    assert (written.has_text, after) == (True, third)
    without = listed(made(archive, launch, extracts=False)[0], "extraPages")
    assert [one["title"] for one in without] == ["In the record"]
