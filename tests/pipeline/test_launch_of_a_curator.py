"""A launch as a curator has it: in a sentence whose numbers are links, beside the one before, as a WACZ of pages."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from html import unescape
from io import BytesIO
from pathlib import Path
from urllib.parse import quote
from zipfile import ZipFile

import preloaded
import pytest
import requests
from sites.several_hosts import Page, serve
from waiting import wait_for

from servers import pins

HOSTS = ("a.example", "cdn.example")
JOB = "a-example"
PNG = b"\x89PNG\r\n\x1a\n"
ODD = "/odd?q=%22%3E%3Cscript%3E&x=%E2%80%AE"


def page(title: str, *parts: str, links: tuple[str, ...] = ()) -> Page:
    body = "".join((*parts, *(f'<a href="{link}">on</a>' for link in links)))
    head = f"<title>{title}</title><link rel=stylesheet href=/style.css>"
    return Page(f"<html><head>{head}</head><body><p>{title}</p>{body}</body></html>".encode(), "text/html")


class Archive:
    """An archive of two launches of a job, and its pages."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder, self.site = folder, f"http://a.example:{port}"

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return preloaded.run("commands.main", *words, env=dict(os.environ), folder=self.folder)

    def told(self, *words: str, code: int = 0) -> str:
        done = self.run(*words)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def launches(self) -> list[str]:
        return sorted(one.name for one in (self.folder / f"archive/output/warcs/{JOB}").iterdir())

    def chosen(self, launch: str, *urls: str, code: int = 0) -> tuple[ZipFile, str]:
        """The WACZ of these pages, and what was said of it."""
        listed, made = self.folder / "urls.txt", self.folder / "made.wacz"
        made.unlink(missing_ok=True)
        listed.write_text("".join(f"{url}\n" for url in urls))
        said = self.told("wacz", JOB, launch, "--pages", str(listed), "-o", str(made), code=code)
        return ZipFile(made), said


class Curator:
    """A person at a browser without JavaScript."""

    def __init__(self, base: str, token: str, reader: str) -> None:
        self.base, self.tokens = base, {"curator": token, "reader": reader}

    def get(self, path: str, role: str = "curator", **fields: str) -> requests.Response:
        headers = {"Authorization": f"Bearer {self.tokens[role]}"}
        return requests.get(f"{self.base}{path}", fields, headers=headers, timeout=60)

    def main(self, path: str, **fields: str) -> str:
        answer = self.get(path, **fields)
        assert answer.status_code == 200, answer.text
        return answer.text.partition("<main")[2].partition("</main>")[0]

    def post(self, path: str, role: str = "curator", **fields: str | list[str]) -> requests.Response:
        headers = {"Authorization": f"Bearer {self.tokens[role]}", "Origin": self.base}
        return requests.post(f"{self.base}{path}", fields, headers=headers, timeout=60)

    def wacz(self, launch: str, shown: str = "", **fields: str | list[str]) -> tuple[ZipFile, str]:
        """The WACZ that the form below a list makes, and what its action printed."""
        here = f"/launches/{JOB}/{launch}"
        form = re.search(r'name="form" value="([^"]+)"', self.main(f"{here}/pages{shown}"))
        assert form
        answer = self.post(f"{here}/chosen", form=unescape(form[1]), **fields)
        assert "/actions/" in answer.url, answer.text
        place = answer.url.removeprefix(self.base)
        wait_for(lambda: self.get(place, format="json").json()["exit_code"] is not None)
        done = self.get(place, format="json").json()
        assert done["file"], done["output"]
        return ZipFile(BytesIO(self.get(done["file"]["address"]).content)), done["output"]


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    pages: dict[tuple[str, str], Page] = {}
    with serve(pages) as port:
        made, cdn = Archive(tmp_path_factory.mktemp("curator"), port), f"http://cdn.example:{port}"
        rivers = "".join(f"<p>Sentence {number} of the report." for number in range(30))
        picture = f'<img src="{cdn}/logo.png">'
        pages |= {
            ("a.example", "/"): page("Home", picture, links=("/report", "/still", "/secret", "/gone", ODD)),
            ("a.example", "/report"): page("The <b>report</b>", picture, '<img src="/lost.png">', rivers),
            ("a.example", "/still"): page("Still", '<iframe src="/frame"></iframe>'),
            ("a.example", "/frame"): page("Frame", '<img src="/framed.png">'),
            ("a.example", "/secret"): page("Secret"),
            ("a.example", ODD): page("&lt;script&gt;alert(1)&lt;/script&gt;"),
            ("a.example", "/style.css"): Page(b"body { background: url(/ground.png) }", "text/css"),
            **{("a.example", path): Page(PNG + path.encode(), "image/png") for path in ("/ground.png", "/framed.png")},
            ("cdn.example", "/logo.png"): Page(PNG, "image/png"),
        }
        words = ["crawl", f"{made.site}/", "--allow-private", "127.0.0.0/8", "--no-delay"]
        words += [word for host in HOSTS for word in ("--resolve", f"{host}=127.0.0.1")]
        made.told(*words)
        pages["a.example", "/report"] = page(
            "The <b>report</b>", picture, rivers.replace("Sentence 7 ", "Sentence VII ")
        )
        del pages["a.example", "/secret"]
        made.told(*words)
        yield made


