"""The formats of payloads by PRONOM: all counted by declared type, the first few identified."""

from __future__ import annotations

import gzip
import io
import os
import signal
import subprocess
import sys

import pytest
from records.warcs import chunked, http, record, warc_gz, warcinfo

from warcmill.errors import BadInput, Unavailable
from warcmill.formats.sip import pronom
from warcmill.formats.warc import gate

PAGE = b"<!DOCTYPE html><html><head><title>x</title></head><body>x</body></html>"
PDF = b"%PDF-1.4\n1 0 obj\n<<>>\nendobj\ntrailer\n<<>>\n%%EOF\n"
HTML = b"Content-Type: Text/HTML; charset=utf-8"


def heard(*records: bytes, name: str = "a.warc.gz") -> pronom.Formats:
    formats = pronom.Formats()
    data = warc_gz(*records) if name.endswith("gz") else b"".join(records)
    verdict = gate.examine(io.BytesIO(data), name, None, [formats])
    assert verdict.ok, verdict
    assert not verdict.unheard, verdict.unheard[0].why
    return formats


def told(formats: pronom.Formats) -> dict[str, tuple[int, dict[str, int]]]:
    return {name: (seen.payloads, dict(seen.formats)) for name, seen in formats.types.items()}


def test_payloads_are_counted_by_declared_type_and_the_first_are_identified() -> None:
    pages = [record(block=http(PAGE + b"<!--%d-->" % number, HTML)) for number in range(pronom.LOOKED_AT + 2)]
    other = record(block=http(PDF, b"Content-Type: application/pdf"))
    requests = record("request", b"GET / HTTP/1.1\r\n\r\n")
    found = told(heard(warcinfo(), *pages, other, requests))
    assert found["text/html"] == (pronom.LOOKED_AT + 2, {"fmt/471": pronom.LOOKED_AT})
    assert found["application/pdf"] == (1, {"fmt/18": 1})
    assert len(found) == 2


@pytest.mark.parametrize(
    ("body", "header"),
    [
        (chunked(PDF), b"Transfer-Encoding: chunked"),
        (gzip.compress(PDF, mtime=0), b"Content-Encoding: gzip"),
        (chunked(gzip.compress(PDF, mtime=0)), b"Content-Encoding: gzip\r\nTransfer-Encoding: chunked"),
        (PDF, b"Content-Encoding: gzip"),  # declared, and not so
    ],
)
def test_a_payload_is_identified_as_a_browser_gets_it(body: bytes, header: bytes) -> None:
    assert told(heard(record(block=http(body, header)))) == {pronom.UNDECLARED: (1, {"fmt/18": 1})}


def test_what_is_not_http_has_its_record_s_type() -> None:
    dns = record(block=b"20161019234428\ngov.example. 1 IN A 192.0.2.7\n", http=False, extra=b"Content-Type: text/dns")
    resource = record("resource", PDF, extra=b"Content-Type: application/pdf")
    found = told(heard(dns, resource))
    assert {name: count for name, (count, _) in found.items()} == {"text/dns": 1, "application/pdf": 1}
    assert found["application/pdf"][1] == {"fmt/18": 1}


def test_an_arc_has_formats_too() -> None:
    first = b"filedesc://a.arc 0.0.0.0 20041019234428 text/plain 76\n1 0 InternetArchive\n" + b"U" * 56 + b"\n"
    block = http(PAGE, b"Content-Type: text/html")
    arc = b"http://gov.example/ 192.0.2.7 20041019234428 text/html %d\n%s\n" % (len(block), block)
    assert told(heard(first, arc, name="a.arc")) == {"text/html": (1, {"fmt/471": 1})}


def test_types_without_end_and_garbage_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pronom, "MOST_TYPES", 2)
    types = [b"Content-Type: a/b", b"Content-Type: c/d", b"Content-Type: e/f", b"Content-Type: \xff<script>"]
    found = told(heard(*(record(block=http(b"x", one)) for one in types)))
    assert {name: count for name, (count, _) in found.items()} == {"a/b": 1, "c/d": 1, pronom.OTHERS: 2}
    assert told(heard(record(block=b"")))[pronom.UNDECLARED] == (1, {})
    assert told(heard(record(block=b"HTTP/1.1 200 OK\r\nContent-Type: a/b")))["a/b"] == (1, {})


def test_it_is_read_back_as_it_was_written_and_summed() -> None:
    formats = heard(record(block=http(PAGE, HTML)), record(block=http(PDF, HTML)))
    read = pronom.read(b"".join(formats.lines()), lambda: "x")
    assert {name: (seen.payloads, seen.formats) for name, seen in read.items()} == {
        "text/html": (2, {"fmt/471": 1, "fmt/18": 1})
    }
    total = pronom.merged([read, read])
    assert (total["text/html"].payloads, total["text/html"].formats["fmt/18"]) == (4, 2)
    assert read["text/html"].payloads == 2
    for bad in (b"{", b"[]", b'{"type": "a/b"}'):
        with pytest.raises(BadInput):
            pronom.read(bad, lambda: "x")


def test_the_versions_of_the_signatures_are_known() -> None:
    assert set(pronom.tools()) == {"siegfried", "pronom"}
    number, day = pronom.signatures().split("-")
    assert int(number) >= 125
    assert len(day) == 8


def test_what_ends_siegfried_ends_one_question_only() -> None:
    assert pronom.identified(PDF) == "fmt/18"
    pronom._running[os.getpid()].kill()
    with pytest.raises(Unavailable, match=r"siegfried is unavailable: .*exit status -9"):
        pronom.identified(PDF)
    assert pronom.identified(PDF) == "fmt/18"


def test_a_silent_siegfried_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert pronom.identified(PDF) == "fmt/18"
    monkeypatch.setattr(pronom, "TIMEOUT", 0.01)
    os.kill(pronom._running[os.getpid()].pid, signal.SIGSTOP)
    with pytest.raises(Unavailable, match=r"no answer in 0.01 seconds"):
        pronom.identified(PDF)
    monkeypatch.setattr(pronom, "TIMEOUT", 60)
    assert pronom.identified(PDF) == "fmt/18"


def test_a_step_that_a_worker_forks_can_identify() -> None:
    """Siegfried is in Go: loaded before the fork, it would wait for ever in the child. The alarm ends it."""
    code = """
import os, signal, sys
import tasks.package
from warcmill.formats.sip import pronom
assert pronom.identified(b"%PDF-1.4")
assert "pygfried" not in sys.modules, "its signatures take 85 MB, and its threads are lost in a fork"
pid = os.fork()
if not pid:
    signal.alarm(300)
    os._exit(0 if pronom.identified(b"%PDF-1.4") else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
