"""All that a script imports under pyspider's names, and one run of a callback."""

from __future__ import annotations

from typing import Any

import pytest

from warcmill.scripts.api import addresses, response
from warcmill.scripts.api.handler import md5string, with_config
from warcmill.scripts.api.run import Scripts
from warcmill.scripts.api.values import NoForm, jsonable

HEAD = "from pyspider.libs.base_handler import *\nimport datetime, decimal\n\nclass Handler(BaseHandler):\n"


def script(body: str, head: str = HEAD) -> dict[str, str]:
    return {"shop": head + "".join(f"    {line}\n" for line in body.splitlines())}


def run(
    texts: dict[str, str], callback: str = "page", content: bytes = b"", limit: float = 5, **fields: Any
) -> dict[str, Any]:
    task = {"project": "shop", "taskid": "1", "url": "http://a.example/", "process": {"callback": callback}}
    task["process"] = {"callback": callback, "process_time_limit": limit}
    about = {"status_code": 200, "url": "http://a.example/", "content": content, **fields}
    return Scripts().run(task, about, texts)


def test_what_a_callback_makes_is_returned() -> None:
    done = run(
        script(
            "crawl_config = {'itag': 'v1', 'headers': {'A': 'b'}}\n"
            "@every(minutes=24 * 60)\n"
            "def on_start(self):\n"
            "    print('hello'); logger.info('there')\n"
            "    self.crawl('http://b.example/ü', callback=self.page, params={'q': [1, 2]}, priority=3)\n"
            "    self.crawl(['http://b.example/1', None, 'http://b.example/1'], callback='page')\n"
            "    self.send_message('other', {'a': 1})\n"
            "@config(age=10)\n"
            "def page(self, response): pass"
        ),
        "on_start",
    )
    first, second = done["follows"]
    assert first["url"] == "http://b.example/%C3%BC?q=1&q=2"
    assert first["schedule"] == {"itag": "v1", "priority": 3, "age": 10}
    assert (first["process"], first["taskid"]) == ({"callback": "page"}, md5string(first["url"]))
    assert second["url"] == "http://b.example/1"
    assert done["messages"] == [["other", {"a": 1}, "data:,on_message"]]
    assert done["log"].startswith("hello\n")
    assert "there" in done["log"]
    assert (done["why"], done["results"]) == ("", [])


@pytest.mark.parametrize(
    ("returned", "result"),
    [
        ("{'a': datetime.date(2026, 1, 2), 'b': decimal.Decimal('1.5')}", {"a": "2026-01-02", "b": "1.5"}),
        ("{'c': b'x', 1: {2}}", {"c": "x", "1": [2]}),
        ("response.doc('b').text()", "bold"),
        ("{'n': float('nan'), 'big': 1 << 70, 's': '\\ud800'}", {"n": "nan", "big": str(1 << 70), "s": "?"}),
    ],
)  # fmt: skip
def test_values_without_a_form_in_json_become_texts(returned: str, result: object) -> None:
    done = run(script(f"def page(self, response):\n    return {returned}"), content=b"<b>bold</b>")
    assert done["results"] == [result]


def test_what_failed_is_named_and_what_was_made_before_counts() -> None:
    done = run(script("def page(self, response):\n    self.crawl('http://b.example/')\n    yield {'a': 1}\n    1 / 0"))
    assert done["why"] == "ZeroDivisionError: division by zero"
    assert 'File "<shop>", line 8, in page' in done["trace"]
    assert "warcmill" not in done["trace"]
    assert (len(done["follows"]), done["results"], done["called"]) == (1, [{"a": 1}], True)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("import sys; sys.exit(3)", "its code has called sys.exit(3)"),
        ("while True: pass", "timeout: its callback ran over 0.3 s"),
        ("self.crawl('http://b.example/', colour=1)", "TypeError: crawl() got unexpected keyword argument: colour"),
        ("self.crawl('http://b.example/', callback='gone')", "NotImplementedError: self.gone() not implemented!"),
        ("a = []; a.append(a); return a", "NoForm: a value contains itself, or is nested deeper than 64"),
        (
            "for n in range(200000): self.crawl(f'http://b.example/{n}')",
            "TooManyFollows: a callback makes at most 100000",
        ),
        ("return open('/nowhere')", "FileNotFoundError"),
    ],
)
def test_each_fault_is_named(body: str, why: str) -> None:
    limit = 0.3 if "while" in body else 30
    assert run(script(f"def page(self, response):\n    {body}"), limit=limit)["why"].startswith(why)


def test_the_status_of_a_response_may_keep_a_callback_from_being_called() -> None:
    texts = script(
        "def page(self, response): return {'status': response.status_code}\n"
        "@catch_status_code_error\n"
        "def caught(self, response): return {'status': response.status_code, 'error': response.error}"
    )
    assert run(texts, status_code=404)["why"] == "HTTPError: 404 Client Error"
    assert run(texts, status_code=404)["called"] is False
    assert run(texts, "caught", status_code=599, error="no")["results"] == [{"status": 599, "error": "no"}]
    assert run(texts, status_code=304)["results"] == []


