"""Requests to one bucket of an S3 server: who we are, refusals by their status, retries, a download as a stream.

boto3 signs and sends. Its own retries are off: a `Budget` bounds the time that a batch may wait for the server.
"""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError, IncompleteReadError, NoCredentialsError
from botocore.parsers import ResponseParserError

from warcmill.errors import BadConfig, Unavailable
from warcmill.stores.remote_files import Broken, Budget
from warcmill.stores.s3.place import S3Access

logging.getLogger("botocore").setLevel(logging.WARNING)  # below, it logs each request with its signature
CONNECT_SECONDS = 15
ANSWER_SECONDS = 300  # a server may join the parts of a long file before it answers
PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
_AT_ONCE = 16
_DEFAULT_REGION = "us-east-1"  # servers other than Amazon's take any


class S3Refusal(Unavailable):
    """The server refused a request. `status` decides; servers word their codes differently."""

    def __init__(self, what: str, why: str, status: int) -> None:
        self.status = status
        super().__init__(what, why)

    @property
    def is_absence(self) -> bool:
        """True if the server reports that nothing is there."""
        return self.status == HTTPStatus.NOT_FOUND

    @property
    def is_taken(self) -> bool:
        """True if the condition of the request did not hold: for If-None-Match something is there already."""
        return self.status == HTTPStatus.PRECONDITION_FAILED


class Bucket:
    """One bucket. Threads may share it."""

    def __init__(self, bucket: str, access: S3Access, budget: Budget, answer_seconds: float = ANSWER_SECONDS) -> None:
        self.name, self.budget = bucket, budget
        self._server = access.endpoint or "Amazon S3"
        try:
            self.client = boto3.client(
                "s3",
                endpoint_url=access.endpoint or None,
                region_name=access.region or boto3.Session().region_name or _DEFAULT_REGION,
                aws_access_key_id=access.access_key or None,
                aws_secret_access_key=access.secret() or None,
                config=Config(
                    s3={"addressing_style": "path" if access.endpoint else "auto"},
                    max_pool_connections=_AT_ONCE,
                    retries={"total_max_attempts": 1},
                    connect_timeout=CONNECT_SECONDS,
                    read_timeout=answer_seconds,
                    request_checksum_calculation="when_required",
                    response_checksum_validation="when_required",
                ),
            )
        except (ValueError, BotoCoreError) as error:
            raise BadConfig("[s3]", str(error)) from error

    def __str__(self) -> str:
        return f"s3://{self.name} at {self._server}"

    def ask(self, verb: str, **words: Any) -> dict[str, Any]:
        """Send a request of boto3's client, again while its failure may pass and the budget lasts; return the answer.

        A request whose answer was lost may have been executed: what it made is then there already.
        """
        while True:
            try:
                return self.ask_once(verb, **words)
            except (Broken, S3Refusal) as error:
                if not is_passing(error) or not self.budget.wait():
                    raise

    def ask_once(self, verb: str, **words: Any) -> dict[str, Any]:
        """Send a request once. S3Refusal when the server refuses it; Broken when it does not answer."""
        try:
            answer: dict[str, Any] = getattr(self.client, verb)(Bucket=self.name, **words)
        except ClientError as error:
            raise self._refusal(verb, words, error) from error
        except NoCredentialsError as error:
            why = "neither [s3] access_key and secret_key, nor boto3's own sources, name who we are"
            raise BadConfig("[s3] access_key", why) from error
        except (HTTPClientError, ResponseParserError) as error:
            raise Broken(str(self), _shown(error)) from error
        except BotoCoreError as error:
            raise Unavailable(str(self), _shown(error)) from error
        self.budget.answered()
        return answer

    def part(self, key: str, at: int, version: str) -> S3Part:
        """Return the bytes of an object from `at` on, as long as it is still the one with this ETag."""
        answer = self.ask("get_object", Key=key, Range=f"bytes={at}-", IfMatch=version)
        begins = answer.get("ContentRange", "" if at else "bytes 0-")
        if not begins.startswith(f"bytes {at}-"):
            answer["Body"].close()
            raise Unavailable(
                str(self), f"asked for {key} from byte {at} on, it sent the range {begins or 'from 0 on'}"
            )
        return S3Part(str(self), answer["Body"])

    def _refusal(self, verb: str, words: dict[str, Any], error: ClientError) -> S3Refusal:
        said, status = error.response.get("Error", {}), int(error.response["ResponseMetadata"]["HTTPStatusCode"])
        what = f"{verb} of {words['Key']}" if "Key" in words else verb
        why = f"it refuses {what}: {status} {said.get('Code', '')} {said.get('Message', '')}".rstrip()
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            why += ". Check the keys of [s3], and what they may do in this bucket"
        return S3Refusal(str(self), why, status)


def is_passing(error: Unavailable) -> bool:
    """True if the same request may succeed later."""
    return isinstance(error, Broken) or (isinstance(error, S3Refusal) and error.status in PASSING)


class S3Part:
    """The body of one answer. A body that ends early is a broken connection."""

    def __init__(self, server: str, body: Any) -> None:
        self._server, self._body = server, body

    def readinto(self, buffer: Any) -> int:
        """Read at least a byte, or raise Broken."""
        try:
            got = int(self._body.readinto(buffer))
        except (HTTPClientError, IncompleteReadError, OSError) as error:
            raise Broken(self._server, _shown(error)) from error
        if not got:
            raise Broken(self._server, "the answer ended early")
        return got

    def close(self) -> None:
        """Hang up: what is left of the answer is not wanted."""
        self._body.close()


def _shown(error: Exception) -> str:
    """The text of an error of boto3: it names the endpoint, never a key."""
    return str(error) or type(error).__name__
