"""The form of a job and its papers, there and back: what no field changes keeps its bytes, comments too."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping

import pytest
from msgspec.structs import asdict

from warcmill.crawl.job import file, form, text
from warcmill.crawl.job.form import JobForm
from warcmill.errors import BadConfig, BadInput

EVERY = r"""# Whoever reads this: the calendar has no end.
contact = "https://archive.example/bot"  # ours
queue_by = "domain"
gate_by = "queue"
expires = 2026-12-31T00:00:00Z
revisits = true
no_delay = true
endless = false
scope_log = true
results_log = false
requests = false
scripts = false
workers = 3
warc_size = 1_000_000  # small ones
checkpoint_hours = 0.5
hops = 7
defaults = ["workers"]
policies = ["quotas", "scope"]
patterns = [
    '.*\?day=.*',  # of the calendar
    '(?i).*\Qprint\E.*',
]
extensions = ["zip", "mp4"]
allow_private = ["10.0.0.0/8"]
name_servers = ["10.0.0.53"]
resolve = ["www.example.org=10.0.0.7"]
robots = "obey"
nofollow = "obey"
conditional = "none"
extractors = ["html", "script"]
imported = { id = "a" }

# Not more than the disk holds.
[limits]
documents = 100
bytes = 1500
seconds = 90
[traps]
queries = 9
[quotas_are_below]
"""
EVERY = (
    EVERY.replace("[quotas_are_below]\n", "")
    + r"""
