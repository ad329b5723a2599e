"""Every launch of the corpus in the index: each capture is found again, by us and by pywb; words; what is hidden.

The lines are copies with `[index]` and `[text]` on, whose files are links.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest
from indexing.pywb_server import SECONDS, of_collection, running
from launches.corpus import Corpus

from servers import packages
from warcmill.extracts.extracts import Extracts
from warcmill.formats.index.urlkey import urlkey
from warcmill.launches import holdings
from warcmill.stores.file import FileStore
from warcmill.versions import revisits
from warcmill.versions.publication import CdxLookup, open_version

DAYS = ("--date-interval", "2026-11")
CAPTURES = 3208  # of the WARCs that are indexed: all closed ones and what was salvaged, without viral ones
LAST = ("daily", "20261121082027")  # its engine stored changed pages as revisits of the old ones
ORPHANS = ["http://gov.example/odd/1xx", "http://gov.example/odd/warn", "http://news.example/"]
HIDDEN = "example,docs"
PAGE, PDF = "http://docs.example/python/howto/curses.html", "http://assets.gov.example/uploads/10401/maint-guide.pdf"


@pytest.fixture(scope="module")
def indexed(corpora: list[Corpus], tmp_path_factory: pytest.TempPathFactory) -> list[Corpus]:
    """The lines after one scan of the index."""
    made = [_copied(corpus, tmp_path_factory.mktemp("indexed")) for corpus in corpora]
    for corpus in made:
        with (corpus.base / "line/luigi.cfg").open("a") as config:
            config.write("\n[index]\nsince=2026-01-01\n[text]\nsince=2026-01-01\n")
        _scan(corpus)
    return made


@pytest.fixture(scope="module")
def changed(indexed: list[Corpus], tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """One of those lines, to be changed: the launch of the layout job-first."""
    return _copied(indexed[-1], tmp_path_factory.mktemp("changed"))


@pytest.fixture(scope="module")
def pywb(indexed: list[Corpus], changed: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A running pywb with a collection for each line; its address."""
    lines = {"changed": changed, **{str(corpus.layout): corpus for corpus in indexed}}
    places = {
        name: (one.base / "line/store/warcs", one.base / "line/index/versions/cdx/current")
        for name, one in lines.items()
    }
    with running(tmp_path_factory.mktemp("pywb") / "pywb", places) as address:
        yield address


def _copied(corpus: Corpus, base: Path) -> Corpus:
    shutil.copytree(corpus.base / "line", base / "line", copy_function=os.link, symlinks=True)
    (base / "engine").symlink_to((corpus.base / "engine").resolve())
    config = base / "line/luigi.cfg"
    text = config.read_text().replace(str(corpus.base / "line"), str(base / "line"))
    config.unlink()
    config.write_text(text)
    return Corpus(base, corpus.layout)


def _scan(corpus: Corpus) -> None:
    done = corpus.run("luigi", "--module", "tasks.index", "index.ScanForIndexing", *DAYS)
    assert done.returncode == 0, done.stderr


def _index(corpus: Corpus) -> FileStore:
    return FileStore("index", corpus.base / "line/index")


def _lookup(corpus: Corpus) -> CdxLookup:
    return open_version(_index(corpus), "cdx")[1]


def _said(corpus: Corpus, code: int, *words: str) -> Any:
    done = corpus.run("commands.main", *words, "--json")
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout)


