"""Markers with odd values: the three readers agree on each, and refuse it with an error of the tree."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from warcmill import layout
from warcmill.errors import BadInput, Foreign
from warcmill.markers import claim as evidence
from warcmill.markers.claim import Claim, Input, Run
from warcmill.model import FINAL, FileRef, Item, Json, Launch, Outcome

KEY = layout.key("files.Copy", Launch("daily", "20161019234428"), stage=FINAL)
RUN = Run("crawler01", "2016-10-20T00:00:00Z", "2016-10-20T00:00:01Z", {"warcmill": "0.1.0"})
HOSTILE = [
    *("1.0", "1.5", "1e3", "-0", "-0.0", "01", "+1", "NaN", "Infinity", "-Infinity", "9" * 30, "9" * 5000, "0x1"),
    *("null", "true", "[]", "{}", '""', '"7"', "'7'", "[1,]", '{"a":1,"a":2}', '{"a": 1,\n "a": 2}', "[" * 90, "7 7"),
    *("[" * 5000 + "]" * 5000, '{"a":' * 600 + "1" + "}" * 600, "[[[[[[1]]]]]]", '{"b": 1, "a": 2}', '{"a": 1.0}'),
    *(
        '"\\u0061"',
        '"\\ud800"',
        '"\\ud83d\\ude00"',
        '"\\/"',
        '"\x7f"',
        '"\t"',
        '"\\t"',
        '"\ud800"',
        '"\u2028\U0010ffff"',
    ),
    *('{"\ue000": 1,\n "\U0001f600": 2}', '{"\U0001f600": 1,\n "\ue000": 2}', "", " 7", "7 ", "// 7", "\ufeff7"),
]


def a_claim(facts: dict[str, Json], text: str = "a.warc.gz") -> Claim:
    source = FileRef("output", text, 10, "ab" * 64)
    items = (
        Item(source, Outcome.REFUSED, why="cut", offset=7),
        Item(source, Outcome.OK, made=FileRef("store", "x", 7), facts=facts),
    )
    return Claim(KEY, (Input("a/marker", "cd" * 64),), (source,), items, {"files": 2, "by": {"200": 1}}, facts)


def sealed(body: bytes) -> bytes:
    return body + hashlib.sha512(body).hexdigest().encode() + b"\n"


def verdict(read: Callable[[bytes, str], object], data: bytes) -> object:
    """What a reader returns, with the type of every number in it, or how it refuses."""
    try:
        return repr(read(data, "m"))
    except (BadInput, Foreign) as error:
        return type(error)


def agree(data: bytes) -> bool:
    """True if the readers that look at less take all that those take which look at more, and read the same.

    A lone surrogate has no digest: only `decode` refuses it.
    """
    whole = verdict(lambda *words: evidence.decode(*words).claim, data)
    record = verdict(lambda *words: evidence.decode_record(*words).claim, data)
    head = verdict(lambda *words: evidence.decode_head(*words)[0], data)
    taken = [isinstance(one, str) for one in (whole, record, head)]
    return taken == sorted(taken) and whole in (record, BadInput, Foreign)


_NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
_SCALARS = st.none() | st.booleans() | st.integers() | _NAMES
_VALUES = st.recursive(_SCALARS, lambda some: st.lists(some) | st.dictionaries(_NAMES, some), max_leaves=12)


@settings(max_examples=30)
@given(st.dictionaries(_NAMES, _VALUES, max_size=4))
@example({"\ue000": 1, "\U0001f600": 2, "a": {"z": [1], "b": None}, "ab": -(2**70)})
def test_what_is_written_is_read_alike(facts: dict[str, Json]) -> None:
    data = evidence.encode(a_claim(facts), RUN)
    assert evidence.decode(data, "m").claim == a_claim(facts)
    assert evidence.decode(data, "m").digest == evidence.claim_digest(a_claim(facts))


def test_every_character_is_read_as_it_was_written() -> None:
    codes = (code for code in range(0x20, sys.maxunicode + 1) if not 0xD800 <= code < 0xE000)
    claim = Claim(KEY, facts={"text": "".join(map(chr, codes)).replace('"', "").replace("\\", "")})
    data = evidence.encode(claim, RUN)
    assert evidence.decode(data, "m").digest == evidence.claim_digest(claim)
    assert evidence.decode(data, "m").claim == claim


@pytest.mark.parametrize("facts", [{}, {"hits": [{"offset": 1, "uri": "http://a.example/"}], "n": {"a": [None, True]}}])
def test_all_readers_take_markers_as_steps_write_them(facts: dict[str, Json]) -> None:
    data = evidence.encode(a_claim(facts), RUN)
    assert evidence.decode_head(data, "m") == (KEY, RUN)
    assert evidence.decode_record(data, "m") == evidence.SoundMarker(a_claim(facts), RUN)


def places(body: str) -> list[tuple[int, int]]:
    """Where the values of a marker are: what follows `": `, or a list's line, to the end of its line."""
    ends, begin = [], 0
    for line in body.splitlines(keepends=True):
        name = line.find('": ')
        value = begin + (name + 3 if name >= 0 else len(line) - len(line.lstrip()))
        ends.append((value, begin + len(line.rstrip("\n").rstrip(","))))
        begin += len(line)
    return ends


BODY = evidence.encode(a_claim({"a": [1], "b": {"c": None}}), RUN).decode().rsplit("\n", 2)[0]


@pytest.mark.parametrize("hostile", HOSTILE)
def test_all_readers_agree_on_a_hostile_value(hostile: str) -> None:
    for begin, end in places(BODY):
        body = f"{BODY[:begin]}{hostile}{BODY[end:]}\n".encode("utf-8", "surrogatepass")
        assert agree(sealed(body)), body


@given(st.lists(st.tuples(st.integers(0, len(BODY)), st.integers(0, 12), st.sampled_from([*HOSTILE, "\n", ",", "}"]))))
def test_all_readers_agree_on_a_changed_marker(changes: list[tuple[int, int, str]]) -> None:
    body = BODY
    for place, length, text in changes:
        body = body[:place] + text + body[place + length :]
    data = sealed(body.encode("utf-8", "surrogatepass") + b"\n")
    assert agree(data)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"counts"', '"colour": "red",\n  "counts"'),  # a member of a later version: it is part of the digest
        ('"schema": 1', '"schema": 1,\n "schema": 1'),
        ('"schema": 1', '"schema": 2'),
        ('"schema": 1', '"schema": true'),
        ('"size": 7', '"sha512": null,\n     "size": 7'),
        ('"size": 7', '"size": 7,\n     "size": 8'),
        ('"outcome": "ok"', '"outcome": "odd"'),
        ('"outcome": "ok"', '"outcome": "ok",\n    "why": ""'),
        (": ", ":"),
        ("\n", "\r\n"),
        ("a.warc.gz", "\udcff.warc.gz"),
    ],
)
def test_all_readers_agree_on_another_form(old: str, new: str) -> None:
    data = sealed(BODY.replace(old, new).encode("utf-8", "surrogateescape") + b"\n")
    assert agree(data)
