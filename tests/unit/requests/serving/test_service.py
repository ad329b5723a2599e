"""The service of requests docks to a launch; a process without it serves nobody, and says so before it begins one."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from crawls import crawled

from warcmill.crawl import process
from warcmill.crawl.control import messages
from warcmill.errors import BadConfig, BadInput, NotReady
from warcmill.requests.answers import RequestsJob
from warcmill.requests.serving.feed import RequestFeed
from warcmill.requests.serving.service import RequestService
from warcmill.requests.serving.targets import RequestTargets


def test_a_process_without_the_service_refuses_the_job_and_leaves_no_launch(tmp_path: Path) -> None:
    places = crawled.places(tmp_path)
    folder = places.job("news")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "crawl.toml").write_text("requests = true\nendless = true\n")
    (folder / "seeds.txt").write_text("")
    with pytest.raises(BadConfig, match="does not serve its requests; 'warcmill pulse start news'"):
        asyncio.run(process.crawl(places, "news"))
    assert not [path for path in folder.iterdir() if path.name.isdigit()]


def test_the_verbs_of_a_service_are_taken_with_their_fields_alone(tmp_path: Path) -> None:
    verbs = RequestService(RequestTargets(RequestFeed(tmp_path).document)).verbs
    assert messages.parse(b'{"verb": "tally", "crawl": "link/c"}', verbs).fields == {"crawl": "link/c"}
    with pytest.raises(BadInput, match="it may have crawl, appid"):
        messages.parse(b'{"verb": "purge", "site": "a.example"}', verbs)
    with pytest.raises(BadInput, match=messages.NO_VERB):
        messages.parse(b'{"verb": "tally"}')


def test_a_crawl_that_does_not_know_the_verb_serves_no_requests() -> None:
    class Plain:
        name = "news"

        def ask(self, verb: str, seconds: float, **fields: object) -> object:
            return messages.parse(f'{{"verb": "{verb}"}}'.encode())

    with pytest.raises(NotReady, match=r"its crawl\.toml has no 'requests = true'"):
        RequestsJob(Plain(), None).ask("learn")  # type: ignore[arg-type]
