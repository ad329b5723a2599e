"""ARKs that are derived, and NOID's check character."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warcmill.formats.sip import ark

LAUNCH = ("daily", "20161019234428")
ZONES = st.text(ark.BETANUMERIC, min_size=8, max_size=22).map(lambda name: f"12345/{name}")


def check_character(zone: str) -> str:
    """NOID's check character of `NAAN/name`, by the sum that `derived` makes of it."""
    return ark.BETANUMERIC[ark._total(zone) % len(ark.BETANUMERIC)]


@pytest.mark.parametrize(
    ("zone", "character"),
    [
        ("13030/xf93gt2", "q"),  # the example in NOID's manual
        ("13030/tf5p30086", "k"),  # of n2t.net
        ("99999/fk4ck01k7", "7"),
    ],
)
def test_the_check_character_is_noid_s(zone: str, character: str) -> None:
    assert check_character(zone) == character


@given(ZONES, st.data())
def test_one_wrong_character_and_two_swapped_ones_are_seen(zone: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(6, len(zone) - 1))
    other = data.draw(st.sampled_from([char for char in ark.BETANUMERIC if char != zone[place]]))
    assert check_character(zone[:place] + other + zone[place + 1 :]) != check_character(zone)
    swapped = zone[: place - 1] + zone[place] + zone[place - 1] + zone[place + 1 :]
    if place > 6 and swapped != zone:
        assert check_character(swapped) != check_character(zone)


def test_a_derived_one_follows_from_what_it_names() -> None:
    one = ark.derived("12345", "x5", *LAUNCH, "a.warc.gz", "ab" * 64)
    assert one == "ark:12345/x5zvgh1cgx4jtdcb4hx"
    assert one == ark.derived("12345", "x5", *LAUNCH, "a.warc.gz", "ab" * 64)
    assert ark.is_ark(one)
    assert check_character(one.removeprefix("ark:")[:-1]) == one[-1]


def test_another_job_launch_name_or_digest_is_another_one() -> None:
    told = {
        ark.derived("12345", "", job, launch, name, sha512)
        for job in ("daily", "dail")
        for launch in ("20161019234428", "20161019234429")
        for name in ("a.warc.gz", "%25.warc", "e\u0301", "\xe9", "a\nb")
        for sha512 in ("ab" * 64, "ac" * 64)
    }
    assert len(told) == 40


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("ark:12345/x5abc", True),
        ("ark:/12148/btv1b8449691v", True),
        ("ark:12345/", False),
        ("ark:1234/x", False),
        ("12345/x5abc", False),
        ("ark:12345/x5 abc", False),
        ("ark:12345/x5abc\n", False),
        ("ark:12345/" + "x" * 300, False),
    ],
)
def test_what_an_ark_is(text: str, is_one: bool) -> None:
    assert ark.is_ark(text) == is_one
