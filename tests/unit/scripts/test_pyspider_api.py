"""pyspider's interface, name by name: the arguments of `crawl`, the attributes of a response, decorators, joins."""

from __future__ import annotations

from typing import Any

import pytest

from warcmill.crawl.fetch.exchange import FetchRequest, RenderOptions
from warcmill.crawl.uri import Renew, Uri, make
from warcmill.errors import BadInput
from warcmill.scripts import task as tasks
from warcmill.scripts.api.handler import FETCH, PROCESS, SCHEDULE, with_config
from warcmill.scripts.api.response import Response
from warcmill.scripts.api.run import Scripts

HEAD = "from pyspider.libs.base_handler import *\n\nclass Handler(BaseHandler):\n"
PAGE = make("http://a.example/", spider="shop", crawl="shop")
TAIL = "\n    def page(self, response): pass\n"


def script(body: str, head: str = HEAD) -> str:
    return head + "".join(f"    {line}\n" for line in body.splitlines()) + TAIL


def run(body: str, callback: str = "on_start", head: str = HEAD, **fields: Any) -> dict[str, Any]:
    task = {"project": "shop", "taskid": "1", "url": "http://a.example/", "process": {"callback": callback}}
    return Scripts().run(task, {"status_code": 200, "url": "http://a.example/", **fields}, {"shop": script(body, head)})


def crawled(arguments: str, config: str = "{}") -> dict[str, Any]:
    """The task of a call of `crawl`."""
    done = run(f"crawl_config = {config}\ndef on_start(self): self.crawl('http://a.example/p', {arguments})")
    assert done["why"] == "", done["trace"]
    follow: dict[str, Any] = done["follows"][0]
    return follow


def uri(arguments: str) -> Uri:
    return tasks.made("shop", crawled(arguments), PAGE)


def request(arguments: str, config: str = "{}") -> FetchRequest:
    """The request of a task, with the arguments of its script."""
    task = tasks.read(tasks.made("shop", crawled(arguments, config), PAGE))
    left = (("If-None-Match", '"left"'), ("If-Modified-Since", "then"))
    return tasks.asked(task, "http://a.example/p", with_config(task.request, eval(config)), left, 0.0)


SCHEDULED: dict[str, tuple[object, ...]] = {
    "age=60": (0, 0.0, Renew(60.0)),
    "age=0": (0, 0.0, Renew(0.0)),
    "priority=9": (-9, 0.0, Renew()),
    "exetime=1800000000.5": (0, 1800000000.5, Renew()),
    "exetime=1.8e15": (0, tasks.LATEST, Renew()),
    "itag='v2'": (0, 0.0, Renew(tag="v2")),
    "itag=7": (0, 0.0, Renew(tag="7")),
    "force_update=True": (0, 0.0, Renew(force=True)),
    "cancel=True, force_update=True, auto_recrawl=False": (0, 0.0, Renew(force=True, cancel=True)),
    "auto_recrawl=True, age=5, retries=9": (0, 0.0, Renew(5.0)),
    "callback='page'": (0, 0.0, Renew()),
    "callback=Handler.page": (0, 0.0, Renew()),
}


@pytest.mark.parametrize("arguments", SCHEDULED)
def test_arguments_that_schedule(arguments: str) -> None:
    made = uri(arguments)
    assert (made.priority, made.not_before, made.renew) == SCHEDULED[arguments]


LEFT = {"If-None-Match": '"left"', "If-Modified-Since": "then"}
REQUESTED: dict[str, tuple[str, dict[str, str], bytes, float]] = {
    "method='PUT', data='x'": ("PUT", LEFT, b"x", 0),
    "data={'a': 123, 'b': 'c'}": ("POST", LEFT, b"a=123&b=c", 0),
    "data=b'\\xff'": ("POST", LEFT, b"\xff", 0),
    "user_agent='GoogleBot'": ("GET", {**LEFT, "User-Agent": "GoogleBot"}, b"", 0),
    "headers={'A': 'b'}, cookies={'k': 'v'}": ("GET", {**LEFT, "A": "b", "Cookie": "k=v"}, b"", 0),
    "timeout=7, connect_timeout=3, validate_cert=False": ("GET", LEFT, b"", 7),
    "timeout='8'": ("GET", LEFT, b"", 8),
    "timeout=-1": ("GET", LEFT, b"", 0),
    "use_gzip=False": ("GET", {**LEFT, "Accept-Encoding": "identity"}, b"", 0),
    "etag=False, last_modified=False": ("GET", {}, b"", 0),
    "etag='\"mine\"', last_modified='long ago'": (
        "GET", {"If-None-Match": '"mine"', "If-Modified-Since": "long ago"}, b"", 0,
    ),
    "last_modifed=False": ("GET", {"If-None-Match": '"left"'}, b"", 0),
}  # fmt: skip


