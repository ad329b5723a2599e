"""A request that asks for a browser is made by ours, or refused by name."""

from __future__ import annotations

from typing import Any

import pytest
from scrapy import Spider
from scrapy.settings import Settings

from warcmill.errors import BadInput
from warcmill.spiders import browsers

PAGE = "http://windmills.example/"


class Mills(Spider):
    name = "mills"


@pytest.mark.parametrize(
    "meta",
    [
        {"playwright": True},
        {"playwright": True, "playwright_include_page": False, "playwright_page_goto_kwargs": {"wait_until": "load"}},
        {"splash": {"args": {"wait": 0.5, "html": 1}}},
        {"splash": {"endpoint": "render.json", "args": {"images": 0, "lua_source": ""}}},
    ],
)
def test_a_page_is_opened_where_the_job_has_a_browser(meta: dict[str, Any]) -> None:
    browsers.check(meta, PAGE, renders=True)
    assert browsers.asks(meta)
    with pytest.raises(BadInput, match="its job opens no page in a browser: set 'which' in \\[render\\]"):
        browsers.check(meta, PAGE, renders=False)


@pytest.mark.parametrize(
    ("meta", "what"),
    [
        ({"playwright": True, "playwright_page_methods": ["click"]}, "'playwright_page_methods'"),
        ({"playwright": True, "playwright_include_page": True}, "'playwright_include_page'"),
        ({"splash": {"args": {"lua_source": "return 1"}}}, "'splash' with 'lua_source'"),
        ({"splash": {"endpoint": "execute"}}, "'splash' with the endpoint 'execute'"),
        ({"splash": {"endpoint": "render.png", "args": {}}}, "'splash' with the endpoint 'render.png'"),
    ],
)
def test_more_than_that_is_refused_by_name(meta: dict[str, Any], what: str) -> None:
    for renders in (True, False):
        with pytest.raises(BadInput) as refused:
            browsers.check(meta, PAGE, renders=renders)
        assert f"its meta has {what}: the browser opens a page" in refused.value.why


@pytest.mark.parametrize("meta", [{}, {"playwright": False, "playwright_page_methods": []}, {"splash": None}])
def test_a_plain_request_is_no_matter_of_a_browser(meta: dict[str, Any]) -> None:
    browsers.check(meta, PAGE, renders=False)
    assert not browsers.asks(meta)


def test_the_middlewares_of_scrapy_splash_are_left_out() -> None:
    own = {"scrapy_splash.SplashCookiesMiddleware": 723, "scrapy_splash.SplashMiddleware": 725, Mills: 1}
    settings = Settings({"DOWNLOADER_MIDDLEWARES": own})
    assert len(browsers.leave_out(settings, 1000)) == 2
    assert settings.getdict("DOWNLOADER_MIDDLEWARES") == {Mills: 1}
