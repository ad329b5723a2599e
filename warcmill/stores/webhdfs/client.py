"""WebHDFS as one service, with any active NameNode and any working DataNode.

A call asks the NameNodes in turn until one gives a final answer. Temporary states (standby, startup, safe mode, a lost
connection) are retried while the budget lasts. A redirect is followed only to a DataNode that the NameNode itself
lists, and a DataNode that failed is excluded from the next redirects.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol
from urllib.parse import quote, urlencode, urlsplit

from msgspec import Struct

from warcmill.errors import BadConfig, Unavailable
from warcmill.stores.remote_files import Broken, Budget
from warcmill.stores.webhdfs.http import Address, Connections, HdfsRefusal, HdfsResponse, HdfsStream

PORT = 9870
PREFIX = "/webhdfs/v1"
JMX = "/jmx?qry=Hadoop:service=NameNode,name=NameNodeInfo"
_STATES = ("SafeModeException", "RetriableException", "StandbyException")  # the most specific first
_PASSING = frozenset({*_STATES, "EOFException", "SocketException", "ConnectException", "SocketTimeoutException"})
_NO_DATANODE = ("Failed to find datanode", "nodes contain this block", "could only be written to")
_LOOKS = 6  # over more than 3 s: a DataNode that came back reports every 3 s, and is then listed
_AVOIDED = 600.0  # seconds; by then the NameNode itself considers a DataNode dead
_DONE = (200, 201)
_QUERY = re.compile(r"(user=(?P<user>[A-Za-z_][A-Za-z0-9._-]*)|(?P<kerberos>auth=kerberos))?")
_REDIRECT, _WHO_ARE_YOU = 307, 401


class NameNodes(Struct, frozen=True):
    """The parts of `webhdfs://nn1:9870,nn2:9870/path/of/root?user=NAME`, or `?auth=kerberos`."""

    namenodes: tuple[Address, ...]
    path: str
    user: str
    kerberos: bool = False

    @classmethod
    def parse(cls, url: str) -> NameNodes:
        """Parse such a URL; BadConfig for any other, and for one with a password."""
        key, parts = "webhdfs URL", urlsplit(url)
        user = _QUERY.fullmatch(parts.query)
        if "@" in parts.netloc or parts.fragment or not user:
            raise BadConfig(key, "it reads webhdfs://HOST:PORT[,...]/PATH, then ?user=NAME or ?auth=kerberos")
        path = parts.path.rstrip("/")
        if not path or "//" in path or not path.isascii():
            raise BadConfig(key, f"{path or '/'!r}: the root is a folder below '/', its name in ASCII")
        return cls(tuple(map(_address, parts.netloc.split(","))), path, user["user"] or "", bool(user["kerberos"]))

    def __str__(self) -> str:
        return f"HDFS at {','.join(map(str, self.namenodes))}"


def _address(text: str) -> Address:
    host, _, port = text.partition(":")
    if not host or (port and not (port.isascii() and port.isdigit() and 0 < int(port) < 1 << 16)):
        raise BadConfig("webhdfs URL", f"{text!r} is not HOST:PORT of a NameNode")
    return Address(host, int(port or PORT))


class DataNode(Struct, frozen=True):
    """A DataNode: `http` is the target of redirects, `transfer` the address for `excludedatanodes`."""

    http: Address
    transfer: str


class Authentication(Protocol):
    """The authentication of requests to a NameNode; for DataNodes the redirect itself contains it."""

    def query(self) -> dict[str, str]: ...

    def headers(self, at: Address) -> dict[str, str]: ...

    def learn(self, at: Address, cookie: str) -> None: ...

    def forget(self, at: Address) -> bool: ...


class UserName(Struct, frozen=True):
    """Hadoop's simple authentication: the server trusts the name."""

    user: str

    def query(self) -> dict[str, str]:
        return {"user.name": self.user} if self.user else {}

    def headers(self, _at: Address) -> dict[str, str]:
        return {}

    def learn(self, _at: Address, _cookie: str) -> None:
        """There is nothing to learn: the name is enough."""

    def forget(self, _at: Address) -> bool:
        return False


