"""Scripts as pyspider's users write them, by `warcmill script run` on pages of ours: lists with a next page, an API in
JSON, one result by message and many of a page, logins, redirects; and what a run leaves for the next."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import preloaded
from requesting.script_runs import HERE, RUN, environment, line_for, results, script
from sites import several_hosts
from sites.several_hosts import Page
from waiting import wait_for

MILLS = """\
#!/usr/bin/env python
# -*- encoding: utf-8 -*-
# Project: mills

import re
from pyspider.libs.base_handler import *


class Handler(BaseHandler):
    crawl_config = {
        'itag': 'v1',
        'headers': {'User-Agent': 'Mills'},
    }

    @every(minutes=24 * 60)
    def on_start(self):
        self.crawl('SITE/list?kind=tower,post&ref_=1', callback=self.index_page)
        self.crawl('SITE/api?limit=20', callback=self.api)
        self.crawl('SITE/moved', callback='moved', allow_redirects=False)
        self.crawl('SITE/gone', callback=self.gone, save={'a': [1, None]})
        self.crawl('SITE/gone2', retries=0)

    @config(age=10 * 24 * 60 * 60)
    def index_page(self, response):
        for each in response.doc('a[href^="http"]').items():
            if re.match("SITE/mill/\\\\d+/$", each.attr.href):
                self.crawl(each.attr.href, callback=self.detail_page)
        self.crawl([x.attr.href for x in response.doc('#right a').items()], callback=self.index_page)

    @config(priority=2)
    def detail_page(self, response):
        return {
            "url": response.url,
            "name": response.doc('.header > [itemprop="name"]').text(),
            "sails": [x.text() for x in response.doc('[itemprop="sails"] span').items()],
        }

    @config(age=10 * 60)
    def api(self, response):
        for number, each in enumerate(response.json['mills']):
            self.send_message(self.project_name, {"name": each['name']}, url="%s#%s" % (response.url, number))
        return [{"name": x['name'], "height": x.get('height')} for x in response.json['mills']]

    def on_message(self, project, msg):
        return msg

    @catch_status_code_error
    def gone(self, response, task):
        return [response.status_code, response.ok, response.save, task['url'] == response.orig_url]

    def moved(self, response):
        return [response.status_code, response.headers['location']]

    def __call__(self, response):
        return 'not called: 404'
"""
LIST = "/list?kind=tower,post&ref_=1"


def site(url: str) -> dict[tuple[str, str], Page]:
    def mill(number: int) -> Page:
        return Page(
            f'<h1 class="header"><span itemprop="name">Mühle {number}</span></h1>'
            f'<p itemprop="sails"><b><span>a</span></b><span>b</span></p>'.encode()
        )

    right = '<p id="right"><a href="{}">Next »</a></p>'
    api = {"mills": [{"name": "one"}, {"name": "two", "height": 20}]}
    found = {
        LIST: Page(f'<meta charset="utf-8"><a href="/mill/1/">1</a><a href="{url}/mill/2/">2</a>'
                   f'<a href="/mill/2/?x">no</a>{right.format("/list2")}'.encode()),
        "/list2": Page(f'<a href="/mill/3/">3</a>{right.format(LIST)}'.encode()),
        "/api?limit=20": Page(b"\xef\xbb\xbf" + json.dumps(api).encode(), "application/json"),
        "/moved": Page(b"/elsewhere", status=301),
        **{f"/mill/{number}/": mill(number) for number in (1, 2, 3)},
    }  # fmt: skip
    return {(HERE, path): one for path, one in found.items()}


def test_scripts_of_pyspiders_forms_run_unchanged(tmp_path: Path) -> None:
    line, here, web = line_for(tmp_path / "line"), tmp_path / "here", dict[tuple[str, str], Page]()
    here.mkdir()
    asked: list[tuple[float, str, str]] = []
    with several_hosts.serve(web, asked) as port:
        url = f"http://{HERE}:{port}"
        web |= site(url)
        (here / "mills.py").write_text(MILLS.replace("SITE", url))
        done = script(line, here, "run", str(here / "mills.py"), *RUN)
        found = {one["url"].removeprefix(url): one["result"] for one in map(json.loads, done.stdout.splitlines())}
        mills = {
            f"/mill/{number}/": {"url": f"{url}/mill/{number}/", "name": f"Mühle {number}", "sails": ["a", "b"]}
            for number in (1, 2, 3)
        }
        assert found == {
            **mills,
            "/api?limit=20": [{"name": "one", "height": None}, {"name": "two", "height": 20}],
            "/api?limit=20#0": {"name": "one"},
            "/api?limit=20#1": {"name": "two"},
            "/moved": [301, "/elsewhere"],
            "/gone": [404, False, {"a": [1, None]}, True],
        }
        assert (done.returncode, "__call__ of" in done.stderr) == (1, True), "the 404 that no callback wants"
        paths = [path for _, _, path in asked if path != "/robots.txt"]
        assert sorted(paths) == sorted({*(path for _, path in web), "/gone", "/gone2"}), "each once"
        # Another itag: all of it is taken again, and each result has the taskid that it had.
        (here / "mills.py").write_text(MILLS.replace("SITE", url).replace("'v1'", "'v2'"))
        script(line, here, "run", str(here / "mills.py"), *RUN)
    by_task = [one["taskid"] for one in results(line, "mills")]
    assert sorted(by_task) == sorted([*set(by_task)] * 2)


REDIRECTED = """\
from pyspider.libs.base_handler import *


