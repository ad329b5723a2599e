"""What a caller promises about bytes to be stored: their length, and their SHA-512 or a function that judges it."""

from __future__ import annotations

from collections.abc import Callable

from warcmill.errors import Mismatch

Sha512 = str | Callable[[str], bool]
"""The digest in hex; or, for a stream that is made while it is sent, a function that judges its digest."""


class Promise:
    """`size` in bytes and `sha512` as passed to `commit_new`. A function is called once, even if bytes are resent."""

    def __init__(self, size: int, sha512: Sha512) -> None:
        self.size, self._sha512 = size, sha512
        self._accepted: str | None = None

    @property
    def is_judged(self) -> bool:
        """True if the digest is judged by a function."""
        return not isinstance(self._sha512, str)

    def check(self, name: str, size: int, sha512: str) -> None:
        """Raise Mismatch unless the bytes, which are durable by now, are the promised ones."""
        what = f"{name}, while it was copied"
        if isinstance(self._sha512, str):
            promised, actual = (self.size, self._sha512), (size, sha512)
            if actual != promised:
                raise Mismatch(f"{what} (bytes, sha512)", promised, actual)
        elif size != self.size:
            raise Mismatch(f"{what} (bytes)", self.size, size)
        elif self._accepted is None:
            if not self._sha512(sha512):
                raise Mismatch(f"{what} (sha512)", "one that the caller accepts", f"{sha512}, which it refused")
            self._accepted = sha512
        elif sha512 != self._accepted:
            raise Mismatch(f"{what} a second time (sha512)", self._accepted, sha512)