[about]
title = "News"
owner = "anna"
tags = ["news", "daily"]
description = '''
Two
lines'''
[pages]
"http://www.example.org/a" = "plus1"  # by hand
[recrawl]
age = 9
[render]
which = "seeds"
seconds = 30
[fetch]
body = 9
[retries]
times = 2
[politeness]
least = 0.5
factor = 2.0
[[quotas]]
by = "host"
documents = 9
[[settings]]
prefixes = ["http://(org,example,"]
robots = "ignore"
[settings.politeness]
least = 10.0
"""
)
FILES = {
    "crawl.toml": EVERY.encode(), "seeds.txt": b"# the news\nhttp://www.example.org/a\n",
    "surts.txt": b"# ours\n+http://(org,example,\n", "exclude.txt": b"# old\nhttp://(org,example,)/old/\n",
}  # fmt: skip
NEW = {
    "title": "The news", "description": "One\nTwo", "tags": "a, b", "owner": "ben", "addresses": "http://b.example/x/y\n",
    "keep": "domain", "leave_out": "calendar\nhttp://(example,b,)/no/\n", "extensions": "iso", "hops": "3",
    "documents": "9", "bytes": "2 GB", "seconds": "3 h", "render": "pages", "workers": "8", "least": "2",
    "contact": "https://b.example/", "robots": "ignore", "allow_private": "fd00::/8",
}  # fmt: skip


def keys_of(files: Mapping[str, bytes]) -> dict[str, object]:
    return tomllib.loads(files["crawl.toml"].decode())


def test_every_key_is_there_and_the_form_gives_its_bytes_back() -> None:
    assert keys_of(FILES).keys() == {*file.KEYS}
    file.described(FILES, "news")
    found = form.of_papers(FILES)
    assert form.papers(found, FILES) == FILES
    assert (found.keep, found.bytes, found.seconds, found.least) == ("listed", "1500 B", "90 s", "0.5")
    assert found.leave_out == "re: .*\\?day=.*\nprint\nhttp://(org,example,)/old/\n"


@pytest.mark.parametrize("name", [one for one in JobForm.__struct_fields__ if one != "prefixes"])
def test_a_field_changes_its_own_keys_alone_and_keeps_the_comments(name: str) -> None:
    before = form.of_papers(FILES)
    after = form.papers(before.changed({name: NEW[name]}), FILES)
    old, new = keys_of(FILES), keys_of(after)
    own = {
        "title": "about", "description": "about", "tags": "about", "owner": "about", "addresses": "", "keep": "pages",
        "leave_out": "patterns", "documents": "limits", "bytes": "limits", "seconds": "limits", "least": "politeness",
    }  # fmt: skip
    assert {key for key in {*old, *new} if old.get(key) != new.get(key)} == {own.get(name, name)} - {""}
    assert form.of_papers(after).differences(before) in ([name], [name, "prefixes"])
    comments = [line.partition("#")[2] for line in EVERY.splitlines() if "#" in line]
    gone = {"patterns": {" of the calendar"}, "pages": {" by hand"}}.get(own.get(name, name), set())
    kept = after["crawl.toml"].decode()
    assert [one for one in comments if one not in kept and one not in gone] == []


def test_a_form_comes_back_as_it_was_typed() -> None:
    for before in ({}, FILES):
        begun = form.of_papers(before) if before else JobForm()
        files = form.papers(begun.changed(NEW), before)
        found = form.of_papers(files)
        assert {name: getattr(found, name) for name in NEW} == NEW
        assert form.papers(found, files) == files
        none = {name: "" for name in NEW if name not in ("addresses", "keep")} | {"render": "never", "robots": "obey"}
        cleared = form.papers(found.changed(none), files)
        assert form.of_papers(cleared).leave_out == ""
        assert "hops" not in keys_of(cleared)


@pytest.mark.parametrize(
    ("keep", "prefixes", "pages"),
    [
        ("pages", [], {"https://www.a.example/b/c": "resource"}),
        ("linked", [], {"https://www.a.example/b/c": "plus1"}),
        ("folder", ["+http://(example,a,www,)/b/", "+http://(example,a,)/b/"], {}),
        ("host", ["+http://(example,a,www,)/", "+http://(example,a,)/"], {}),
        ("domain", ["+http://(example,a,"], {}),
    ],
)
def test_what_is_kept_is_prefixes_or_pages(keep: str, prefixes: list[str], pages: dict[str, str]) -> None:
    files = form.papers(JobForm(addresses="https://www.a.example/b/c\n", keep=keep), {})
    assert files.get("surts.txt", b"").decode().splitlines() == prefixes
    assert keys_of(files).get("pages", {}) == pages
    assert form.of_papers(files).keep == keep


def test_addresses_are_written_in_their_canonical_form_and_notes_stay() -> None:
    files = form.papers(JobForm(addresses='# mine\nA.Example\n"https://b.example/x", B\na.example/\n'), {})
    assert files["seeds.txt"] == b"# mine\nhttps://a.example/\nhttps://b.example/x\n"


@pytest.mark.parametrize(
    ("name", "typed", "why"),
    [
        ("addresses", "https://a.example/\njavascript:alert(1)\n", "line 2: javascript:alert(1): javascript: is not"),
        ("keep", "all", "is none of pages"),
        ("leave_out", "a\n\nre: (\n", "line 3: '(' is not an expression of RE2"),
        ("leave_out", "a\\b\n", "line 1: no address has a backslash"),
        ("leave_out", f"{'a' * 2_001}\n", "line 1: a rule of 2,001 letters"),
        ("hops", "-1", "is not a whole number"),
        ("bytes", "ten", "is not an amount"),
        ("seconds", "3 GB", "is not an amount"),
        ("least", "1e9", "is not a number"),
        ("render", "all", "is none of never"),
        ("robots", "no", "is none of obey"),
        ("title", "a\x00b", "is not a text on one line"),
    ],
)
def test_what_cannot_be_taken_is_named_by_its_field(name: str, typed: str, why: str) -> None:
    with pytest.raises(BadInput) as caught:
        form.papers(JobForm(addresses="https://a.example/\n").changed({name: typed}), FILES)
    assert (caught.value.path, why in caught.value.why) == (name, True), caught.value


def test_an_unknown_field_is_named() -> None:
    with pytest.raises(BadInput, match="titel: there is no such field; did you mean title"):
        JobForm().changed({"titel": "x"})


@pytest.mark.parametrize(
    ("toml", "where"),
    [
        ("hops = 'x'\n", "crawl.toml, line 1: hops"),
        ("[limits]\ndocuments = 1\nbytez = 3\n", "crawl.toml, line 3: [limits] bytez"),
        ("\na =\n", "crawl.toml, line 2: it is not TOML"),
        (
            "[[settings]]\nseeds = ['http://a/']\n[[settings]]\nseeds = ['http://b/']\n[settings.politeness]\nat_once=3\n",
            "crawl.toml, line 6: [[settings]] 2 [politeness] at_once",
        ),
        ("x = 1\nlimits = { documents = 'a' }\n", "crawl.toml, line 1: x"),
        ("\nlimits = { documents = 'a' }\n", "crawl.toml, line 2: [limits] documents"),
        ("[about]\ntitle = 3\n", "crawl.toml, line 2: [about] title"),
        ("hops = 3\npatterns = ['(']\n", "crawl.toml, line 2: patterns"),
    ],
)
def test_a_fault_of_crawl_toml_has_its_line(toml: str, where: str) -> None:
    with pytest.raises(BadInput) as caught:
        form.check({"crawl.toml": toml.encode(), "seeds.txt": b"http://a.example/\n"}, "news")
    assert str(caught.value).startswith(where), caught.value


def test_the_mark_of_the_crawl_command_goes_with_the_first_change() -> None:
    files = {"crawl.toml": f"{text.HEAD}hops = 3\n".encode(), "seeds.txt": b"http://a.example/\n"}
    found = form.of_papers(files)
    assert form.papers(found, files) == files
    assert form.papers(found.changed({"addresses": "http://b.example/"}), files)["crawl.toml"] == b"hops = 3\n"


def test_an_unusual_file_is_not_changed_by_guessing() -> None:
    files = {"crawl.toml": b'pages."http://a.example/" = "plus1"\n', "seeds.txt": b"http://a.example/\n"}
    found = form.of_papers(files)
    assert form.papers(found.changed({"title": "A"}), files)["crawl.toml"].startswith(files["crawl.toml"])
    with pytest.raises(BadConfig, match="unusual way"):
        form.papers(found.changed({"keep": "pages"}), files)
    with pytest.raises(BadConfig, match="this form cannot show"):
        form.of_papers({"crawl.toml": b"hops = [3]\n"})


def test_many_single_pages_are_written_and_read() -> None:
    addresses = "".join(f"https://h{number}.example/\n" for number in range(2_000))
    files = form.papers(JobForm(addresses=addresses, keep="pages"), {})
    after = form.papers(form.of_papers(files).changed({"hops": "3"}), files)
    assert (len(keys_of(after)["pages"]), keys_of(after)["hops"]) == (2_000, 3)  # type: ignore[arg-type]


def test_what_needs_an_operator_and_what_waits_for_the_next_launch() -> None:
    def with_toml(text: str, **more: bytes) -> dict[str, bytes]:
        return {"crawl.toml": text.encode(), "seeds.txt": b"http://a.example/\n", **more}

    bold = with_toml("robots = 'ignore'\nallow_private = ['10.0.0.0/8']\n[render]\ncookies = '/c'\n[[settings]]\n"
                     "robots = 'ignore'\n")  # fmt: skip
    assert form.needs_operator(with_toml(""), bold) == [
        "[[settings]] 1 robots", "[render] cookies", "allow_private", "robots",
    ]  # fmt: skip
    assert form.needs_operator(bold, with_toml("")) == []
    assert form.needs_operator(bold, bold) == []
    after = with_toml("hops = 3\nworkers = 9\n[politeness]\nat_once = 2\n", **{"surts.txt": b"http://(org,\n"})
    assert form.taken(with_toml(""), {**after, "seeds.txt": b"http://b.example/\n"}) == (
        ["hops", "surts.txt"], ["seeds.txt", "politeness.at_once", "workers"],
    )  # fmt: skip
    assert asdict(JobForm())["keep"] == "folder"