class Handler(BaseHandler):
    crawl_config = {'callback': 'page', 'user_agent': 'Bot', 'cookies': {'own': '1'}, 'save': 'shared'}

    def on_start(self):
        self.crawl('SITE/data', headers={'Host ': 'evil.example'}, taskid='host')
        self.crawl('SITE/login', taskid='login', age=1, auto_recrawl=True)
        self.crawl('SITE/script', taskid='script')
        self.crawl('http://me:SECRET@a.example/')
        self.send_message('nobody', 1, url='http://me:SECRET@a.example/')
        self.crawl('SITE/late', taskid='late', exetime=1.8e15)

    @catch_status_code_error
    def page(self, response, task):
        if response.url.endswith('/2'):
            self.crawl('SITE/login', taskid='login', cancel=True, force_update=True, auto_recrawl=False)
        return [response.status_code, response.error, response.save]
"""


def test_what_a_script_asks_for_besides_is_kept_and_a_bad_header_is_named(tmp_path: Path) -> None:
    line, here, web = line_for(tmp_path / "line"), tmp_path / "here", dict[tuple[str, str], Page]()
    here.mkdir()
    with several_hosts.serve(web) as port:
        url = f"http://{HERE}:{port}"
        web |= {
            (HERE, "/login"): Page(b"/1", status=301), (HERE, "/1"): Page(b"1"), (HERE, "/2"): Page(b"2"),
            (HERE, "/script"): Page(b"data:text/html,<p>x", status=301),
        }  # fmt: skip
        (here / "bad.py").write_text(REDIRECTED.replace("SITE", url))
        out = here / "out"
        with out.open("wb") as file:
            process = preloaded.start(
                "commands.main", "script", "run", str(here / "bad.py"), *RUN, env=environment(line), folder=here,
                out=file.fileno(), err=file.fileno(),
            )  # fmt: skip
            wait_for(lambda: out.read_text().count('"taskid": "login"') > 1, "the task is visited again")
            web[HERE, "/login"] = Page(b"/2", status=301)
            assert process.wait() == 0, out.read_text()
        assert "some tasks wait, the next until 9999-12-31T00:00:00Z" in out.read_text()
    found = {one["taskid"]: one["result"] for one in results(line, "bad")}
    assert found["login"] == [200, None, "shared"]
    assert found["host"] == [599, "its headers: 'Host ' is not a name, or has no value of one line", "shared"]
    (folder,) = (line.folders["output"] / "logs" / "bad").iterdir()
    assert (folder / "uri-errors.log").read_text().count("http://a.example/") == 2
    assert not [path for path in folder.iterdir() if b"SECRET" in path.read_bytes()]
    assert (found["script"][0], "redirects to http and https alone" in found["script"][1]) == (599, True)


SLOW = """\
from pyspider.libs.base_handler import *


class Handler(BaseHandler):
    def on_start(self):
        self.crawl(['SITE/%d' % number for number in range(40)], callback=self.page)

    def page(self, response):
        return response.url
"""


def test_a_run_is_alone_and_one_that_was_interrupted_continues(tmp_path: Path) -> None:
    line, here = line_for(tmp_path / "line"), tmp_path / "here"
    here.mkdir()
    web = {(HERE, f"/{number}"): Page(b"x") for number in range(40)}
    with several_hosts.serve(web) as port:
        (here / "slow.py").write_text(SLOW.replace("SITE", f"http://{HERE}:{port}"))
        (here / "crawl.toml").write_text("[politeness]\nleast = 0.03\nfactor = 0.0\n")
        words = ("run", str(here / "slow.py"), "--allow-private", "127.0.0.0/8", "--config", str(here / "crawl.toml"))
        out = here / "out"
        with out.open("wb") as file:
            process = preloaded.start(
                "commands.main", "script", *words, env=environment(line), folder=here, out=file.fileno(),
                err=file.fileno(),
            )  # fmt: skip
            wait_for(lambda: out.read_bytes().count(b"taskid") > 3, "a few results")
            assert script(line, here, *words).returncode == 5
            process.send_signal(signal.SIGINT)
            assert process.wait() == 130, out.read_text()
        assert "stopped, with a checkpoint; the same command continues from there" in out.read_text()
        assert script(line, here, *words).returncode == 0
    ids = [one["taskid"] for one in results(line, "slow")]
    assert (len(ids), len(set(ids))) == (40, 40)
