"""Derive ARKs, and check the check character that NOID puts at their end.

A derived ARK is NAAN, shoulder, and 16 digits of the SHA-256 over what it names: no counter, so nothing to lose, to
restore, or to give out twice. The syntax is https://www.ietf.org/archive/id/draft-kunze-ark-41.html; the check
character https://metacpan.org/dist/Noid/view/noid#NOID-CHECK-DIGIT-ALGORITHM.
"""

from __future__ import annotations

import re
from hashlib import sha256
from itertools import count
from operator import mul

BETANUMERIC = "0123456789bcdfghjkmnpqrstvwxz"  # digits, and letters without vowels and l: 29, a prime number
_VALUES = bytes(max(BETANUMERIC.find(chr(byte)), 0) for byte in range(256))  # of characters, for the check character
_PAIRS = [first + second for first in BETANUMERIC for second in BETANUMERIC]  # of digits: half as many divisions
LENGTH = 16  # digits: 29**16 is about 2**77
_LAST, _HALF, _QUARTER = (len(BETANUMERIC) ** digits for digits in (LENGTH, LENGTH // 2, LENGTH // 4))
MOST_GIVEN = 28 - len("/") - LENGTH  # characters of NAAN and shoulder: the check character is good for 28
LONGEST = 255  # characters
_ARK = re.compile(rf"ark:/?(?P<naan>[{BETANUMERIC}]{{5,9}})/(?P<name>[A-Za-z0-9=~*+@_$%./-]+)")


def derived(naan: str, shoulder: str, *names: str) -> str:
    """Return the ARK of what these texts, without a NUL, name together: always the same for the same ones."""
    what = "\0".join(names).encode()
    zone = f"{naan}/{shoulder}{_digits(int.from_bytes(sha256(what).digest()))}"
    return f"ark:{zone}{check_character(zone)}"


def zone_of(ark: str) -> tuple[str, str]:
    """Return the NAAN and the shoulder of a derived ARK."""
    naan, _, rest = ark.removeprefix("ark:").partition("/")
    return naan, rest[: -LENGTH - 1]


def check_character(zone: str) -> str:
    """Return NOID's check character of `NAAN/name`.

    It reveals one wrong character and two swapped neighbours, in the first 28 characters.
    """
    values = zone.encode("ascii", "replace").translate(_VALUES)
    total = sum(map(mul, count(1), values))
    return BETANUMERIC[total % len(BETANUMERIC)]


def is_ark(text: str) -> bool:
    """Whether a text is an ARK: `ark:NAAN/name`, or `ark:/NAAN/name` as older minters write it."""
    return len(text) <= LONGEST and _ARK.fullmatch(text) is not None


def _digits(number: int) -> str:
    """Write the last digits of a number: halved until pairs are left, for dividing small numbers is faster."""
    high, low = divmod(number % _LAST, _HALF)
    quarters = *divmod(high, _QUARTER), *divmod(low, _QUARTER)
    return "".join([_PAIRS[four // len(_PAIRS)] + _PAIRS[four % len(_PAIRS)] for four in quarters])
