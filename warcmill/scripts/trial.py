"""A trial of a script: its present text over the last pages that each callback has read, from their WARCs. Reads only.

It asks no site and leaves no result. Each page has the fields of its result before and after.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, cast

from msgspec import Struct

from warcmill.crawl.books.files import present, recall, recall_rendered
from warcmill.crawl.fetch import exchange
from warcmill.crawl.fetch.cookies import Jar
from warcmill.crawl.fetch.limits import FetchLimits
from warcmill.errors import BadInput, NotReady
from warcmill.model import Json
from warcmill.scripts.task import headers_of
from warcmill.scripts.taskbook import TaskReader
from warcmill.scripts.walled.asking import ScriptAsker, ScriptText

LAST = 20
Find = Callable[[str], Path]
"""Returns the path of a WARC by its name; NotReady if it is not on this machine."""


class TriedPage(Struct, frozen=True):
    """A page of a trial. `before` is the result that is kept of it; `after` that of the present text, or `why` there is
    none. `follows` is how many there are now."""

    callback: str
    url: str
    before: Json
    after: Json
    follows: int = 0
    why: str = ""

    @property
    def fields(self) -> list[tuple[str, Json, Json]]:
        """The fields that differ: name, before, after."""
        before, after = _fields(self.before), _fields(self.after)
        return [
            (name, before.get(name), after.get(name))
            for name in dict.fromkeys((*before, *after))
            if before.get(name) != after.get(name)
        ]

    @property
    def empty(self) -> list[str]:
        """The names of the fields that are empty now."""
        return [name for name, after in _fields(self.after).items() if _is_empty(after)]

    @property
    def is_worse(self) -> bool:
        """True if the callback fails, or a field that had a value is empty now."""
        return bool(self.why) or any(_is_empty(after) and not _is_empty(before) for _, before, after in self.fields)

    @property
    def answer(self) -> dict[str, Json]:
        """The page as commands and pages have it."""
        return {
            "after": self.after, "before": self.before, "callback": self.callback,
            "changed": [name for name, _, _ in self.fields], "empty": [*self.empty], "follows": self.follows,
            "url": self.url, "why": self.why,
        }  # fmt: skip


async def pages(
    asker: ScriptAsker, script: ScriptText, book: TaskReader, find: Find, scratch: Path, last: int
) -> AsyncIterator[TriedPage]:
    """Try a script over the last pages of each of its callbacks; one whose record cannot be read is passed over."""
    for callback in sorted(book.callbacks(script.name)):
        for task in cast("list[dict[str, Any]]", book.last(script.name, callback, last)):
            try:
                fields, body = await asyncio.to_thread(stored, task, find, scratch)
            except (BadInput, NotReady):  # a revisit, or one that is not here any more
                continue
            outcome = await asker.run(script, {**task["task"], "project": script.name}, fields, body)
            after = outcome.results[-1] if outcome.results else None
            before = book.result(script.name, str(task["taskid"]))
            yield TriedPage(callback, str(task["url"]), before, after, len(outcome.follows), outcome.why)


def stored(task: Mapping[str, Any], find: Find, scratch: Path) -> tuple[dict[str, Any], bytes]:
    """The response of a task of the book from its record, and its body; of a page that a browser had opened, as that
    had it. BadInput or NotReady if it has none that can be read here."""
    uri, path, offset = str(task["uri"]), find(task["warc"]), int(task["offset"])
    answer, jar = recall(uri, path, offset, scratch), Jar()
    with closing(answer):
        jar.receive(uri, answer.set_cookies, answer.started.timestamp())
        fields = {
            "status_code": answer.status, "url": uri, "orig_url": task["url"],
            "headers": headers_of(answer.fields.pairs), "cookies": {one.name: one.value for one in jar.cookies},
            "save": (task["task"].get("fetch") or {}).get("save"),
        }  # fmt: skip
        if (rendered := recall_rendered(uri, path, offset)) is None:
            return fields, exchange.document(answer, FetchLimits())[0]
    value = json.loads(rendered.script_value) if rendered.script_value else None
    headers = {**fields["headers"], "Content-Type": rendered.content_type}
    return {**fields, "headers": headers, "js_script_result": value}, rendered.dom


def finder(folders: Iterable[Path]) -> Find:
    """Find WARCs by name in some folders; one that is open has another name until it is closed."""
    known = list(folders)

    def find(name: str) -> Path:
        for folder in known:
            if path := present(folder / name):
                return path
        raise NotReady(name, "it is not on this machine any more")

    return find


def _fields(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, dict) else {} if value is None else {"result": value}


def _is_empty(value: Json) -> bool:
    return value in (None, "", [], {})
