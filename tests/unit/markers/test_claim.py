"""Markers: bytes and back, held to a golden file of every schema."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warcmill import layout
from warcmill.errors import BadInput, Foreign
from warcmill.markers import claim as evidence
from warcmill.markers.claim import Claim, Input, Run
from warcmill.model import FINAL, FileRef, Item, Launch, Outcome

GOLDEN = Path(__file__).parent.parent.parent / "data" / "markers" / "schema-1"
LAUNCH = Launch("daily", "20161019234428")
RUN = Run("crawler01", "2016-10-20T00:00:00Z", "2016-10-20T00:00:01Z", {"warcmill": "0.1.0"})


def a_claim() -> Claim:
    source = FileRef("output", "warcs/daily/20161019234428/é\n.warc.gz.open", 10, "ab" * 64)
    return Claim(
        layout.key("files.Copy", LAUNCH, stage=FINAL),
        inputs=(Input("2016-10/daily/20161019234428/files.checksums.daily.20161019234428.final", "cd" * 64),),
        outputs=(FileRef("store", "warcs/daily/20161019234428/a.warc.gz", 7),),
        items=(
            Item(source, Outcome.REFUSED, why="cut", offset=7),
            Item(source, Outcome.OK, made=FileRef("store", "x", 7, "ef" * 64), facts={"salvaged": True}),
        ),
        counts={"files": 2, "by_status": {"200": 1}},
        facts={"absent": ["b.warc.gz"], "nothing": None},
    )


def test_the_golden_marker_is_read_and_written_alike() -> None:
    assert evidence.encode(a_claim(), RUN) == GOLDEN.read_bytes()
    found = evidence.decode(GOLDEN.read_bytes(), "golden")
    assert found.claim == a_claim()
    assert found.run == RUN
    assert found.schema == 1
    assert found.digest == evidence.claim_digest(a_claim())


def test_a_marker_is_checked_by_hand_as_the_manual_says() -> None:
    command = f"head -n -1 '{GOLDEN}' | sha512sum | cut -c1-128; tail -n 1 '{GOLDEN}'"
    digest, last = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True).stdout.split()
    assert digest == last


def test_the_run_does_not_touch_the_claim_s_digest() -> None:
    other = Run("elsewhere", "2020-01-01T00:00:00Z", "2020-01-01T00:00:00Z", {})
    again = evidence.decode(evidence.encode(a_claim(), other), "x")
    assert again.digest == evidence.claim_digest(a_claim())


def test_the_order_in_which_a_step_meets_its_items_does_not_matter() -> None:
    claim = a_claim()
    turned = Claim(claim.key, claim.inputs, claim.outputs, claim.items[::-1], claim.counts, claim.facts)
    assert evidence.claim_digest(turned) == evidence.claim_digest(claim)


def test_cut_anywhere_it_is_refused() -> None:
    data = evidence.encode(a_claim(), RUN)
    for cut in range(len(data)):
        with pytest.raises(BadInput):
            evidence.decode(data[:cut], "m")


@given(st.integers(min_value=0), st.integers(1, 255))
def test_altered_anywhere_it_is_refused(position: int, change: int) -> None:
    data = bytearray(evidence.encode(a_claim(), RUN))
    data[position % len(data)] ^= change
    with pytest.raises(BadInput):
        evidence.decode(bytes(data), "m")


@given(st.binary(max_size=300))
def test_any_bytes_are_refused_with_the_tree_s_own_error(data: bytes) -> None:
    with pytest.raises(BadInput):
        evidence.decode(data, "m")


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b"[]",
        b"null",
        b'{"schema":1,"claim":{},"run":{}}',
        b'{"schema":1.5}',
        b'{"schema":NaN}',
        b"[" * 100_000,
        b'{"schema":0,"claim":{},"run":{}}',
        b'{"schema":true,"claim":{},"run":{}}',
    ],
)
def test_a_right_digest_over_wrong_content_is_refused(body: bytes) -> None:
    with pytest.raises(BadInput):
        evidence.decode(sealed(body), "m")


def test_a_newer_schema_is_foreign() -> None:
    with pytest.raises(Foreign, match="schema 2"):
        evidence.decode(sealed(b'{"schema":2}'), "m")


def test_fields_of_a_later_minor_are_kept_in_the_digest_and_skipped() -> None:
    body = GOLDEN.read_bytes().rsplit(b"\n", 2)[0].replace(b'"counts"', b'"colour": "red",\n  "counts"', 1)
    found = evidence.decode(sealed(body), "m")
    assert found.claim == a_claim()
    assert found.digest != evidence.claim_digest(a_claim())


def sealed(body: bytes) -> bytes:
    body += b"\n"
    return body + hashlib.sha512(body).hexdigest().encode() + b"\n"
