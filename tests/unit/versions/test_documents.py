"""The entries of documents: landing pages, titles and other fields; versions and revisits; of one crawl and several."""

from __future__ import annotations

from pathlib import Path

import pytest
from indexing.harvests import DocumentIndex, document, entries, id_of, page, revisit, shown, why

from warcmill.formats.harvested import NamedDocument
from warcmill.versions.documents import parts, published, texts

S = "http://s.example"
LATER, LAST = "20261221081736", "20270121081736"


def test_a_page_that_names_a_document_is_its_landing_page(tmp_path: Path) -> None:
    pdf = f"{S}/files/1.pdf"
    named = NamedDocument(
        "citation", (pdf,), "On bees", ("A. Bee", "C. Dee"), "Hive Press", "2021/03", ("9783161484100",)
    )
    found = entries(tmp_path, [
        document(pdf, properties={"title": ("untitled",), "date": ("D:2020",)}, doi=("10.1/x",)),
        document(f"{S}/files/2.pdf"),
        page(f"{S}/only", (pdf, "One")),
        page(f"{S}/article/1", (pdf, "PDF"), (f"{S}/files/2.pdf", "Next"), named=[named], og={"og:site_name": "Site"}),
    ])[pdf]  # fmt: skip
    wanted = {
        "landing_page_url": f"{S}/article/1", "title": "On bees", "publisher": "Hive Press",
        "publication_date": "2021-03", "authors": "A. Bee; C. Dee", "isbn": "9783161484100", "doi": "10.1/x",
    }  # fmt: skip
    assert {field: found.shown(field) for field in wanted} == wanted
    assert [one.by for one in found.fields["landing_page_url"]] == ["citation", "link"]


@pytest.mark.parametrize("by", ["jsonld", "up"])
def test_json_ld_and_link_up_name_a_document_too(tmp_path: Path, by: str) -> None:
    pdf, landing = f"{S}/a.pdf", f"{S}/landing"
    named = [NamedDocument("jsonld", (pdf,), "A")] if by == "jsonld" else []
    found = entries(tmp_path, [
        document(pdf, up=(landing,) if by == "up" else ()), document(f"{S}/b.pdf"),
        page(f"{S}/only", (pdf, "A")), page(landing, (f"{S}/b.pdf", "B"), named=named),
    ])  # fmt: skip
    assert found[pdf].shown("landing_page_url") == landing
    assert found[pdf].fields["landing_page_url"][0].by == by


def test_of_other_pages_the_one_with_fewest_documents_comes_first(tmp_path: Path) -> None:
    a, b, c = (f"{S}/{name}.pdf" for name in "abc")
    found = entries(tmp_path, [
        document(a), document(b), document(c),
        page(f"{S}/", (a, "A"), (b, "B"), (c, "C"), (f"{S}/reports/a/", "About A")),
        page(f"{S}/reports/a/", (a, "A"), (f"{S}/gone.pdf", "was not captured")),
        page(f"{S}/popular", (b, "B"), (c, "C")),
        page(f"{S}/rare", (b, "B"), (c, "C")),
        page(f"{S}/x", (f"{S}/popular", "x")), page(f"{S}/popular2", (f"{S}/popular", "x")),
    ])  # fmt: skip
    assert shown(found, "landing_page_url") == {a: f"{S}/reports/a/", b: f"{S}/popular", c: f"{S}/popular"}


def test_last_the_shorter_url_decides(tmp_path: Path) -> None:
    found = entries(tmp_path, [
        document(f"{S}/a.pdf"), page(f"{S}/list?sort=date", (f"{S}/a.pdf", "A")),
        page(f"{S}/list", (f"{S}/a.pdf", "A")),
    ])  # fmt: skip
    assert found[f"{S}/a.pdf"].shown("landing_page_url") == f"{S}/list"


def test_titles_come_in_their_order_and_those_that_are_no_good_are_kept_with_the_reason(tmp_path: Path) -> None:
    a, b, c, d = (f"{S}/{name}.pdf" for name in "abcd")
    found = entries(tmp_path, [
        document(a, properties={"title": ("Microsoft Word - x.doc",)}, largest="The bee"),
        document(b, properties={"title": ("The wasp",)}, largest="By the Institute of Wasps"),
        document(c, properties={"title": ("Template of the Institute",)}, largest="The ant and its home"),
        document(d, properties={"title": ("Template of the Institute",)}),
        page(f"{S}/bee", (a, "Download (PDF, 2 MB)"), h1="All about bees", title="Bees | Site"),
        page(f"{S}/list", (b, "PDF", "Insects"), (c, "PDF", "Insects"), (d, "Moths of Europe (PDF)", "Insects")),
    ])  # fmt: skip
    assert shown(found, "title") == {
        a: "All about bees",
        b: "The wasp",
        c: "The ant and its home",
        d: "Moths of Europe",
    }
    assert dict(why(found[a], "title")) == {"Download": texts.GENERIC, "Microsoft Word - x.doc": texts.PROGRAM}
    assert dict(why(found[c], "title")) == {
        "PDF": texts.GENERIC, "Insects": texts.SHARED, "Template of the Institute": texts.SHARED,
    }  # fmt: skip
    assert [(one.value, one.by, one.url) for one in found[a].fields["title"]][:3] == [
        ("All about bees", "h1", f"{S}/bee"), ("Bees | Site", "title", f"{S}/bee"), ("The bee", "largest", a),
    ]  # fmt: skip


