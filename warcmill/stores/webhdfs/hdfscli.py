"""Read a file in HDFS by code that did not write it: HdfsCLI, the package `hdfs`.

HdfsCLI is used for nothing else: its uploads were seen to publish truncated files, and to delete another writer's.
It uses a session of ours: no proxy or password of the environment is used, only NameNodes get our credentials, and
only listed DataNodes are redirect targets. A redirect may contain a token, and the errors and log lines of `requests`
contain the URL: so they are never shown, nor kept as the cause of our own errors.
"""

from __future__ import annotations

import http.client
import logging
from contextlib import ExitStack
from http.cookiejar import DefaultCookiePolicy
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import hdfs
import requests
import urllib3

from warcmill.errors import BadInput
from warcmill.stores.remote_files import Broken
from warcmill.stores.webhdfs.client import Client
from warcmill.stores.webhdfs.http import ANSWER_SECONDS, CONNECT_SECONDS, Address, HdfsRefusal, HdfsResponse, why

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

logging.getLogger("hdfs").setLevel(logging.CRITICAL)  # our own errors report its failures
logging.getLogger("urllib3.connectionpool").setLevel(logging.INFO)  # below, it logs URLs

_WRAPPERS = (requests.RequestException, urllib3.exceptions.HTTPError)
_FAULTS = (*_WRAPPERS, http.client.HTTPException, OSError)
_REDIRECT = 307
_PIECE = 1 << 18  # bytes per read: HdfsCLI allocates each one, and larger ones are slower


class HdfsCli:
    """Reads files of `client`'s cluster, with the same retries and waits."""

    def __init__(self, client: Client) -> None:
        self._client = client
        namenodes = ";".join(f"http://{namenode}" for namenode in client.cluster.namenodes)
        timeout = (CONNECT_SECONDS, ANSWER_SECONDS)
        self._hdfs = hdfs.Client(namenodes, timeout=timeout, session=_Session(client))

    def read(self, path: str, offset: int) -> Bytes:
        """Return the bytes of a file from `offset` on. After Broken the reader retries, as it knows its position."""
        if "#" in path:
            raise BadInput(path, "HdfsCLI takes '#LATEST' for another path; stored names hold no '#'")
        while True:
            try:
                return Bytes(self._hdfs, path, offset, str(self._client.cluster))
            except HdfsRefusal as error:
                if not self._client.may_ask_again(error):
                    raise


class Bytes:
    """The bytes of a file as HdfsCLI delivers them."""

    def __init__(self, client: Any, path: str, offset: int, what: str) -> None:
        self._what, self._open = what, ExitStack()
        try:
            self._raw = self._open.enter_context(client.read(path, offset=offset))
        except hdfs.HdfsError as error:
            raise HdfsRefusal(what, error.exception or "", error.message.partition("\n")[0]) from None
        except _FAULTS as error:
            raise Broken(what, _why(error)) from None

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Read at least a byte; Broken when the connection ends first."""
        try:
            got: int = self._raw.readinto(memoryview(buffer).cast("B")[:_PIECE])
        except _FAULTS as error:
            raise Broken(self._what, _why(error)) from None
        if not got:
            raise Broken(self._what, "the connection ended before the file did")
        return got

    def close(self) -> None:
        self._open.close()


class _Session:
    """A session of `requests` for HdfsCLI: it authenticates to NameNodes, but never to DataNodes."""

    def __init__(self, client: Client) -> None:
        self._client, self._wire = client, requests.Session()
        self._wire.trust_env = False
        self._wire.cookies.set_policy(DefaultCookiePolicy(allowed_domains=()))  # else all ports of a host get them
        self._wire.headers["Accept-Encoding"] = "identity"

    def request(
        self, method: str, url: str, params: dict[str, Any], timeout: tuple[float, float], **_: object
    ) -> requests.Response:
        """Return the answer of a NameNode, or of the DataNode that it redirects to."""
        assert method == "GET", f"HdfsCLI is for reading alone, not for {method}"
        namenode = _address(url)
        answer = self._ask_authenticated(namenode, url, {**params, **self._client.excluded()}, timeout)
        if answer.status_code != _REDIRECT:
            return _checked(answer, f"NameNode {namenode}")
        location = answer.headers.get("Location", "")
        answer.close()
        node = self._client.datanode(namenode, location)
        with self._client.blamed(node):
            return _checked(self._ask_datanode(f"DataNode {node.http}", location, timeout), f"DataNode {node.http}")

    def _ask_authenticated(
        self, at: Address, url: str, params: dict[str, Any], timeout: tuple[float, float]
    ) -> requests.Response:
        """Ask as `Client` does. After an error of the connection HdfsCLI asks the next NameNode."""
        who = self._client.who
        query = {**params, **who.query()}
        answer = self._get(url, timeout, query, who.headers(at))
        if answer.status_code == http.client.UNAUTHORIZED and who.forget(at):
            answer.close()
            answer = self._get(url, timeout, query, who.headers(at))
        who.learn(at, answer.headers.get("Set-Cookie", ""))
        return answer

    def _ask_datanode(self, what: str, location: str, timeout: tuple[float, float]) -> requests.Response:
        try:
            return self._get(location, timeout)
        except _FAULTS as error:
            raise Broken(what, _why(error)) from None

    def _get(
        self,
        url: str,
        timeout: tuple[float, float],
        params: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
    ) -> requests.Response:
        return self._wire.get(url, params=params, headers=headers, timeout=timeout, stream=True, allow_redirects=False)


def _checked(answer: requests.Response, what: str) -> requests.Response:
    """Return an answer that HdfsCLI understands: bytes, or a refusal with its reason. Else raise HdfsRefusal."""
    if answer.status_code == http.client.OK:
        return answer
    refusal = HdfsResponse(answer.status_code, "", answer.content).refusal(what)
    if answer.ok or not refusal.exception:
        raise refusal
    return answer


def _address(url: str) -> Address:
    parts = urlsplit(url)
    return Address(parts.hostname or "", parts.port or 80)


def _why(error: BaseException) -> str:
    """Describe an error by its innermost cause: the messages of `requests` contain the URL."""
    cause: BaseException | None = error
    while isinstance(cause, _WRAPPERS) and not isinstance(cause, http.client.HTTPException):
        cause = cause.__cause__ or cause.__context__
    return why(cause) if cause is not None else f"the connection failed ({type(error).__name__})"
