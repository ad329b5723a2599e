"""A script that is edited reads the pages that it has visited again in whole, once."""

from __future__ import annotations

import time
from pathlib import Path

from requesting.job_of_scripts import HEAD
from requesting.scrapy_runs import pages
from requesting.script_runs import HERE, RUN, line_for, results, script
from sites import several_hosts
from sites.several_hosts import Page

from warcmill.scripts.folder import SCRIPTS

PAGE = """
class Handler(BaseHandler):
    def on_start(self):
        self.crawl("SITE/page", callback=self.page, force_update=True, retries=0)
    def page(self, response):
        return {"title": response.doc("title").text()}
"""


def test_an_edited_script_asks_for_the_whole_page_once_and_then_for_what_is_new(tmp_path: Path) -> None:
    line, here = line_for(tmp_path / "line"), tmp_path / "here"
    written = [""]
    web = {(HERE, "/page"): Page(b"<title>T</title>", etag='"1"')}
    with several_hosts.serve(web) as port:
        url = f"http://{HERE}:{port}"

        def run(text: str) -> tuple[int, int, int]:
            """Run a text; the answers with 200 and with 304 by now, and the results."""
            if written[-1] != text:
                time.sleep(1.1)  # dates of records are whole seconds
                for folder in (here, line.folders["jobs"] / "news" / SCRIPTS):
                    folder.mkdir(parents=True, exist_ok=True)
                    (folder / "news.py").write_text(HEAD + text.replace("SITE", url))
                time.sleep(1.1)
                written.append(text)
            done = script(line, here, "run", str(here / "news.py"), *RUN)
            assert done.returncode in (0, 1), done.stderr
            found = pages(line, "news")
            return found[f"{url}/page", 200], found[f"{url}/page", 304], len(results(line, "news"))

        assert run(PAGE) == (1, 0, 1)
        assert run(PAGE) == (1, 1, 1), "the callback is not called: there is nothing new"
        edited = PAGE.replace('"title"', '"name"', 1)
        assert run(edited) == (2, 1, 2)
        assert run(edited) == (2, 2, 2)
        failing = edited.replace("return", "1 / 0; return")
        assert run(failing) == (3, 2, 2)
        assert run(failing) == (4, 2, 2), "a callback that failed leaves nothing to ask by"