def test_the_files_of_one_publication_share_its_title(tmp_path: Path) -> None:
    pdf, epub = f"{S}/honey.pdf", f"{S}/honey.epub"
    found = entries(
        tmp_path, [document(pdf), document(epub), page(f"{S}/honey", (pdf, "PDF"), (epub, "EPUB"), h1="On honey")]
    )
    assert shown(found, "title") == {pdf: "On honey", epub: "On honey"}


def test_two_urls_of_one_body_are_one_document_of_a_page(tmp_path: Path) -> None:
    one, two = f"{S}/honey.pdf", f"{S}/download?id=1"
    found = entries(tmp_path, [
        document(one, "honey"), document(two, "honey", LATER),
        page(f"{S}/p", (one, "PDF"), (two, "Download"), h1="On honey"),
    ])  # fmt: skip
    assert shown(found, "title") == {one: "On honey"}


def test_a_document_at_the_foot_of_each_page_is_not_one_of_theirs(tmp_path: Path) -> None:
    foot, pdf = f"{S}/privacy.pdf", f"{S}/honey.pdf"
    pages = [page(f"{S}/{number}", (foot, "Privacy notice"), h1=f"Page {number}") for number in range(30)]
    found = entries(tmp_path, [
        document(foot), document(pdf), *pages,
        page(f"{S}/honey", (pdf, "PDF", "Documents"), (foot, "Privacy notice"), h1="On honey"),
    ])  # fmt: skip
    assert shown(found, "title") == {foot: "Privacy notice", pdf: "On honey"}


def test_a_document_without_a_page_is_there_with_the_name_of_its_file(tmp_path: Path) -> None:
    found = entries(tmp_path, [document(f"{S}/alone_here.pdf"), page(f"{S}/", (f"{S}/other", "x"))])
    (one,) = found.values()
    assert (one.shown("title"), one.shown("landing_page_url"), one.filename) == ("alone here", "", "alone_here.pdf")


def test_a_document_may_be_on_another_host_than_its_page(tmp_path: Path) -> None:
    pdf = "https://cdn.example/p/1?x=a&t=1"
    found = entries(tmp_path, [document(pdf), page(f"{S}/n", (pdf, "Nightly figures"))])
    assert shown(found, "title") == {pdf: "Nightly figures"}


@pytest.mark.parametrize(
    ("captured", "linked"),
    [
        ("/a%20b.pdf", "/a b.pdf"), ("/a+b.pdf", "/a+b.pdf"), ("/a%2Bb.pdf", "/a%2bb.pdf"),
        ("/%C3%BCber.pdf", "/über.pdf"), ("/x.pdf/12?t=5", "/x.pdf/12?t=5#page=2"), ("/a.pdf", "//www.s.example/a.pdf"),
    ],
)  # fmt: skip
def test_a_link_finds_its_document_however_its_url_is_written(tmp_path: Path, captured: str, linked: str) -> None:
    url = f"http:{linked}" if linked.startswith("//") else S + linked
    found = entries(tmp_path, [document(S + captured), page(f"{S}/p", (url, "The title"))])
    assert shown(found, "title") == {S + captured: "The title"}


def test_equal_bytes_are_one_entry_with_all_urls(tmp_path: Path) -> None:
    found = entries(tmp_path, [
        document(f"{S}/b.pdf", "same", LATER), document(f"{S}/a.pdf", "same"), document(f"{S}/a.pdf", "same", LAST),
        revisit(f"{S}/c.pdf", "same", LAST), page(f"{S}/p", (f"{S}/b.pdf", "The title")),
    ])  # fmt: skip
    (one,) = found.values()
    assert (one.id, one.first_seen, one.urls) == (id_of("same"), "20261121081736", tuple(f"{S}/{n}.pdf" for n in "abc"))
    assert [(capture.date, capture.is_revisit) for capture in one.captures] == [
        ("20261121081736", False), (LATER, False), (LAST, False), (LAST, True),
    ]  # fmt: skip
    assert one.captures[0].warc == "warcs/job/20261121081735/a.warc.gz"


