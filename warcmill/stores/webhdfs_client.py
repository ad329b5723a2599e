"""WebHDFS as one service: whichever NameNode is active, whichever DataNode works.

A call goes round the NameNodes until one answers for good; what passes (a standby, a start, safe mode, a lost
connection) is tried again while the budget lasts. A redirect is followed only to a DataNode that the NameNode
itself lists, and a DataNode that failed is left out of the next ones.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import quote, urlencode, urlsplit

from warcmill.errors import BadConfig, Unavailable
from warcmill.stores.budget import Budget
from warcmill.stores.remote import Broken
from warcmill.stores.webhdfs_http import Address, Answer, Connections, Refused, Stream

PORT = 9870
PREFIX = "/webhdfs/v1"
JMX = "/jmx?qry=Hadoop:service=NameNode,name=NameNodeInfo"
_STATES = ("SafeModeException", "RetriableException", "StandbyException")  # the most telling first
_PASSING = frozenset({*_STATES, "EOFException", "SocketException", "ConnectException", "SocketTimeoutException"})
_NO_DATANODE = ("Failed to find datanode", "nodes contain this block", "could only be written to")
_LOOKS = 6  # 3 s and more: a DataNode that came back reports every 3 s, and is listed then
_AVOIDED = 600.0  # seconds; by then the NameNode itself has found a DataNode dead
_DONE = (200, 201)
_QUERY = re.compile(r"(user=(?P<user>[A-Za-z_][A-Za-z0-9._-]*)|(?P<kerberos>auth=kerberos))?")
_REDIRECT, _WHO_ARE_YOU = 307, 401


@dataclass(frozen=True, slots=True)
class Cluster:
    """`webhdfs://nn1:9870,nn2:9870/path/of/root?user=NAME`, or `?auth=kerberos`, taken apart."""

    namenodes: tuple[Address, ...]
    path: str
    user: str
    kerberos: bool = False

    @classmethod
    def parse(cls, url: str) -> Cluster:
        """BadConfig for anything that is not such a URL; a password has no place in one."""
        key, parts = "webhdfs URL", urlsplit(url)
        user = _QUERY.fullmatch(parts.query)
        if "@" in parts.netloc or parts.fragment or not user:
            raise BadConfig(key, "it reads webhdfs://HOST:PORT[,...]/PATH, then ?user=NAME or ?auth=kerberos")
        path = parts.path.rstrip("/")
        if not path or "//" in path or not path.isascii():
            raise BadConfig(key, f"{path or '/'!r}: the root is a folder below '/', its name in ASCII")
        return cls(
            tuple(_address(one) for one in parts.netloc.split(",")), path, user["user"] or "", bool(user["kerberos"])
        )

    def __str__(self) -> str:
        return f"HDFS at {','.join(map(str, self.namenodes))}"


def _address(text: str) -> Address:
    host, _, port = text.partition(":")
    if not host or (port and not (port.isascii() and port.isdigit() and 0 < int(port) < 1 << 16)):
        raise BadConfig("webhdfs URL", f"{text!r} is not HOST:PORT of a NameNode")
    return Address(host, int(port or PORT))


@dataclass(frozen=True, slots=True)
class DataNode:
    """`http` is where redirects lead, `transfer` the address that `excludedatanodes` understands."""

    http: Address
    transfer: str


class Authentication(Protocol):
    """How requests to a NameNode say who asks; DataNodes are told by the redirect itself."""

    def query(self) -> dict[str, str]: ...

    def headers(self, at: Address) -> dict[str, str]: ...

    def learn(self, at: Address, cookie: str) -> None: ...

    def forget(self, at: Address) -> bool: ...


@dataclass(frozen=True, slots=True)
class UserName:
    """Hadoop's simple authentication: the name is believed."""

    user: str

    def query(self) -> dict[str, str]:
        return {"user.name": self.user} if self.user else {}

    def headers(self, _at: Address) -> dict[str, str]:
        return {}

    def learn(self, _at: Address, _cookie: str) -> None:
        """A name is all there is."""

    def forget(self, _at: Address) -> bool:
        return False


