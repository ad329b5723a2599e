"""Requests of applications, from the bus to WARC records: fields, actions, statistics, rates, and kills."""

from __future__ import annotations

import gzip
import json
import shutil
import signal
import time
from itertools import count
from pathlib import Path

import preloaded
from requesting.requests_line import APP, HOSTS, JOB, RequestsLine, requests_line, role, served
from sites.several_hosts import Page, page
from waiting import wait_for

GONE = Page(b"", status=0)


def has(line: RequestsLine, *paths: str) -> None:
    """Wait until these pages were fetched."""
    wait_for(lambda: set(paths) <= set(line.paths()), lambda: f"{line.paths()} {line.log()}")


def test_a_url_on_the_bus_is_a_page_in_a_warc(tmp_path: Path) -> None:
    with requests_line(tmp_path) as line, served(line):
        line.feed(line.crawl("/3", "c-min", attrs={"k": [1, None]}))
        has(line, "/3")
        (line_of,) = line.lines()
        assert (line_of.status, line_of.source) == (200, "target:0")
        warc = next((tmp_path / "output" / "warcs" / JOB).rglob("*.warc.gz*"))
        assert f"WARC-Target-URI: {line.url('/3')}".encode() in gzip.decompress(warc.read_bytes())
        fed = json.loads((tmp_path / "jobs" / JOB / "requests.jsonl").read_text())
        assert (fed["document"]["attrs"], fed["document"]["crawlid"]) == ({"k": [1, None]}, "c-min")
        line.warcmill("pulse", "stop", JOB)
        line.warcmill("init", str(tmp_path), "--requests")  # it changes nothing
    assert "requests" in line.warcmill("run", "requests", "--help")


def test_health_names_that_nobody_takes_requests(tmp_path: Path) -> None:
    with requests_line(tmp_path) as line:
        before = preloaded.run("commands.main", "health", env=line.env)
        assert before.returncode == 1
        assert "nobody takes them\n  -> start: warcmill run requests" in before.stdout
        assert "server bus: spool" in before.stdout
        with role(line):
            wait_for(lambda: preloaded.run("commands.main", "health", env=line.env).returncode == 0, line.log)
            assert "server requests: 1 take them for ondemand" in line.warcmill("health")


def test_each_request_is_fetched_once_and_links_once_a_crawl(tmp_path: Path) -> None:
    with requests_line(tmp_path) as line, served(line):
        line.feed(line.crawl("/9", "c", maxdepth=1), line.crawl("/9", "c"), line.crawl("/9", "other"))
        has(line, *(f"/{n}" for n in range(8)))
        line.feed(line.crawl("/9", "c", maxdepth=1), line.crawl("/30", "end"))
        has(line, "/30")
        wait_for(lambda: not line.control("tally")["waiting"])
        assert sorted(line.paths()) == sorted([*(f"/{n}" for n in range(8)), *["/9"] * 4, "/30"])


def test_the_links_that_a_request_allows_and_the_headers_that_it_gives(tmp_path: Path) -> None:
    web = {
        (HOSTS[0], "/"): page(
            ["/a/1", "/a/no", "/b/1", "/doc.pdf", "/a/x.zip", f"http://{HOSTS[1]}:{{port}}/a/2"], "/a/img.png"
        ),
        (HOSTS[0], "/plain"): page(["/a/1"], "/style.js"),
        (HOSTS[0], "/moved"): Page(b"/b/there", status=301),
        **{(HOSTS[0], path): page([]) for path in ("/a/1", "/a/no", "/b/1", "/doc.pdf", "/a/x.zip", "/b/there")},
        **{(HOSTS[0], path): Page(b"x", "image/png") for path in ("/a/img.png", "/style.js")},
    }
    with requests_line(tmp_path, web) as line:
        found = web[HOSTS[0], "/"]
        web[HOSTS[0], "/"] = Page(found.body.replace(b"{port}", str(line.port).encode()))
        with served(line):
            more = {"allow_regex": ["/a/"], "deny_regex": ["no$"], "allowed_domains": [HOSTS[0]]}
            line.feed(line.crawl("/", "full", maxdepth=3, useragent="me/1", cookie="a=1; b=2", **more))
            line.feed(line.crawl("/plain", "alone"), line.crawl("/moved", "moved", allow_regex=["nothing"]))
            has(line, "/a/1", "/plain", "/b/there")
            wait_for(lambda: not line.control("tally")["waiting"])
            assert sorted(line.paths()) == ["/", "/a/1", "/a/img.png", "/b/there", "/moved", "/plain"]
            warc = b"".join(gzip.decompress(path.read_bytes()) for path in (tmp_path / "output").rglob("*.warc.gz*"))
            assert warc.count(b"User-Agent: me/1\r\n") == warc.count(b"Cookie: a=1; b=2\r\n") == 3


