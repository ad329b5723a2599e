"""The parts of host names, as Common Crawl's index has them."""

from __future__ import annotations

import pytest

from warcmill.formats.index.url_columns import HOST_COLUMNS, host_columns


def parts(host: str) -> dict[str, str]:
    known = zip(HOST_COLUMNS, host_columns(host), strict=True)
    return {name.removeprefix("url_host_"): value for name, value in known if value is not None}


def test_a_host_below_a_private_suffix_has_both_domains() -> None:
    assert parts("a.shop.blogspot.com") == {
        "name": "a.shop.blogspot.com",
        "tld": "com",
        "2nd_last_part": "blogspot",
        "3rd_last_part": "shop",
        "4th_last_part": "a",
        "registry_suffix": "com",
        "registered_domain": "blogspot.com",
        "private_suffix": "blogspot.com",
        "private_domain": "shop.blogspot.com",
        "name_reversed": "com.blogspot.shop.a",
    }


def test_only_the_last_five_parts_have_columns() -> None:
    deep = parts("f.e.d.c.example.org")
    assert (deep["5th_last_part"], deep["name_reversed"]) == ("e", "org.example.c.d.e.f")


@pytest.mark.parametrize("address", ["192.0.2.7", "[2001:db8::1]"])
def test_an_address_has_no_parts(address: str) -> None:
    assert parts(address) == {"name": address, "name_reversed": address}


def test_a_url_without_a_host_has_nothing() -> None:
    assert parts("") == {}
