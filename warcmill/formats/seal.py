"""The seal of a text, its last line: the SHA-512 of all bytes before it. Pure.

`head -n -1 FILE | sha512sum` checks it by hand.
"""

from __future__ import annotations

from hashlib import sha512

from warcmill.errors import BadInput

LAST = 129  # bytes of the last line


def seal(body: bytes) -> bytes:
    """A text with its last line. It ends with the end of a line."""
    return body + sha512(body).hexdigest().encode() + b"\n"


def unseal(data: bytes, path: str) -> bytes:
    """The text without its last line. BadInput if it was cut or altered."""
    body, last = data[:-LAST], data[-LAST:]
    if last != sha512(body).hexdigest().encode() + b"\n":
        raise BadInput(path, "its last line is not the SHA-512 of the lines before it: cut or altered", len(body))
    return body