def test_what_nobody_takes_is_logged_counted_and_answered(tmp_path: Path) -> None:
    with requests_line(tmp_path) as line, served(line):
        line.feed(
            b"\xff\xfe", b'{"url": nope', {}, line.crawl("/1", "x", maxdepth=101), {"url": "file:///etc/passwd",
            "appid": APP, "crawlid": "f"}, line.crawl("/1", "y", cookie="a\r\nX: y"),
            {"uuid": "z6", "appid": APP, "action": "domain-update", "domain": "dmoz.org"},
            {"uuid": "s6", "appid": APP, "action": "stop", "spiderid": "link"},
            b"[" * 10_000, line.crawl("/2", "good"),
        )  # fmt: skip
        has(line, "/2")
        refused = [one for one in line.told() if one.get("action") == "refused"]
        assert len(refused) == 9
        assert [one.get("crawlid") for one in refused] == [None, None, None, "x", "f", "y", None, None, None]
        assert {one["uuid"]: one["why"] for one in refused if "uuid" in one} == {
            "z6": "'hits' and 'window' not set for domain update", "s6": "Stop requests need a crawlid and appid"
        }  # fmt: skip
        assert line.log().count("Did not find schema to validate request") == 4
        assert line.log().count("Unparseable JSON Received") == 3
        stats = line.ask(uuid="s", stats="kafka-monitor")
        assert (stats["total"]["900"], stats["fail"]["lifetime"]) == (11, 7)
        assert line.paths() == ["/2"]


def test_info_stop_and_what_is_asked_after_a_stop(tmp_path: Path) -> None:
    with requests_line(tmp_path, QUEUE_HITS=1, QUEUE_WINDOW=3600) as line, served(line):
        line.feed(line.crawl("/20", "first", priority=90))
        has(line, "/20")
        line.feed(
            line.crawl("/21", "deep", maxdepth=2, priority=70, expires=int(time.time()) + 9000),
            line.crawl("/22", "deep"), line.crawl("/23", "other", spiderid="wandering"),
            {"uuid": "i1", "appid": APP, "action": "info", "spiderid": "link", "crawlid": "deep"},
            {"uuid": "i2", "appid": APP, "action": "info", "spiderid": "link"},
        )  # fmt: skip
        wait_for(lambda: line.answers("i2"))
        (one,), (every,) = line.answers("i1"), line.answers("i2")
        domain = {f"{HOSTS[0]}.": {"high_priority": 70, "low_priority": 1, "total": 2}}
        assert (one["domains"], one["total_pending"], one["total_domains"]) == (domain, 2, 1)
        assert (list(every["crawlids"]), every["crawlids"]["deep"]["domains"]) == (["deep"], domain)
        assert int(one["expires"]) == every["crawlids"]["deep"]["expires"]
        stopped = line.ask(uuid="st", action="stop", spiderid="link", crawlid="deep")
        assert stopped["total_purged"] == 2
        assert line.ask(uuid="i3", action="info", spiderid="link", crawlid="deep")["total_pending"] == 0
        line.feed(line.crawl("/24", "deep", maxdepth=5))
        assert line.ask(uuid="i4", action="info", spiderid="link", crawlid="deep")["total_pending"] == 1
        documents = [json.loads(text) for text in (tmp_path / "jobs" / JOB / "requests.jsonl").read_text().splitlines()]
        assert documents[-1]["document"]["maxdepth"] == 0
        assert line.ask(uuid="i5", action="info", spiderid="wandering")["total_pending"] == 1


def test_a_crawl_expires_once(tmp_path: Path) -> None:
    def expired() -> list[tuple[str, int]]:
        notices = [one for one in line.told() if one.get("action") == "expired"]
        return [(one["crawlid"], one["total_expired"]) for one in notices]

    with requests_line(tmp_path, QUEUE_HITS=1, QUEUE_WINDOW=3600) as line, served(line), role(line):
        line.feed(line.crawl("/20", "first"))
        has(line, "/20")
        line.feed(*(line.crawl(f"/{n}", "c-exp", expires=int(time.time()) - 5) for n in (1, 2)))
        wait_for(expired, line.log)
        line.ask(uuid="i", action="info", spiderid="link")
        assert expired() == [("c-exp", 2)]
        assert line.paths() == ["/20"]


