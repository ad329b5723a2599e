"""files.VirusScan against a real clamd: what is clean, what is a hit, what was not scanned, and a clamd that fails."""

from __future__ import annotations

import gzip
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import brotli
import pytest
from launches.chain import assembled, upto
from launches.engine import LAUNCH, Engine, line_of
from records.warcs import chunked, http, record, warc_gz, warcinfo

from servers import clamd as clamd_server
from servers.clamd import (
    EICAR,
    MAX_FILE_SIZE,
    OTHER,
    OTHER_SIGNATURE,
    SIGNATURE,
    STREAM_MAX_LENGTH,
    ClamdServer,
)
from warcmill.audit.health_services import check_clamd
from warcmill.clients.clamd import Clamd, ClamdStream, parse
from warcmill.errors import Unavailable, Unsettled
from warcmill.files import virus_scan
from warcmill.files.virus_scan import ClamdLimits, ScannedStage
from warcmill.launches import holdings
from warcmill.model import FINAL

LIMITS = ClamdLimits(STREAM_MAX_LENGTH, MAX_FILE_SIZE)
Warcs = dict[str, bytes]


@pytest.fixture
def broken(clamd: ClamdServer) -> Iterator[ClamdServer]:
    """A clamd that a test may change and break: the next test finds it as it was."""
    yield clamd
    clamd_server.down(clamd.folder.parent)
    clamd.know(other=False)
    clamd.start()


def stored(tmp_path: Path, warcs: Warcs) -> Engine:
    """A stage with these WARCs, verified in the store."""
    engine = Engine(tmp_path)
    engine.logs(*(line_of("http://gov.example/", name.removesuffix(".open")) for name in warcs))
    for name, data in warcs.items():
        engine.warc(name, data)
    engine.finish()
    assembled(engine)
    upto(engine, "Verify")
    return engine


def scan(engine: Engine, clamd: Clamd, limits: ClamdLimits = LIMITS) -> ScannedStage:
    """The scan of the stage, not published."""
    return virus_scan.scan(engine.state, engine.store, clamd, limits, LAUNCH, FINAL)


def told(found: ScannedStage) -> dict[str, dict[str, Any]]:
    """The facts of each stored file, by its name."""
    return {(item.made or item.file).name: dict(item.facts) for item in found.claim.items}


def response(body: bytes, *headers: bytes) -> bytes:
    return record("response", http(body, *headers))


GZIP, CHUNKED = b"Content-Encoding: gzip", b"Transfer-Encoding: chunked"
INFECTED = {
    "as it is": response(EICAR),
    "gzip": response(gzip.compress(EICAR), GZIP),
    "br": response(brotli.compress(EICAR), b"Content-Encoding: br"),
    "chunked": response(chunked(EICAR), CHUNKED),
    "chunked gzip": response(chunked(gzip.compress(EICAR)), CHUNKED, GZIP),
    "said to be gzip": response(EICAR, GZIP),
    "said to be chunked gzip": response(chunked(EICAR), CHUNKED, GZIP),
    "a resource": record("resource", EICAR),
    "a request's body": record("request", http(EICAR, status=b"POST / HTTP/1.1")),
    "a file in a gzip file": response(gzip.compress(EICAR)),
    "under an unknown coding, as transferred": response(EICAR, b"Content-Encoding: rot13"),
}
CLEAN = {
    "a page": response(b"<p>hello</p>"),
    "a page in gzip": response(gzip.compress(b"<p>hello</p>"), GZIP),
    "said to be chunked": response(b"<p>hello</p>", CHUNKED),
    "a lookup": record("response", b"20161019234428\ngov.example. 1 IN A 192.0.2.7\n", http=False),
}
NOT_COUNTED = {
    "no body": response(b""),
    "not modified": record("response", http(b"", GZIP, status=b"HTTP/1.1 304 Not Modified")),
    "the crawler's notes": record("metadata", EICAR),
}


@pytest.mark.parametrize("what", INFECTED)
def test_a_payload_is_scanned_as_a_browser_gets_it(what: str, tmp_path: Path, clamd: ClamdServer) -> None:
    engine = stored(
        tmp_path, {"a.warc.gz": warc_gz(warcinfo(), *CLEAN.values(), INFECTED[what], *NOT_COUNTED.values())}
    )
    (facts,) = told(scan(engine, clamd.client)).values()
    offset = len(warc_gz(warcinfo(), *CLEAN.values()))
    hit = {"offset": offset, "uri": "http://gov.example/", "signature": SIGNATURE}
    assert facts == {"clean": len(CLEAN), "hits": [hit], "not_scanned": {}}


