"""Spiders written for scrapy-playwright or scrapy-splash: our browser opens pages, and nothing is fetched plainly."""

from __future__ import annotations

import json
import os
from pathlib import Path

from requesting.scrapy_runs import HERE, HURRIED, items, line_for, pages, responses, run_spider
from sites import several_hosts
from sites.several_hosts import Page

JOB = "spiders"
SCRIPTED = b"<!doctype html><h1>plain</h1><script>document.querySelector('h1').textContent = 'by script'</script>"
SPIDER = """
import scrapy


class Small(scrapy.Spider):
    name = "small"
    custom_settings = {
        "FEEDS": {"items.jsonl": {"format": "jsonlines"}},
        "DOWNLOAD_HANDLERS": {"http": "scrapy_playwright.handler.ScrapyPlaywrightDownloadHandler"},
        "DOWNLOADER_MIDDLEWARES": {"scrapy_splash.SplashMiddleware": 725},
    }
    asked = [
        {}, {"playwright": True}, {"splash": {"args": {"wait": 0.5}}},
        {"playwright": True, "playwright_page_methods": ["click"]}, {"splash": {"args": {"lua_source": "return 1"}}},
    ]

    async def start(self):
        for number, meta in enumerate(self.asked):
            yield scrapy.Request(f"{self.url}{number}", meta=meta)

    def parse(self, response):
        yield {"page": response.url[-1], "title": response.css("h1::text").get(), "flags": response.flags}
"""


def test_pages_are_opened_in_the_browser_of_the_job_and_more_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "small.py"
    file.write_text(SPIDER)
    web = {(HERE, f"/{number}"): Page(SCRIPTED, "text/html; charset=utf-8") for number in range(5)}
    render = f'[render]\nwhich = "seeds"\nsandbox = {"true" if os.geteuid() else "false"}\n'
    for name, more, shown in (("with", render, 3), ("without", "", 1)):
        line, asked = line_for(tmp_path / name, JOB, HURRIED + more), list[tuple[float, str, str]]()
        with several_hosts.serve(web, asked) as port:
            url = f"http://{HERE}:{port}/"
            done = run_spider(line, str(file), "-a", f"url={url}", "--job", JOB, folder=tmp_path / f"{name} ours")
            assert done.returncode == 1, done.stdout + done.stderr
            found = [json.loads(one) for one in items(tmp_path / f"{name} ours")]
            wanted = [("0", "plain", []), ("1", "by script", ["playwright"]), ("2", "by script", [])]
            assert sorted((one["page"], one["title"], one["flags"]) for one in found) == wanted[:shown], done.stderr
            fetched = {page.removeprefix(url) for page, _ in pages(line, JOB)} - {"favicon.ico"}
            assert fetched == {str(one) for one in range(shown)}
            assert not {path for _, _, path in asked} & {f"/{number}" for number in range(shown, 5)}
            assert responses(line, JOB)[f"{url}1"] == (shown > 1)
            for what in ("'playwright_page_methods'", "'splash' with 'lua_source'"):
                assert f"its meta has {what}: the browser opens a page" in done.stderr
            assert ("its job opens no page in a browser" in done.stderr) == (shown == 1)
