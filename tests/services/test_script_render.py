"""Pages that a script has opened in a real Chromium: `fetch_type`, what `js_script` returns, and when it is run."""

from __future__ import annotations

import json
import os
from pathlib import Path

from requesting.script_runs import HERE, RUN, line_for, script
from sites import several_hosts
from sites.several_hosts import Page

SCRIPT = """\
from pyspider.libs.base_handler import *


class Handler(BaseHandler):
    crawl_config = {'fetch_type': 'js'}

    def on_start(self):
        self.crawl('SITE/late', callback=self.late, js_viewport_width=700, js_script='''
            function() {
                document.body.insertAdjacentHTML("beforeend", "<i>scripted</i>");
                return {width: innerWidth, late: document.querySelector("b").textContent};
            }''')
        self.crawl('SITE/early', callback=self.early, fetch_type='phantomjs', js_run_at='document-start',
                   js_script='function() { window.early = "early"; return 5; }')
        self.crawl('SITE/plain', callback=self.plain, fetch_type=None)
        self.crawl('SITE/broken', callback=self.plain, js_script='function() { throw new Error("no"); }')
        self.crawl('SITE/odd', callback=self.plain, fetch_type=['js'])

    def late(self, response):
        return [response.doc('b').text(), response.doc('i').text(), response.js_script_result, response.url]

    def early(self, response):
        return [response.doc('b').text(), response.js_script_result]

    @catch_status_code_error
    def plain(self, response):
        return [response.doc('b').text(), response.js_script_result, response.status_code]
"""
LATE = b"<body><script>setTimeout(() => document.body.innerHTML = '<b>late</b>', 50)</script>"
EARLY = b"<body><script>document.body.innerHTML = `<b>${window.early}</b>`</script>"


def test_a_script_reads_what_a_browser_has_made_of_a_page(tmp_path: Path) -> None:
    line, here = line_for(tmp_path / "line"), tmp_path / "here"
    here.mkdir()
    pages = {"/late": LATE, "/early": EARLY, "/plain": LATE, "/broken": LATE, "/odd": LATE}
    with several_hosts.serve({(HERE, path): Page(body) for path, body in pages.items()}) as port:
        url = f"http://{HERE}:{port}"
        (here / "shop.py").write_text(SCRIPT.replace("SITE", url))
        words = () if os.geteuid() else ("--no-sandbox",)
        done = script(line, here, "run", str(here / "shop.py"), *RUN, *words)
    found = {one["url"].removeprefix(url): one["result"] for one in map(json.loads, done.stdout.splitlines())}
    assert found == {
        "/late": ["late", "scripted", {"width": 700, "late": "late"}, f"{url}/late"],
        "/early": ["early", 5],
        "/plain": ["", None, 200],
        "/broken": ["late", None, 200],
        "/odd": ["", None, 599],
    }, done.stderr
    done = script(line, here, "try", "shop/shop", "--json")
    tried = json.loads(done.stdout)["pages"]
    assert {one["url"].removeprefix(url): one["after"] for one in tried} == {
        path: value for path, value in found.items() if path != "/odd"
    }
    assert done.returncode == 0, "a trial reads the page as the callback had it"
