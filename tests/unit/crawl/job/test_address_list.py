"""Lists of addresses as people have them: pasted, CSV, UTF-16, with what is none named by its line."""

from __future__ import annotations

import pytest

from warcmill.crawl.job import address_list
from warcmill.errors import BadConfig, BadInput

URLS = ("https://a.example/x", "https://b.example/")


@pytest.mark.parametrize(
    "text",
    [
        "https://a.example/x\nhttps://b.example/\n",
        "# mine\r\na.example/x\r\n\r\nB.example\r\n",
        '"https://a.example/x"\n<https://b.example/>\n“https://b.example”\n',
        "title;url\nThe A;https://a.example/x\nThe B;b.example\n",
        "URL,Title\nhttps://a.example/x,A\nhttps://b.example/,B\n",
        "name\taddress\nA\thttps://a.example/x\nB\thttps://b.example/\n",
        '"https://a.example/x","A, and more"\n"https://b.example/","B"\n',
        "https://a.example/x, https://a.example/x\nhttps://b.example/ , B\n",
    ],
)
def test_the_addresses_of_a_list(text: str) -> None:
    found = address_list.read(text)
    assert (found.urls, found.wrong, found.inside) == (URLS, (), ())


@pytest.mark.parametrize("coding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_a_file_in_any_coding(coding: str) -> None:
    data = "https://a.example/x\nhttps://b.example/\n".encode(coding)
    assert address_list.read(address_list.decoded(data)).urls == URLS


def test_a_comma_in_an_address_is_no_table() -> None:
    assert address_list.read("https://a.example/1,2;3\n").urls == ("https://a.example/1,2;3",)


def test_what_is_no_address_is_named_by_its_line() -> None:
    found = address_list.read(
        "a.example\njavascript:alert(1)\nftp://a.example/\nhello\ntwo words\n\nhttp://u:p@a.example/\n"
    )
    assert found.urls == ("https://a.example/",)
    assert [one.line for one in found.wrong] == [2, 3, 4, 5, 7]
    assert found.wrong[0].words == (
        "line 2: javascript:alert(1): javascript: is not fetched; an address begins with http:// or https://"
    )
    assert "u:p" not in found.wrong[4].why


def test_repeated_ones_are_counted_and_inside_ones_named() -> None:
    text = "a.example\nhttp://10.1.2.3/\nhttps://a.example/\nhttp://localhost:8000/\nhttp://[::1]/\nhttp://0x7f.1/\n"
    found = address_list.read(text)
    assert (found.repeated, [one.line for one in found.inside]) == (1, [2, 4, 5, 6])
    assert "an inside address: private" in found.inside[0].words
    assert [one.line for one in address_list.read(text, ["10.0.0.0/8", "127.0.0.0/8"]).inside] == [4, 5]
    with pytest.raises(BadConfig):
        address_list.read("a.example\n", ["ten"])


def test_a_list_has_an_end() -> None:
    lines = "".join(f"https://h{number}.example/\n" for number in range(address_list.MOST))
    assert len(address_list.read(lines).found) == address_list.MOST
    with pytest.raises(BadInput, match="100,001 lines; 100,000 are the most"):
        address_list.read(f"{lines}https://one.more.example/\n")
    with pytest.raises(BadInput, match="are the most"):
        address_list.decoded(b"x" * (address_list.LARGEST + 1))
    with pytest.raises(BadInput, match="it is not UTF-8"):
        address_list.decoded(b"https://a.example/\xff\n")


@pytest.mark.parametrize(
    "line", ['"' * 5_000, "," * 200_000, "a" * 300_000, "\x00\x01", "=cmd|' /C calc'!A0", "\u202egpj.exe"]
)
def test_a_hostile_line_costs_itself(line: str) -> None:
    found = address_list.read(f"{line}\nhttps://a.example/x\n")
    assert "https://a.example/x" in found.urls
    assert all(len(one.text) < 2_000 for one in found.wrong)