def test_another_body_of_a_url_is_a_version_and_takes_over_the_page_in_a_crawl_whose_pages_are_revisits(
    tmp_path: Path,
) -> None:
    made, pdf = DocumentIndex(tmp_path), f"{S}/stats.pdf"
    made.add(
        first=[
            document(pdf, "v1", isbn=("1",)),
            page(f"{S}/p", (pdf, "Statistics of bees"), og={"og:site_name": "Site"}),
        ]
    )
    made.add(second=[document(pdf, "v2", LATER, largest="Bees, all of them")])
    made.add(third=[document(pdf, "v3", LAST)])
    two, three = made.entry("v2"), made.entry("v3")
    assert (made.entry("v1").version_of, two.version_of, three.version_of) == ("", id_of("v1"), id_of("v2"))
    for one in (two, three):
        assert (one.shown("title"), one.shown("landing_page_url")) == ("Statistics of bees", f"{S}/p")
        assert (one.shown("publisher"), one.shown("isbn")) == ("Site", "")
        assert {value.by for value in one.fields["landing_page_url"]} == {"version"}


def test_a_version_with_pages_of_its_own_takes_over_nothing(tmp_path: Path) -> None:
    made, pdf = DocumentIndex(tmp_path), f"{S}/stats.pdf"
    made.add(first=[document(pdf, "v1"), page(f"{S}/old", (pdf, "Statistics of bees"))])
    made.add(second=[document(pdf, "v2", LATER), page(f"{S}/new", (pdf, "Statistics of all bees"), date=LATER)])
    assert made.entry("v2").shown("landing_page_url") == f"{S}/new"
    assert [one.value for one in made.entry("v2").fields["title"]] == ["Statistics of all bees", "stats"]


def test_revisits_of_another_crawl_are_captures_and_bring_no_entry(tmp_path: Path) -> None:
    made, pdf = DocumentIndex(tmp_path), f"{S}/a.pdf"
    made.add(first=[document(pdf, "a"), page(f"{S}/p", (pdf, "The bee"))])
    made.add(second=[revisit(pdf, "a", LATER), revisit(f"{S}/logo", "no document", LATER)])
    made.add(third=[revisit(f"{S}/new-place.pdf", "a", LAST), page(f"{S}/q", (f"{S}/new-place.pdf", "PDF"))])
    (one,) = made.entries().values()
    assert [(capture.url, capture.job) for capture in one.captures] == [
        (pdf, "first"), (pdf, "second"), (f"{S}/new-place.pdf", "third"),
    ]  # fmt: skip
    assert (one.shown("title"), one.first_seen, one.version_of) == ("The bee", "20261121081736", "")
    assert [page.value for page in one.fields["landing_page_url"]] == [f"{S}/p", f"{S}/q"]


def test_the_order_of_crawls_does_not_matter(tmp_path: Path) -> None:
    made, pdf = DocumentIndex(tmp_path), f"{S}/a.pdf"
    made.add(second=[revisit(pdf, "a", LATER), document(f"{S}/b.pdf", "b2", LATER)])
    made.add(first=[document(pdf, "a"), document(f"{S}/b.pdf", "b1")])
    assert [one.job for one in made.entry("a").captures] == ["first", "second"]
    assert made.entry("b2").version_of == id_of("b1")


@pytest.mark.parametrize("crawls", [1, 2])
def test_a_revisit_without_a_digest_is_of_what_its_url_had(tmp_path: Path, crawls: int) -> None:
    made, pdf = DocumentIndex(tmp_path), f"{S}/a.pdf"
    first = [document(pdf, "v1"), document(pdf, "v2", LATER)]
    second = [
        revisit(pdf, date=LAST),
        revisit(f"{S}/copy.pdf", date=LAST, refers_to=pdf, refers_to_date="20261121081736"),
        revisit(f"{S}/nothing.pdf", date=LAST),
    ]
    if crawls == 1:
        made.add(job=[*first, *second])
    else:
        made.add(job=first)
        made.add(more=second)
    assert [one.url for one in made.entry("v2").captures] == [pdf, pdf]
    assert [one.url for one in made.entry("v1").captures] == [pdf, f"{S}/copy.pdf"]


def test_a_body_that_comes_back_is_the_version_of_nothing(tmp_path: Path) -> None:
    made, pdf = DocumentIndex(tmp_path), f"{S}/a.pdf"
    made.add(job=[document(pdf, "v1"), document(pdf, "v2", LATER), document(pdf, "v1", LAST)])
    assert (made.entry("v1").version_of, made.entry("v2").version_of) == ("", id_of("v1"))


