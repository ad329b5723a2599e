"""Requests that would do harm: each ends in a page or a notice, and those behind it are served."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from requesting.requests_line import APP, HOSTS, requests_line, served
from sites.several_hosts import Page, page
from waiting import wait_for

INSIDE = (
    "http://169.254.169.254/latest/",
    "http://2852039166/",  # the same as one number
    "http://0xa9fea9fe/",
    "http://0251.0376.0251.0376/",
    "http://[::ffff:169.254.169.254]/",
    "http://[::1]/",
    "http://[fe80::1]/",
    "http://10.0.0.1/",
    "http://0.0.0.0/",
    "http://c.example/",
)
# No name on the net is any of these.
NOWHERE = ("http://a..b/", "http://*.invalid/", "http://xn--/", f"http://{'a' * 300}.invalid/", "http://./")
REFUSED = ("http://[::1", "http://a.example:99999/", "http://u:p@a.example/", "http://%00/", "http:\\\\\x00")
ODD: tuple[dict[str, Any], ...] = (
    {"useragent": "\u00e9\u00e9\u00e9 \U0001f600", "cookie": "k=\u0416\u0416"},
    {"allowed_domains": ["A.EXAMPLE.", "*.example", "", ".", "b\u00fccher.example", "a\0b", "[::1]", "x" * 9999]},
    {"allow_regex": ["\0", "", "(a+)+$"], "deny_regex": ["(x+x+)+y"]},
    {"deny_extensions": ["\n", "", ".", "*", "J" * 9999]},
    {"attrs": {"": 10**30, "k\n\0": 1e308, "n": [[[[[[None]]]]]], "l": ["x"] * 10_000}},
    {"spiderid": "link", "expires": -(2**53), "priority": 100, "maxdepth": 100},
)


def test_each_hostile_request_ends_and_none_behind_it_is_lost(tmp_path: Path) -> None:
    web = {(HOSTS[0], f"/{number}"): page([]) for number in range(len(ODD) + 1)}
    with requests_line(tmp_path, web) as line:
        crawl = tmp_path / "jobs" / "ondemand" / "crawl.toml"
        # A name that resolves to an address of the machine's own net, and pages that lead inside.
        crawl.write_text(crawl.read_text().replace('"c.example=127.0.0.1"', '"c.example=10.1.2.3"'))
        for number, url in enumerate(INSIDE):
            web[HOSTS[0], f"/to{number}"] = Page(url.encode(), status=301)
        with served(line) as process:
            asked = [*INSIDE, *NOWHERE, *(line.url(f"/to{number}") for number in range(len(INSIDE)))]
            line.feed(*({"url": url, "appid": APP, "crawlid": f"dead{n}"} for n, url in enumerate(asked)))
            line.feed(*({"url": url, "appid": APP, "crawlid": f"no{n}"} for n, url in enumerate(REFUSED)))
            line.feed(*(line.crawl(f"/{number}", f"odd{number}", **more) for number, more in enumerate(ODD)))
            line.feed(line.crawl(f"/{len(ODD)}", "last"))

            def ended() -> dict[str, str]:
                notices = {one.get("crawlid", ""): one["action"] for one in line.told() if "action" in one}
                return notices | {one["crawlid"]: "page" for one in line.told("crawled_firehose")}

            crawlids = {
                *(f"dead{n}" for n in range(len(asked))), *(f"no{n}" for n in range(len(REFUSED))),
                *(f"odd{n}" for n in range(len(ODD))), "last",
            }  # fmt: skip
            wait_for(lambda: crawlids <= set(ended()), lambda: f"{crawlids - set(ended())} {line.log()[-3000:]}")
            found = ended()
            assert {found[f"dead{n}"] for n in range(len(asked))} == {"failed"}
            assert {found[f"no{n}"] for n in range(len(REFUSED))} == {"refused"}
            assert [found[f"odd{n}"] for n in range(len(ODD))] == [*["page"] * (len(ODD) - 1), "expired"]
            assert found["last"] == "page"
            assert process.poll() is None
            assert line.pid
