"""What is posted of a document: fields of the schema in config/solr, and none that Lucene refuses."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from warcmill.index.sink_solr import FIELDS, MOST_OF_A_TERM, document

SCHEMA = Path(__file__).parent.parent.parent.parent / "config/solr/conf/managed-schema.xml"
LINE = {
    "id": "20161019234428/JY==/0b4a-4620",
    "url": "https://www.News.example.co.uk:8443/a",
    "wayback_date": 20161019234428,
    "record_type": "response",
    "source_file_offset": 4620,
    "content_type_served": "application/xhtml+xml",
    "content": "words",
    "content_is_cut": True,
    "tool": "resiliparse 2",
}


def test_the_fields_of_a_document() -> None:
    assert document(LINE, "daily/1/a.warc.gz") == {
        "id": LINE["id"],
        "url": LINE["url"],
        "wayback_date": 20161019234428,
        "record_type": "response",
        "source_file_offset": 4620,
        "source_file": "daily/1/a.warc.gz",
        "content_type_served": "application/xhtml+xml",
        "content_type": "application/xhtml+xml",
        "content_type_norm": "html",
        "content": "words",
        "host": "www.news.example.co.uk",
        "domain": "example.co.uk",
        "public_suffix": "co.uk",
        "crawl_date": "2016-10-19T23:44:28Z",
        "crawl_year": 2016,
    }


@pytest.mark.parametrize("url", ["urn:uuid:1", "http://[::1", "dns:e.x", "http:///", "mailto:a@b"])
def test_a_url_without_a_host(url: str) -> None:
    made = document({**LINE, "url": url}, "a")
    assert made["url"] == url
    assert not {"host", "domain", "public_suffix"} & made.keys()


def test_a_long_string_is_cut_to_what_lucene_takes_and_words_are_not() -> None:
    made = document({**LINE, "url": "http://e.x/" + "é" * 40_000, "content": "w" * 100_000}, "a")
    assert len(made["url"].encode()) in (MOST_OF_A_TERM - 1, MOST_OF_A_TERM)
    assert len(made["content"]) == 100_000


def test_every_field_is_in_the_shipped_schema_and_is_kept() -> None:
    fields = {one.attrib["name"]: one.attrib["stored"] for one in ElementTree.parse(SCHEMA).iter("field")}
    assert {name: fields.get(name) for name in FIELDS} == dict.fromkeys(FIELDS, "true")
