"""ARKs that are derived, and the check character that NOID puts at the end of one. Pure.

A derived ARK is NAAN, shoulder, and 16 digits of the SHA-256 over what it names: no counter, so nothing to lose, to
restore, or to give out twice. The syntax is https://www.ietf.org/archive/id/draft-kunze-ark-41.html; the check
character https://metacpan.org/dist/Noid/view/noid#NOID-CHECK-DIGIT-ALGORITHM.
"""

from __future__ import annotations

import re
from functools import lru_cache
from hashlib import sha256
from itertools import count
from operator import mul

BETANUMERIC = "0123456789bcdfghjkmnpqrstvwxz"  # digits, and letters without vowels and l: 29, a prime number
_VALUES = bytes(max(BETANUMERIC.find(chr(byte)), 0) for byte in range(256))  # of characters, for the check character
_PAIRS = [first + second for first in BETANUMERIC for second in BETANUMERIC]  # of digits: half as many divisions
LENGTH = 16  # digits: 29**16 is about 2**77
_Shares = list[int]  # of the sum for NOID, by pair
_LAST, _HALF, _QUARTER = (len(BETANUMERIC) ** digits for digits in (LENGTH, LENGTH // 2, LENGTH // 4))
MOST_GIVEN = 28 - len("/") - LENGTH  # characters of NAAN and shoulder: the check character is good for 28
LONGEST = 255  # characters
_ARK = re.compile(rf"ark:/?(?P<naan>[{BETANUMERIC}]{{5,9}})/(?P<name>[A-Za-z0-9=~*+@_$%./-]+)")


def derived(naan: str, shoulder: str, *names: str) -> str:
    """Return the ARK of the thing that these texts, without a NUL, name together. The same texts give the same ARK."""
    what = "\0".join(names).encode()
    before, total, shares = _zone(naan, shoulder)
    digits, share = _written(int.from_bytes(sha256(what).digest()), *shares)
    return f"{before}{digits}{BETANUMERIC[(total + share) % len(BETANUMERIC)]}"


def zone_of(ark: str) -> tuple[str, str]:
    """Return the NAAN and the shoulder of a derived ARK."""
    naan, _, rest = ark.removeprefix("ark:").partition("/")
    return naan, rest[: -LENGTH - 1]


def is_ark(text: str) -> bool:
    """True if a text is an ARK: `ark:NAAN/name`, or `ark:/NAAN/name` as older minters write it."""
    return len(text) <= LONGEST and _ARK.fullmatch(text) is not None


def _total(zone: str, begin: int = 1) -> int:
    """The sum of NOID: each character's value by its place, of which the first is `begin`."""
    return sum(map(mul, count(begin), zone.encode("ascii", "replace").translate(_VALUES)))


@lru_cache(maxsize=8)  # a package has 100,000 ARKs of one zone
def _zone(naan: str, shoulder: str) -> tuple[str, int, list[_Shares]]:
    """The part before the digits of a derived ARK, its share of the sum, and the share of each pair at each place."""
    zone = f"{naan}/{shoulder}"
    places = range(len(zone) + 1, len(zone) + 1 + LENGTH, 2)
    return f"ark:{zone}", _total(zone), [[_total(pair, place) for pair in _PAIRS] for place in places]


def _written(
    number: int, s0: _Shares, s1: _Shares, s2: _Shares, s3: _Shares, s4: _Shares, s5: _Shares, s6: _Shares, s7: _Shares
) -> tuple[str, int]:
    """Write the last digits of a number, and sum their shares.

    Halved until pairs are left, for dividing small numbers is faster; and without a loop, which takes twice as long.
    """
    pairs, size = _PAIRS, len(_PAIRS)
    high, low = divmod(number % _LAST, _HALF)
    (first, second), (third, fourth) = divmod(high, _QUARTER), divmod(low, _QUARTER)
    (a, b), (c, d), (e, f), (g, h) = (
        divmod(first, size),
        divmod(second, size),
        divmod(third, size),
        divmod(fourth, size),
    )
    text = f"{pairs[a]}{pairs[b]}{pairs[c]}{pairs[d]}{pairs[e]}{pairs[f]}{pairs[g]}{pairs[h]}"
    return text, s0[a] + s1[b] + s2[c] + s3[d] + s4[e] + s5[f] + s6[g] + s7[h]
