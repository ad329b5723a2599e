"""ISBNs and DOIs in texts, and texts that are made fit."""

from __future__ import annotations

import pytest

from warcmill.formats.publications import identifiers


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ISBN 978-0-306-40615-7", ["9780306406157"]),
        ("ISBN-13: 978 0 306 40615 7, ISBN-10: 0-306-40615-2", ["9780306406157"]),
        ("ISBN 080442957X", ["9780804429573"]),
        ("isbn\u00a0978\u20110\u2011306\u201140615\u20117", ["9780306406157"]),
        ("9780306406157", ["9780306406157"]),
        ("ISBN 979-10-90636-07-1", ["9791090636071"]),
        ("ISBN 978-0-306-40615-8", []),  # a wrong digit
        ("ISBN 0-306-40615-3", []),
        ("call 0306406152", []),  # ten digits of something else
        ("979-0-2600-0043-8", []),  # music
        ("19780306406157", []),
        ("9" * 100_000, []),
    ],
)
def test_isbns(text: str, expected: list[str]) -> None:
    assert list(identifiers.isbns(text)) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("urn:isbn:0-306-40615-2", "9780306406157"),
        ("ISBN: 9780306406157", "9780306406157"),
        ("080442957x", "9780804429573"),
        ("http://e.x/9780306406157", ""),
        ("9780306406158", ""),
        ("", ""),
    ],
)
def test_a_value_that_is_an_isbn(value: str, expected: str) -> None:
    assert identifiers.isbn_of(value) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see https://doi.org/10.1000/ABC-1.2.", ["10.1000/abc-1.2"]),
        ("(doi:10.1234/x(1)y)", ["10.1234/x(1)y"]),
        ("10.1234/a, 10.1234/A; and 10.5555/b\u201d", ["10.1234/a", "10.5555/b"]),
        ("version 10.1000, 10.1/x, 110.1000/x", []),
        ("10.1234/.", []),
        ("10.1234/" * 50_000, []),
    ],
)
def test_dois(text: str, expected: list[str]) -> None:
    assert list(identifiers.dois(text)) == expected


def test_texts_are_cleaned_and_bounded() -> None:
    assert identifiers.cleaned(" a\0b \x1b[31m\n\u202ec\u202c d\u200f ") == "a b [31m c d\u200f"
    assert identifiers.cleaned("x" * (1 << 20)) == "x" * 300
    assert identifiers.cleaned("\u05d3\u05d5\u05d7") == "\u05d3\u05d5\u05d7"  # right to left
    assert identifiers.texts(["a", " ", "a ", "b"]) == ("a", "b")