def test_a_line_of_requests_has_no_gap(tmp_path: Path) -> None:
    """A day with pages, pages that are not there, and a request that got none; then an idle day."""
    with requests_line(tmp_path) as line, served(line):
        line.feed(line.crawl("/1", "c", maxdepth=1), line.crawl("/nope", "c"))
        line.feed({"url": "http://nowhere.invalid/", "appid": APP, "crawlid": "dead"})
        has(line, "/1", "/0", "/7", "/nope")
        line.ask(uuid="b", action="blacklist-update", domain=HOSTS[1])
        line.feed(*({"url": line.url(f"/{n}", HOSTS[1]), "appid": APP, "crawlid": "over"} for n in range(2)))
        assert line.ask(uuid="s", action="stop", spiderid="link", crawlid="over")["total_purged"] == 2
        late = {"appid": APP, "crawlid": "late", "expires": int(time.time()) - 5}
        line.feed({"url": line.url("/9", HOSTS[1]), **late})
        wait_for(lambda: any(one.get("action") == "expired" for one in line.told()), line.log)
        line.restart()
        line.warcmill("pulse", "stop", JOB)
        line.warcmill("scan")
        assert "no gap" in line.warcmill("reconcile")
        (first, _) = sorted(path.name for path in (tmp_path / "jobs" / JOB).iterdir() if path.name.isdigit())
        shown = line.warcmill("report", JOB, first)
        assert "4 requests without a page" in shown
        assert "testapp dead  http://nowhere.invalid/: " in shown
        lost = json.loads(line.warcmill("report", JOB, first, "--json"))["crawl"]["requests_without_page"]
        assert sorted((one["appid"], one["crawlid"], one["url"]) for one in lost) == [
            (APP, "dead", "http://nowhere.invalid/"), (APP, "late", line.url("/9", HOSTS[1])),
            *((APP, "over", line.url(f"/{n}", HOSTS[1])) for n in range(2)),
        ]  # fmt: skip
        assert {one["why"] for one in lost if one["crawlid"] == "over"} == {"its crawl was stopped, or has expired"}
        assert [one for one in line.told("crawled_firehose") if one["crawlid"] in ("over", "late")] == []


def test_rates_and_bans_of_domains_hold_over_launches(tmp_path: Path) -> None:
    web = {(host, path): page([]) for host in HOSTS for path in ("/1", "/2", "/3")}
    with requests_line(tmp_path, web, QUEUE_HITS=1, QUEUE_WINDOW=3600) as line, served(line):
        line.ask(uuid="b", action="blacklist-update", domain=HOSTS[1])
        line.ask(uuid="r", action="domain-update", domain=HOSTS[2], hits=1000, window=1)
        line.feed(
            *({"url": line.url(path, host), "appid": APP, "crawlid": "c"} for host in HOSTS for path in ("/1", "/2"))
        )
        wait_for(lambda: len(line.lines()) == 3, line.log)
        line.restart()
        line.feed({"url": line.url("/3", HOSTS[2]), "appid": APP, "crawlid": "c"})
        wait_for(lambda: len(line.lines()) == 4, line.log)
        assert {(one.uri.split("/")[2].partition(":")[0]) for one in line.lines()} == {HOSTS[0], HOSTS[2]}
        line.ask(uuid="b2", action="blacklist-remove", domain=HOSTS[1])
        wait_for(lambda: len(line.lines()) == 5, line.log)


def test_what_is_tried_in_vain_ends_in_a_notice_and_504_in_a_page(tmp_path: Path) -> None:
    web = {(HOSTS[0], "/504"): Page(b"later", status=504), (HOSTS[0], "/gone"): GONE}
    with requests_line(tmp_path, web) as line, served(line):
        line.feed(line.crawl("/504", "c"), line.crawl("/gone", "c"))
        has(line, "/504", "/gone")
        wait_for(lambda: len(line.lines()) == 5, lambda: str(line.lines()))
        assert sorted(str(one.status) for one in line.lines() if one.uri.endswith("/504")) == ["504"] * 4
        logs = (tmp_path / "output").rglob("results.jsonl")
        results = [json.loads(text) for path in logs for text in path.read_text().splitlines()]
        assert sorted((one["kind"], one["value"].get("status_code")) for one in results) == [
            ("notice", None), ("page", 504)
        ]  # fmt: skip
        asked = count()

        def counted() -> int:
            spiders = line.ask(uuid=f"s{next(asked)}", stats="spider")["spiders"]
            return int(spiders["link"].get("504", {}).get("lifetime", 0))

        wait_for(lambda: counted() == 5, line.log)  # the page, and four tries without an answer


