"""A place in S3 by its URL, and the access to its server, without boto3: to read a configuration takes none.

Reads only: the file of the secret, when the server is asked for the first time.
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct

from warcmill.errors import BadConfig

_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")


class S3Access(Struct, frozen=True):
    """The server of s3:// and who we are there. An empty value is for boto3 to find: in AWS_* of the environment, in
    ~/.aws, by the role of the machine. The secret is never printed."""

    endpoint: str = ""
    region: str = ""
    access_key: str = ""
    secret_key: str = ""
    secret_key_file: str = ""

    def __post_init__(self) -> None:
        if "@" in self.endpoint:  # messages name the endpoint
            raise BadConfig("[s3] endpoint", "has a user in it; set access_key and secret_key_file instead")

    def __repr__(self) -> str:
        return f"S3Access({self.endpoint!r})"

    def secret(self) -> str:
        """The secret key; '' to let boto3 find one. BadConfig for a file that cannot be read."""
        if not self.secret_key_file:
            return self.secret_key
        try:
            return Path(self.secret_key_file).read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise BadConfig("[s3] secret_key_file", str(error)) from error


class S3Place(Struct, frozen=True):
    """A root in a bucket: `prefix` is its folder there, '' for the whole bucket."""

    bucket: str
    prefix: str

    @classmethod
    def parse(cls, url: str) -> S3Place:
        """Parse `s3://BUCKET/PREFIX`, or BadConfig: without what could be a secret."""
        parts = urlsplit(url)
        prefix = parts.path.strip("/")
        if "@" in parts.netloc or not _BUCKET.fullmatch(parts.netloc) or parts.query or parts.fragment:
            raise BadConfig("s3", "a place is s3://BUCKET/FOLDER; server and keys are in the section [s3]")
        if not is_plain(prefix) or any(part in ("", ".", "..") for part in prefix.split("/") if prefix):
            raise BadConfig("s3", f"the folder {prefix!r} is none: letters, digits and plain signs, as in warcs/2016")
        return cls(parts.netloc, prefix)

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}"


def is_plain(path: str) -> bool:
    """True if a path may be part of a key as it is: the XML of answers has no control characters."""
    return path.isascii() and path.isprintable()