@pytest.fixture(scope="module")
def curator(archive: Archive) -> Iterator[Curator]:
    tokens = [archive.told("serve", "token", "add", role, "--role", role).strip() for role in ("curator", "reader")]
    words = ("serve", "--no-replay", "--port", str(pins.free({"port": 0})["port"]))
    with preloaded.start("commands.main", *words, env=dict(os.environ), folder=archive.folder) as process:
        try:
            assert process.stdout
            address = next(line for line in process.stdout if "/sign-in" in line)
            yield Curator(address.partition("/sign-in")[0].strip(), *tokens)
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0


def urls_of(wacz: ZipFile) -> set[str]:
    """The paths of the captures in a WACZ; each is where the index says."""
    found = set[str]()
    for line in gzip.decompress(wacz.read("indexes/index.cdx.gz")).splitlines():
        about = json.loads(line.split(b" ", 2)[2])
        begin, length = int(about["offset"]), int(about["length"])
        record = gzip.decompress(wacz.read(f"archive/{about['filename']}")[begin : begin + length])
        assert about["url"].encode() in record
        found.add(re.sub(r"http://a\.example:\d+|http://|:\d+", "", about["url"]))
    return found


def listed(wacz: ZipFile) -> list[str]:
    pages = [json.loads(line) for line in wacz.read("pages/pages.jsonl").splitlines()[1:]]
    return [re.sub(r"http://a\.example:\d+", "", one["url"]) for one in pages]


def test_a_page_and_the_verb_say_the_same_sentence_and_each_number_leads_to_its_list(
    archive: Archive, curator: Curator
) -> None:
    first, _ = archive.launches()
    said = archive.told("pages", JOB, first).splitlines()[0].removeprefix(f"{JOB}/{first}: ")
    assert re.fullmatch(r"5 pages of 1 site, \d+ not got, ended(, \d+ needs? you)?", said), said
    text = curator.main(f"/launches/{JOB}/{first}")
    sentence = text.partition('<p id="sentence">')[2].partition(".</p>")[0]
    assert re.sub("<[^>]+>", "", sentence) == said
    for address in re.findall('href="([^"]+)"', sentence):
        assert address.startswith("#") or curator.get(unescape(address)).status_code == 200
        assert not address.startswith("#") or f'id="{address[1:]}"' in text
    sites = curator.get(f"/launches/{JOB}/{first}/pages", view="sites", format="json").json()
    assert "a.example" in curator.main(f"/launches/{JOB}/{first}/pages", view="sites")
    sums, rows = sites["sums"], sites["urls"]
    assert rows == json.loads(archive.told("pages", JOB, first, "--sites", "--json"))["urls"]
    for name in ("pages", "got", "not_got"):
        assert sum(one[name] for one in rows) == sums[name]
    assert (len(rows), sum(bool(one["pages"]) for one in rows)) == (sums["hosts"], sums["sites"])
    assert archive.told("pages", JOB, first, "--sites", "--csv").startswith("host,pages,got,not_got\n")


def test_two_versions_are_compared_in_words_by_a_page_and_by_a_verb(archive: Archive, curator: Curator) -> None:
    first, second = archive.launches()
    url = f"{archive.site}/report"
    words = ("report", JOB, second, f"--compare={url}")
    found = json.loads(archive.told(*words, "--json"))
    assert (found["before"], found["then"]["launch_id"], found["now"]["launch_id"]) == (first, first, second)
    assert found["then"]["digest"] != found["now"]["digest"]
    assert ["-", "Sentence 7 of the report."] in found["lines"]
    assert ["+", "Sentence VII of the report."] in found["lines"]
    assert "+ Sentence VII of the report." in archive.told(*words)
    assert "both have the same bytes" in archive.told("report", JOB, second, f"--compare={archive.site}/still")
    gone = json.loads(archive.told("report", JOB, second, f"--compare={archive.site}/secret", "--json"))
    assert (gone["then"]["status"], gone["now"]["status"], gone["lines"]) == ("200", "404", [])
    assert "no launch before it" in archive.told("report", JOB, first, f"--compare={url}")
    assert "no capture is shown" in archive.told("report", JOB, second, "--compare=http://no.example/", code=1)
    here = f"/launches/{JOB}/{second}"
    archive.told("pages", JOB, second)
    changed = curator.main(f"{here}/pages", view="changed")
    assert f'href="{here}/compare?url={quote(url)}"' in changed
    answer = curator.get(f"{here}/compare", url=url, role="reader")
    assert "Sentence VII of the report." in answer.text
    assert "The pages themselves are not shown here" in answer.text
    assert f"warcmill {' '.join(words)}" in answer.text
    assert "; frame-src http" in answer.headers["Content-Security-Policy"]
    assert "frame-src" not in curator.get(f"{here}/pages").headers["Content-Security-Policy"]
    assert curator.get(f"{here}/compare", url="http://no.example/").status_code == 404
    assert curator.get(f"{here}/compare", url="x" * 9_000).status_code == 400
    assert curator.get(f"/launches/{JOB}/20000101000000/compare", url=url).status_code == 404