def test_of_a_crawl_that_was_joined_anew_the_last_counts(tmp_path: Path) -> None:
    made, pdf = DocumentIndex(tmp_path), f"{S}/a.pdf"
    before = made.add(running=[document(pdf, "a")], other=[document(f"{S}/o.pdf", "o")])
    assert made.entry("a").shown("landing_page_url") == ""
    after = made.add(running=[document(pdf, "a"), page(f"{S}/late", (pdf, "Found late"))])
    assert made.entry("a").shown("landing_page_url") == f"{S}/late"
    assert [*published.changed(made.index, before, after)] == [id_of("a")]
    gone = made.add(running=None)
    assert {*made.entries()} == {f"{S}/o.pdf"}
    assert [*published.changed(made.index, after, gone)] == [id_of("a")]
    assert {*published.changed(made.index, None, gone)} == {id_of("o")}
    assert published.entry(made.index, gone, id_of("a")) is None


def test_an_entry_has_changed_if_another_crawl_has_its_revisit_or_its_version_before(tmp_path: Path) -> None:
    made = DocumentIndex(tmp_path)
    one = made.add(a=[document(f"{S}/a.pdf", "a", LATER), document(f"{S}/b.pdf", "b"), document(f"{S}/c.pdf", "c")])
    two = made.add(b=[revisit(f"{S}/b.pdf", "b", LATER), document(f"{S}/a.pdf", "a0")])
    assert {*published.changed(made.index, one, two)} == {id_of("a"), id_of("b"), id_of("a0")}
    assert [*published.changed(made.index, two, two)] == []


def test_a_date_is_no_later_than_the_capture_and_last_modified_comes_last(tmp_path: Path) -> None:
    a, b, c = (f"{S}/{name}.pdf" for name in "abc")
    found = entries(tmp_path, [
        document(a, modified="20200102030405"),
        document(b, properties={"date": ("D:20990101",)}, modified="20210102030405"),
        document(c, properties={"date": ("D:20190203",)}, modified="20200102030405"),
        page(f"{S}/p", (c, "On bees"), og={"article:published_time": "2020-05-06T07:08:09Z"}),
    ])  # fmt: skip
    assert shown(found, "publication_date") == {a: "2020-01-02", b: "2021-01-02", c: "2020-05-06"}
    assert [one.by for one in found[a].fields["publication_date"]] == ["modified"]


def test_a_body_at_ten_thousand_urls_and_a_page_with_ten_thousand_documents(tmp_path: Path) -> None:
    many = [f"{S}/d/{number}.pdf" for number in range(10_000)]
    named = [NamedDocument("jsonld", (url,), f"The number {number}") for number, url in enumerate(many[:2000])]
    records = [
        *(document(f"{S}/same?n={number}", "same") for number in range(10_000)), *map(document, many),
        page(f"{S}/list", *((url, f"Paper on {number} bees") for number, url in enumerate(many)), named=named),
    ]  # fmt: skip
    made = DocumentIndex(tmp_path)
    made.add(job=records)
    same = made.entry("same")
    assert (len(same.urls), same.more_urls, len(same.captures), same.more_captures) == (100, 9900, 100, 9900)
    assert made.entry(many[9]).shown("title") == "The number 9"
    assert made.entry(many[9999]).shown("title") == "Paper on 9999 bees"


def test_texts_of_a_megabyte_are_cut(tmp_path: Path) -> None:
    long = "bee " * 250_000
    records = [
        document(f"{S}/a.pdf", properties={"title": (long,), "authors": (long,) * 50}, largest=long, filename=long),
        page(f"{S}/p", (f"{S}/a.pdf", long, long), title=long, h1=long, og={"og:site_name": long}),
    ]
    (one,) = entries(tmp_path, records).values()
    assert all(len(value.value) <= texts.LONGEST for found in one.fields.values() for value in found)
    assert one.shown("title").startswith("bee bee")


def test_markup_and_text_from_right_to_left_stay_text(tmp_path: Path) -> None:
    found = entries(tmp_path, [
        document(f"{S}/a.pdf"), page(f"{S}/p", (f"{S}/a.pdf", "<script>alert(1)</script> of \u202ebees")),
    ])  # fmt: skip
    assert found[f"{S}/a.pdf"].shown("title") == "<script>alert(1)</script> of bees"


def test_what_was_hidden_since_a_version_is_taken_from_its_entries(tmp_path: Path) -> None:
    made, pdf = DocumentIndex(tmp_path), f"{S}/a.pdf"
    made.add(job=[document(pdf, "a"), document(f"{S}/copy.pdf", "a", LATER), page(f"{S}/p", (pdf, "The bee"))])
    found = made.entry("a")
    assert parts.visible(found, (b"example,t)",)) == found
    without_page = parts.visible(found, (b"example,s)/p ",))
    assert without_page
    assert (without_page.shown("title"), without_page.shown("landing_page_url")) == ("a", "")
    without_copy = parts.visible(found, (b"example,s)/copy", b"example,s)/a.pdf 2019"))
    assert without_copy
    assert (without_copy.urls, len(without_copy.captures)) == ((pdf,), 1)
    assert parts.visible(found, (b"example,s)/a", b"example,s)/copy")) is None