@cache
def _captures(line: Path, warcs: tuple[str, ...]) -> list[tuple[str, str, dict[str, str]]]:
    """The captures of stored WARCs, as others list them: key, time, fields."""
    indexer, store = packages.bin_folder("cdxj-indexer") / "cdxj-indexer", line / "store/warcs"
    command = [indexer, "--dir-root", store, *(store / one for one in warcs)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines = (one.split(" ", 2) for one in told.splitlines() if " {" in one)
    return [(key, second, json.loads(text)) for key, second, text in lines]


def _all(corpus: Corpus) -> list[tuple[str, str, dict[str, str]]]:
    stages = [(launch, stage) for launch in corpus.launches() for stage in corpus.state.stages(launch)]
    held = [one for stage in stages for one in holdings.of_stage(corpus.state, *stage).holdings if one.is_indexed]
    return _captures(corpus.base / "line", tuple(one.stored.path.removeprefix("warcs/") for one in held))


def test_every_capture_is_found_record_by_record(indexed: list[Corpus]) -> None:
    number = 0
    for corpus in indexed:
        with closing(_lookup(corpus)) as lookup:
            for key, second, fields in _all(corpus):
                found = [json.loads(line.split(b" ", 2)[2]) for line in lookup.captures(key, second, second)]
                assert found.count(fields) == 1, (key, second, fields)
                number += 1
    assert number == CAPTURES


def test_pywb_finds_every_capture_too(indexed: list[Corpus], pywb: str) -> None:
    for corpus in indexed:
        captures = [fields | {"timestamp": second} for _, second, fields in _all(corpus)]
        hosts = {urlsplit(one["url"]).netloc for one in captures} - {""}
        queries = [{"url": host, "matchType": "host"} for host in hosts]
        queries += [{"url": url} for url in {one["url"] for one in captures} if not urlsplit(url).netloc]
        found = {_place(one) for query in queries for one in of_collection(pywb, str(corpus.layout), **query)}
        assert found == set(map(_place, captures))


def test_a_page_of_every_launch_is_replayed_byte_for_byte(indexed: list[Corpus], pywb: str) -> None:
    for corpus in indexed:
        bodies, replayed = _bodies(corpus), set[str]()
        for _, second, fields in _all(corpus):  # a launch that changed nothing has revisits alone
            launch, body = fields["filename"].rpartition("/")[0], bodies.get((fields["url"], fields.get("digest", "")))
            if launch not in replayed and body:
                with urlopen(f"{pywb}/{corpus.layout}/{second}id_/{fields['url']}", timeout=SECONDS) as answer:
                    assert answer.read() == body, fields
                replayed.add(launch)
        assert replayed == {str(launch) for launch in corpus.launches()}


def _bodies(corpus: Corpus) -> dict[tuple[str, str], bytes]:
    """What was stored of some pages, by URL and digest: of those that were sent as they are."""
    found = dict[tuple[str, str], bytes]()
    for _, _, fields in _all(corpus):
        if fields.get("status") == "200" and fields.get("mime") == "text/html":
            warc = (corpus.base / "line/store/warcs" / fields["filename"]).read_bytes()
            record = gzip.decompress(warc[int(fields["offset"]) :][: int(fields["length"])])
            head, body = record.split(b"\r\n\r\n", 2)[1:]
            if not re.search(rb"\r\n(Transfer|Content)-Encoding:", head):  # which pywb undoes
                found[fields["url"], fields["digest"]] = body.removesuffix(b"\r\n\r\n")
    return found


def _place(capture: dict[str, str]) -> tuple[str, ...]:
    return tuple(capture[name] for name in ("url", "timestamp", "filename", "offset"))


def test_revisits_that_name_a_record_of_another_digest_and_those_that_are_orphans(indexed: list[Corpus]) -> None:
    """Of the 15, the payloads of 12 were stored later, by other launches."""
    (corpus,) = (one for one in indexed if any((launch.job, launch.id) == LAST for launch in one.launches()))
    with closing(_lookup(corpus)) as lookup:
        others = [one for one in _elsewhere(corpus) if _names_another(corpus, lookup, one)]
    assert len(others) == 15
    told = _said(corpus, 1, "reconcile", "2026-11")
    gaps = {str(one["launch_id"]): one["gaps"] for one in told["launches"]}
    found = [gap for gap in gaps[LAST[1]] if gap["kind"] == "orphan revisit"]
    assert sorted(gap["name"].split(" ")[1] for gap in found) == ORPHANS
    assert {gap["name"] for gap in found} <= {f"{one.warc.rpartition('/')[2]} {one.url}" for one in others}
    assert sum(gap["kind"] == "orphan revisit" for of_launch in gaps.values() for gap in of_launch) == len(ORPHANS)
    depends = _said(corpus, 1, "depends", *LAST)
    assert (sorted(one["url"] for one in depends["nowhere"]), depends["unknown"]) == (ORPHANS, "")
    assert {one["where"] for one in depends["needs"]} == {"stored"}


def _elsewhere(corpus: Corpus) -> Iterator[revisits.Revisit]:
    for launch in corpus.launches():
        for stage in revisits.with_revisits(corpus.state, launch):
            yield from revisits.of_stage(corpus.state, Extracts(_index(corpus)), launch, stage)


def _names_another(corpus: Corpus, lookup: CdxLookup, one: revisits.Revisit) -> bool:
    """Whether the record that its WARC-Refers-To-Target-URI and -Date name has another payload."""
    with (corpus.base / "line/store/warcs" / one.warc).open("rb") as file:
        file.seek(one.offset)
        head = gzip.GzipFile(fileobj=file).read(4096).partition(b"\r\n\r\n")[0].decode()
    named = dict(re.findall(r"^WARC-Refers-To-(Target-URI|Date): (\S+)\r?$", head, re.MULTILINE))
    if not named:
        return False
    second = re.sub(r"\D", "", named["Date"])
    found = [
        json.loads(line.split(b" ", 2)[2]) for line in lookup.captures(urlkey(named["Target-URI"]), second, second)
    ]
    assert found, head
    return all(fields["digest"] != one.digest for fields in found)


def test_a_word_of_one_pdf_alone_and_one_of_one_page_alone_are_found(indexed: list[Corpus]) -> None:
    for word, url in (("aclocal", PDF), ("blinking", PAGE)):
        told = _said(indexed[-1], 0, "search", word)
        assert (told["captures"], [one["url"] for one in told["found"]]) == (1, [url])


def test_what_is_hidden_is_gone_everywhere_also_when_the_index_is_made_again(changed: Corpus, pywb: str) -> None:
    """Only the extracts of the WARCs' lines and texts are made again; those of revisits are found again when asked."""
    index, before = changed.base / "line/index", _extracts(changed)
    assert _found(changed, pywb) == (106, 1, 1)
    assert changed.run("commands.main", "versions", "hide", HIDDEN, "--reason", "order of a court").returncode == 0
    _scan(changed)
    lines = _lines(changed)
    assert _found(changed, pywb) == (0, 0, 0)
    shutil.rmtree(index)
    assert changed.run("commands.main", "init", "--adopt", "index", "--create").returncode == 0
    _scan(changed)
    assert _found(changed, pywb) == (0, 0, 0)
    assert _extracts(changed) == before
    assert _lines(changed) == lines


def _found(corpus: Corpus, pywb: str) -> tuple[int, int, int]:
    """How many captures of the host our lookup has, and of a page of it the search and pywb."""
    with closing(_lookup(corpus)) as lookup:
        number = sum(1 for _ in lookup.beginning_with(f"{HIDDEN})".encode()))
    words = corpus.run("commands.main", "search", "blinking", "--json")
    return number, json.loads(words.stdout)["captures"], len(of_collection(pywb, "changed", url=PAGE))


def _extracts(corpus: Corpus) -> dict[str, str]:
    top = corpus.base / "line/index/extracts"
    files = [path for kind in ("cdxj-*", "text-*") for path in top.glob(f"{kind}/*/*.gz")]
    assert files
    return {
        str(path.relative_to(top)): hashlib.sha512(gzip.decompress(path.read_bytes())).hexdigest() for path in files
    }


def _lines(corpus: Corpus) -> list[bytes]:
    with closing(_lookup(corpus)) as lookup:
        return list(lookup.beginning_with(b""))