@pytest.mark.parametrize("arguments", REQUESTED)
def test_arguments_of_the_request(arguments: str) -> None:
    made = request(arguments)
    assert (made.method, dict(made.headers), made.body, made.timeout) == REQUESTED[arguments]


def test_a_form_with_files() -> None:
    made = request("data={'a': 1}, files={'f': {'n.txt': 'content'}}")
    assert made.method == "POST"
    assert dict(made.headers)["Content-Type"].startswith("multipart/form-data; boundary=")
    assert b'filename="n.txt"' in made.body


@pytest.mark.parametrize(
    ("config", "headers", "body"),
    [
        ("{'user_agent': 'Bot'}", {"User-Agent": "Bot"}, b""),
        ("{'headers': {'A': '1', 'B': '2'}, 'cookies': {'c': 'd'}}", {"A": "1", "B": "3", "Cookie": "c=d"}, b""),
        ("{'data': {'a': 'b'}}", {}, b"a=b"),
    ],
)
def test_arguments_of_the_script_join_when_a_task_is_fetched(config: str, headers: dict[str, str], body: bytes) -> None:
    own = "headers={'B': '3'}" if "'B'" in config else ""
    made = request(f"etag=False, last_modified=False, {own}", config)
    assert (dict(made.headers), made.body) == (headers, body)


def test_the_debugger_shows_a_task_as_it_is_fetched() -> None:
    text = script(
        "crawl_config = {'timeout': 5, 'callback': 'page'}\ndef on_start(self): self.crawl('http://b.example/')"
    )
    task = {"project": "shop", "taskid": "1", "url": "u", "process": {"callback": "on_start"}}
    (follow,) = Scripts().run(task, {"status_code": 200}, {"shop": text}, debugger=True)["follows"]
    assert (follow["fetch"], follow["process"]) == ({"timeout": 5}, {"callback": "page"})


def test_arguments_of_the_script_join_in_time() -> None:
    config = dict.fromkeys((*SCHEDULE, *FETCH, *PROCESS), "x")
    task = crawled("age=1", repr(config))
    assert task["schedule"] == {**dict.fromkeys(SCHEDULE, "x"), "age": 1}, "when the task is made"
    assert (task["fetch"], task["process"]) == ({}, {}), "when it is fetched, so that an edit counts for it"
    assert with_config({}, config, PROCESS) == {"callback": "x", "process_time_limit": "x"}


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ("", None),
        ("fetch_type='js'", RenderOptions(images=False)),
        ("fetch_type='phantomjs', load_images=True", RenderOptions(images=True)),
        ("fetch_type='puppeteer', js_script='function() { return 1 }'",
         RenderOptions(script="(function() { return 1 }\n)", images=False)),
        ("fetch_type='js', js_script='\\n async function f() {};'",
         RenderOptions(script="(async function f() {}\n)", images=False)),
        ("fetch_type='js', js_script='() => 5'", RenderOptions(script="() => 5", images=False)),
        ("fetch_type='js', js_script='function f() {}; f()'",
         RenderOptions(script="function f() {}; f()", images=False)),
        ("fetch_type='splash', js_run_at='document-start'", RenderOptions(run_at="start", images=False)),
        ("fetch_type='js', js_viewport_width=800, js_viewport_height=1e9",
         RenderOptions(width=800, height=10_000, images=False)),
    ],
)  # fmt: skip
def test_arguments_of_the_browser(arguments: str, options: RenderOptions | None) -> None:
    assert tasks.rendered(crawled(arguments)["fetch"], "http://a.example/") == options


@pytest.mark.parametrize("value", ["1", "'x'", "None", "True", "1.5", "[1, {'a': None}]", "{'a': [1]}"])
def test_each_value_of_json_is_passed_on(value: str) -> None:
    task = tasks.read(uri(f"save={value}"))
    assert task.save == eval(value)


