"""`warcmill render serve` as another engine meets it: a real Chromium, a site on loopback, the WARCs that it leaves."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from crawls import render_service
from crawls.render_service import HOST, WEB, Site, responses, serving

PREFIX = "daily-rendered-20161019234428"


@pytest.fixture
def site() -> Iterator[Site]:
    with render_service.site() as served:
        yield served


def test_a_page_is_rendered_into_a_warc_of_its_own(site: Site, tmp_path: Path) -> None:
    with serving(tmp_path / "root") as service:
        status, found = service.render(f"{site.url}/", PREFIX)
        (warc,) = service.warcs
        assert (status, found["status"], found["warc_prefix"], found["notes"]) == (200, 200, PREFIX, [])
        assert found["links"] == [f"{site.url}/one", f"{site.url}/two", "http://other.example/"]
        assert warc.name.startswith(f"{PREFIX}-")
        assert f"urn:dom:{site.url}/" in responses(warc)
        kept = [uri for uri in responses(warc) if not uri.startswith("urn:")]
        assert sorted(kept) == sorted(set(kept)) == sorted(f"{site.url}{path}" for path in site.asked)
        assert max(site.asked.values()) == 1
        service.render(f"{site.url}/", "weekly-rendered")
        assert [path.name.partition("-20")[0] for path in service.warcs] == ["daily-rendered", "weekly-rendered"]
        assert (site.asked["/"], site.asked["/robots.txt"]) == (2, 1)
        checked = subprocess.run(
            [sys.executable, "-m", "commands.main", "check", *map(str, service.warcs)], capture_output=True, check=False
        )
        assert checked.returncode == 0, checked.stdout


def test_what_is_no_page_is_recorded_and_not_opened(site: Site, tmp_path: Path) -> None:
    """A page that is gone is one: some applications are a site's page for 404. So it is opened, with its icon."""
    with serving(tmp_path / "root") as service:
        assert service.render(f"{site.url}/moved", PREFIX)[1] == {
            "status": 302, "links": [f"{site.url}/"], "notes": [], "warc_prefix": PREFIX
        }  # fmt: skip
        assert service.render(f"{site.url}/file.pdf", PREFIX)[1]["status"] == 200
        assert service.render(f"{site.url}/gone", PREFIX)[1]["status"] == 404
        assert len(service.warcs) == 3
        assert site.asked == {"/robots.txt": 1, "/moved": 1, "/file.pdf": 1, "/gone": 1, "/favicon.ico": 1}


def test_what_may_not_be_fetched_is_refused_and_leaves_nothing(site: Site, tmp_path: Path) -> None:
    with serving(tmp_path / "root") as service:
        assert service.render(f"{site.url}/private", PREFIX)[0] == 403
        assert service.render("http://10.1.2.3/", PREFIX)[0] == 403
        assert service.render("http://169.254.169.254/latest", PREFIX)[0] == 403
        for url in ("file:///etc/passwd", "ftp://a.example/", "nothing", "http://u:p@a.example/", "http://"):
            assert service.render(url, PREFIX)[0] == 400
        assert service.render(f"http://{HOST}:1/", PREFIX)[0] == 502
        assert service.warcs == []
        assert site.asked == {"/robots.txt": 1}
        assert service.render(f"{site.url}/inside", PREFIX)[1]["links"] == [f"{site.url}/x"]
        assert "http://10.1.2.3/i.png" not in responses(service.warcs[0])


def test_a_page_that_hangs_counts_as_it_came(site: Site, tmp_path: Path) -> None:
    with serving(tmp_path / "root") as service:
        status, found = service.render(f"{site.url}/hangs", PREFIX)
        assert (status, found["notes"]) == (200, ["render:failed:hung"])
        assert found["links"] == [f"{site.url}/from-the-wire"]
        assert service.render(f"{site.url}/", PREFIX)[1]["notes"] == []


def test_odd_requests(site: Site, tmp_path: Path) -> None:
    good = {"url": f"{site.url}/gone", "warc_prefix": PREFIX}
    with serving(tmp_path / "root") as service:
        plain = service.address.partition("?")[0]
        assert service.ask(good, plain)[0] == 401
        assert service.ask(good, f"{plain}?token=x")[0] == 401
        assert service.ask(good, f"{plain}?token=%FF")[0] == 401
        for body in (b"\xff", "{", "[" * 10_000, "[]", {}, {"url": 1, "warc_prefix": PREFIX}, {**good, "more": 1}):
            assert service.ask(body)[0] == 400
        for prefix in ("x", "../../etc", "a/b/c", "a" * 300, "-abcd", "abcd\n"):
            assert service.render(good["url"], prefix)[0] == 400
        assert service.ask("x" * 100_000)[0] == 400
        assert service.ask(good, plain.replace("/render", "/other") + "?")[0] == 404
        assert service.warcs == []
        token = service.address.partition("token=")[2]
        assert service.ask(good, plain, Authorization=f"Bearer {token}")[0] == 200


def test_pages_side_by_side(site: Site, tmp_path: Path) -> None:
    with serving(tmp_path / "root") as service, ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: service.render(f"{site.url}/", PREFIX)[0], range(8)))
        assert found == [200] * 8
        assert len(service.warcs) == 8


def test_the_address_is_in_a_file_for_its_owner(site: Site, tmp_path: Path) -> None:
    with serving(tmp_path / "root") as service:
        path = service.root / ".render-address"
        assert path.read_text() == f"{service.address}\n"
        assert path.stat().st_mode & 0o777 == 0o600
        second = subprocess.run(
            [sys.executable, "-m", "commands.main", "render", "serve", "--root", str(service.root), "--no-sandbox"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert second.returncode == 5, second.stderr
        assert path.read_text() == f"{service.address}\n"
        assert service.render(f"{site.url}/gone", PREFIX)[0] == 200
    assert path.read_text() == ""


def test_nothing_half_done_is_left_of_one_that_is_killed(site: Site, tmp_path: Path) -> None:
    WEB["/slow"] = (200, "text/html", "<script>setInterval(() => fetch('/again?' + Math.random()), 200)</script>")
    with serving(tmp_path / "root") as service, ThreadPoolExecutor(1) as thread:
        asking = thread.submit(service.render, f"{site.url}/slow", PREFIX)
        while not any(path.startswith("/again") for path in site.asked):
            time.sleep(0.05)
        service.process.send_signal(signal.SIGKILL)
        with pytest.raises(OSError, match=r".*"):
            asking.result()
    assert service.warcs == []
    with serving(tmp_path / "root") as service:
        assert service.render(f"{site.url}/gone", PREFIX)[0] == 200
        assert len(service.warcs) == 1


def test_a_root_that_is_not_there_is_no_root(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "commands.main", "render", "serve", "--root", str(tmp_path / "x"), "--no-sandbox"]
    found = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (found.returncode, "is not a folder" in found.stderr) == (3, True)
