"""Files of the pages: a WACZ is downloaded by ranges, an upload is whole or nothing, and what is old is removed."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from launches.engine import LAUNCH, Engine
from operating.web_client import WebAnswer
from operating.web_site import WebSite

from warcmill.errors import BadInput
from warcmill.stores import temporary_names
from warcmill.web.handover import files

PAGE = f"/launches/{LAUNCH.job}/{LAUNCH.id}/wacz"
WRITES = ("sh", "-c", 'printf 0123456789 > "$4"; echo done')  # $0 is the verb, $4 the file after -o
FAILS = ("sh", "-c", "echo the disk is full >&2; exit 4")
PARTLY = ("sh", "-c", 'printf 0123456789 > "$4"; echo 2 captures will not replay; exit 1')
BOUNDARY = "----a-boundary"
DATA = bytes(range(256)) * 20_000  # of several pieces


class Sent(NamedTuple):
    """A part of a form; a file where it has a filename."""

    name: str
    data: bytes
    filename: str | None = None


def site_of(base: Path, program: tuple[str, ...] = ("true",), **more: Any) -> WebSite:
    engine = Engine(base)
    return WebSite(engine, engine.audited, program, more=more)


def ended(site: WebSite, answer: WebAnswer) -> Any:
    assert answer.status == 303, answer.text
    page, until = answer.header("location"), time.monotonic() + 120
    while site.get(page, {"format": "json"}).document["exit_code"] is None:
        assert time.monotonic() < until
        time.sleep(0.01)
    return site.get(page, {"format": "json"}).document


def form(*parts: Sent, is_whole: bool = True) -> bytes:
    """The body of a form with a file, as browsers send it."""
    body = b""
    for one in parts:
        name = f'name="{one.name}"' + (f'; filename="{one.filename}"' if one.filename is not None else "")
        body += f"--{BOUNDARY}\r\nContent-Disposition: form-data; {name}\r\n\r\n".encode() + one.data + b"\r\n"
    return body + f"--{BOUNDARY}--\r\n".encode() if is_whole else body[:-2]


def upload(site: WebSite, body: bytes, role: str = "curator", **more: str) -> WebAnswer:
    headers = {"origin": "http://127.0.0.1:8090", **more}
    return site.send("/import", body, role, f"multipart/form-data; boundary={BOUNDARY}", **headers)


def parts_of(site: WebSite, **more: Any) -> list[Sent]:
    token = more.get("form", site.form("/import", "curator"))
    file = Sent("file", more.get("data", DATA), more.get("filename", "a.warc.gz"))
    return [Sent("form", token.encode()), Sent("job", more.get("job", "old").encode()), file]


def left(site: WebSite) -> list[str]:
    place = site.state.real(files.FOLDER)
    return sorted(str(one.relative_to(place)) for one in place.rglob("*"))


def test_a_wacz_is_made_and_downloaded_by_ranges(tmp_path: Path) -> None:
    site = site_of(tmp_path, WRITES)
    shown = site.get(PAGE, {"format": "json"}, role="curator").document
    assert shown["words"] == ["wacz", LAUNCH.job, LAUNCH.id, "-o", f"{LAUNCH.job}-{LAUNCH.id}.wacz"]
    done = ended(site, site.post(PAGE, role="curator"))
    address = done["file"]["address"]
    assert (done["exit_code"], done["file"]["bytes"], address) == (0, 10, f"/files/{done['id']}")
    assert f'href="{address}"' in site.get(f"/actions/{done['id']}", role="curator").text
    whole = site.get(address, role="curator")
    assert (whole.status, whole.body, whole.header("content-length")) == (200, b"0123456789", "10")
    assert whole.header("content-disposition") == f"attachment; filename*=UTF-8''{LAUNCH.job}-{LAUNCH.id}.wacz"
    assert (whole.header("x-content-type-options"), whole.header("accept-ranges")) == ("nosniff", "bytes")
    for asked, status, body, range_ in (
        ("bytes=2-4", 206, b"234", "bytes 2-4/10"),
        ("bytes=7-", 206, b"789", "bytes 7-9/10"),
        ("bytes=-2", 206, b"89", "bytes 8-9/10"),
        ("bytes=10-", 416, b"", "bytes */10"),
        ("bytes=1-2,4-5", 200, b"0123456789", ""),
    ):
        part = site.send_get(address, "curator", range=asked)
        assert (part.status, part.body, part.header("content-range")) == (status, body, range_)


@pytest.mark.parametrize("address", ["20261021000000-0123456789ab", "x", "../tokens/curator", "..%2f"])
def test_no_other_file_is_downloaded(tmp_path: Path, address: str) -> None:
    site = site_of(tmp_path)
    assert site.get(f"/files/{address}", role="curator").status == 404
    assert site.get(f"/files/{address}", role="reader").status in (403, 404)


@pytest.mark.parametrize(("program", "code", "says"), [(FAILS, 4, "the disk is full"), (PARTLY, 1, "will not replay")])
def test_a_verb_that_fails_shows_why(tmp_path: Path, program: tuple[str, ...], code: int, says: str) -> None:
    site = site_of(tmp_path, program)
    done = ended(site, site.post(PAGE, role="curator"))
    page = site.get(f"/actions/{done['id']}", role="curator").text
    assert (done["exit_code"], says in page, done["file"] is None) == (code, True, code == 4)
    assert ("Something is missing in it" in page, "none was written" in page) == (code == 1, code == 4)


def test_an_upload_is_taken_whole_and_imported_once(tmp_path: Path) -> None:
    site = site_of(tmp_path, ("echo",))
    body = form(*parts_of(site, filename="C:\\old\\a.warc.gz"))
    done = ended(site, upload(site, body))
    folder = site.state.real(f"{files.FOLDER}/{done['id']}")
    assert (folder / "a.warc.gz").read_bytes() == DATA
    assert done["words"] == ["import", "--job=old", "--", str(folder)]
    assert (done["who"], done["job"]) == ("curator", "old")
    again = upload(site, body)
    assert again.header("location") == f"/actions/{done['id']}"
    assert left(site) == [done["id"], f"{done['id']}/a.warc.gz"]
    wacz = ended(site, upload(site, form(*parts_of(site, filename="b.WACZ"))))
    assert wacz["words"][-1].endswith(f"{wacz['id']}/b.WACZ")


@pytest.mark.parametrize(("more", "status", "says"), [
    ({"form": ""}, 400, "it was not made by this server"),
    ({"job": "no job"}, 400, "not a job name"),
    ({"job": ""}, 400, "not a job name"),
    ({"filename": "a.zip"}, 400, "choose a file whose name ends with"),
    ({"filename": ""}, 400, "choose a file whose name ends with"),
    ({"filename": "../../.warc"}, 400, "choose a file whose name ends with"),
    ({"filename": "a\x01.warc"}, 400, "choose a file whose name ends with"),
    ({"filename": "ü" * 120 + ".warc"}, 400, "rename it"),
])  # fmt: skip
def test_what_is_refused_leaves_nothing(tmp_path: Path, more: dict[str, str], status: int, says: str) -> None:
    site = site_of(tmp_path)
    answer = upload(site, form(*parts_of(site, **more)))
    assert (answer.status, says in answer.text) == (status, True), answer.text
    assert left(site) == []


def test_what_cannot_be_imported_is_not_taken(tmp_path: Path) -> None:
    site = site_of(tmp_path, why_no_import=lambda job: "an engine crawls it" if job else "there is no root for it")
    assert "there is no root for it" in site.get("/import", role="curator").text
    answer = upload(site, form(*parts_of(site)))
    assert (answer.status, "an engine crawls it" in answer.text, left(site)) == (400, True, [])


def test_a_form_that_is_not_as_the_page_sends_it(tmp_path: Path) -> None:
    site = site_of(tmp_path)
    token, job, file = parts_of(site)
    for body, says in (
        (form(file, token, job), "it was not made by this server"),
        (form(token, job, file, Sent("more", b"x")), "something comes after its file"),
        (form(token, job, file, is_whole=False), "it ends before its file does"),
        (form(token, job), "choose a file"),
        (form(Sent("form", bytes(20_000)), file), "its fields are longer"),
        (form(*[token] * 21, file), "it has more than 20 fields"),
        (b"no form", "it is not a form with a file"),
    ):
        answer = upload(site, body)
        assert (answer.status, says in answer.text) == (400, True), (says, answer.text)
    assert site.send("/import", form(token, job, file), "curator", origin="http://127.0.0.1:8090").status == 400
    assert upload(site, form(token, job, file), origin="http://evil.example").status == 400
    assert upload(site, form(token, job, file), "reader").status == 403
    assert left(site) == []
    assert upload(site, form(token, job, file)).status == 303, "nothing of the above is in its way"


def test_a_file_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = site_of(tmp_path, largest_upload=len(DATA) - 1)
    body = form(*parts_of(site))
    assert (upload(site, body).status, left(site)) == (413, [])
    known = site_of(tmp_path, largest_upload=1000)
    answer = upload(known, form(*parts_of(known)), content_length=str(len(body)))
    assert (answer.status, "[serve] upload_gb" in answer.text, left(known)) == (413, True, [])
    monkeypatch.setattr(files, "RESERVE", 1 << 60)
    full = site_of(tmp_path)
    answer = upload(full, form(*parts_of(full)))
    assert (answer.status, "make room on it" in answer.text, left(full)) == (507, True, [])


def test_two_windows_do_not_write_one_file(tmp_path: Path) -> None:
    site = site_of(tmp_path)
    token = site.form("/import", "curator")
    with files.WebUpload(site.state, token.partition(".")[0], "a.warc.gz", 0) as one:
        one.write([b"half"])
        assert upload(site, form(*parts_of(site, form=token))).status == 409
    assert left(site) == []


def test_what_is_old_or_broken_off_is_removed(tmp_path: Path) -> None:
    site = site_of(tmp_path)
    files.make_folder(site.state)
    place, old = site.state.real(files.FOLDER), time.time() - 8 * 86_400
    ids = [f"2026102100000{n}-0123456789ab" for n in range(6)]
    for name in (f"{ids[0]}.wacz", f"{ids[1]}.wacz", f"{ids[4]}.wacz", "notes.txt"):
        (place / name).write_bytes(b"x")
    for name in (ids[2], ids[3], ids[5]):
        (place / name).mkdir()
    dead = subprocess.Popen(["true"])
    assert dead.wait() == 0
    rest = temporary_names.name("a.warc").replace(f".{os.getpid()}.", f".{dead.pid}.")
    (place / ids[3] / rest).write_bytes(b"half")
    (place / f".{rest}").write_bytes(b"half")
    (place / ids[2] / temporary_names.name("a.warc")).write_bytes(b"still coming")
    for name in (f"{ids[0]}.wacz", f"{ids[4]}.wacz", ids[5], "notes.txt"):
        os.utime(place / name, (old, old))
    assert files.sweep(site.state, 7, lambda one: one == ids[4]) == 4
    assert sorted(one.name for one in place.iterdir()) == sorted(
        [f"{ids[1]}.wacz", ids[2], f"{ids[4]}.wacz", "notes.txt"]
    )
    shutil.rmtree(place)
    assert files.sweep(site.state, 7, bool) == 0


def test_a_file_that_was_removed_is_named_on_its_action(tmp_path: Path) -> None:
    site = site_of(tmp_path, WRITES)
    done = ended(site, site.post(PAGE, role="curator"))
    site.state.real(files.wacz_of(done["id"])).unlink()
    assert "one is kept for 7 days" in site.get(f"/actions/{done['id']}", role="curator").text
    assert site.get(f"/files/{done['id']}", role="curator").status == 404


def test_names_of_uploads() -> None:
    assert files.uploaded_name("/tmp/Ä b.WARC") == "Ä b.WARC"
    for name in ("a.warc\n", "a.warc.open", "..warc", "a/", "a.warc.gz.exe"):
        with pytest.raises(BadInput, match="choose a file"):
            files.uploaded_name(name)