def test_taskids() -> None:
    own = "def get_taskid(self, task): return md5string(task['url'] + str(task['fetch'].get('data', '')))\n"
    done = run(own + "def on_start(self):\n    for n in (1, 2): self.crawl('http://b.example/', data={'n': n})")
    assert len(done["follows"]) == 2
    assert [crawled(f"taskid={one}")["taskid"] for one in ("'mine'", "0", "b'x'")] == ["mine", "0", "x"]
    for bad in ("{}", "''", "None"):
        assert run(f"def on_start(self): self.crawl('http://b.example/', taskid={bad})")["why"].startswith("TypeError")
    with pytest.raises(BadInput, match="taskid"):
        uri("taskid='x' * (1 << 20)")


BAD: dict[str, str] = {
    "data='[BASE64-DATA]a[/BASE64-DATA]'": "not base64",
    "method='GET / HTTP/1.1\\r\\nX: y'": "method",
    "method='CONNECT'": "method",
    "headers={' Host': 'evil.example'}": "headers",
    "headers={'Host ': 'evil.example'}": "headers",
    "headers={'A:b': 'c'}": "headers",
    "headers={'A': 'b\\nHost: c'}": "headers",
    "cookies={'a\\r': 'b'}": "cookies",
    "cookies='a=b'": "not a dictionary",
}


@pytest.mark.parametrize("arguments", BAD)
def test_a_request_that_nobody_can_make_is_refused_by_name(arguments: str) -> None:
    with pytest.raises(BadInput, match=BAD[arguments]):
        request(arguments)


def test_a_kind_of_fetch_that_is_not_one_is_refused_by_name() -> None:
    for bad in ("['js']", "{'a': 1}", "'selenium'"):
        with pytest.raises(BadInput, match="fetch_type"):
            tasks.rendered(crawled(f"fetch_type={bad}")["fetch"], "http://a.example/")


@pytest.mark.parametrize("part", ["schedule", "fetch", "process"])
def test_a_task_that_a_hostile_script_made_is_refused_by_name(part: str) -> None:
    with pytest.raises(BadInput, match=f"its {part} is not a dictionary"):
        tasks.made("shop", {"taskid": "1", "url": "http://a.example/", part: 5}, PAGE)


@pytest.mark.parametrize(
    ("decorator", "ticks"),
    [("every", [60]), ("every()", [60]), ("every(5)", [300]), ("every(minutes=24 * 60)", [86400]),
     ("every(seconds=90)", [90]), ("every(minutes=1, seconds=30)", [90]), ("every(minutes=0.5)", [30])],
)  # fmt: skip
def test_forms_of_every(decorator: str, ticks: list[int]) -> None:
    texts = {"shop": script(f"@{decorator}\n@config(age=5)\ndef on_start(self): pass")}
    assert Scripts().about("shop", texts)["ticks"] == ticks


def test_config_joins() -> None:
    task = run(
        "@config({'age': 5, 'headers': {'A': '1', 'B': '2'}}, priority=2)\n"
        "def listed(self, response): pass\n"
        "def on_start(self): self.crawl('http://b.example/', callback=self.listed, age=9, headers={'B': '3'})"
    )["follows"][0]
    assert task["schedule"] == {"priority": 2, "age": 9}
    assert task["fetch"]["headers"].keys() == {"A", "B"}


@pytest.mark.parametrize("parameters", ["self", "self, response", "self, response, task", "self, *given"])
def test_a_callback_takes_as_many_arguments_as_it_names(parameters: str) -> None:
    number = {"self": 0, "self, response": 1, "self, response, task": 2, "self, *given": 2}[parameters]
    done = run(f"def on_start({parameters}): return len(locals()) if 'given' not in locals() else 1 + len(given)")
    assert (done["why"], done["results"]) == ("", [number + 1])


def test_names_of_a_handler() -> None:
    done = run(
        "def on_start(self, response, task):\n"
        "    return [self.project_name, self.project['name'], self.task['url'], self.response.url,\n"
        "            self.is_debugger(), task['project'], self.get_taskid(task) == md5string(task['url'])]"
    )
    assert done["results"] == [["shop", "shop", "http://a.example/", "http://a.example/", False, "shop", True]]


