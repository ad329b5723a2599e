"""Names that differ by case or normalisation alone, names with `%`, and names as long as a file system takes: built,
submitted, verified, and judged by `warcmill check` and by bagit.py, in both forms."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from launches import chain as steps
from launches.engine import Engine, line_of
from packing.bag_judges import filled, is_valid
from preloaded import run
from records.warcs import http, record, warc_gz, warcinfo

from warcmill import layout
from warcmill.markers.claim import Claim
from warcmill.markers.facts.package import Packaged, Submitted
from warcmill.model import FINAL
from warcmill.package import build, submit, verify
from warcmill.package.sips import Form, Terms
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore

FORMS: tuple[Form, ...] = ("value", "reference")
URL = "https://archive.example/store"
END = ".warc.gz"
LONGEST = 255  # bytes of a name, in most file systems
NFC, NFD = f"caf\u00e9{END}", f"cafe\u0301{END}"
LONG = f"{'n' * (LONGEST - len(END))}{END}"
OPEN = f"{'o' * (LONGEST - len(END) - len('.open'))}{END}"  # 255 bytes with .open, less when it is closed
CUT = f"{'c' * (LONGEST - len(END) - len('.open'))}{END}"
# 255 bytes once it is percent-encoded, as the store has it; and one more, which the store cannot have
FITS = "\u00fc" * 40 + "f" * (LONGEST - 40 * len("%C3%BC") - len(END)) + END
TOO_LONG = "\u00fc" * 40 + "t" * (LONGEST + 1 - 40 * len("%C3%BC") - len(END)) + END
UPPER, PERCENT, ENDED = f"Caf\u00e9{END}", f"100%25 of%0D{END}", f"two\nlines{END}"
CLOSED = (NFC, NFD, UPPER, PERCENT, ENDED, LONG, FITS)
IN_BAG = {
    NFC: f"caf\u00e9~2{END}",
    NFD: f"cafe\u0301~3{END}",
    PERCENT: f"100_25 of_0D{END}",
    ENDED: f"two_lines{END}",
}


def body(name: str) -> bytes:
    """A WARC of its own for each name."""
    return warc_gz(warcinfo(), record(block=http(ascii(name).encode())))


@dataclass
class Handed:
    """A SIP that was built, submitted and verified."""

    made: Engine
    sip: Packaged
    submitted: Submitted
    verified: Claim
    tar: Path


@pytest.fixture(params=FORMS, scope="module")
def handed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Handed:
    made = Engine(tmp_path_factory.mktemp("line"))
    made.logs(*(line_of("http://a.example/", name) for name in (*CLOSED, OPEN, CUT, TOO_LONG)))
    for name in (*CLOSED, TOO_LONG):
        made.warc(name, body(name))
    made.warc(f"{OPEN}.open", body(OPEN))
    made.warc(f"{CUT}.open", body(CUT)[:-20])
    made.finish()
    steps.assembled(made, FINAL)
    steps.upto(made, "Verify", FINAL)
    sentinel.adopt({"destination": made.base / "destination"})
    to = FileStore("destination", made.base / "destination")
    terms = Terms("National Library", request.param, URL, naan="12345", shoulder="x5")

    def published(claim: Claim) -> Claim:
        made.state.publish(claim.key, claim)
        return claim

    sip = Packaged.from_claim(published(build.build(made.state, made.store, None, made.launch, FINAL, terms)))
    sent = Submitted.from_claim(published(submit.submit(made.state, made.store, to, made.launch, FINAL)))
    seen = published(verify.verify(made.state, made.store, to, f"{layout.INGEST}/", made.launch, FINAL))
    return Handed(made, sip, sent, seen, to.real(layout.ingest_path(sent.name)))


def unpacked(handed: Handed, folder: Path) -> Path:
    """The bag as GNU tar unpacks it, filled from the store."""
    subprocess.run(["tar", "-xf", handed.tar, "-C", folder], check=True)
    return filled(folder / handed.sip.bag, f"{URL}/", handed.made.store)


def test_each_is_verified_and_the_one_that_the_store_cannot_have_is_named(handed: Handed) -> None:
    kind = "warcs" if handed.sip.form == "value" else "referred"
    assert handed.verified.counts[kind] == len(CLOSED) + len((OPEN, CUT, f"{CUT}.open"))
    with_tar = subprocess.run(
        ["tar", "-xOf", handed.tar, "--wildcards", "*/premis.xml"], capture_output=True, check=True
    )
    assert f"not stored: {TOO_LONG}, " in with_tar.stdout.decode()


def test_check_takes_it(handed: Handed) -> None:
    done = run("commands.main", "check", "--json", str(handed.tar), env=dict(os.environ))
    (bag,) = (one for one in map(json.loads, done.stdout.splitlines()) if one["file"] == str(handed.tar))
    wanted = "ok" if handed.sip.form == "value" else "incomplete"
    assert (bag["result"], done.returncode) == (wanted, 1), (
        "of one by value the cut WARC is refused, and the bag is not"
    )


def test_unpacked_and_filled_each_name_has_its_own_bytes_and_both_judges_accept_it(
    handed: Handed, tmp_path: Path
) -> None:
    home = unpacked(handed, tmp_path)
    (warcs,) = home.glob("data/*/representations/warcs/data")
    found = {path.name: path.read_bytes() for path in warcs.iterdir()}
    whole = {**{IN_BAG.get(name, name): body(name) for name in (*CLOSED, OPEN)}, CUT: warc_gz(warcinfo())}
    assert found == {**whole, f"{CUT}.open": body(CUT)[:-20]}
    assert is_valid(home)
    done = run("commands.main", "check", str(home), env=dict(os.environ))
    assert done.returncode == 1, "the cut WARC in it is refused, the bag is not"
    assert [line for line in done.stdout.splitlines() if line.startswith(("fault", "to fetch"))] == []