class Client:
    """Calls to one cluster. Threads may share it. Paths are absolute."""

    def __init__(self, cluster: NameNodes, budget: Budget, connections: Connections, who: Authentication) -> None:
        self.cluster, self.budget, self._connections, self.who = cluster, budget, connections, who
        self._active = cluster.namenodes[0]
        self._datanodes: dict[Address, DataNode] = {}
        self._avoided: dict[str, float] = {}

    def ask(self, method: str, path: str, op: str, **params: str) -> dict[str, Any]:
        """Make a call that may be repeated. HdfsRefusal when HDFS refuses it, Unavailable without an answer."""
        while True:
            try:
                return self.ask_once(method, path, op, **params)
            except HdfsRefusal as error:
                if not is_passing(error) or not self.budget.wait():
                    raise
            except Broken:
                if not self.budget.wait():
                    raise

    def ask_once(self, method: str, path: str, op: str, **params: str) -> dict[str, Any]:
        """Make a call that must not be repeated blindly: after Broken with `sent`, check the result first."""
        return self._round(method, path, op, params)[1].json(str(self.cluster))

    def create(self, path: str, body: Iterable[bytes], **params: str) -> None:
        """Write a new file. An error may leave a part of it, so `path` must be a temporary name."""
        node, target = self._redirect("PUT", path, "CREATE", params)
        headers = {"Content-Type": "application/octet-stream", "Transfer-Encoding": "chunked"}
        with self.blamed(node):
            answer = self._connections.ask(node.http, "PUT", target, headers, body)
        if answer.status not in _DONE:
            raise answer.refusal(f"DataNode {node.http}")

    def fetch(self, path: str, op: str, **params: str) -> dict[str, Any]:
        """Make a GET that a DataNode answers; it may be repeated."""
        while True:
            try:
                node, target = self._redirect("GET", path, op, params)
                with self.blamed(node):
                    answer = self._connections.ask(node.http, "GET", target, {})
                if answer.status in _DONE:
                    return answer.json(f"DataNode {node.http}")
                raise answer.refusal(f"DataNode {node.http}")
            except (Broken, HdfsRefusal) as error:
                if not is_passing(error) or not self.budget.wait():
                    raise

    def read(self, path: str, offset: int) -> HdfsStream:
        """Return the bytes of a file from `offset` on. After Broken the reader retries, as it knows its position."""
        while True:
            node, target = self._redirect("GET", path, "OPEN", {"offset": str(offset)})
            try:
                with self.blamed(node):
                    return self._connections.stream(node.http, target, {})
            except HdfsRefusal as error:  # for example by a DataNode that lost its connection to the NameNode
                if not is_passing(error) or not self.budget.wait():
                    raise

    def _redirect(self, method: str, path: str, op: str, params: dict[str, str]) -> tuple[DataNode, str]:
        """Return the DataNode for a call, and the target there, which may contain a token: never show it."""
        while True:
            try:
                namenode, answer = self._round(method, path, op, {**params, **self.excluded()})
                break
            except (Broken, HdfsRefusal) as error:
                if not self.may_ask_again(error):
                    raise
        if answer.status != _REDIRECT:
            raise Unavailable(f"NameNode {namenode}", f"did not redirect {op} to a DataNode (status {answer.status})")
        url = urlsplit(answer.location)
        return self.datanode(namenode, answer.location), f"{url.path}?{url.query}"

    def datanode(self, namenode: Address, location: str) -> DataNode:
        """Return the DataNode of a redirect; Unavailable unless the NameNode lists it. `location` is secret."""
        url = urlsplit(location)
        if url.scheme != "http" or not url.path.startswith(PREFIX):
            raise Unavailable(f"NameNode {namenode}", "does not redirect to a DataNode's WebHDFS; not followed")
        at = Address(url.hostname or "", url.port or 80)
        if self._is_listed(namenode, at):
            return self._datanodes[at]
        why = f"redirects to {at}, which is not among the DataNodes it lists; not followed"
        raise Unavailable(f"NameNode {namenode}", why)

    def _round(self, method: str, path: str, op: str, params: dict[str, str]) -> tuple[Address, HdfsResponse]:
        """Ask the NameNodes in turn, once each; return the first final answer, else raise the worst failure."""
        target = f"{PREFIX}{quote(path)}?{urlencode({'op': op, **self.who.query(), **params}, quote_via=quote)}"
        failures: list[Broken | HdfsRefusal] = []
        for at in self._in_turn():
            try:
                answer = self._ask_authenticated(at, method, target)
            except Broken as error:
                failures.append(error)
                if error.sent and method != "GET":
                    raise
                continue
            if answer.status in (*_DONE, _REDIRECT):
                self._active = at
                self.budget.answered()
                return at, answer
            refusal = answer.refusal(f"NameNode {at}")
            if not is_passing(refusal):
                raise refusal
            failures.append(refusal)
        raise _worst(failures)

    def _ask_authenticated(self, at: Address, method: str, target: str) -> HdfsResponse:
        """Send an authenticated request; if the credentials have expired (401), drop them and retry once."""
        answer = self._connections.ask(at, method, target, self.who.headers(at))
        if answer.status == _WHO_ARE_YOU and self.who.forget(at):
            answer = self._connections.ask(at, method, target, self.who.headers(at))
        self.who.learn(at, answer.cookie)
        return answer

    def _in_turn(self) -> Iterator[Address]:
        active = self._active
        yield active
        yield from (namenode for namenode in self.cluster.namenodes if namenode != active)

    def _is_listed(self, namenode: Address, at: Address) -> bool:
        """True if a DataNode is listed. Look several times: one that has just come back gets redirects before that."""
        for look in range(_LOOKS):
            if at in self._datanodes or (look and not self.budget.wait()):
                break
            self._datanodes |= self._listed(namenode)
        return at in self._datanodes

    def _listed(self, namenode: Address) -> dict[Address, DataNode]:
        """Return the live DataNodes of NameNodeInfo by their HTTP addresses: by host name and by IP address."""
        answer = self._ask_authenticated(namenode, "GET", JMX)
        try:
            nodes = json.loads(answer.json(str(namenode))["beans"][0]["LiveNodes"])
            return {at: node for name, value in nodes.items() for at, node in _by_both_names(name, value)}
        except (ValueError, KeyError, IndexError, TypeError) as error:
            raise Unavailable(f"NameNode {namenode}", f"lists no DataNodes at /jmx: {error!r}") from error

    @contextmanager
    def blamed(self, node: DataNode) -> Iterator[None]:
        """Exclude a DataNode from later redirects when its connection fails: the NameNode notices late."""
        try:
            yield
        except Broken:
            self._avoided[node.transfer] = time.monotonic()
            raise

    def may_ask_again(self, error: Broken | HdfsRefusal) -> bool:
        """True if a redirect may be retried: at once if DataNodes were excluded, which is undone; else after a wait."""
        if self._avoided and isinstance(error, HdfsRefusal) and _lacks_datanode(error):
            self._avoided.clear()
            return True
        return is_passing(error) and self.budget.wait()

    def excluded(self) -> dict[str, str]:
        """Return the parameter that excludes the DataNodes that failed lately."""
        now = time.monotonic()
        names = [name for name, since in list(self._avoided.items()) if now - since < _AVOIDED]
        return {"excludedatanodes": ",".join(names)} if names else {}


