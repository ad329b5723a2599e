"""The memory of a spider of Scrapy: its cookies, by `cookiejar`, and `spider.state`. Scrapy has both in the process
alone; here they are texts by their names, which the frontier keeps with the page that has changed them. No I/O.

Nothing else of a spider outlives its process: neither its attributes nor the files that it has open.
"""

from __future__ import annotations

import json
import logging
from collections import defaultdict
from collections.abc import Callable, Mapping
from http.cookiejar import Cookie
from typing import Any

from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.cookies import CookiesMiddleware
from scrapy.http.cookies import CookieJar

from warcmill.errors import BadInput
from warcmill.spiders.values import Values

log = logging.getLogger(__name__)
LARGEST_STATE = 1 << 20  # bytes of its JSON: the journal has what each page changes of it
_COOKIE, _STATE = "cookie", "state"
Place = tuple[str, str, str]
"""Domain, path and name of a cookie: no two of a jar share them."""


class SpiderMemory:
    """The memory of a spider in one process; it begins with what the frontier has. Its cookies are those of Scrapy's
    middleware, or of one that extends it."""

    def __init__(self, crawler: Crawler, values: Values, found: Mapping[str, str]) -> None:
        self._values, self._spider = values, crawler.spider
        self._kept: dict[str, str] = {}  # what the frontier has, as far as this process knows
        self._again: dict[str, str] = {}  # what it should have, but for a page that was not kept
        self._touched, self._named = set[Any](), set[str]()
        self._cookies: dict[Any, dict[Place, Cookie]] = {}  # those of `_kept`, by jar
        self._jars = _Jars(self._touched.add)
        if middleware := crawler.get_downloader_middleware(CookiesMiddleware):
            self._jars.update(middleware.jars)
            middleware.jars = self._jars
        self._has_state = bool(crawler.settings.get("JOBDIR")) or not hasattr(self._spider, _STATE)
        if self._has_state:  # else it is an attribute of the project's own
            setattr(self._spider, _STATE, {})
        self.learn(found)

    def learn(self, texts: Mapping[str, str]) -> None:
        """Take what another process, or an earlier one, has remembered."""
        for name, text in texts.items():
            if text == self._kept.get(name, ""):
                continue
            self._kept[name] = text
            try:
                kind, key, *place = json.loads(name)
                if kind == _COOKIE:
                    self._learn_cookie(self._values.read(key), (place[0], place[1], place[2]), text)
                elif self._has_state and text:
                    self._state[self._values.read(key)] = self._values.read(json.loads(text))
                elif self._has_state:
                    self._state.pop(self._values.read(key), None)
            except (BadInput, ValueError, TypeError, LookupError) as error:
                log.warning("what the spider has kept as %s cannot be read again: %s", name, error)

    def changed(self) -> dict[str, str]:
        """Return what has changed since the last call; it counts as kept from now on."""
        found, self._again = self._again, {}
        for key in self._touched:
            found |= self._of_jar(key)
        self._touched.clear()
        if self._has_state:
            found |= self._of_state()
        self._kept |= found
        return found

    def unkept(self, texts: Mapping[str, str]) -> None:
        """Hear that the page that was to have them was not kept: the next one has them."""
        self._again |= {name: text for name, text in texts.items() if self._kept.get(name) == text}

    @property
    def _state(self) -> dict[Any, Any]:
        found = getattr(self._spider, _STATE, None)
        return found if isinstance(found, dict) else {}

    def _learn_cookie(self, key: Any, place: Place, text: str) -> None:
        jar, known = self._jars[key].jar, self._cookies.setdefault(key, {})
        if text:
            fields = json.loads(text)
            known[place] = Cookie(rest=fields.pop("_rest"), **fields)
            jar.set_cookie(known[place])
        elif known.pop(place, None):
            jar.clear(*place)

    def _of_jar(self, key: Any) -> dict[str, str]:
        before, now = self._cookies.get(key, {}), {(one.domain, one.path, one.name): one for one in self._jars[key].jar}
        if before.keys() == now.keys() and all(before[place] is cookie for place, cookie in now.items()):
            return {}
        found: dict[str, str] = {}
        try:
            written = self._values.written(key, "cookiejar")
            for place, cookie in now.items():
                if before.get(place) is not cookie:
                    found[json.dumps([_COOKIE, written, *place])] = json.dumps(vars(cookie))
            found |= {json.dumps([_COOKIE, written, *place]): "" for place in before if place not in now}
        except (BadInput, TypeError, ValueError) as error:
            self._name(f"the cookies of cookiejar {key!r}", str(error))
            return {}
        self._cookies[key] = now
        return {name: text for name, text in found.items() if self._kept.get(name, "") != text}

    def _of_state(self) -> dict[str, str]:
        found, size = dict.fromkeys((name for name in self._kept if name.startswith(f'["{_STATE}"')), ""), 0
        for key, value in self._state.items():
            try:
                name = json.dumps([_STATE, self._values.written(key, "key")])
                found[name] = json.dumps(self._values.written(value, f"state[{key!r}]"))
            except BadInput as error:
                self._name(f"spider.state[{key!r}]", error.why)
                continue
            if (size := size + len(found[name])) > LARGEST_STATE:
                self._name("spider.state", f"it is larger than {LARGEST_STATE} bytes")
                return {}
        return {name: text for name, text in found.items() if self._kept.get(name, "") != text}

    def _name(self, what: str, why: str) -> None:
        """Name what is not kept, once."""
        if what not in self._named:
            self._named.add(what)
            log.warning("%s: not kept for a restart: %s", what, why)


class _Jars(defaultdict[Any, Any]):
    """The jars of Scrapy's middleware; `touch` hears which of them is used."""

    def __init__(self, touch: Callable[[Any], None]) -> None:
        super().__init__(CookieJar)
        self._touch = touch

    def __getitem__(self, key: Any) -> Any:
        self._touch(key)
        return super().__getitem__(key)
