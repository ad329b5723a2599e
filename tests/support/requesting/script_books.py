"""A job of scripts as its crawl leaves it: scripts, their rows, and a book of tasks and results, hostile ones too."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from warcmill.scripts.folder import ScriptStatus, set_row
from warcmill.scripts.taskbook import ResultNote, TaskBook, TaskNote

MARKUP = "<script>alert(1)</script>"
KEYS = (
    "0cc175b9c0f1b6a831c399e269772661", "on_start", "_on_cronjob 60", "..", ".", "a/../b", "/", "%2e%2e", "%",
    "?a=b#c&d", MARKUP, "--help", "ключ \u202egpj.exe", "a\0b", "\\", "again",
)  # fmt: skip
HIDDEN_HOST = "private.example"
SCRIPT = "from pyspider.libs.base_handler import *\n\n\nclass Handler(BaseHandler):\n    pass\n"


def note(taskid: str, script: str = "shop", **more: Any) -> TaskNote:
    """A task that has succeeded."""
    fields = {
        "url": f"http://shop.example/{len(taskid)}", "callback": "detail_page", "status": "success", "kind": "success",
        "task": {"taskid": taskid, "schedule": {"age": 60}, "fetch": {"save": MARKUP}, "process": {"callback": "x"}},
        "http": 200, "ms": 12, "warc": "w.warc.gz", "place": 7, "log": f"{MARKUP}\nsecond line", **more,
    }  # fmt: skip
    return TaskNote(script=script, taskid=taskid, **fields)


def result(taskid: str, value: Any, script: str = "shop", url: str = "http://shop.example/1") -> ResultNote:
    """A result of a task."""
    return ResultNote(script, taskid, url, value, int(time.time()), "w.warc.gz", 7)


def nested(deep: int) -> Any:
    """A value in a value, and so on."""
    value: Any = "deep"
    for _ in range(deep):
        value = {"a": [value]}
    return value


def leave(job: Path) -> TaskBook:
    """Make the folder of a job of scripts: `shop` runs, `news` was edited while it ran, `idle` never ran."""
    for name in ("scripts", "state"):
        (job / name).mkdir(parents=True, exist_ok=True)
    (job / "crawl.toml").write_text("scripts = true\nendless = true\n")
    for name in ("shop", "news", "idle"):
        (job / "scripts" / f"{name}.py").write_text(SCRIPT)
    set_row(job, "shop", {"status": ScriptStatus.RUNNING, "group": f"{MARKUP} \u202a", "rate": 0.5})
    set_row(job, "news", {"status": ScriptStatus.RUNNING})
    (job / "scripts" / "news.py").write_text(f"{SCRIPT}# edited\n")
    (job / "scripts" / "no-script.py").write_text(SCRIPT)
    book = TaskBook(job / "state")
    book.note([note(key) for key in KEYS], [])
    failed = note("failed", "news", status="failed", kind="failed", why=f"KeyError: {MARKUP}", warc="", place=None)
    waits = note("waits", status="active", kind="pending", due=time.time() - 1000, http=None, ms=None)
    private = note("private", url=f"http://{HIDDEN_HOST}/secret", uri=f"http://{HIDDEN_HOST}/secret")
    deep = note("deep", task={"fetch": {"save": nested(200)}})
    book.note([failed, waits, private, deep], [])
    book.note(
        [],
        [
            result("1", {"title": f"{MARKUP} \u202e", "price": "=1+1"}), result("2", [MARKUP]),
            result("3", {"title": "private", "price": 2}, url=f"http://{HIDDEN_HOST}/secret"),
            result("4", {"links": [f"see\n{HIDDEN_HOST}"]}, "news"), result("5", nested(200)),
            result("6", {"title": "W" * 300_000}), result("7", {"title": "the last", "price": -5}),
        ],
    )  # fmt: skip
    page = {"url": "http://shop.example/1", "warc": "w.warc.gz", "offset": 7}
    finding = {
        "callback": "detail_page", "state": "changed", "why": f"the field '{MARKUP}' is empty, 5 times running",
        "url": page["url"], "before": page, "after": {**page, "url": f"http://shop.example/{MARKUP}"},
    }  # fmt: skip
    hidden = {**finding, "state": "late", "url": f"http://{HIDDEN_HOST}/secret"}
    book.keep_watch(b"", {"shop": [finding, hidden], "news": [finding]})
    return book
