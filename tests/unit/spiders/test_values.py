"""Values of `meta` and `cb_kwargs` come back as they were, and nothing is read that a project does not have."""

from __future__ import annotations

import json
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from http import HTTPStatus
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import attrs
import pytest
from scrapy import Field, FormRequest, Item, Request, Selector, Spider
from scrapy.http import JsonRequest, Response

from warcmill.crawl.uri import Uri, make
from warcmill.errors import BadInput
from warcmill.requests.serving.scope import RequestScope, RequestTarget
from warcmill.requests.serving.targets import RequestAudience
from warcmill.spiders.names import RequestCookies
from warcmill.spiders.requests import MARK, InHand, RequestForms

PAGE = "http://windmills.example/"


class Mill(Item):
    name = Field()
    built = Field()
    next = Field()


@dataclass(frozen=True, slots=True)
class Place:
    town: str
    seen: set[int] = field(default_factory=set)


@attrs.frozen
class Miller:
    name: str
    place: Place | None = None


@attrs.define(slots=False)
class Wing:
    length: float

    def __attrs_post_init__(self) -> None:
        raise AssertionError("a wing is made once, by its spider")


class Point(NamedTuple):
    x: int
    y: int


class Kind(Enum):
    POST = "post"


class Floor(IntEnum):
    FIRST = 1


class Numbered(JsonRequest):
    """A class of a project that is made of something else than it is."""

    def __init__(self, number: int, **rest: Any) -> None:
        super().__init__(f"{PAGE}{number}", **rest)
        self.number = number


def decorated(function: Any) -> Any:
    def inner(self: Spider, response: Response) -> Any:
        return function(self, response)

    return inner


class Base(Spider):
    name = "base"

    def shared(self, response: Response) -> str:
        return "of the base"


class Mills(Base):
    name = "mills"

    def __init__(self) -> None:
        super().__init__()
        self.of_instance = lambda response: "of the instance"

    def parse(self, response: Response) -> None: ...

    def shared(self, response: Response) -> str:
        return "of the spider"

    @decorated
    def detail(self, response: Response) -> str:
        return "detail"

    @staticmethod
    def plain(response: Response) -> str:
        return "plain"

    def __hidden(self, response: Response) -> str:
        return "hidden"

    def requests(self) -> list[Request]:
        return [Request(PAGE, self.__hidden), Request(PAGE, super().shared)]


SPIDER = Mills()


def waits(request: Request) -> Uri:
    return RequestForms(SPIDER).waiting(request, b"1", parent=None, hop="", number=1)


def back(request: Request) -> Any:
    """A request as another process has it."""
    return RequestForms(Mills()).restored(waits(request))


def wing(length: float) -> Wing:
    made = object.__new__(Wing)
    made.length = length
    return made