def test_a_script_imports_another_one_of_its_job() -> None:
    texts = script("def page(self, response): return {'x': other.X}", "from projects import other\n" + HEAD)
    assert run(texts)["lacks"] == "other"
    scripts = Scripts()
    task = {"project": "shop", "taskid": "1", "url": "u", "process": {"callback": "page"}}
    for number in (1, 2):
        found = scripts.run(task, {"status_code": 200}, {**texts, "other": f"X = {number}"})
        assert found["results"] == [{"x": number}], "one that was edited is loaded again"


def test_what_a_script_says_of_itself() -> None:
    found = Scripts().about(
        "shop",
        script("crawl_config = {'age': 5}\nretry_delay = {0: 1, '': -1}\n@every\ndef on_start(self): pass\n"
               "@every(seconds=10)\ndef quick(self): pass\ndef page(self, response): pass"),
    )  # fmt: skip
    assert (found["why"], found["ticks"], found["starts"]) == ("", [10, 60], True)
    assert (found["retry_delay"], found["crawl_config"]) == ({"0": 1, "": -1}, {"age": 5})
    assert found["callbacks"] == ["on_start", "page", "quick"]
    assert Scripts().about("shop", {"shop": "x ="})["why"].startswith("SyntaxError: invalid syntax")
    assert Scripts().about("shop", {"shop": "x = 1"})["why"].startswith("TypeError: a script needs a class")


def test_methods_are_called_at_their_ticks() -> None:
    texts = script("@every(seconds=10)\ndef a(self): print('a')\n@every(seconds=30)\ndef b(self): print('b')")
    assert run(texts, "_on_cronjob", save={"tick": 30})["log"] == "a\nb\n"
    assert run(texts, "_on_cronjob", save={"tick": 40})["log"] == "a\n"
    assert run(texts, "_on_cronjob", save={"tick": 30, "every": 30})["log"] == "b\n"


def test_a_page_that_cannot_be_read_strictly_has_a_tree_all_the_same() -> None:
    page = response.Response(
        200,
        "http://a.example/x/",
        content='<?xml version="1.0" encoding="gbk"?><a href="http://[">b</a><a href="y">c</a>',
    )
    assert [one.get("href") for one in page.doc("a")] == ["http://[", "http://a.example/x/y"]
    assert response.Response(200, "http://a.example/", content=b"").doc("a").text() == ""
    based = b'<base href="/deep/"><a href="y">c</a>'
    assert response.Response(200, "http://a.example/", content=based).doc("a").attr.href == "http://a.example/deep/y"


@pytest.mark.parametrize(
    ("content", "headers", "text"),
    [
        ("ü".encode("gb18030"), {"Content-Type": "text/html; charset=gb2312"}, "ü"),
        (b"<meta charset='latin-1'>\xfc", {}, "<meta charset='latin-1'>ü"),
        ("ü".encode(), {}, "ü"),
        (b"\xfc", {"Content-Type": "text/html; charset=nonsense"}, "\ufffd"),
    ],
)
def test_the_encoding_of_a_page(content: bytes, headers: dict[str, str], text: str) -> None:
    assert response.Response(200, content=content, headers=headers).text == text


def test_a_command_of_curl_is_an_address_with_arguments() -> None:
    found = addresses.curl_to_arguments(
        "curl 'http://a.example/' -H 'A: b' -b 'c=d' --compressed \\\n -X PUT --data-raw $'it\\'s \\u00fc\\n' -m 5 -s"
    )
    assert found == {
        "urls": ["http://a.example/"], "headers": {"A": "b", "Cookie": "c=d"}, "use_gzip": True, "method": "PUT",
        "data": "it's ü\n", "timeout": 5.0,
    }  # fmt: skip
    with pytest.raises(TypeError, match="Unknown curl option: --upload-file"):
        addresses.curl_to_arguments("curl --upload-file x http://a.example/")
    with pytest.raises(TypeError, match="no URL"):
        addresses.curl_to_arguments("curl -s")


def test_forms_files_and_addresses() -> None:
    kind, body = addresses.encode_files({"a": "b"}, {"file": {"name.txt": "x"}})
    assert kind.startswith("multipart/form-data; boundary=")
    assert b'name="a"' in body
    assert addresses.encode_params({"a": [1, 2], "b": None, "c": "ü"}) == "a=1&a=2&c=%C3%BC"
    assert addresses.build_url("http://bücher.example?x=1", {"y": 2}) == "http://xn--bcher-kva.example/?x=1&y=2"
    assert addresses.build_url("http://[bad") == "http://[bad"
    assert addresses.build_url("data:,on_start") == "data:,on_start"


def test_the_arguments_of_a_script_are_joined_to_those_of_a_task() -> None:
    shared = {"headers": {"A": "1", "B": "2"}, "timeout": 3, "age": 9}
    assert with_config({"headers": {"B": "3"}}, shared) == {"headers": {"A": "1", "B": "3"}, "timeout": 3}


def test_a_value_that_is_nested_too_deep_is_refused() -> None:
    value: list[Any] = []
    for _ in range(100):
        value = [value]
    with pytest.raises(NoForm):
        jsonable(value)