def test_callbacks_may_have_the_names_of_what_runs_them() -> None:
    names = ("run_callback", "callback_run", "cron_jobs", "min_tick", "crawl_all", "check", "messages")
    body = "".join(f"def {name}(self, response): return '{name}'\n" for name in names)
    for name in names:
        assert run(f"{body}@every\ndef on_start(self): pass", name)["results"] == [name]


def test_attributes_of_a_response() -> None:
    page = Response(
        200, "http://a.example/p", "http://a.example/", {"X-A": "b"}, b'{"a": 1}', {"c": "d"}, None, None, {"s": 1}, 5,
        0.25,
    )  # fmt: skip
    assert (page.url, page.orig_url) == ("http://a.example/p", "http://a.example/")
    assert (page.status_code, page.ok) == (200, True)
    assert (page.headers["x-a"], page.cookies, page.save, page.js_script_result) == ("b", {"c": "d"}, {"s": 1}, 5)
    assert (page.json, page.text, page.content, page.encoding) == ({"a": 1}, '{"a": 1}', b'{"a": 1}', "utf-8")
    assert (page.error, page.time, page.etree.tag, bool(page)) == (None, 0.25, "span", True)
    page.raise_for_status()
    assert not Response(599, error="no answer").ok
    assert Response(content=b"\xef\xbb\xbf[1]").json == [1]


JAPANESE, CHINESE, KOREAN = "日本語のページ", "中文网页标题", "한국어 제목"
ENCODED = [
    ("shift_jis", "Shift_JIS", JAPANESE), ("cp932", "Windows-31J", JAPANESE), ("shift_jis", "x-sjis", JAPANESE),
    ("euc_jp", "EUC-JP", JAPANESE), ("gbk", "gbk", CHINESE), ("gb2312", "GB2312", CHINESE), ("gbk", "x-gbk", CHINESE),
    ("gb18030", "gb18030", CHINESE), ("big5", "big5", "中文網頁"), ("euc_kr", "ks_c_5601-1987", KOREAN),
    ("cp1251", "windows-1251", "Привет"), ("iso2022_jp", "iso-2022-jp", JAPANESE),
]  # fmt: skip


@pytest.mark.parametrize(("codec", "label", "title"), ENCODED)
def test_a_tree_is_read_by_the_encoding_that_a_page_names(codec: str, label: str, title: str) -> None:
    body = f"<title>{title}</title><p>x".encode(codec) + b"\xff\xff" * (codec == "gbk") + b"</p><b>end</b>"
    for page in (
        Response(content=b"<meta charset='" + label.encode() + b"'>" + body),
        Response(content=body, headers={"Content-Type": f"text/html; charset={label}"}),
    ):
        assert (page.doc("title").text(), page.doc("b").text()) == (title, "end")


@pytest.mark.parametrize("label", ["idna", "undefined", "base64", "rot13", "no-such", "\u0661"])
def test_a_name_that_is_no_encoding_of_pages_costs_no_page(label: str) -> None:
    page = Response(content=b"<b>x</b>", headers={"Content-Type": f"text/html; charset={label}"})
    assert (page.text, page.doc("b").text()) == ("<b>x</b>", "x")


def test_a_long_page_and_a_deep_one_are_read_to_the_end() -> None:
    assert Response(content=b"<p>" + b"x" * (11 << 20) + b"</p><b>end</b>").doc("b").text() == "end"
    assert Response(content=b"<div>" * 1500 + b"<b>end</b>").doc("b").text() == "end"


@pytest.mark.parametrize(
    ("base", "link"),
    [("<base target=x><base href='/q/'>", "http://a.example/q/y"), ("<base href='http://['>", "http://a.example/x/y"),
     ("<base href='data:,x'>", "http://a.example/x/y")],
)  # fmt: skip
def test_the_base_of_links(base: str, link: str) -> None:
    page = Response(200, "http://a.example/x/", content=f"{base}<a href='y'>c</a>".encode())
    assert page.doc("a").attr.href == link


def test_what_a_script_of_python_2_lacks_is_named() -> None:
    found = Scripts().about("shop", {"shop": script("def on_start(self): return unicode(xrange(self.page))")})
    assert found["undefined"] == ["unicode", "xrange"]
    found = Scripts().about("shop", {"shop": script("def on_start(self):\n    print 'x'")})
    assert "Missing parentheses" in found["why"]
