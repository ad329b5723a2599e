"""Two projects of Scrapy as people write them, a site for them, and their runs: by plain Scrapy, which judges, and by
`warcmill run spider`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import preloaded
from line import Line, line_at
from sites.several_hosts import Page
from warcio.archiveiterator import ArchiveIterator

from warcmill.formats.logs import crawllog
from warcmill.formats.logs.crawllog import CrawlRecord

SPIDERS = Path(__file__).parents[2] / "data" / "spiders"
PROJECTS = {"books": ("books.py", "/shelf/0"), "articles": ("newsdesk", "/section/0")}
"""By the name of the spider: its file or folder, and where it begins."""
HERE = "127.0.0.1"
SHELVES, SECTIONS = 6, 5
HURRIED = """\
hops = 255
no_delay = true
allow_private = ["127.0.0.0/8"]
[politeness]
factor = 0.0
least = 0.0
respected = 0.0
[retries]
wait = 0.1
"""


def site() -> dict[tuple[str, str], Page]:
    """A catalogue of books and a newspaper: pages that are gone, moved, closed to robots, or elsewhere."""
    pages = {"/robots.txt": Page(b"User-agent: *\nDisallow: /closed/\n", "text/plain"), "/visitors": _html("Visitors")}
    for shelf in range(SHELVES):
        books = [f'<a class="book" href="/book/{shelf}{number}">book</a>' for number in range(10)]
        following = f'<a class="next" href="/shelf/{shelf + 1}">next</a>' if shelf + 1 < SHELVES else ""
        pages[f"/shelf/{shelf}"] = _html(f"Shelf {shelf}", *books, following)
        for number in range(10):
            if number != 3:
                pages[f"/book/{shelf}{number}"] = _html(
                    f"Book {shelf}{number}", '<a class="again" href="/visitors">v</a>'
                )
    for section in range(SECTIONS):
        links = [f'<a href="/article/{section}{number}">article</a>' for number in range(8)]
        links += [f'<a href="/moved/{section}8">moved</a>', '<a href="/closed/article/1">closed</a>']
        links += [
            '<a href="http://elsewhere.invalid/article/7">elsewhere</a>',
            f'<a href="/article/{section}3#part">3</a>',
        ]
        pages[f"/section/{section}"] = _html("", *links, f'<a href="/section/{(section + 1) % SECTIONS}">next</a>')
        pages[f"/moved/{section}8"] = Page(f"/article/{section}8".encode(), status=301)
        for number in range(9):
            pages[f"/article/{section}{number}"] = _html(
                f"Title {section}{number}" if number != 5 else "", "<p>Words.</p>"
            )
    return {(HERE, path): page for path, page in pages.items()}


def _html(title: str, *parts: str) -> Page:
    heading = f"<h1> {title} </h1>" if title else ""
    return Page(f"<!doctype html>{heading}{' '.join(parts)}".encode(), "text/html; charset=utf-8")


def by_plain_scrapy(spider: str, url: str, folder: Path, libraries: Path | None = None) -> list[str]:
    """Run a spider by Scrapy itself, in a copy of its project; its items. `libraries` has another version of Scrapy."""
    what, folder = PROJECTS[spider][0], folder / "plain"
    if (SPIDERS / what).is_dir():
        shutil.copytree(SPIDERS / what, folder)
        words = ["crawl", spider]
    else:
        folder.mkdir()
        words = ["runspider", str(SPIDERS / what)]
    command = [sys.executable, "-m", "scrapy", *words, "-a", f"url={url}"]
    done = subprocess.run(command, cwd=folder, env=_env(libraries), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return items(folder)


def plain_items(words: tuple[str, ...], folder: Path) -> list[str]:
    """The items of a spider in a file, run by Scrapy itself."""
    folder.mkdir(parents=True)
    command = [sys.executable, "-m", "scrapy", "runspider", *words]
    done = subprocess.run(command, cwd=folder, env=_env(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return items(folder)


def items(folder: Path) -> list[str]:
    """The items that the feed of a project has, in an order that does not depend on which page came first."""
    file = folder / "items.jsonl"
    lines = file.read_text("utf-8").splitlines() if file.exists() else []
    return sorted(json.dumps(json.loads(line), sort_keys=True) for line in lines)


def line_for(folder: Path, job: str, configuration: str = HURRIED) -> Line:
    """A new line with a job that may crawl here."""
    for name in ("output/jobs", "state", "store"):
        (folder / name).mkdir(parents=True)
    line = line_at(folder)
    write_job(line.folders["jobs"] / job, configuration)
    return line


def write_job(own: Path, configuration: str = HURRIED) -> None:
    """Write the files of a job, as `run spider` does, with another crawl.toml."""
    own.mkdir(parents=True)
    files = {"crawl.toml": configuration, "seeds.txt": "", "seeds.jsonl": "", "surts.txt": "+http://(\n"}
    for name, text in files.items():
        (own / name).write_text(text)


def run_warcmill(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A command as a person types it in a folder, in which its archive is."""
    env = {name: value for name, value in _env().items() if name != "LUIGI_CONFIG_PATH"}
    return preloaded.run("commands.main", *words, env=env, folder=folder)


def run_spider(
    line: Line, *words: str, folder: Path, libraries: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """`warcmill run spider` as a person types it in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    env = {**_env(libraries), "LUIGI_CONFIG_PATH": str(line.config)}
    return preloaded.run("commands.main", "run", "spider", *words, env=env, folder=folder)


def start_spider(line: Line, *words: str, folder: Path) -> preloaded.Process:
    """The same, while it runs; what it prints is in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    env = {**_env(), "LUIGI_CONFIG_PATH": str(line.config)}
    with (folder / "printed").open("wb") as out:
        return preloaded.start(
            "commands.main", "run", "spider", *words, env=env, folder=folder, out=out.fileno(), err=out.fileno()
        )


def _env(libraries: Path | None = None) -> Mapping[str, str]:
    found = {name: value for name, value in os.environ.items() if name != "SCRAPY_SETTINGS_MODULE"}
    return {**found, "PYTHONPATH": str(libraries)} if libraries else found


def pages(line: Line, job: str) -> Counter[tuple[str, int]]:
    """The lines of a job's crawl logs: URL and status of each page, without robots.txt and what a kill left."""
    logs = sorted((line.folders["output"] / "logs" / job).glob("*/crawl.log*"))
    whole = [log for log in logs if log.suffix != ".orphan"]
    found = [crawllog.parse(one) for log in whole for one in log.read_bytes().splitlines()]
    records = [one for one in found if isinstance(one, CrawlRecord)]
    return Counter((one.uri, one.status) for one in records if not one.uri.endswith("/robots.txt"))


def responses(line: Line, job: str) -> Counter[str]:
    """The URLs of the response records, robots.txt left out."""
    found: Counter[str] = Counter()
    for warc in sorted((line.folders["output"] / "warcs" / job).glob("*/*.warc.gz")):
        found.update(_targets(warc))
    return found


def _targets(warc: Path) -> Iterator[str]:
    with warc.open("rb") as stream:
        for record in ArchiveIterator(stream):
            uri = record.rec_headers.get_header("WARC-Target-URI") or ""
            if record.rec_type in ("response", "revisit") and not uri.endswith("/robots.txt"):
                yield uri
