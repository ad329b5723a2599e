"""Write times, sizes and numbers as Heritrix's reports have them."""

from __future__ import annotations

_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s"), (1, "ms"))
_SIZES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def duration(seconds: float) -> str:
    """A length of time, without units that it has none of: `1m41s333ms`."""
    rest, parts = round(seconds * 1000), []
    for unit, name in _UNITS:
        count, rest = divmod(rest, unit)
        parts += [f"{count}{name}"] if count else []
    return "".join(parts) or "0ms"


def size(count: int) -> str:
    """A number of bytes, with a decimal when it is below 10: `6.3 MiB`, `302 KiB`, `428 B`."""
    value, unit = float(count), 0
    while value >= 1024 and unit < len(_SIZES) - 1:
        value, unit = value / 1024, unit + 1
    return f"{number(value, 1 if value < 10 else 0)} {_SIZES[unit]}"


def number(value: float, digits: int) -> str:
    """A number with at most so many decimals, and no needless zeros."""
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if digits else text
