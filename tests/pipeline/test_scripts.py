"""`warcmill script` on a site: results, each page in a WARC; what fails is named, and a kill loses nothing."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import preloaded
import pytest
from requesting.scrapy_runs import pages, responses, run_warcmill
from requesting.script_runs import HERE, RUN, crawling, environment, line_for, results, script
from sites import several_hosts
from sites.several_hosts import Page
from waiting import wait_for

JOB = "shop"
SCRIPT = """\
from pyspider.libs.base_handler import *


class Handler(BaseHandler):
    crawl_config = {}

    @every(minutes=24 * 60)
    def on_start(self):
        print("begins")
        self.crawl("http://127.0.0.1:PORT/", callback=self.index_page)

    @config(age=10 * 24 * 60 * 60)
    def index_page(self, response):
        for each in response.doc('a[href^="http"]').items():
            self.crawl(each.attr.href, callback=self.detail_page, retries=0)

    @config(priority=2)
    def detail_page(self, response):
        if response.url.endswith("/p/7"):
            raise KeyError("price")
        return {"url": response.url, "asked": response.orig_url, "title": response.doc("title").text()}
"""
NUMBER = 40


def site() -> dict[tuple[str, str], Page]:
    links = [f"/p/{number}" for number in range(NUMBER)] + ["/moved", "/gone", "http://[bad"]
    found = {"/": several_hosts.page(links), "/moved": Page(b"/p/99", status=301)}
    for number in (*range(NUMBER), 99):
        found[f"/p/{number}"] = Page(f"<title>Page {number}</title>".encode())
    return {(HERE, path): one for path, one in found.items()}


def written(folder: Path, port: int, text: str = SCRIPT) -> str:
    folder.mkdir(exist_ok=True)
    (folder / "shop.py").write_text(text.replace("PORT", str(port)))
    return str(folder / "shop.py")


def test_a_script_yields_its_results_and_each_page_is_in_a_warc(tmp_path: Path) -> None:
    line, here = line_for(tmp_path / "line"), tmp_path / "here"
    with several_hosts.serve(site()) as port:
        url = f"http://{HERE}:{port}"
        done = script(line, here, "run", written(here, port), *RUN)
        assert done.returncode == 1, done.stdout + done.stderr
        found_results = [json.loads(one) for one in done.stdout.splitlines()]
        wanted = {f"{url}/p/{number}" for number in range(NUMBER) if number != 7}
        assert {one["url"] for one in found_results} == wanted | {f"{url}/moved"}
        (moved,) = (one for one in found_results if one["url"] == f"{url}/moved")
        assert moved["result"] == {"url": f"{url}/p/99", "asked": f"{url}/moved", "title": "Page 99"}
        assert "begins\n" in done.stderr
        assert f"shop: detail_page of {url}/p/7 failed: KeyError: 'price'" in done.stderr
        assert f"shop: detail_page of {url}/gone failed: HTTPError: 404 Client Error" in done.stderr
        found = {page: number for page, number in pages(line, JOB).items() if not page[0].startswith("data:")}
        assert found == dict.fromkeys(found, 1)
        assert responses(line, JOB) == {page: 1 for page, _ in found}
        assert len(found) == NUMBER + 4
        logs = next((line.folders["output"] / "logs" / JOB).glob("*"))
        assert "callbackFailed" in next(
            one for one in logs.joinpath("crawl.log").read_text().splitlines() if "/p/7 " in one
        )
        assert "KeyError: 'price'" in (logs / "runtime-errors.log").read_text()
        assert "http://[bad" in (logs / "uri-errors.log").read_text()
        again = script(line, here, "run", str(here / "shop.py"), *RUN)
        assert (again.returncode, again.stdout) == (0, ""), "nothing is older than its age"
        assert line.scan_all(found_results[0]["warc"].partition("-")[2][:8]) in (0, 1)


def test_a_script_that_was_killed_goes_on_and_yields_each_result_once(tmp_path: Path) -> None:
    line, here = line_for(tmp_path / "line"), tmp_path / "here"
    with several_hosts.serve(site()) as port:
        words = ("run", written(here, port), "--allow-private", "127.0.0.0/8", "--job", JOB)
        (here / "crawl.toml").write_text("[politeness]\nleast = 0.03\nfactor = 0.0\n")
        out = here / "out"
        with out.open("wb") as file:
            process = preloaded.start(
                "commands.main", "script", *words, "--config", str(here / "crawl.toml"), env=environment(line),
                folder=here, out=file.fileno(), err=file.fileno(),
            )  # fmt: skip
        wait_for(lambda: out.read_bytes().count(b"Page ") > 5, "a few results")
        process.send_signal(signal.SIGKILL)
        process.wait()
        done = script(line, here, *words, "--config", str(here / "crawl.toml"))
        assert done.returncode == 1, done.stderr
        assert "continues from" in done.stderr or "launch" in done.stderr
    values = results(line, JOB)
    assert len(values) == len({one["taskid"] for one in values}) == NUMBER
    assert all(number == 1 for page, number in pages(line, JOB).items() if "/p/" in page[0])


def test_check_step_and_new(tmp_path: Path) -> None:
    line, here = line_for(tmp_path / "line"), tmp_path / "here"
    file = written(here, 80)
    done = script(line, here, "check", file, "--json")
    assert (done.returncode, json.loads(done.stdout)["callbacks"]) == (0, ["detail_page", "index_page", "on_start"])
    (follow,) = json.loads(script(line, here, "step", file, "--json").stdout)["follows"]
    assert follow["process"] == {"callback": "index_page"}
    (here / "page.html").write_text('<a href="http://b.example/1">x</a>')
    done = script(line, here, "step", file, "--task", json.dumps(follow), "--page", str(here / "page.html"))
    assert "follow  detail_page  http://b.example/1" in done.stdout
    assert script(line, here, "step", file, "--task", json.dumps(follow)).returncode == 1
    (here / "bad.py").write_text("x =")
    done = script(line, here, "check", str(here / "bad.py"))
    assert (done.returncode, "SyntaxError" in done.stderr) == (1, True)
    done = script(line, here, "new", "papers/news", "--start", "news.example")
    assert done.returncode == 0, done.stderr
    made = Path(done.stdout.strip())
    assert 'self.crawl("https://news.example/", callback=self.index_page)' in made.read_text()
    assert script(line, here, "check", str(made)).returncode == 0
    assert script(line, here, "new", "papers/news", "--start", "news.example").returncode == 1
    made = Path(script(line, here, "new", "papers/odd", "--start", 'news.example/"?a=\\N"').stdout.strip())
    assert script(line, here, "check", str(made)).returncode == 0, made.read_text()
    assert script(line, here, "run", file, str(made.parent / "news.py"), str(made.parent / "news.py")).returncode == 1
    (here / "dir.py").mkdir()
    (here / "old.py").write_text(SCRIPT.replace("raise KeyError", "raise unicode"))
    done = script(line, here, "check", str(here / "old.py"))
    assert (done.returncode, "nothing defines unicode" in done.stderr) == (1, True)


def test_a_job_keeps_its_rules_and_a_damaged_book_its_results(tmp_path: Path) -> None:
    line, here = line_for(tmp_path / "line"), tmp_path / "here"
    job = line.folders["jobs"] / JOB
    with several_hosts.serve(site()) as port:
        file = written(here, port)
        assert script(line, here, "run", file, *RUN).returncode == 1, "two tasks fail"
        count = len(script(line, here, "results", JOB).stdout.splitlines())
        (job / "exclude.txt").write_text(f"http://({HERE}:{port})/p/1\n")
        (job / "state" / "tasks.sqlite").write_bytes(b"garbage" * 1000)
        script(line, here, "run", file, *RUN)
    assert (job / "exclude.txt").read_text().startswith(f"http://({HERE}")
    assert len(script(line, here, "results", JOB).stdout.splitlines()) == count == NUMBER


def test_a_job_of_scripts_stays_on_takes_edits_and_forgets_what_is_deleted(tmp_path: Path) -> None:
    line, here = line_for(tmp_path / "line"), tmp_path / "here"
    job = line.folders["jobs"] / "papers"

    def listed() -> dict[str, Any]:
        (found,) = json.loads(script(line, here, "list", "papers", "--json").stdout)["scripts"]
        return dict(found)

    with several_hosts.serve(site()) as port:
        assert script(line, here, "new", "papers/shop", "--start", f"http://{HERE}:{port}/").returncode == 0
        (job / "scripts" / "shop.py").write_text(SCRIPT.replace("PORT", str(port)))
        with (job / "crawl.toml").open("a") as file:
            file.write('no_delay = true\nallow_private = ["127.0.0.0/8"]\n')
        assert listed()["status"] == "TODO"
        assert "there is no such script" not in script(line, here, "set", "papers/shop", "--status", "RUNNING").stderr
        assert script(line, here, "set", "papers/shop", "--rate", "1000", "--burst", "500").returncode == 0
        assert script(line, here, "start", "papers/shop").returncode == 1, "no crawl runs"
        with crawling(line, here):
            assert script(line, here, "start", "papers/shop").stdout == "papers/shop: begins\n"
            wait_for(lambda: listed()["counts"]["all"]["success"] == NUMBER + 2, "all pages")
            assert listed()["counts"]["5m"]["failed"] == 2
            failed = script(line, here, "tasks", "papers/shop", "--status", "failed").stdout
            assert "/gone" in failed
            (job / "scripts" / "shop.py").write_text(SCRIPT.replace("PORT", str(port)) + "# edited\n")
            wait_for(lambda: listed()["status"] == "CHECKING", "the edit")
            wait_for(
                lambda: "it is not running" in script(line, here, "start", "papers/shop").stderr, "the crawl's look"
            )
            broken = SCRIPT.replace("PORT", str(port)).replace('doc("title")', 'doc("h9")')
            (job / "scripts" / "shop.py").write_text(broken)
            done = script(line, here, "try", "papers/shop", "--last", "5", "--json")
            tried = [one for one in json.loads(done.stdout)["pages"] if one["callback"] == "detail_page"]
            assert (done.returncode, len(tried)) == (1, 5)
            assert all((one["changed"], one["after"]["title"]) == (["title"], "") for one in tried)
            (job / "scripts" / "shop.py").write_text(SCRIPT.replace("PORT", str(port)) + "# the same\n")
            done = script(line, here, "try", "papers/shop")
            assert (done.returncode, "0 of them worse than before" in done.stdout) == (0, True)
            results = script(line, here, "results", "papers/shop", "--format", "csv").stdout.splitlines()
            assert len(results) == NUMBER + 1
            done = script(line, here, "delete", "papers/shop")
            assert done.stdout.startswith("papers/shop: deleted; "), done.stderr
            assert json.loads(script(line, here, "list", "papers", "--json").stdout)["scripts"] == []
            assert script(line, here, "results", "papers").stdout == ""


@pytest.mark.parametrize("name", ["1shop.py", "my-shop.py"])
def test_a_name_that_cannot_be_imported_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(SCRIPT)
    done = run_warcmill("script", "check", name, folder=tmp_path)
    assert "cannot be imported" in done.stderr
    assert done.returncode
