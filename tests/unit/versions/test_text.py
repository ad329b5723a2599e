"""The text index: versions of segments with full text, and what a search finds in them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from indexing.text_archive import ONE, THREE, TWO, TextArchive, warc
from records.captures import capture, response
from records.pdfs import pdf
from records.warcs import warc_gz, warcinfo

from commands.main import main
from warcmill.errors import Mismatch, NotReady, Unavailable
from warcmill.extracts.extracts import Extracts
from warcmill.extracts.text import TEXT
from warcmill.extracts.text_workers import TextWorkers
from warcmill.versions import fold as folding
from warcmill.versions import hidden_list, search
from warcmill.versions import text as text_segments
from warcmill.web.queries import PAGES

PDF = b"Content-Type: application/pdf"


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[TextArchive]:
    made = TextArchive(tmp_path)
    with TextWorkers(1) as made.workers:
        yield made


def test_a_search_finds_a_word_of_one_page_and_one_of_one_pdf(archive: TextArchive) -> None:
    paper = warc_gz(response("http://a.example/paper", PDF, body=pdf("On zymurgy at home", title="Of beer")))
    pages = warc({"a.example/": "<title>Start</title><p>Über alles", "www.b.example/x": "beer and quokkas"})
    archive.add(ONE, {"a.warc.gz": pages, "b.warc.gz": paper})
    assert archive.fold() == folding.Folded(1, new=True)
    found = archive.search("ZYMURGY")
    assert (found.captures, found.version) == (1, 1)
    (one,) = found.best
    assert (one.title, one.line, one.type) == ("Of beer", "On [zymurgy] at home", "application/pdf")
    assert (one.url, one.time, one.warc, one.offset) == (
        "http://a.example/paper", "20161019234428", f"daily/{ONE}/b.warc.gz", 0,
    )  # fmt: skip
    assert archive.urls("quokkas") == ["http://www.b.example/x"]
    assert archive.urls("uber") == ["http://a.example/"], "letters count without their accents"
    assert archive.urls("beer") == ["http://a.example/paper", "http://www.b.example/x"]
    assert archive.search("beer").best[0].title == "Of beer", "a title counts more"
    assert archive.urls("beer", "quokkas") == ["http://www.b.example/x"]
    assert archive.urls("and beer") == archive.urls("nowhere") == []
    assert archive.urls("beer and") == ["http://www.b.example/x"]


def test_words_are_words_whatever_is_in_them(archive: TextArchive) -> None:
    archive.add(ONE, {"a.warc.gz": warc({"a.example/": 'say "cheese" OR near(x) col:umn'})})
    archive.fold()
    for word in ('"cheese"', "OR", "near(", "col:umn", "x)", "cheese*", '"', "a'b"):
        expected = [] if word in ('"', "a'b") else ["http://a.example/"]
        assert archive.urls(word) == expected, word


@pytest.mark.parametrize(
    ("text", "word", "line"),
    [
        ("これは日本語の文章です", "日本語", "これは[日本語]の文章です"),
        ("東京タワー2020年", "タワー", "東京[タワー]2020年"),
        ("漢字kanji漢字", "kanji", "漢字[kanji]漢字"),
        ("ภาษาไทยง่าย", "ไทย", "ภาษา[ไทย]ง่าย"),
        ("国家图书馆", "图书馆", "国家[图书馆]"),
        ("𠮷野家", "野家", "𠮷[野家]"),
    ],
)
def test_words_of_scripts_without_blanks(archive: TextArchive, text: str, word: str, line: str) -> None:
    archive.add(ONE, {"a.warc.gz": warc({"a.example/": f"<title>{text}</title><p>{text}"})})
    archive.fold()
    (one,) = archive.search(word).best
    assert (one.title, one.line) == (text, line)
    assert archive.urls(text) == ["http://a.example/"]
    assert archive.urls(text[1] + text[0]) == [], "the order of letters counts"


def test_a_search_of_a_site_and_of_some_days(archive: TextArchive) -> None:
    archive.add(ONE, {"a.warc.gz": warc({"a.example/": "x", "sub.a.example:8080/": "x", "aa.example/": "x"})})
    archive.add(TWO, {"a.warc.gz": warc({"a.example/": "x"}, "2017-01-02T00:00:00Z")})
    archive.fold()
    assert archive.search("x").captures == 4
    assert archive.urls("x", site="a.example") == ["http://a.example/"] * 2 + ["http://sub.a.example:8080/"]
    assert archive.urls("x", site="sub.a.example") == ["http://sub.a.example:8080/"]
    assert archive.urls("x", site="a.example", first="2017") == ["http://a.example/"]
    assert archive.urls("x", site="www.a.example", last="201701") == archive.urls("x", site="a.example")
    assert archive.search("x", last="2016").captures == 3
    assert archive.search("x", first="20161020", last="20170101").captures == 0


def test_of_very_many_captures_all_are_counted_and_the_last_compared(
    archive: TextArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive.add(ONE, {"a.warc.gz": warc({f"a.example/{number:02}": "heron" for number in range(60)})})
    archive.fold()
    archive.add(TWO, {"a.warc.gz": warc({"b.example/": "heron and more"})})
    archive.fold()
    assert len(archive.segments()) == 2
    everything = archive.search("heron")
    assert (everything.captures, everything.ranked, len(everything.best)) == (61, 61, 20)
    monkeypatch.setattr(search, "RANKED", 3)
    last = archive.search("heron")
    assert (last.captures, last.ranked) == (61, 3)
    assert len(last.best) == 3
    assert "http://b.example/" in {one.url for one in last.best}
    assert archive.search("heron") == last
    assert archive.search("heron", site="a.example").captures == 60


def test_every_page_of_results_is_within_what_is_compared() -> None:
    assert search.RANKED >= PAGES * search.MOST


def test_hidden_keys_and_times_are_found_by_their_spans(archive: TextArchive) -> None:
    urls = ("a.example/", "a.example/p", "a.example/p/1", "a.example/q", "b.a.example/", "ab.example/")
    archive.add(ONE, {"a.warc.gz": warc(dict.fromkeys(urls, "x"))})
    archive.fold()

    def hidden_by(entry: str) -> set[str]:
        hidden_list.decide(archive.state.store, lambda: archive.store, entry, "an order", hides=True)
        found = {url.removeprefix("http://") for url in archive.urls("x")}
        hidden_list.decide(archive.state.store, lambda: archive.store, entry, "over", hides=False)
        return set(urls) - found

    assert hidden_by("example,a") == set(urls) - {"ab.example/"}
    assert hidden_by("example,a)/p") == {"a.example/p", "a.example/p/1"}
    assert hidden_by("example,a)/p 2016") == {"a.example/p"}
    assert hidden_by("example,a)/p 2017") == set()
    hidden_list.decide(archive.state.store, lambda: archive.store, "example,a)/q", "an order", hides=True)
    assert hidden_by("example,ab") == {"a.example/q", "ab.example/"}


def test_the_text_that_a_crawler_kept_of_a_hidden_page_is_not_found(archive: TextArchive) -> None:
    kept = [f"urn:text:https://{page}" for page in ("a.example/p", "b.example:80/P?b=2&a=1", "c.example/")]
    records = (capture("resource", url, b"its words", "text/plain") for url in kept)
    archive.add(ONE, {"a.warc.gz": warc_gz(warcinfo(), *records)})
    archive.fold()
    assert archive.urls("words") == kept
    hidden_list.decide(archive.state.store, lambda: archive.store, "example,b:80)/p", "an order", hides=True)
    assert (archive.urls("words"), archive.search("words").captures) == ([kept[0], kept[2]], 2)


def test_the_title_of_a_url_is_not_that_of_another_one_with_its_key(archive: TextArchive) -> None:
    url = "video.example/Watch?v=AbC"
    others = (url.lower(), f"www.{url}")
    pages = {url: "<title>capital</title>x", **dict.fromkeys(others, "<title>other</title>x")}
    archive.add(ONE, {"a.warc.gz": warc(pages)})
    archive.fold()
    assert search.title_of(archive.index, f"https://{url}") == "capital"
    assert search.title_of(archive.index, f"http://{url.upper()}") == ""


def test_what_is_hidden_is_not_found_neither_before_nor_after_the_next_fold(archive: TextArchive) -> None:
    archive.add(ONE, {"a.warc.gz": warc({"a.example/": "x", "b.example/p/1": "x"})})
    archive.fold()
    hidden_list.decide(archive.state.store, lambda: archive.store, "example,b)/p", "an order", hides=True)
    assert archive.urls("x") == ["http://a.example/"]
    assert archive.fold() == folding.Folded(2, new=True)
    assert archive.urls("x") == ["http://a.example/"]
    assert archive.fold(base=True).number == 3
    assert archive.urls("x") == ["http://a.example/"]
    hidden_list.decide(archive.state.store, lambda: archive.store, "example,b)/p", "lifted", hides=False)
    assert archive.urls("x") == ["http://a.example/", "http://b.example/p/1"]


def test_a_record_with_a_virus_is_in_no_version(archive: TextArchive) -> None:
    data = warc({"a.example/": "x", "b.example/": "x"})
    launch = archive.add(ONE, {"a.warc.gz": data})
    archive.fold()
    assert len(archive.urls("x")) == 2
    archive.scan(launch, {"a.warc.gz": len(warc({}))})
    assert archive.fold() == folding.Folded(2, new=True)
    assert archive.urls("x") == ["http://b.example/"]


def test_new_launches_are_new_segments_until_they_are_as_large_as_the_old_ones(archive: TextArchive) -> None:
    words = " ".join(f"word{number}" for number in range(3_000))
    archive.add(ONE, {"a.warc.gz": warc({f"a.example/{number}": words for number in range(30)})})
    archive.fold()
    before = archive.segments()
    archive.add(TWO, {"a.warc.gz": warc({"b.example/": "x"})})
    archive.fold()
    assert archive.segments()[:1] == before
    assert len(archive.segments()) == 2
    archive.add(THREE, {"a.warc.gz": warc({"c.example/": "x"})})
    assert archive.fold() == folding.Folded(3, new=True)
    assert len(archive.segments()) == 2, "the small ones were made to one"
    assert (archive.urls("x"), archive.search("word7").captures) == (["http://b.example/", "http://c.example/"], 30)
    assert archive.fold() == folding.Folded(3, new=False)


def test_the_deleted_index_is_made_again(archive: TextArchive) -> None:
    archive.add(ONE, {"a.warc.gz": warc({"a.example/": "x"})})
    archive.fold()
    extract = next((archive.base / "index/extracts").rglob("*.jsonl.gz"))
    before = extract.read_bytes()
    for path in sorted((archive.base / "index").rglob("*"), reverse=True):
        if path.name != ".warcmill.json":
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    with pytest.raises(NotReady):
        archive.search("x")
    assert archive.fold() == folding.Folded(1, new=False)
    assert extract.read_bytes() == before
    assert archive.urls("x") == ["http://a.example/"]


def test_a_warc_that_vanished_with_its_extract_is_named_and_the_rest_is_published(archive: TextArchive) -> None:
    archive.add(ONE, {"a.warc.gz": warc({"a.example/": "x"}), "b.warc.gz": warc({"b.example/": "x"})})
    archive.store.real(f"warcs/daily/{ONE}/a.warc.gz").unlink()
    for path in (archive.base / "index/extracts").rglob("*.jsonl.gz"):
        path.unlink()
    found = archive.fold()
    assert (found.number, len(found.troubles)) == (1, 1)
    assert f"daily/{ONE}/a.warc.gz" in found.troubles[0]
    assert archive.urls("x") == ["http://b.example/"]


def test_an_extract_that_a_disk_damages_each_time_is_named(
    archive: TextArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive.add(ONE, {"a.warc.gz": warc({"a.example/": "x"})})
    with monkeypatch.context() as patched:
        patched.setattr(Extracts, "digest", lambda *_: None)
        (trouble,) = archive.fold().troubles
    assert "it was written anew, and cannot be read; look at the disk of the index root; it is left out" in trouble
    assert archive.fold() == folding.Folded(2, new=True)
    assert archive.urls("x") == ["http://a.example/"]


def test_a_segment_that_is_damaged_is_named_and_one_that_is_cut_is_made_again(archive: TextArchive) -> None:
    archive.add(ONE, {"a.warc.gz": warc({"a.example/": "x"})})
    archive.fold()
    published = archive.payloads.current()
    assert published
    file = archive.index.real(published.segments[0].files[text_segments.SQLITE].path)
    file.chmod(0o644)
    file.write_bytes(file.read_bytes()[:5000])
    archive.add(TWO, {"a.warc.gz": warc({"b.example/": "x"})})
    assert archive.fold() == folding.Folded(2, new=True)
    assert archive.urls("x") == ["http://a.example/", "http://b.example/"]


def test_what_is_read_back_must_be_what_was_written(archive: TextArchive, monkeypatch: pytest.MonkeyPatch) -> None:
    archive.add(ONE, {"a.warc.gz": warc({"a.example/": "x"})})
    with monkeypatch.context() as patched:
        patched.setattr(text_segments, "read_back", lambda *_: {"a": 2})
        with pytest.raises(Mismatch):
            archive.fold()
    with pytest.raises(NotReady):
        archive.search("x")
    assert archive.fold() == folding.Folded(1, new=True)


def test_a_full_disk_leaves_the_version_before(archive: TextArchive, monkeypatch: pytest.MonkeyPatch) -> None:
    archive.add(ONE, {"a.warc.gz": warc({"a.example/": "x"})})
    archive.fold()
    archive.add(TWO, {"a.warc.gz": warc({"b.example/": "x"})})
    schema = text_segments._SCHEMA.replace("PRAGMA journal_mode = OFF;", "PRAGMA max_page_count = 3;")
    with monkeypatch.context() as patched:
        patched.setattr(text_segments, "_SCHEMA", schema)
        with pytest.raises(Unavailable, match="full"):
            archive.fold()
    assert archive.urls("x") == ["http://a.example/"]
    assert [name for name in os.listdir(archive.base / "index/versions") if name.endswith(".tmp")] == []
    archive.fold()
    assert archive.urls("x") == ["http://a.example/", "http://b.example/"]


def test_before_the_first_version_it_says_what_publishes_one(archive: TextArchive) -> None:
    assert archive.fold() == folding.Folded(0, new=False)
    with pytest.raises(NotReady, match=r"'warcmill scan' publishes it"):
        archive.search("x")
    assert TEXT.name == "text"


def test_the_commands_about_versions_take_it_by_its_name(
    archive: TextArchive, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    archive.configure(monkeypatch)

    def typed(*words: str) -> tuple[int, str]:
        return main(["versions", *words, "--of", "text"]), capsys.readouterr().out

    assert typed("list")[1].endswith("publishes the first, where [text] is on\n")
    archive.add(ONE, {"a.warc.gz": warc({"a.example/": "one"})})
    archive.fold()
    archive.add(
        TWO, {"a.warc.gz": warc({"a.example/": "two", "b.example/": "three"}), "b.warc.gz": warc_gz(warcinfo())}
    )
    archive.fold()
    assert typed("list")[1].split()[:4] == ["text", "time", "WARCs", "documents"]
    assert typed("diff", "1", "2")[1].startswith(f"+ daily/{TWO}/a.warc.gz\n+ daily/{TWO}/b.warc.gz\n")
    said = "version 2 of text: 3 documents of 3 WARCs read again, nothing is wrong\n"
    assert typed("verify") == (0, said)
    published = archive.payloads.current()
    assert published
    for end in (".sqlite", ".inputs", ".counts"):
        path = archive.base / "index" / published.segments[0].files[end].path
        sound = path.read_bytes()
        path.chmod(0o644)
        path.write_bytes(sound[:-9] + bytes([sound[-9] ^ 1]) + sound[-8:])
        code, text = typed("verify")
        assert code == 1, end
        assert path.name in text, end
        path.write_bytes(sound)
    assert typed("verify") == (0, said)
    assert typed("retire", "--keep", "1") == (0, "version 1 of text: its files are removed, its list stays\n")
    assert typed("verify", "1")[0] == 1
    assert archive.urls("two") == ["http://a.example/"]