def test_of_a_domain_whose_rate_has_the_scale_0_nothing_is_fetched(tmp_path: Path) -> None:
    web = {(host, path): page([]) for host in HOSTS for path in ("/1", "/2")}
    with requests_line(tmp_path, web) as line, served(line):
        changed = line.ask(uuid="r", action="domain-update", domain=HOSTS[1], hits=10, window=60, scale=0)
        assert changed["action"] == "domain-update"
        line.feed(*({"url": line.url("/1", host), "appid": APP, "crawlid": "c"} for host in HOSTS[1::-1]))
        has(line, "/1")
        assert line.ask(uuid="i", action="info", spiderid="link", crawlid="c")["total_pending"] == 1
        line.ask(uuid="r2", action="domain-update", domain=HOSTS[1], hits=1000, window=1, scale=1)
        wait_for(lambda: len(line.lines()) == 2, line.log)


def test_statistics(tmp_path: Path) -> None:
    with requests_line(tmp_path, STATS_DUMP=1, LOG_JSON=True) as line, served(line):
        line.feed(line.crawl("/1", "c"), line.crawl("/nope", "c"))
        has(line, "/1", "/nope")
        wait_for(lambda: line.control("state")["served"] == {"": {"link": {"200": 1, "404": 1}}})
        found = line.ask(uuid="all", stats="all")
        assert set(found) == {
            "appid", "crawler", "kafka-monitor", "redis-monitor", "rest", "server_time", "stats", "uuid"
        }  # fmt: skip
        assert found["crawler"]["spiders"]["link"]["404"] == dict.fromkeys(
            ("900", "3600", "21600", "43200", "86400", "604800", "lifetime"), 1
        )
        assert found["crawler"]["spiders"]["total_spider_count"] == 1
        assert found["kafka-monitor"]["plugins"]["ScraperHandler"]["900"] == 2
        assert "fail" not in found["redis-monitor"]
        dumps = ("Kafka Monitor Stats Dump", "Redis Monitor Stats Dump", "Crawler Stats Dump", "Queue Stats Dump")
        wait_for(lambda: all(f'"{dump}"' in line.log() for dump in dumps), line.log)


def test_nothing_is_lost_and_nothing_fetched_twice_by_kills(tmp_path: Path) -> None:
    """The role and the crawler are killed in turn while requests come in; each is fetched once."""
    with requests_line(tmp_path) as line:
        line.start()
        for turn in range(4):
            process = line.role()
            line.feed(*(line.crawl(f"/{n}", f"c{turn}") for n in range(40)))
            wait_for((tmp_path / "jobs" / JOB / "requests.jsonl").exists)
            time.sleep(0.05 * turn)  # another moment of its work each turn
            process.kill()
            assert process.wait() == -signal.SIGKILL
            if turn % 2:
                line.kill_crawler()
                line.restart()
        with role(line):
            wait_for(lambda: len(line.lines()) >= 160, lambda: f"{len(line.lines())} {line.log()}")
            assert line.ask(uuid="end", action="info", spiderid="link")["total_pending"] == 0
        line.warcmill("pulse", "stop", JOB)
        found = [(one.uri, one.source) for one in line.lines()]
        assert len(found) == len(set(found)) == 160