def test_a_stage_is_counted_and_each_warc_is_scanned_once(tmp_path: Path, clamd: ClamdServer) -> None:
    whole = warc_gz(warcinfo(), CLEAN["a page"], INFECTED["gzip"])
    engine = stored(tmp_path, {"a.warc.gz.open": whole, "b.warc.gz.open": whole[:-30], "c.warc.gz": whole})
    before = _scanned_by(clamd)
    found = scan(engine, clamd.client)
    # a once; the page of b, in the cut one and the salvaged; c
    assert _scanned_by(clamd, before + 3 + 1 + 1 + 3) == before + 3 + 1 + 1 + 3
    assert found.claim.counts == {
        "files": 3, "bytes": found.claim.counts["bytes"], "ok": 2, "refused": 1, "salvaged": 2,
        "clean": 3, "hits": 2, "not_scanned": 1,
    }  # fmt: skip
    assert told(found)["a.warc.gz.open"]["hits"] == told(found)["a.warc.gz"]["hits"]
    assert told(found)["b.warc.gz.open"]["not_scanned"] == {virus_scan.BAD: 1}
    assert told(found)["b.warc.gz"]["not_scanned"] == {}
    engine.state.publish(found.claim.key, found.claim, tools=found.tools)
    held = holdings.of_stage(engine.state, LAUNCH, FINAL).holdings
    assert [(one.name, len(one.hits or ())) for one in held] == [
        ("a.warc.gz", 1), ("b.warc.gz", 0), ("b.warc.gz.open", 0), ("c.warc.gz", 1),
    ]  # fmt: skip
    assert engine.state.require(found.claim.key).run.tools["virus database"] == "none of ClamAV's own"