def is_passing(error: Broken | HdfsRefusal) -> bool:
    """True if the same call may succeed later without any repair."""
    return isinstance(error, Broken) or error.exception in _PASSING or _lacks_datanode(error)


def _lacks_datanode(error: HdfsRefusal) -> bool:
    return error.exception == "IOException" and any(part in error.message for part in _NO_DATANODE)


def _worst(failures: list[Broken | HdfsRefusal]) -> Broken | HdfsRefusal:
    """Return one error for a round in which no NameNode gave a final answer, with the text of each."""
    if len(failures) == 1:
        return failures[0]
    text = "; ".join(map(str, failures))
    named = {error.exception for error in failures if isinstance(error, HdfsRefusal)}
    for state in _STATES:
        if state in named:
            return HdfsRefusal("HDFS", state, text)
    return Broken("HDFS", text, sent=any(isinstance(error, Broken) and error.sent for error in failures))


def _by_both_names(name: str, value: dict[str, str]) -> Iterator[tuple[Address, DataNode]]:
    """Yield a DataNode by its host name, as in redirects, and by its IP address."""
    ip, _, port = value["infoAddr"].rpartition(":")
    for host in {name.rpartition(":")[0], ip}:
        at = Address(host, int(port))
        yield at, DataNode(at, value["xferaddr"])