def test_requests_wait_while_the_job_does_not_run(tmp_path: Path) -> None:
    """Each is taken once, and what takes no job is answered at once."""
    with requests_line(tmp_path) as line:
        killed = line.role()
        line.feed(
            line.crawl("/1", "early"), b"no", {"uuid": "k", "appid": APP, "stats": "kafka-monitor"},
            {"uuid": "i", "appid": APP, "action": "info", "spiderid": "link"}, line.crawl("/2", "late"),
        )  # fmt: skip
        wait_for(lambda: line.log().count("what was asked waits for it") == 1)
        wait_for(lambda: line.log().count("Added stat request to Redis") == 1)
        documents = tmp_path / "jobs" / JOB / "requests.jsonl"
        wait_for(lambda: "late" in documents.read_text(), line.log)  # it does not wait for the question before it
        time.sleep(3)  # several tries, of which none may answer once more
        assert [one.get("uuid") for one in line.told()] == [None, "k"]
        killed.kill()  # the question is acknowledged, and its answer is still to come
        killed.wait()
        with role(line):
            line.start()
            has(line, "/1", "/2")
            wait_for(lambda: line.answers("i"), line.log)
            found = line.ask(uuid="k2", stats="kafka-monitor")
        assert (found["total"]["900"], found["fail"]["900"], found["plugins"]["ActionHandler"]["900"]) == (6, 1, 1)
        assert sorted(line.paths()) == ["/1", "/2"]


def test_a_job_that_serves_no_requests_and_rates_that_are_none_are_refused(tmp_path: Path) -> None:
    with requests_line(tmp_path, QUEUE_HITS=0) as line:
        process = line.role()
        assert process.wait() == 3
        assert "QUEUE_HITS" in line.log()
        crawl = tmp_path / "jobs" / JOB / "crawl.toml"
        crawl.write_text(crawl.read_text().replace("requests = true", "requests = false"))
        (tmp_path / "jobs" / JOB / "seeds.txt").write_text("http://a.example/\n")
        assert line.role().wait() == 3
        assert "serves none" in line.log()


def test_two_applications_share_a_crawl_and_stop_their_own(tmp_path: Path) -> None:
    with requests_line(tmp_path, QUEUE_HITS=1, QUEUE_WINDOW=3600) as line, served(line):
        line.feed(line.crawl("/20", "first"))
        has(line, "/20")
        line.feed(line.crawl("/1", "c"), {**line.crawl("/2", "c"), "appid": "other"}, line.crawl("/3", "c"))
        assert line.ask(uuid="s", action="stop", spiderid="link", crawlid="c")["total_purged"] == 2
        left = line.control("tally")["waiting"]
        assert [(one["appid"], one["total"]) for one in left] == [("other", 1)]


def test_a_database_that_was_rebuilt_knows_how_far_the_feed_was_read(tmp_path: Path) -> None:
    """The launch's own journal says so, though it has none of the requests that earlier launches have answered."""
    with requests_line(tmp_path) as line, served(line):
        line.feed(*(line.crawl(f"/{n}", "c") for n in range(10)))
        wait_for(lambda: len(line.lines()) == 10, line.log)
        line.restart()
        line.feed(line.crawl("/20", "late", maxdepth=1))
        has(line, "/20", "/0")
        wait_for(lambda: not line.control("tally")["waiting"])
        before = sorted(line.paths())
        line.kill_crawler()
        for copy in tmp_path.rglob("books.sqlite*"):  # those of checkpoints too: only the journal is left
            copy.unlink()
        (tmp_path / "jobs" / JOB / "state" / "books.sqlite").write_bytes(b"damaged")
        line.restart()
        line.feed(line.crawl("/30", "end"))
        has(line, "/30")
        assert sorted(line.paths()) == sorted([*before, "/30"])


def test_plugins_take_their_messages_beside_the_role_and_their_faults_cost_one_message(tmp_path: Path) -> None:
    plugins = {"plugins.note_handler.NoteHandler": 50}
    shutil.copytree(Path(__file__).parents[1] / "data" / "plugins", tmp_path / "plugins")
    with requests_line(tmp_path, PLUGINS=plugins, NOTES=str(tmp_path / "notes")) as line, served(line):
        notes = [{"uuid": f"n{n}", "appid": APP, "note": note} for n, note in enumerate(("a", "die", "raise", "b"))]
        line.feed(line.crawl("/1", "c"), *notes, line.crawl("/2", "c"))
        has(line, "/1", "/2")
        assert (tmp_path / "notes").read_text() == "a blue\nb blue\n"
        assert {one["uuid"]: one["why"] for one in line.told()} == {
            "n1": "plugins.note_handler.NoteHandler ended its process",
            "n2": "plugins.note_handler.NoteHandler failed: ValueError: no such note",
        }
        assert "Noted" in line.log()
        stats = line.ask(uuid="s", stats="kafka-monitor")
        assert (stats["plugins"]["NoteHandler"]["900"], stats["fail"]["900"]) == (4, 2)
