"""The documents that 200 pages name, beside any23 and extruct: they find nothing that the extract has not."""

from __future__ import annotations

import hashlib
import io
import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pytest
from records.captures import response
from records.named_pages import pages
from records.warcs import warc_gz

from servers import packages
from warcmill.extracts import harvest
from warcmill.extracts.extracts import Extracts
from warcmill.extracts.harvest import HarvestWorkers
from warcmill.formats.harvested import PageFacts
from warcmill.formats.publications.identifiers import cleaned, isbn_of
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore

NUMBER = 200
SECONDS = 300
TYPES = frozenset({"Book", "Report", "ScholarlyArticle", "Article", "DigitalDocument", "Thesis", "CreativeWork"})
FIELDS = ("name", "author", "publisher", "datePublished", "isbn", "url", "encoding", "contentUrl")
EXTRUCT = """
import json, sys, extruct
for line in sys.stdin:
    url, text = json.loads(line)
    found = extruct.extract(text, base_url=url, syntaxes=["json-ld", "microdata", "opengraph", "dublincore"])
    print(json.dumps([url, found]))
"""
TRIPLE = re.compile(r'(\S+) <([^>]*)> (?:<([^>]*)>|"((?:[^"\\]|\\.)*)"\S*|(\S+)) \.')
Found = Mapping[str, set[tuple[str, str]]]


@pytest.fixture(scope="module")
def made() -> dict[str, bytes]:
    return pages(NUMBER)


@pytest.fixture(scope="module")
def warc(made: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pages") / "pages.warc.gz"
    header = b"Content-Type: text/html; charset=utf-8"
    path.write_bytes(warc_gz(*(response(url, header, body=body) for url, body in made.items())))
    return path


@pytest.fixture(scope="module")
def ours(warc: Path) -> dict[str, set[str]]:
    """All values that the extract has of each page."""
    base, data = warc.parent, warc.read_bytes()
    sentinel.adopt({"index": base / "index", "store": base / "store"})
    extracts, store = Extracts(FileStore("index", base / "index")), FileStore("store", base / "store")
    digest = hashlib.sha512(data).hexdigest()
    store.commit_new("pages.warc.gz", io.BytesIO(data), len(data), digest)
    with HarvestWorkers(1) as workers:
        harvest.make(extracts, store, workers, "pages.warc.gz", digest)
    return {one.url: values(one.page) for one in harvest.read(extracts, digest) if one.page}


def values(page: PageFacts) -> set[str]:
    found = {page.title, *page.og.values()}
    for one in page.named:
        found |= {one.title, one.publisher, one.date, *one.urls, *one.authors, *one.isbn, *one.doi}
    return found


def lacking(found: Found, ours: Mapping[str, set[str]]) -> list[tuple[str, str, str]]:
    """What is found, and the extract has not: page, field and value."""
    return [
        (url, name, value)
        for url, those in found.items()
        for name, value in sorted(those)
        if value.strip() and (isbn_of(value) if "isbn" in name else cleaned(value)) not in ours[url]
    ]


def test_any23_finds_no_more(warc: Path, ours: dict[str, set[str]]) -> None:
    source = packages.LOCKS / "any23" / "WARCDocumentSource.java"
    command = [packages.java(), "-cp", f"{packages.any23()}/lib/*", source, warc]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found = of_triples(done.stdout)
    assert len(found) == len(ours) == NUMBER
    assert sum(map(len, found.values())) > 3 * NUMBER
    assert lacking(found, ours) == []


def of_triples(text: str) -> dict[str, set[tuple[str, str]]]:
    """What any23 found of each page: its title, what its `meta` name, and its items of these types."""
    found: dict[str, set[tuple[str, str]]] = {}
    for part in text.split("# http")[1:]:
        url, _, lines = f"http{part}".partition("\n")
        triples = [match.groups() for line in lines.splitlines() if (match := TRIPLE.fullmatch(line))]
        typed = {
            node for node, name, kind, *_ in triples
            if name.endswith("#type") and kind and kind.rpartition("/")[2] in TYPES
        }  # fmt: skip
        parents = {
            node for one, name, _, _, node in triples if one in typed and name.rpartition("/")[2] in FIELDS and node
        }
        those = found.setdefault(url, set())
        for node, name, iri, literal, _ in triples:
            key = re.split("[/#]", name)[-1]
            value = iri or json.loads(f'"{literal}"') if iri or literal else ""
            is_named = (
                key.lower().startswith(("citation_", "dc.", "dcterms.")) or name == "http://purl.org/dc/terms/title"
            )
            if is_named and not key.lower().startswith("citation_pdf"):
                those.add((key.lower(), value))
            elif is_named:
                those.add((key.lower(), urljoin(url, value)))
            elif (node in typed and key in FIELDS) or (node in parents and key == "name"):
                those.add((key, value))
    return found


def test_extruct_finds_no_more(made: dict[str, bytes], ours: dict[str, set[str]]) -> None:
    asked = "".join(f"{json.dumps([url, body.decode()])}\n" for url, body in made.items())
    command: list[str | Path] = [packages.bin_folder("extruct") / "python", "-W", "ignore", "-c", EXTRUCT]
    done = subprocess.run(command, input=asked, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    answers = dict(map(json.loads, done.stdout.splitlines()))
    found = {url: {*of_extruct(url, answer)} for url, answer in answers.items()}
    assert len(found) == NUMBER
    assert sum(map(len, found.values())) > 5 * NUMBER
    assert lacking(found, ours) == []


def of_extruct(url: str, answer: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for one in answer["opengraph"]:
        yield from ((name, value) for name, value in one["properties"])
    for one in answer["dublincore"]:
        yield from ((part["name"], part["content"]) for part in (*one["elements"], *one["terms"]))
    for item in answer["microdata"]:
        if item["type"].rpartition("/")[2] in TYPES:
            for name in FIELDS:
                yield from of_value(url, name, item["properties"].get(name))
    graph = {one["@id"]: one for one in objects(answer["json-ld"]) if "@id" in one and "name" in one}
    for one in objects(answer["json-ld"]):
        types = one.get("@type", ())
        if TYPES.intersection([types] if isinstance(types, str) else types):
            for name in FIELDS:
                value = one.get(name)
                value = graph.get(value["@id"]) if isinstance(value, dict) and "@id" in value else value
                yield from of_value(url, name, value)


def of_value(url: str, name: str, value: Any) -> Iterator[tuple[str, str]]:
    """The texts of a property; of an object in it its name, or the URL of its file."""
    for one in value if isinstance(value, list) else [value]:
        if isinstance(one, dict):
            inside = one.get("properties", one)
            yield from of_value(url, name, inside.get("contentUrl" if name == "encoding" else "name"))
        elif one is not None:
            yield name, urljoin(url, one) if name in ("url", "encoding", "contentUrl") else str(one)


def objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from objects(one)