def test_a_wacz_of_a_page_has_its_parts_also_those_that_another_page_led_to(archive: Archive) -> None:
    first, second = archive.launches()
    wacz, said = archive.chosen(first, f"{archive.site}/report", f"{archive.site}/gone", "http://no.example/", code=1)
    shared = {"/style.css", "/ground.png"}
    assert (
        {"/report", "cdn.example/logo.png"} | shared
        <= urls_of(wacz)
        <= ({"/report", "cdn.example/logo.png", "/lost.png", "/gone"} | shared)
    )
    assert listed(wacz) == ["/report"]
    assert f"{archive.site}/gone: its server answered 404" in said
    assert "http://no.example/: the launch did not ask for it" in said
    assert f"{archive.site}/lost.png: its server answered 404" in said
    wacz, said = archive.chosen(second, f"{archive.site}/still")  # a revisit, as are its parts
    assert urls_of(wacz) == {"/still", "/frame", "/framed.png"} | shared
    assert (listed(wacz), "crawl log alone" in said) == (["/still"], False)
    wacz, _ = archive.chosen(first, f"{archive.site}{ODD}")
    assert listed(wacz) == [ODD]


def test_a_site_a_surt_or_nothing_is_chosen(archive: Archive) -> None:
    first, _ = archive.launches()
    path = archive.folder / "site.wacz"
    surt = archive.told("surt", f"{archive.site}/s").split()[0]
    for words, pages in ((("--host", "a.example"), 5), (("--surt", surt), 2), (("--words", "still"), 1)):
        said = archive.told("wacz", JOB, first, *words, "-o", str(path))
        with ZipFile(path) as wacz:
            assert (len(listed(wacz)), f"{pages} chosen page" in said) == (pages, True), said
        path.unlink()
    for words, code in ((("--host", "no.example"), 1), (("--pages", "/nowhere"), 1), (("--surt", "a/b c"), 1)):
        archive.told("wacz", JOB, first, *words, "-o", str(path), code=code)
        assert not path.exists()
    archive.told("wacz", JOB, first, "final", "--host", "a.example", code=2)
    archive.told("wacz", JOB, first, "--surt", surt, "--host", "a.example", code=2)


def test_ticked_pages_and_all_that_a_filter_shows_become_a_wacz(archive: Archive, curator: Curator) -> None:
    first, _ = archive.launches()
    path = archive.folder / f"archive/index/pages/{JOB}/{first}.sqlite"
    there = path.read_bytes()
    ticked = [quote(f"{archive.site}{one}", "") for one in ("/still", ODD)]
    wacz, _ = curator.wacz(first, url=ticked)
    assert sorted(listed(wacz)) == sorted(["/still", ODD])
    wacz, said = curator.wacz(first, "?words=report", all="1", words="report")
    assert (listed(wacz), "lacking: 1 part" in said) == (["/report"], True)
    here = f"/launches/{JOB}/{first}/chosen"
    form = re.search(r'name="form" value="([^"]+)"', curator.main(f"/launches/{JOB}/{first}/pages"))
    assert form
    token = unescape(form[1])
    assert curator.post(here, form=token).status_code == 400
    assert curator.post(here, form=token, url="a%0Ab").status_code == 400
    assert curator.post(here, form=token, all="1", status="x").status_code == 400
    assert curator.post(here, role="reader", form=token, url="a").status_code == 403
    assert 'type="checkbox"' not in curator.get(f"/launches/{JOB}/{first}/pages", role="reader").text
    path.unlink()  # the list is made again where it is missing
    wacz, _ = curator.wacz(archive.launches()[1], url=[quote(f"{archive.site}/", "")])
    assert listed(wacz) == ["/"]
    path.write_bytes(there)


def test_what_is_hidden_stays_out_and_is_counted(archive: Archive, curator: Curator) -> None:
    first, second = archive.launches()
    archive.told("versions", "hide", "--reason", "asked for", "--", f"{archive.site}/secret")
    try:
        wacz, said = archive.chosen(first, f"{archive.site}/secret", f"{archive.site}/still", code=1)
        assert ("/secret" in urls_of(wacz), listed(wacz)) == (False, ["/still"])
        assert f"{archive.site}/secret: it is hidden" in said
        assert "left out: 1 capture that" in said
        assert b"Secret" not in b"".join(
            gzip.decompress(wacz.read(name)) for name in wacz.namelist() if name.endswith(".warc.gz")
        )
        fields = {"url": f"{archive.site}/secret"}
        assert curator.get(f"/launches/{JOB}/{second}/compare", role="reader", **fields).status_code == 404
    finally:
        archive.told("versions", "unhide", "--reason", "no longer", "--", f"{archive.site}/secret")