VALUES = [
    date(2023, 3, 1),
    datetime(2023, 3, 1, 12, 30, 1, 5),
    datetime(2023, 3, 1, tzinfo=UTC),
    datetime(2023, 3, 1, tzinfo=timezone(timedelta(hours=-3, minutes=-30, seconds=-5))),
    datetime(2023, 10, 29, 2, 30, tzinfo=ZoneInfo("Europe/Vienna"), fold=1),
    time(23, 59, tzinfo=ZoneInfo("Europe/Vienna")),
    timedelta(days=-1, seconds=5, microseconds=7),
    Decimal("1.10"),
    {1, 2},
    frozenset(["a"]),
    (1, ("a", [date(2023, 3, 1)])),
    b"\x00\xff",
    float("inf"),
    {1: "one", None: 2, ("a", 1): 3},
    {"_type": ["date", "2023-03-01"]},
    {"_type": 1, "_warcmill": 2},
    Mill(name="Nordmill", built=date(1850, 1, 1), next=Mill(name="Suedmill")),
    Place("Retz", {1}),
    Miller("Ann", Place("Retz")),
    wing(12.5),
    Point(1, 2),
    Kind.POST,
    Floor.FIRST,
    HTTPStatus.NOT_FOUND,
    [1, "a", {"b": None}],
    UUID(int=5),
    range(400, 600, 100),
    Mill,
    OrderedDict([("b", {1}), ("a", ())]),
    Counter("mill"),
    defaultdict(list, {("a", 1): [b"x"]}),
    defaultdict(None, a=1),
    deque([1, (2,)], maxlen=3),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_a_value_comes_back_as_it_was(value: Any) -> None:
    found = back(Request(PAGE, meta={"value": value}, cb_kwargs={"value": value}))
    assert found.meta["value"] == found.cb_kwargs["value"] == value
    assert type(found.meta["value"]) is (int if value is HTTPStatus.NOT_FOUND else type(value))
    assert repr(found.meta["value"]) == repr(404 if value is HTTPStatus.NOT_FOUND else value)


def test_a_number_stays_that_is_too_long_for_a_text() -> None:
    assert back(Request(PAGE, meta={"a": 10**5000, "b": -(10**5000)})).meta == {"a": 10**5000, "b": -(10**5000)}


def test_a_repeated_hour_and_a_zone_stay() -> None:
    at = datetime(2023, 10, 29, 2, 30, tzinfo=ZoneInfo("Europe/Vienna"), fold=1)
    found = back(Request(PAGE, meta={"at": at})).meta["at"]
    assert (found.fold, found.tzinfo, found.timestamp()) == (1, at.tzinfo, at.timestamp())


def test_a_request_among_the_values_is_whole() -> None:
    inner = FormRequest(f"{PAGE}search", SPIDER.detail, formdata={"q": "ä"}, priority=5, meta={"on": date(2023, 3, 1)})
    found = back(Request(PAGE, meta={"next": inner})).meta["next"]
    assert type(found) is FormRequest
    assert (found.url, found.method, found.body, found.priority) == (inner.url, "POST", inner.body, 5)
    assert found.meta == inner.meta
    assert found.callback(None) == "detail"


def test_a_request_in_hand_among_the_values_has_the_errback_of_the_spider() -> None:
    class Hand(InHand):
        def failed(self, failure: object) -> None: ...

    hand = Hand()
    hand.errback = SPIDER.detail
    inner = Request(PAGE, meta={MARK: 5}, errback=hand.failed)
    found = back(Request(PAGE, meta={"original": inner})).meta["original"]
    assert (found.meta, found.errback(None)) == ({}, "detail")


def test_a_class_of_requests_comes_back_as_itself() -> None:
    asked = Numbered(7, data={"day": 1}, dumps_kwargs={"indent": 1}, method="POST")
    found = back(asked)
    assert isinstance(found, Numbered)
    assert (found.number, found.url, found.body, found.dumps_kwargs) == (7, asked.url, asked.body, asked.dumps_kwargs)
    assert found.headers == asked.headers
    form = back(FormRequest(PAGE, formdata={"a": "1"}))
    assert type(form) is FormRequest
    assert (form.method, form.body) == ("POST", b"a=1")


def test_functions_are_found_whatever_their_names() -> None:
    hidden, shared = SPIDER.requests()
    asked = (hidden, shared, *(Request(PAGE, one) for one in (SPIDER.detail, Mills.plain, SPIDER.of_instance)))
    found: list[Any] = [back(one).callback for one in asked]
    assert [one(None) for one in found] == ["hidden", "of the base", "detail", "plain", "of the instance"]
    assert back(Request(PAGE, SPIDER.shared, errback=SPIDER.detail)).errback(None) == "detail"


def test_a_quoted_semicolon_of_a_posted_cookie_stays() -> None:
    headers = (("Cookie", 'a="x;y"; b=1; c="'),)
    target = RequestTarget(1, PAGE, "app", "crawl", "mills", RequestScope(), headers=headers)
    found = RequestForms(SPIDER).restored(make(PAGE, spider="mills"), RequestAudience(target, gets_notices=False))
    assert found.cookies == {"a": '"x;y"', "b": "1", "c": '"'}
    RequestCookies().process_request(found)
    assert found.headers["Cookie"] == b'a="x;y"; b=1; c="'


class Handle:
    """What a spider has open."""


class Listed(list[int]):
    """A list of a project."""


@dataclass
class Odd(Listed):
    """Python makes no empty one of it."""

    a: int = 0


def itself() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


REFUSED = [
    ({"meta": {"when": object()}}, "its meta['when'] is object, which cannot wait"),
    ({"cb_kwargs": {"by": [Handle()]}}, "its cb_kwargs['by'][0] is Handle, which cannot wait"),
    ({"meta": {"a": {"b": Selector(text="<p>")}}}, "its meta['a']['b'] is Selector, which cannot wait"),
    ({"meta": {"a": defaultdict(itself)}}, "its meta['a'] is defaultdict, which cannot wait"),
    ({"meta": {"a": Odd(1)}}, "its meta['a'] is Odd, which cannot wait"),
    ({"meta": {"a": Mill(name=Handle())}}, "its meta['a']._values['name'] is Handle, which cannot wait"),
    ({"meta": {"a": (itself(),)}}, "nested deeper than 60, or contains itself, which cannot wait"),
    ({"meta": {"a": Request(PAGE, Handle)}}, "its meta['a'] is a request: its callback"),
    ({"callback": Handle}, "is not a method of spider 'mills'; make it one"),
    ({"callback": Base().shared}, "its callback Base.shared is not a method of spider 'mills'"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "why"), REFUSED, ids=[why for _, why in REFUSED])
def test_what_cannot_wait_is_refused_by_its_place(words: dict[str, Any], why: str) -> None:
    with pytest.raises(BadInput) as refused:
        waits(Request(PAGE, **words))
    assert why in refused.value.why


def test_a_class_inside_a_function_is_refused() -> None:
    class Inner(Item):
        pass

    class Asked(Request):
        pass

    with pytest.raises(BadInput, match="is test_a_class_inside"):
        waits(Request(PAGE, meta={"item": Inner()}))
    with pytest.raises(BadInput, match="does not have by this name"):
        waits(Asked(PAGE))


FORGED = [
    ["object", "subprocess:Popen", {"args": "true"}],
    ["object", "warcmill.crawl.uri:Uri", {}],
    ["object", "test_values:Handle", {}],
    ["object", "test_values:Nothing", {}],
    ["object", "not_imported_by_anybody:Item", {}],
    ["object", "test_values:Mill.__class__", {}],
    ["object", "test_values:Place", {"nothing": 1}],
    ["enum", "test_values:Kind", "GET"],
    ["enum", "http:HTTPStatus", "OK"],
    ["fields", "test_values:Mill", []],
    ["request", {"class": "subprocess:Popen", "url": PAGE, "priority": 0}],
    ["request", {"url": 5}],
    ["datetime", ["2023-03-01T00:00:00", 0, "../../etc/passwd"]],
    ["timedelta", [1e999, 0, 0]],
    ["decimal", "one"],
    ["pickle", "gASVAAAA"],
    ["set", [[1]]],
    ["range", [0, 1, 0]],
    ["class", "subprocess:Popen"],
    ["default", ["object", [1, 2]]],
    ["deque", [-1, 1]],
    ["uuid", "../../"],
    [],
    5,
]  # fmt: skip


@pytest.mark.parametrize("forged", FORGED, ids=str)
def test_what_was_never_written_is_not_read(forged: Any) -> None:
    uri = waits(Request(PAGE))
    uri.payload = json.dumps({"request": {"meta": {"a": {"_type": forged}}, "tagged": True}})
    with pytest.raises(BadInput):
        RequestForms(SPIDER).restored(uri)
    assert "not_imported_by_anybody" not in sys.modules


def test_forms_of_before_are_read_as_they_were() -> None:
    uri = waits(Request(PAGE))
    uri.payload = json.dumps({"request": {"callback": "_Mills__hidden", "meta": {"a": {"_type": ["date", "x"]}}}})
    found: Any = RequestForms(SPIDER).restored(uri)
    assert found.meta == {"a": {"_type": ["date", "x"]}}
    assert found.callback(None) == "hidden"


def test_a_plain_request_waits_as_before() -> None:
    asked = Request(PAGE, SPIDER.parse, meta={"a": [1, {"b": None}]}, cookies={"c": "d"})
    form = {"callback": "parse", "meta": {"a": [1, {"b": None}]}, "cookies": {"c": "d"}}
    assert json.loads(waits(asked).payload) == {"request": form}


def test_a_class_beside_the_spider_is_of_its_project_and_one_that_is_installed_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = {"spider_file": tmp_path, "its_items": tmp_path / "lib", "theirs": tmp_path / ".venv" / "site-packages"}
    modules = {}
    for name, folder in folders.items():
        modules[name] = ModuleType(name)
        modules[name].__file__ = str(folder / f"{name}.py")
        monkeypatch.setitem(sys.modules, name, modules[name])
        exec("import scrapy\nclass S(scrapy.Spider): name = 's'\nclass I(scrapy.Item): pass", vars(modules[name]))
    forms = RequestForms(modules["spider_file"].S())
    asked = Request(PAGE, meta={"item": modules["its_items"].I()})
    uri = forms.waiting(asked, b"1", parent=None, hop="", number=1)
    assert type(forms.restored(uri).meta["item"]) is modules["its_items"].I
    with pytest.raises(BadInput, match=r"its meta\['item'\] is I, which cannot wait"):
        forms.waiting(Request(PAGE, meta={"item": modules["theirs"].I()}), b"1", parent=None, hop="", number=1)
    monkeypatch.delitem(sys.modules, "its_items")
    with pytest.raises(BadInput, match="is not a class of the spider's project, as that is imported now"):
        forms.restored(uri)