class Client:
    """Calls to one cluster. Threads may share it. Paths are absolute."""

    def __init__(self, cluster: Cluster, budget: Budget, connections: Connections, who: Authentication) -> None:
        self.cluster, self.budget, self._connections, self.who = cluster, budget, connections, who
        self._active = cluster.namenodes[0]
        self._datanodes: dict[Address, DataNode] = {}
        self._avoided: dict[str, float] = {}

    def ask(self, method: str, path: str, op: str, **params: str) -> dict[str, Any]:
        """A call that may be repeated. Refused when HDFS says no for good, Unavailable when none could answer."""
        while True:
            try:
                return self.ask_once(method, path, op, **params)
            except Refused as error:
                if not is_passing(error) or not self.budget.wait():
                    raise
            except Broken:
                if not self.budget.wait():
                    raise

    def ask_once(self, method: str, path: str, op: str, **params: str) -> dict[str, Any]:
        """A call that must not be repeated unseen: after Broken that was `sent`, look what became of it."""
        return self._round(method, path, op, params)[1].json(str(self.cluster))

    def create(self, path: str, body: Iterable[bytes], **params: str) -> None:
        """Write a new file. Anything that goes wrong on the way may leave a part of it: never a name that counts."""
        node, target = self._redirect("PUT", path, "CREATE", params)
        headers = {"Content-Type": "application/octet-stream", "Transfer-Encoding": "chunked"}
        with self.blamed(node):
            answer = self._connections.ask(node.http, "PUT", target, headers, body)
        if answer.status not in _DONE:
            raise answer.refusal(f"DataNode {node.http}")

    def fetch(self, path: str, op: str, **params: str) -> dict[str, Any]:
        """A GET that a DataNode answers; may be repeated."""
        while True:
            try:
                node, target = self._redirect("GET", path, op, params)
                with self.blamed(node):
                    answer = self._connections.ask(node.http, "GET", target, {})
                if answer.status in _DONE:
                    return answer.json(f"DataNode {node.http}")
                raise answer.refusal(f"DataNode {node.http}")
            except (Broken, Refused) as error:
                if not is_passing(error) or not self.budget.wait():
                    raise

    def read(self, path: str, offset: int) -> Stream:
        """The bytes of a file from `offset` on. Broken is for the reader, which knows where it was, to try again."""
        while True:
            node, target = self._redirect("GET", path, "OPEN", {"offset": str(offset)})
            try:
                with self.blamed(node):
                    return self._connections.stream(node.http, target, {})
            except Refused as error:  # by a DataNode whose own connection to the NameNode is worn out, say
                if not is_passing(error) or not self.budget.wait():
                    raise

    def _redirect(self, method: str, path: str, op: str, params: dict[str, str]) -> tuple[DataNode, str]:
        """The DataNode that is to do it, and what to send there; that may hold a token, so it is for nobody's eyes."""
        while True:
            try:
                namenode, answer = self._round(method, path, op, {**params, **self.excluded()})
                break
            except (Broken, Refused) as error:
                if not self.may_ask_again(error):
                    raise
        if answer.status != _REDIRECT:
            raise Unavailable(f"NameNode {namenode}", f"did not redirect {op} to a DataNode (status {answer.status})")
        url = urlsplit(answer.location)
        return self.datanode(namenode, answer.location), f"{url.path}?{url.query}"

    def datanode(self, namenode: Address, location: str) -> DataNode:
        """The DataNode that a redirect leads to; Unavailable unless the NameNode lists it. `location` is secret."""
        url = urlsplit(location)
        if url.scheme != "http" or not url.path.startswith(PREFIX):
            raise Unavailable(f"NameNode {namenode}", "redirects to what is no DataNode's WebHDFS; not followed")
        at = Address(url.hostname or "", url.port or 80)
        if self._is_listed(namenode, at):
            return self._datanodes[at]
        why = f"redirects to {at}, which is not among the DataNodes it lists; not followed"
        raise Unavailable(f"NameNode {namenode}", why)

    def _round(self, method: str, path: str, op: str, params: dict[str, str]) -> tuple[Address, Answer]:
        """Ask the NameNodes in turn, once each; the first answer that is not a standby's or a failure's."""
        target = f"{PREFIX}{quote(path)}?{urlencode({'op': op, **self.who.query(), **params}, quote_via=quote)}"
        failures: list[Broken | Refused] = []
        for at in self._in_turn():
            try:
                answer = self._ask_as_us(at, method, target)
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

    def _ask_as_us(self, at: Address, method: str, target: str) -> Answer:
        """Ask a NameNode, which is told who asks; once more when what we had from it to say so is worn out."""
        answer = self._connections.ask(at, method, target, self.who.headers(at))
        if answer.status == _WHO_ARE_YOU and self.who.forget(at):
            answer = self._connections.ask(at, method, target, self.who.headers(at))
        self.who.learn(at, answer.cookie)
        return answer

    def _in_turn(self) -> Iterator[Address]:
        active = self._active
        yield active
        yield from (one for one in self.cluster.namenodes if one != active)

    def _is_listed(self, namenode: Address, at: Address) -> bool:
        """Looked up more than once: one that has just come back takes redirects before it is listed."""
        for look in range(_LOOKS):
            if at in self._datanodes or (look and not self.budget.wait()):
                break
            self._datanodes |= self._listed(namenode)
        return at in self._datanodes

    def _listed(self, namenode: Address) -> dict[Address, DataNode]:
        """The living DataNodes by where they listen for HTTP, as NameNodeInfo tells: by name and by IP address."""
        answer = self._ask_as_us(namenode, "GET", JMX)
        try:
            nodes = json.loads(answer.json(str(namenode))["beans"][0]["LiveNodes"])
            return {at: node for name, value in nodes.items() for at, node in _by_both_names(name, value)}
        except (ValueError, KeyError, IndexError, TypeError) as error:
            raise Unavailable(f"NameNode {namenode}", f"lists no DataNodes at /jmx: {error!r}") from error

    @contextmanager
    def blamed(self, node: DataNode) -> Iterator[None]:
        """Leave a DataNode out of later redirects when its connection fails: the NameNode is slow to notice."""
        try:
            yield
        except Broken:
            self._avoided[node.transfer] = time.monotonic()
            raise

    def may_ask_again(self, error: Broken | Refused) -> bool:
        """Whether a DataNode may be found yet: at once when it is we who left some out, else after a wait."""
        if self._avoided and isinstance(error, Refused) and _lacks_datanode(error):
            self._avoided.clear()
            return True
        return is_passing(error) and self.budget.wait()

    def excluded(self) -> dict[str, str]:
        """What a NameNode is asked to leave out."""
        now = time.monotonic()
        names = [name for name, since in list(self._avoided.items()) if now - since < _AVOIDED]
        return {"excludedatanodes": ",".join(names)} if names else {}


def is_passing(error: Broken | Refused) -> bool:
    """Whether the same call may succeed later, with nothing repaired by hand."""
    return isinstance(error, Broken) or error.exception in _PASSING or _lacks_datanode(error)


def _lacks_datanode(error: Refused) -> bool:
    return error.exception == "IOException" and any(part in error.message for part in _NO_DATANODE)


def _worst(failures: list[Broken | Refused]) -> Broken | Refused:
    """One error for a round in which no NameNode could answer: what each of them said."""
    if len(failures) == 1:
        return failures[0]
    text = "; ".join(map(str, failures))
    named = {error.exception for error in failures if isinstance(error, Refused)}
    for state in _STATES:
        if state in named:
            return Refused("HDFS", state, text)
    return Broken("HDFS", text, sent=any(isinstance(error, Broken) and error.sent for error in failures))


def _by_both_names(name: str, value: dict[str, str]) -> Iterator[tuple[Address, DataNode]]:
    """A DataNode's HTTP address with its host name, as in redirects, and with its IP address."""
    ip, _, port = value["infoAddr"].rpartition(":")
    for host in {name.rpartition(":")[0], ip}:
        at = Address(host, int(port))
        yield at, DataNode(at, value["xferaddr"])
