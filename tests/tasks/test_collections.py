"""[text] solr and [collection.NAME]: what they mean, and what is wrong with them."""

from __future__ import annotations

import pytest
from configured import Keys, configured

from tasks.config import chains, known
from warcmill.errors import BadConfig

URL = "https://user:${PASSWORD}@search.example:8983/solr/discovery/"


@pytest.fixture
def config(monkeypatch: pytest.MonkeyPatch) -> Keys:
    parser = configured(monkeypatch)
    parser.add_section("text")
    return parser


def table(config: Keys, name: str, **keys: str) -> None:
    config.add_section(f"collection.{name}")
    for key, value in keys.items():
        config.set(f"collection.{name}", key, value)


def test_without_a_url_there_is_no_solr(config: Keys) -> None:
    assert chains.solr() is None
    table(config, "gov", hosts="gov.example")
    with pytest.raises(BadConfig, match=r"\[text\] solr: is not set, and \[collection.gov\] routes to"):
        chains.solr()


def test_a_solr_and_its_collections(config: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSWORD", "s3cret")
    config.set("text", "solr", URL)
    table(config, "gov", hosts="gov.example, b.example\nc.example", surts="org,example)/gov/\n  org,example)/b")
    found = chains.solr()
    assert found
    assert found.server == "https://user:s3cret@search.example:8983/solr"
    assert found.name == "solr-search.example-8983-solr"
    assert found.routing.collections == ("discovery", "gov")
    assert found.routing.collection(b"example,c)/ 2016") == found.routing.collection(b"org,example)/b1 2016") == "gov"
    assert [one.name for one in known.unknown() if one.name.startswith("[collection")] == []


@pytest.mark.parametrize(
    "url", ["discovery", "ftp://h/solr/a", "http://h:8983/", "http://h:8983/solr/", "http://h/solr/a?b"]
)
def test_what_is_no_url_of_a_collection_is_named(config: Keys, url: str) -> None:
    config.set("text", "solr", url)
    with pytest.raises(BadConfig, match="is not the URL of a collection, such as http"):
        chains.solr()


@pytest.mark.parametrize(
    ("name", "keys", "why"),
    [
        ("gov", {}, r"\[collection.gov\]: routes nothing: set hosts or surts"),
        ("gov", {"host": "e.x"}, r"\[collection.gov\] host: there is no such key; did you mean hosts\?"),
        ("a/b", {"hosts": "e.x"}, r"\[collection.a/b\]: its name is not that of a collection"),
        ("gov", {"hosts": "http://e.x/"}, r"\[collection.gov\]: http://e.x/: not a host"),
        ("gov", {"surts": "x,e"}, r"x,e: is routed to both other and gov"),
    ],
)
def test_a_wrong_table_is_named(config: Keys, name: str, keys: dict[str, str], why: str) -> None:
    config.set("text", "solr", "http://h:8983/solr/discovery")
    table(config, "other", surts="x,e")
    table(config, name, **keys)
    with pytest.raises(BadConfig, match=why):
        chains.solr()
