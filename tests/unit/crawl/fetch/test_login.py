"""The cookies of a login: which requests get them, what their records have, and which files are refused."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from crawls import crawled
from sites.raw_server import serving
from warcio.archiveiterator import ArchiveIterator

from warcmill.crawl.engine import WarcmillEngine
from warcmill.crawl.fetch import login
from warcmill.crawl.fetch.cookies import Jar
from warcmill.crawl.job import file
from warcmill.crawl.job.job import Sheets
from warcmill.crawl.launch.launch import open_launch
from warcmill.crawl.launch.repair import put_in_order
from warcmill.crawl.render import RenderSettings
from warcmill.errors import BadConfig
from warcmill.layout import SENTINEL

LATER = int(time.time()) + 86_400
FILE = f"""\
# Netscape HTTP Cookie File

#HttpOnly_.a.example\tTRUE\t/\tFALSE\t0\tsession\tS3CRET
a.example\tFALSE\t/in/\tFALSE\t{LATER}.5\tpath\tP4TH
a.example\tFALSE\t/\tTRUE\t{LATER}\ttls\tSECURE\r
a.example\tFALSE\t/\tFALSE\t1000\told\tEXPIRED
.co.uk\tTRUE\t/\tFALSE\t0\twide\tW1DE
stra\u00dfe.example\tFALSE\t/\tFALSE\t0\tempty
3232235521\tFALSE\t/\tFALSE\t0\tip\tV4
"""


def written(path: Path, text: str | bytes = FILE, mode: int = 0o600) -> str:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    path.chmod(mode)
    return str(path)


@pytest.mark.parametrize(
    ("url", "sent"),
    [
        ("http://a.example/", "session=S3CRET"),
        ("http://www.a.example/in/", "session=S3CRET"),
        ("http://a.example/in/x", "path=P4TH; session=S3CRET"),
        ("https://a.example/", "session=S3CRET; tls=SECURE"),
        ("http://nota.example/", ""),
        ("http://b.co.uk/", ""),
        ("http://co.uk/", "wide=W1DE"),
        ("http://xn--strae-oqa.example/", "empty="),
        ("http://strasse.example/", ""),
        ("http://192.168.0.1/", "ip=V4"),
    ],
)
def test_a_request_gets_the_cookies_that_are_for_it(tmp_path: Path, url: str, sent: str) -> None:
    cookies = login.read(written(tmp_path / "cookies.txt"))
    assert Jar().header(url, time.time(), cookies) == sent


def test_of_one_name_the_later_cookie_is_sent(tmp_path: Path) -> None:
    cookies, jar = login.read(written(tmp_path / "cookies.txt")), Jar()
    jar.receive("http://a.example/", ["session=before"], 1.0)
    assert jar.header("http://a.example/", time.time(), cookies) == "session=S3CRET"
    jar = Jar()
    jar.receive("http://a.example/", ["session=renewed"], time.time() + 10)
    assert jar.header("http://a.example/", time.time() + 10, cookies) == "session=renewed"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "there is no cookie in it"),
        ("# Netscape HTTP Cookie File\n", "there is no cookie in it"),
        ('[{"name": "session", "value": "S3CRET"}]', "it is JSON"),
        (FILE.encode("utf-16"), "it is not plain text"),
        ("# cut\n\na.example\tFALSE\t/\tFAL", "line 3: it has 4 fields"),
        (f"{FILE}a.example\tFALSE\t/\tFALSE", "line 10: it has 4 fields"),
        ("a.example FALSE / FALSE 0 session S3CRET\n", "line 1: it has 1 fields"),
        ("a.example\tFALSE\t/\tFALSE\tnever\tsession\tS3CRET\n", "line 1: its fields are not"),
        ("a.example\tFALSE\t/\tFALSE\t0\tsession\tS3\x01CRET\n", "line 1: no cookie has such"),
        ("a.example\tFALSE\t/\tFALSE\t0\tsession\tS3CRET; x=1\n", "line 1: no cookie has such"),
        ("a/b\tFALSE\t/\tFALSE\t0\tsession\tS3CRET\n", "'a/b' is not a host"),
        ("a.example\tFALSE\t/\tFALSE\t1000\tsession\tS3CRET\n", "all of its cookies have expired"),
        (b"#" * (login.LARGEST + 1), "is not a file of at most 4 MiB"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_without_a_value_of_it(
    tmp_path: Path, text: str | bytes, why: str
) -> None:
    with pytest.raises(BadConfig, match=why) as refused:
        login.read(written(tmp_path / "cookies.txt", text))
    assert "S3" not in str(refused.value)


def test_a_file_that_others_may_read_or_that_the_archive_keeps_is_refused(tmp_path: Path) -> None:
    for mode in (0o640, 0o604, 0o620):
        with pytest.raises(BadConfig, match="chmod 600"):
            login.read(written(tmp_path / "cookies.txt", mode=mode))
    (tmp_path / "store" / "job").mkdir(parents=True)
    (tmp_path / "store" / SENTINEL).touch()
    inside = written(tmp_path / "store" / "job" / "cookies.txt")
    (tmp_path / "link.txt").symlink_to(inside)
    for path in (inside, str(tmp_path / "link.txt")):
        with pytest.raises(BadConfig, match="belongs to the archive"):
            login.read(path)
    for path in ("cookies.txt", str(tmp_path), str(tmp_path / "none.txt"), "/dev/null"):
        with pytest.raises(BadConfig, match=r"whole path|at most 4 MiB|No such file"):
            login.read(path)


def test_a_changed_file_holds_at_once_and_a_broken_one_never(tmp_path: Path) -> None:
    path = written(tmp_path / "cookies.txt")
    assert login.jar("") is None

    def sent() -> str:
        return Jar().header("http://a.example/", time.time(), login.jar(path))

    assert sent() == "session=S3CRET"
    written(tmp_path / "cookies.txt", "a.example\tFALSE\t/\tFALSE\t0\tsession\tANEW\n")
    assert sent() == "session=ANEW"
    written(tmp_path / "cookies.txt", "[]")
    assert sent() == "session=ANEW"
    (tmp_path / "cookies.txt").unlink()
    assert sent() == "session=ANEW"


def test_a_job_may_have_a_login_and_settings_another(tmp_path: Path) -> None:
    one, other = written(tmp_path / "one.txt"), written(tmp_path / "other.txt")
    lists = {"seeds.txt": b"http://a.example/"}
    sheet = f"[[settings]]\nprefixes = ['http://(example,b,']\nrender = {{ cookies = '{other}' }}"
    text = f"[render]\ncookies = '{one}'\n{sheet}"
    job = file.parse({"crawl.toml": text.encode(), **lists}, "members")
    assert [each.render.cookies for each in job.each()] == [one, other]
    (tmp_path / "other.txt").chmod(0o644)
    with pytest.raises(BadConfig, match="chmod 600"):
        file.parse({"crawl.toml": text.encode(), **lists}, "members")


def test_what_signs_a_crawl_in_is_sent_and_is_in_none_of_its_files(tmp_path: Path) -> None:
    asked = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            asked.append(head)
            host = b"b" if b"Host: a." in head else b"a"
            body = b"<a href='http://%s.example:%d/next'>x</a>" % (host, writer.get_extra_info("sockname")[1])
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            await writer.drain()

    async def scenario() -> None:
        async with serving(handle) as server:
            render = RenderSettings(cookies=written(tmp_path / "cookies.txt"))
            job = crawled.job(server.port, "a.example", "b.example", render=render, sheets=Sheets())
            await crawled.whole(tmp_path / "crawl", job)

    asyncio.run(scenario())
    signed = [head for head in asked if b"Cookie: session=S3CRET" in head]
    assert {head.split()[1] for head in signed} >= {b"/", b"/next"}
    assert all(b"Host: a.example" in head for head in signed)
    left = [path for path in (tmp_path / "crawl").rglob("*") if path.is_file() and b"S3CRET" in path.read_bytes()]
    assert left == []
    (warc,) = crawled.warcs(tmp_path / "crawl")
    with warc.open("rb") as stream:
        for record in ArchiveIterator(stream, no_record_parse=True):
            uri, block = record.rec_headers.get_header("WARC-Target-URI") or "", record.content_stream().read()
            assert b"S3CRET" not in block
            if record.rec_type == "request":
                assert b"Cookie" not in block
                assert block.endswith(b"\r\n\r\n")
            if record.rec_type == "metadata":
                is_signed = "//a.example" in uri and "robots" not in uri
                assert (b"leftOutOfRequest: Cookie\r\n" in block) is is_signed, uri


def test_a_request_s_record_lacks_what_signs_it_in_alone() -> None:
    sent = b"POST / HTTP/1.1\r\nHost: a\r\nCOOKIE: s=1\r\nAccept: */*\r\nauthorization: Bearer x\r\n\r\nCookie: body"
    kept = b"POST / HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\nCookie: body"
    assert login.unsigned(sent) == (kept, ("COOKIE", "authorization"))


def test_a_launch_that_died_is_put_in_order_when_its_login_is_gone(tmp_path: Path) -> None:
    """Whoever signs out deletes the file; what was fetched before stays."""
    places = crawled.places(tmp_path / "crawl")
    folder = places.job("news")
    folder.mkdir()
    cookies = written(tmp_path / "cookies.txt")
    papers = {"crawl.toml": f"endless = true\n[render]\ncookies = '{cookies}'\n", "seeds.txt": "http://a.example/\n"}
    for name, text in papers.items():
        (folder / name).write_text(text)

    async def died() -> None:
        running = await open_launch(places, file.read(folder, "news"), crawled.LAUNCH)
        await running.abandon()

    asyncio.run(died())
    (tmp_path / "cookies.txt").unlink()
    with pytest.raises(BadConfig, match="No such file"):
        file.read(folder, "news")
    assert WarcmillEngine(places).is_endless("news")
    assert asyncio.run(put_in_order(places, "news")) == crawled.LAUNCH