@pytest.fixture
def fake() -> Iterator[Callable[[bytes], Clamd]]:
    """A server that answers as clamd to VERSION, and to a stream whatever it is told to; then it closes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        answers: list[bytes] = []

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    said = connection.recv(1 << 16)
                    connection.sendall(b"ClamAV 1.4.6\0" if said.startswith(b"zVERSION") else answers[-1])

        threading.Thread(target=serve, daemon=True).start()

        def saying(answer: bytes) -> Clamd:
            answers.append(answer)
            return Clamd(("127.0.0.1", listener.getsockname()[1]), silence=5)

        yield saying
        listener.shutdown(socket.SHUT_RDWR)


def _scanned_by(clamd: ClamdServer, least: int = 0) -> int:
    """How many payloads it has scanned by its log, which it may write after it has answered: wait for so many."""
    deadline = time.monotonic() + 60
    while (number := (clamd.folder / "clamd-own.log").read_text().count("instream(local): ")) < least:
        assert time.monotonic() < deadline, f"{number} of {least}"
        time.sleep(0.02)
    return number


def of_size(size: int, begin: bytes = b"") -> bytes:
    """A body of so many bytes."""
    return begin.ljust(size, b" ")


OVER = {"over MaxFileSize": MAX_FILE_SIZE + 1, "over StreamMaxLength": STREAM_MAX_LENGTH + 1}


@pytest.mark.parametrize("alert", [True, False], ids=["AlertExceedsMax yes", "AlertExceedsMax no"])
def test_ok_is_clean_only_under_both_limits(alert: bool, tmp_path: Path, broken: ClamdServer) -> None:
    """Without AlertExceedsMax clamd answers OK to what it has not scanned."""
    broken.restart(alert=alert)
    bodies = [of_size(size, begin) for size in (MAX_FILE_SIZE, *OVER.values()) for begin in (b"", EICAR)]
    inside = response(gzip.compress(of_size(MAX_FILE_SIZE + 1, EICAR)), GZIP)
    engine = stored(tmp_path, {"a.warc.gz": warc_gz(warcinfo(), *map(response, bodies), inside)})
    (facts,) = told(scan(engine, broken.client)).values()
    heuristic = {"Heuristics.Limits.Exceeded.MaxFileSize": 5}
    silent = {"over MaxFileSize": 3, "over StreamMaxLength": 2}
    assert facts["not_scanned"] == (heuristic if alert else silent)
    assert (facts["clean"], [one["signature"] for one in facts["hits"]]) == (1, [SIGNATURE])


def test_what_cannot_be_decoded_is_told(tmp_path: Path, clamd: ClamdServer) -> None:
    bomb = brotli.compress(bytes(64 << 20), quality=5)  # far more than a thousandfold
    records = {
        "coding unknown": [response(b"x" * 99, b"Content-Encoding: rot13")],
        "beyond the limits of decoding": [response(bomb, b"Content-Encoding: br")],
        "segment of a larger record": [record("continuation", b"x", extra=b"WARC-Segment-Number: 2")],
        "HTTP header beyond the limit": [record("response", b"HTTP/1.1 200 OK\r\nX: " + b"x" * (1 << 21))],
    }
    engine = stored(tmp_path, {"a.warc.gz": warc_gz(warcinfo(), *(one for each in records.values() for one in each))})
    found = scan(engine, clamd.client)
    assert [facts["not_scanned"] for facts in told(found).values()] == [dict.fromkeys(records, 1)]


def test_the_same_hits_are_the_same_claim_whatever_the_database(tmp_path: Path, broken: ClamdServer) -> None:
    engine = stored(tmp_path, {"a.warc.gz": warc_gz(warcinfo(), INFECTED["br"], CLEAN["a page"])})
    first = scan(engine, broken.client)
    broken.know(other=True)
    broken.restart()
    assert scan(engine, Clamd(("127.0.0.1", broken.port))).claim == first.claim


def test_a_changed_copy_fails_the_item_by_name(tmp_path: Path, clamd: ClamdServer) -> None:
    engine = stored(tmp_path, {name: warc_gz(warcinfo(), CLEAN["a page"]) for name in ("a.warc.gz", "b.warc.gz")})
    path = engine.folders["store"] / "warcs" / LAUNCH.job / LAUNCH.id / "a.warc.gz"
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(Unsettled, match=r"1 item.*sha512 of store:.*a\.warc\.gz, read to be scanned"):
        scan(engine, clamd.client)


# --- a clamd that fails


def test_limits_that_are_not_clamds_fail_the_item_with_its_own_words(tmp_path: Path, clamd: ClamdServer) -> None:
    """clamd answers early, and closes the connection while we still send."""
    engine = stored(tmp_path, {"a.warc.gz": warc_gz(warcinfo(), response(of_size(40 << 20)))})
    too_high = ClamdLimits(100 << 20, 100 << 20)
    for client in (clamd.client, Clamd(("127.0.0.1", clamd.port))):
        with pytest.raises(Unsettled, match="INSTREAM size limit exceeded"):
            scan(engine, client, too_high)


def test_a_clamd_that_is_killed_or_hangs_loses_nothing_and_what_was_scanned_stays(
    tmp_path: Path, broken: ClamdServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    warcs = {f"{name}.warc.gz": warc_gz(warcinfo(), *CLEAN.values(), INFECTED["gzip"]) for name in "abcde"}
    engine, breaks = stored(tmp_path, warcs), {"b.warc.gz": broken.hang, "d.warc.gz": broken.kill}
    work = virus_scan._Scanning.items

    def items(self: Any, copy: Any) -> Any:
        breaks.pop(copy.name, lambda: None)()
        return work(self, copy)

    monkeypatch.setattr(virus_scan._Scanning, "items", items)
    impatient = Clamd(str(broken.socket), silence=0.5)
    with pytest.raises(Unsettled, match=r"4 item\(s\) failed: .*gave no sign for 0\.5 s"):
        scan(engine, impatient)
    broken.hang(hung=False)
    with pytest.raises(Unsettled, match=r"2 item\(s\) failed: .*clamd at "):
        scan(engine, impatient)
    broken.restart()
    before = _scanned_by(broken)
    found = scan(engine, broken.client)
    more = 2 * (len(CLEAN) + 1 + 2)  # of d and e alone; two readings of what is gzip
    assert _scanned_by(broken, before + more) == before + more
    assert {len(facts["hits"]) for facts in told(found).values()} == {1}


def test_one_that_reloads_in_the_middle_names_both_databases() -> None:
    """clamd answers VERSION with its official database, which cannot be had here."""
    versions = ["ClamAV 1.4.6/27000/Mon Nov 23", "ClamAV 1.4.6/27000/Mon Nov 23", "ClamAV 1.4.6/27001/Tue Nov 24"]
    assert virus_scan.tools(versions) == {
        "clamd": "ClamAV 1.4.6",
        "virus database": "27000/Mon Nov 23, then 27001/Tue Nov 24",
    }
    assert virus_scan.tools([]) == {}


def test_a_reload_in_the_middle_disturbs_nothing(
    tmp_path: Path, broken: ClamdServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    warcs = {f"{name}.warc.gz": warc_gz(warcinfo(), *CLEAN.values(), response(OTHER)) for name in "abc"}
    engine = stored(tmp_path, warcs)
    work = virus_scan._Scanning.items

    def items(self: Any, copy: Any) -> Any:
        if copy.name == "b.warc.gz":
            broken.know(other=True)
            assert broken.client._ask("RELOAD") == "RELOADING"
        return work(self, copy)

    monkeypatch.setattr(virus_scan._Scanning, "items", items)
    found = told(scan(engine, broken.client))
    assert found["a.warc.gz"]["hits"] == []
    assert [one["signature"] for one in found["c.warc.gz"]["hits"]] in ([], [OTHER_SIGNATURE])
    assert {facts["clean"] + len(facts["hits"]) for facts in found.values()} == {len(CLEAN) + 1}


ANSWERS = {
    "garbage": (b"\xff\xfe nonsense", "it answered '.*nonsense'"),
    "nothing": (b"", "closed the connection unanswered"),
    "an error": (b"stream: Can't allocate memory ERROR\0", "Can't allocate memory ERROR"),
    "without end": (b"stream: " + b"x" * 100_000, "it answered"),
    "cut": (b"stream: OK", "it answered 'stream: OK', and no end of an answer"),
    "of a file": (b"/tmp/a: OK\0", "it answered '/tmp/a: OK'"),
}


@pytest.mark.parametrize("what", ANSWERS)
def test_any_other_answer_fails_the_item(what: str, tmp_path: Path, fake: Callable[[bytes], Clamd]) -> None:
    """A fake, for answers that a real clamd cannot be made to give."""
    answer, why = ANSWERS[what]
    engine = stored(tmp_path, {"a.warc.gz": warc_gz(warcinfo(), CLEAN["a page"])})
    with pytest.raises(Unsettled, match=why):
        scan(engine, fake(answer))


def test_an_ok_before_all_is_sent_is_not_about_all() -> None:
    ours, theirs = socket.socketpair()
    theirs.sendall(b"stream: OK\0")
    theirs.close()
    stream = ClamdStream(Clamd("/nowhere"), ours, b"zINSTREAM\0")
    stream.send(b"a payload")
    stream.end()
    with pytest.raises(Unavailable, match="it answered 'stream: OK' before all was sent"):
        stream.signature()


@pytest.mark.parametrize("text", ["", "clamd.sock", "localhost", "a b:3310", "host:0", "host:99999", "host:", ":3310"])
def test_an_address_is_a_path_or_host_and_port(text: str) -> None:
    with pytest.raises(ValueError, match="neither the absolute path of a socket nor host:port"):
        parse(text)


def test_addresses(tmp_path: Path, clamd: ClamdServer) -> None:
    assert parse("/run/clamav/clamd.ctl") == "/run/clamav/clamd.ctl"
    assert parse("scan.example:3310") == ("scan.example", 3310)
    assert parse("[::1]:3310") == ("::1", 3310)
    assert Clamd(("127.0.0.1", clamd.port)).version() == clamd.client.version()
    for nobody in (str(tmp_path / "none.sock"), "/" + "x" * 200, ("127.0.0.1", 1)):
        with pytest.raises(Unavailable, match="clamd at "):
            Clamd(nobody).ping()


# --- warcmill doctor

UP = STREAM_MAX_LENGTH * 2
CHECKS: dict[str, tuple[dict[str, Any], ClamdLimits, list[str]]] = {
    "as configured": ({}, LIMITS, ["ok: StreamMaxLength", "ok: MaxFileSize"]),
    "too low here": (
        {},
        ClamdLimits(STREAM_MAX_LENGTH - 1, MAX_FILE_SIZE - 1),
        ["warn: takes streams over", "warn: scans files over"],
    ),
    "too high here": (
        {},
        ClamdLimits(STREAM_MAX_LENGTH + 1, MAX_FILE_SIZE + 1),
        ["fail: its StreamMaxLength is smaller", "fail: its MaxFileSize is smaller"],
    ),
    "AlertExceedsMax off": ({"alert": False}, LIMITS, ["ok:", "fail: AlertExceedsMax is off"]),
    "files larger than streams": ({"file": UP}, ClamdLimits(STREAM_MAX_LENGTH, UP), ["ok:", "ok:"]),
}


@pytest.mark.parametrize("case", CHECKS)
def test_doctor_proves_both_limits_and_the_alert(case: str, broken: ClamdServer) -> None:
    changes, limits, expected = CHECKS[case]
    if changes:
        broken.restart(**changes)
    checks = list(check_clamd(broken.client, limits.stream_max_length, limits.max_file_size))
    for check, wanted in zip(checks, ["warn: without a database of ClamAV's own", *expected], strict=True):
        level, _, words = wanted.partition(":")
        assert (check.level, words.strip() in check.text) == (level, True), check
        assert (check.todo == "") == (level == "ok")


def test_doctor_says_what_it_cannot_prove(broken: ClamdServer) -> None:
    (broken.folder / "db" / "eicar.ndb").rename(broken.folder / "eicar.ndb")
    broken.know(other=True)
    broken.restart()
    *_, check = check_clamd(broken.client, STREAM_MAX_LENGTH, MAX_FILE_SIZE)
    (broken.folder / "eicar.ndb").rename(broken.folder / "db" / "eicar.ndb")
    assert (check.level, "does not know the EICAR test file" in check.text) == ("fail", True)
    broken.kill()
    (check,) = check_clamd(broken.client, STREAM_MAX_LENGTH, MAX_FILE_SIZE)
    assert (check.level, "is unavailable" in check.text) == ("fail", True)
