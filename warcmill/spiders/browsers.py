"""Requests that ask for a browser, as scrapy-playwright and scrapy-splash have them in `meta`: our browser opens their
pages. Pure.

A request is refused by name if its job opens no page, or if the browser is to do more than that: what asked for a
browser is never fetched plainly.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scrapy.settings import BaseSettings

from warcmill.errors import BadInput

PLAYWRIGHT, SPLASH = "playwright", "splash"
_OF_PAGE = f"{PLAYWRIGHT}_"
_HARMLESS = frozenset([f"{_OF_PAGE}page_goto_kwargs"])  # until when to wait: ours waits until nothing is asked for
_ENDPOINTS = ("render.html", "render.json")
_ARGUMENTS = frozenset(["url", "wait", "timeout", "resource_timeout", "html", "images", "viewport", "baseurl"])
_MIDDLEWARES = ("SPIDER_MIDDLEWARES", "DOWNLOADER_MIDDLEWARES")
_THEIRS = "scrapy_splash."


def asks(meta: Mapping[str, Any]) -> bool:
    """True if a request is for a browser."""
    return bool(meta.get(PLAYWRIGHT) or meta.get(SPLASH))


def check(meta: Mapping[str, Any], uri: str, *, renders: bool) -> None:
    """BadInput for a request that the browser of a job cannot make; `renders`: the job has one."""
    if not asks(meta):
        return
    name = PLAYWRIGHT if meta.get(PLAYWRIGHT) else SPLASH
    more = _orders(meta) if name == PLAYWRIGHT else _wishes(meta[SPLASH])
    if more:
        raise BadInput(uri, f"its meta has {more}: the browser opens a page, and does nothing else with it")
    if not renders:
        raise BadInput(uri, f"its meta has {name!r}, and its job opens no page in a browser: set 'which' in [render]")


def _orders(meta: Mapping[str, Any]) -> str:
    """The first key by which scrapy-playwright is to do more; '' without one."""
    found = next(
        (key for key, value in meta.items() if key.startswith(_OF_PAGE) and value and key not in _HARMLESS), ""
    )
    return repr(found) if found else ""


def _wishes(splash: Any) -> str:
    """The first argument by which Splash is to do more; '' without one."""
    if not isinstance(splash, Mapping):
        return ""
    endpoint = splash.get("endpoint") or _ENDPOINTS[0]
    if endpoint not in _ENDPOINTS:
        return f"'splash' with the endpoint {endpoint!r}"
    more = next((key for key, value in (splash.get("args") or {}).items() if value and key not in _ARGUMENTS), "")
    return f"'splash' with {more!r}" if more else ""


def leave_out(settings: BaseSettings, priority: int) -> list[str]:
    """Leave out the middlewares of scrapy-splash, which would send requests to its own server; return their names."""
    left: list[str] = []
    for setting in _MIDDLEWARES:
        found = settings.getdict(setting)
        theirs = [name for name in found if _name(name).startswith(_THEIRS)]
        if theirs:
            settings.set(setting, {name: place for name, place in found.items() if name not in theirs}, priority)
            left += map(_name, theirs)
    return left


def _name(component: Any) -> str:
    return component if isinstance(component, str) else f"{component.__module__}.{component.__qualname__}"
