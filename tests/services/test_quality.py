"""A launch is checked by a real pywb and a real Chromium: all that is missing is named; patched, it is there."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import preloaded
import pytest
from sites.several_hosts import Page, serve

from servers import serving

HERE = ("--allow-private", "127.0.0.0/8", "--no-delay", "--resolve", "a.example=127.0.0.1", "--no-sandbox")
PICTURE = b'<svg xmlns="http://www.w3.org/2000/svg" width="90" height="90"><circle cx="45" cy="45" r="40"/></svg>'
LEAKS = """<div id=x>box</div><script>
const sheet = new CSSStyleSheet();
sheet.replaceSync('#x { height: 50px; background: url(http://live.example/leak.png) }');
document.adoptedStyleSheets = [sheet];
const made = new Image(); made.src = '/made-' + 'here.png'; document.body.append(made);
</script>"""
HANGS = "<script>if (document.querySelector('script[src*=wombat]')) while (true) {}</script>"
SVG = "image/svg+xml"


def html(title: str, more: str) -> Page:
    return Page(f"<title>{title}</title><h1>{title}</h1>{more}".encode())


SITE = {
    ("a.example", "/"): html(
        "The Heron Society",
        "<p>It stands in water.<img src=/out.svg><img src=/private/in.png><img src=/gone.png><img src=/here.png>"
        "<a href=/leaks>1</a><a href=/news>2</a><a href=/secret>3</a><a href=/hangs>4</a>",
    ),
    ("a.example", "/leaks"): html("Leaks", LEAKS),
    ("a.example", "/news"): html("News", "<p>The osprey has come back."),
    ("a.example", "/secret"): html("Secret", "<p>Hidden later."),
    ("a.example", "/hangs"): html("Hangs", HANGS),
    ("a.example", "/out.svg"): Page(PICTURE, SVG),
    ("a.example", "/here.png"): Page(PICTURE, SVG),
    ("a.example", "/made-here.png"): Page(PICTURE, SVG),
    ("a.example", "/private/in.png"): Page(PICTURE, SVG),
    ("a.example", "/robots.txt"): Page(b"User-agent: *\nDisallow: /private/\n", "text/plain"),
}


@pytest.fixture
def port() -> Iterator[int]:
    with serve(dict(SITE)) as served:
        yield served


def warcmill(folder: Path, *words: str, code: int = 0) -> CompletedProcess[str]:
    done = preloaded.run("commands.main", *words, env=dict(os.environ), folder=folder)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def crawled(folder: Path, port: int, *more: str) -> str:
    """An archive with a crawl of the site that keeps no SVG; its first seed."""
    url, config = f"http://a.example:{port}/", folder / "more.toml"
    config.write_text('extensions = ["svg"]\n[render]\nscreenshot = true\n')
    warcmill(folder, "crawl", url, *HERE, "--job", "daily", "--config", str(config), *more)
    serving.configure(folder / "archive/luigi.cfg")
    return url


def checked(folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(warcmill(folder, "quality", "daily", "--no-sandbox", "--json").stdout)
    return document


def missing(report: dict[str, Any]) -> dict[str, str]:
    return {part["url"].partition(".example")[2].partition("/")[2]: part["kind"]
            for page in report["pages"] for part in page["missing"]}  # fmt: skip


def by_path(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {page["url"].rpartition("/")[2]: page for page in report["pages"]}


def test_what_pages_lack_is_named_patched_and_there_afterwards(port: int, tmp_path: Path) -> None:
    crawled(tmp_path, port)
    warcmill(tmp_path, "versions", "hide", "--reason", "order of a court", "--", f"http://a.example:{port}/secret")
    first = checked(tmp_path)
    assert missing(first) == {
        "out.svg": "scope", "private/in.png": "robots", "gone.png": "failed", "made-here.png": "unseen",
    }  # fmt: skip
    pages = by_path(first)
    assert (first["number"], first["seeds"], first["others"]) == (1, 1, 4)
    assert pages["secret"]["state"] == "not opened"
    assert "an access rule hides it" in pages["secret"]["why"]
    assert (pages["hangs"]["state"], pages["hangs"]["why"]) == ("not opened", "no DOM after 40 s")
    assert pages["leaks"]["leaks"] == ["http://live.example/leak.png"]
    assert (pages["news"]["state"], pages["news"]["missing"]) == ("shown", [])
    assert pages["news"]["words"] == pages["news"]["common"] > 3
    assert [page["url"] for page in first["pages"]][-1] == pages["news"]["url"], "worst first"
    told = warcmill(tmp_path, "quality", "daily", "--last").stdout
    assert "a rule of the job leaves it out: .svg" in told

    warcmill(tmp_path, "quality", "daily", "--mark", "poor", "--note", "no pictures")
    patched = json.loads(warcmill(tmp_path, "quality", "daily", "--patch", "--json").stdout)
    assert (patched["job"], patched["asked"], patched["mends"]) == ("daily-patch", 3, f"daily/{first['launch_id']}")
    until_idle(tmp_path / "archive/jobs/daily-patch/job.log")
    warcmill(tmp_path, "scan", code=1)  # what answers 404 is a dead seed of the patch
    launches = [*(tmp_path / "archive/state").glob("*/daily-patch/*/01.jobs.daily-patch.*.started")]
    assert [json.loads(one.read_text().rpartition("}")[0] + "}")["claim"]["facts"]["mends"] for one in launches] == [
        f"daily/{first['launch_id']}"
    ]
    second = checked(tmp_path)
    assert missing(second) == {"private/in.png": "robots", "gone.png": "failed"}
    assert (second["number"], second["version"] > first["version"]) == (2, True)
    assert set(by_path(second)) == set(pages), "the sample is the same"


def until_idle(log: Path) -> None:
    until = time.monotonic() + 120
    while not log.exists() or "FINISHED" not in log.read_text():
        assert time.monotonic() < until
        time.sleep(0.2)


def test_a_picture_of_the_crawl_is_a_thumbnail_and_a_kill_leaves_no_report(port: int, tmp_path: Path) -> None:
    crawled(tmp_path, port, "--render", "seeds", "--limit", "2")
    folder = tmp_path / "archive/state/quality/daily"
    with preloaded.start(
        "commands.main", "quality", "daily", "--no-sandbox", env=dict(os.environ), folder=tmp_path
    ) as one:
        assert one.stderr
        assert one.stderr.readline().startswith("1 of ")
        one.send_signal(signal.SIGKILL)
        one.wait(60)
    assert [*folder.glob("*")] == []
    report = checked(tmp_path)
    assert [path.name for path in folder.iterdir()] == [f"{report['launch_id']}.0001.json"]
    (seed,) = [page for page in report["pages"] if page["is_seed"]]
    assert seed["thumbnail"] is True
    stored = json.loads((folder / f"{report['launch_id']}.0001.json").read_text().rpartition("}")[0] + "}")
    assert [page["thumbnail"][:4] for page in stored["pages"] if page["is_seed"]] == ["/9j/"]


def test_what_is_missing_on_the_machine_is_named(port: int, tmp_path: Path) -> None:
    crawled(tmp_path, port, "--limit", "1")
    config = tmp_path / "archive/luigi.cfg"
    text = config.read_text()
    config.write_text("\n".join(line for line in text.splitlines() if not line.startswith("pywb=")))
    told = preloaded.run("commands.main", "quality", "daily", "--no-sandbox", env=dict(os.environ), folder=tmp_path)
    assert (told.returncode, "warcmill serve --get-replay" in told.stderr) == (3, True), told.stderr
    config.write_text(text)
    (tmp_path / "archive/index/versions/cdx/current").unlink()
    told = preloaded.run("commands.main", "quality", "daily", "--no-sandbox", env=dict(os.environ), folder=tmp_path)
    assert (told.returncode, "'warcmill scan'" in told.stderr) == (1, True), told.stderr
