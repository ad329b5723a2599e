"""The buttons beside a finding: each command that findings have leads to the page that does the same, by role."""

from __future__ import annotations

import pytest
from launches import states
from launches.states import WHOLE
from operating.web_site import WebSite

from warcmill import layout
from warcmill.audit import remedies
from warcmill.audit.due_crawls import skip
from warcmill.model import FINAL, Launch
from warcmill.web.access import Role
from warcmill.web.views.desk.remedies import sentence, ways

LAUNCH = Launch("daily", "20161019234428")
PATH = f"/launches/{LAUNCH}"


@pytest.mark.parametrize(("todo", "paths"), [
    (remedies.accept(LAUNCH, "a b;'c&.warc"), [f"{PATH}/accept?finding=name:a%20b%3B%27c%26.warc"]),
    (remedies.accept_seeds(LAUNCH), [f"{PATH}/accept?finding=seeds"]),
    (remedies.scan(LAUNCH), ["/scan/2016-10-19"]), (remedies.crawl_again(LAUNCH), ["/jobs/daily/start"]),
    (remedies.redo(layout.step("cdx", LAUNCH, FINAL)), [f"{PATH}/redo?step=cdx&stage=final"]),
    (remedies.redo(layout.step("seeds", LAUNCH)), [f"{PATH}/redo?step=seeds"]),
    (remedies.raise_bound(LAUNCH, "max-hops", "x"), ["/jobs/daily/start", f"{PATH}/accept?finding=name:x"]),
    (remedies.retry_missed(LAUNCH), ["/jobs/daily/retry"]),
    (remedies.report_missed(LAUNCH), [f"{PATH}/pages?view=not-got"]), (remedies.why(LAUNCH), [PATH]),
    ("warcmill accept daily 20161019000000 --reason TEXT", ["/jobs/daily/accept?finding=due:20161019000000"]),
    (f"warcmill close daily {LAUNCH.id} --reason TEXT", [f"{PATH}/close"]), ("warcmill scan", ["/scan"]),
    (remedies.ROOT, []), ("warcmill restore", []), ("warcmill accept 'torn", []), ("look at state:x; by hand", []),
    ("", []), ("make room", []),
])  # fmt: skip
def test_a_command_leads_to_its_pages(todo: str, paths: list[str]) -> None:
    assert [path for _, path in ways(todo, Role.OPERATOR)] == paths


def test_nobody_gets_a_button_that_refuses_them() -> None:
    both = remedies.raise_bound(LAUNCH, "max-hops", "x")
    assert [label for label, _ in ways(both, Role.CURATOR)] == ["Start…"]
    assert ways(both, Role.READER) == []


def test_a_finding_is_a_sentence() -> None:
    assert (sentence("refused", 0), sentence("refused", 1)) == ("The file", "was refused")
    assert (sentence("odd dates", 0), sentence("odd dates", 1)) == ("Odd dates:", "")
    assert skip("daily", "20161019000000", "x")["name"] == "20161019000000"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> WebSite:
    return states.made(tmp_path_factory.mktemp("states")).site()


def test_each_button_of_the_first_page_leads_to_a_page_that_its_reader_may_open(site: WebSite) -> None:
    for role in ("operator", "curator", "reader"):
        page = site.get("/", role=role).text
        paths = [one.partition('"')[0] for one in page.split('<a class="button" href="')[1:]]
        assert bool(paths) == (role == "operator")
        for path in paths:
            address, _, fields = path.replace("&amp;", "&").partition("?")
            pairs = dict(one.split("=", 1) for one in fields.split("&")) if fields else {}
            assert site.get(address, pairs, role=role).status in (200, 404, 409), path
    assert "was refused" in site.get("/").text
    assert WHOLE.id in site.get("/").text
