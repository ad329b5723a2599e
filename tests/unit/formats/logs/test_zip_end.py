"""The end of a zip, read alone: it never accepts what the whole zip's reader does not, nor reads it otherwise."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from warcmill.errors import BadInput
from warcmill.formats.logs import logzip
from warcmill.formats.logs.logzip import EVIDENCE, LogToPack, last_member

DOCUMENT = b'{"claim": {}}\n' + b"0" * 128 + b"\n"


def packed(*names: str, document: bytes = DOCUMENT) -> bytes:
    """A zip of logs, as a step leaves it."""
    target = io.BytesIO()
    logzip.write(target, [LogToPack(name, 4, lambda: io.BytesIO(b"log\n")) for name in names], lambda _: document)
    return target.getvalue()


ZIP = packed("crawl.log", "alerts.log", "journal.gz", "é.log")


def from_the_end(data: bytes, most: int = logzip.END) -> bytes | None:
    return last_member(data[-most:], len(data), EVIDENCE)


def from_the_whole(data: bytes) -> bytes | None:
    try:
        return logzip.evidence(io.BytesIO(data))
    except BadInput:
        return None


@pytest.mark.parametrize("names", [(), ("crawl.log",), ("crawl.log", "é🕸.log", "journal.gz")])
def test_what_a_step_leaves_is_read_from_its_end(names: tuple[str, ...]) -> None:
    assert from_the_end(packed(*names)) == DOCUMENT


def test_evidence_of_which_only_a_part_is_at_hand_is_left_to_the_whole() -> None:
    for most in range(len(ZIP)):
        assert from_the_end(ZIP, most) in (None, DOCUMENT)
    assert from_the_end(packed("a", document=b"x" * logzip.END)) is None


def written(write: Callable[[zipfile.ZipFile], None]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        write(archive)
    return target.getvalue()


def _large(archive: zipfile.ZipFile) -> None:
    with archive.open(EVIDENCE, "w", force_zip64=True) as member:
        member.write(DOCUMENT)


def _commented(archive: zipfile.ZipFile) -> None:
    archive.writestr(EVIDENCE, DOCUMENT)
    archive.comment = b"PK\5\6"


def _of_one_name(archive: zipfile.ZipFile) -> None:
    archive.writestr(EVIDENCE, DOCUMENT)
    with pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr(EVIDENCE, DOCUMENT)


@pytest.mark.parametrize(
    "write",
    [
        _large,
        _commented,
        _of_one_name,
        lambda archive: None,
        lambda archive: archive.writestr("other", DOCUMENT),
        lambda archive: archive.writestr(EVIDENCE, DOCUMENT, zipfile.ZIP_DEFLATED),
        lambda archive: archive.writestr("a", b"", zipfile.ZIP_LZMA) or archive.writestr(EVIDENCE, DOCUMENT),  # type: ignore[func-returns-value]
    ],
)
def test_what_is_not_plain_is_left_to_the_whole(write: Callable[[zipfile.ZipFile], None]) -> None:
    assert from_the_end(written(write)) is None


@pytest.mark.parametrize("around", [(b"x", b""), (b"", b"x"), (b"", b"\n"), (b"PK\5\6", b""), (b"", ZIP[-22:])])
def test_nothing_may_come_before_or_behind(around: tuple[bytes, bytes]) -> None:
    assert from_the_end(around[0] + ZIP + around[1]) is None


DIRECTORY = ZIP.index(b"PK\1\2")
places = st.one_of(st.integers(0, len(ZIP) - 1), st.integers(DIRECTORY, len(ZIP) - 1))


@given(st.lists(st.tuples(places, st.binary(min_size=1, max_size=4)), max_size=4))
@example([])
def test_of_altered_bytes_it_never_says_what_the_whole_does_not(changes: list[tuple[int, bytes]]) -> None:
    data = bytearray(ZIP)
    for place, new in changes:
        data[place : place + len(new)] = new
    found = from_the_end(bytes(data))
    assert found is None or found == from_the_whole(bytes(data))


def test_of_each_altered_byte_too() -> None:
    for place in range(len(ZIP)):
        for change in (0x01, 0x08, 0x80, 0xFF):
            data = ZIP[:place] + bytes([ZIP[place] ^ change]) + ZIP[place + 1 :]
            found = from_the_end(data)
            assert found is None or found == from_the_whole(data), place


@given(st.integers(0, len(ZIP)), st.integers(0, len(ZIP)), st.integers(0, len(ZIP)))
def test_of_pieces_put_together_too(first: int, second: int, third: int) -> None:
    data = ZIP[:first] + ZIP[min(second, third) :]
    found = from_the_end(data)
    assert found is None or found == from_the_whole(data)
