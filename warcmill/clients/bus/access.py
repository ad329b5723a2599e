"""The way to a Kafka: its protocol, certificates, login, and settings of the client by their names. Reads files.

Secrets are in files, or come from the environment; they are in no text, message or repr. A file is read again for each
client, so a new password or token counts without a restart. The settings of a client are a closed list: others would
break what a bus promises, load code, or hold a secret in the clear.
"""

from __future__ import annotations

import base64
import json
import math
import os
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal

from msgspec import Struct, field

from warcmill.base import clock
from warcmill.base.escapes import nearest
from warcmill.errors import BadConfig, Unavailable

Client = Literal["admin", "producer", "consumer"]

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
OAUTHBEARER: Final = "OAUTHBEARER"
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", OAUTHBEARER)
SECTION, SETTINGS = "kafka", "kafka_settings"
_LARGEST: Final = 1 << 18  # bytes of a secret
_LOOK_AGAIN: Final = 60.0  # seconds after which the file of a token is read again, however long that is good for

_OF_ALL: Final = (
    *("broker.address.family", "broker.address.ttl", "client.dns.lookup", "client.id", "client.rack"),
    *("connections.max.idle.ms", "metadata.max.age.ms", "metadata.recovery.strategy", "receive.message.max.bytes"),
    *("reconnect.backoff.max.ms", "reconnect.backoff.ms", "retry.backoff.max.ms", "retry.backoff.ms"),
    *("socket.connection.setup.timeout.ms", "socket.keepalive.enable", "socket.max.fails", "socket.nagle.disable"),
    *("socket.receive.buffer.bytes", "socket.send.buffer.bytes", "socket.timeout.ms", "ssl.cipher.suites"),
    *("ssl.crl.location", "ssl.curves.list", "ssl.sigalgs.list", "topic.metadata.refresh.interval.ms"),
)
_OF_PRODUCER: Final = (
    *("batch.num.messages", "batch.size", "compression.level", "compression.type", "delivery.timeout.ms", "linger.ms"),
    *("max.in.flight.requests.per.connection", "message.max.bytes", "queue.buffering.max.kbytes"),
    *("queue.buffering.max.messages", "request.timeout.ms", "retries"),
)
_OF_CONSUMER: Final = (
    *("check.crcs", "fetch.error.backoff.ms", "fetch.max.bytes", "fetch.message.max.bytes", "fetch.min.bytes"),
    *("fetch.queue.backoff.ms", "fetch.wait.max.ms", "heartbeat.interval.ms", "isolation.level"),
    *("max.poll.interval.ms", "queued.max.messages.kbytes", "queued.min.messages", "session.timeout.ms"),
)
NAMES: Final = tuple(sorted({*_OF_ALL, *_OF_PRODUCER, *_OF_CONSUMER}))
"""The settings of the client that may be set."""
_OF_CLIENT: Final[Mapping[Client, tuple[str, ...]]] = MappingProxyType({
    "admin": _OF_ALL, "producer": (*_OF_ALL, *_OF_PRODUCER), "consumer": (*_OF_ALL, *_OF_CONSUMER),
})  # fmt: skip

_ALWAYS: Final = "a bus that loses nothing needs it as it is; leave it out"
_CHECKED: Final = "a broker's certificate and name are always checked: set [kafka] ca_file, and name it as that does"
_TODO: Final[Mapping[str, str]] = MappingProxyType({
    "bootstrap.servers": "set [requests] bus=kafka://HOST:PORT,HOST:PORT",
    "metadata.broker.list": "set [requests] bus=kafka://HOST:PORT,HOST:PORT",
    "security.protocol": "set [kafka] protocol",
    "ssl.ca.location": "set [kafka] ca_file",
    "ssl.certificate.location": "set [kafka] certificate_file",
    "ssl.key.location": "set [kafka] key_file",
    "ssl.key.password": "set [kafka] key_password_file",
    "sasl.mechanism": "set [kafka] mechanism", "sasl.mechanisms": "set [kafka] mechanism",
    "sasl.username": "set [kafka] user", "sasl.password": "set [kafka] password_file",
    "sasl.jaas.config": "set [kafka] mechanism, user and password_file",
    "enable.ssl.certificate.verification": _CHECKED, "ssl.endpoint.identification.algorithm": _CHECKED,
    "group.id": "set KAFKA_GROUP of the settings file", "group.instance.id": "roles may not share one; leave it out",
    "message.timeout.ms": "write delivery.timeout.ms", "message.send.max.retries": "write retries",
    "queue.buffering.max.ms": "write linger.ms", "compression.codec": "write compression.type",
    "max.in.flight": "write max.in.flight.requests.per.connection",
    "max.partition.fetch.bytes": "write fetch.message.max.bytes", "fetch.max.wait.ms": "write fetch.wait.max.ms",
    "max.request.size": "write message.max.bytes", "buffer.memory": "write queue.buffering.max.kbytes",
    "acks": _ALWAYS, "request.required.acks": _ALWAYS, "enable.idempotence": _ALWAYS, "transactional.id": _ALWAYS,
    "enable.auto.commit": _ALWAYS, "auto.commit.interval.ms": _ALWAYS, "enable.auto.offset.store": _ALWAYS,
    "auto.offset.reset": _ALWAYS, "partition.assignment.strategy": _ALWAYS, "group.protocol": _ALWAYS,
    "partitioner": _ALWAYS, "enable.gapless.guarantee": _ALWAYS, "allow.auto.create.topics": _ALWAYS,
    "plugin.library.paths": "it loads code; leave it out", "ssl.engine.location": "it loads code; leave it out",
})  # fmt: skip
_BEGINNINGS: Final = (  # of names of one kind, and what to do
    ("sasl.oauthbearer.", "set [kafka] token_file: another program writes the token there"),
    ("sasl.kerberos.", f"Kerberos is not among {', '.join(MECHANISMS)}; set [kafka] mechanism to one of them"),
    ("ssl.keystore.", "set [kafka] certificate_file and key_file, in PEM"),
    ("ssl.truststore.", "set [kafka] ca_file, in PEM"),
)
_SECRETS: Final = ("password", "secret", "token", ".pem", "credential", "passphrase")


class KafkaAccess(Struct, frozen=True):
    """[kafka] and [kafka_settings]. `password` and `key_password` are secrets of the environment."""

    protocol: str = PROTOCOLS[0]
    ca_file: str = ""
    certificate_file: str = ""
    key_file: str = ""
    key_password: str = ""
    key_password_file: str = ""
    mechanism: str = ""
    user: str = ""
    password: str = ""
    password_file: str = ""
    token_file: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        """Without what it may hold."""
        return f"KafkaAccess({self.protocol}, {self.mechanism})"

    @property
    def has_tls(self) -> bool:
        """True if the connection is by TLS."""
        return self.protocol.endswith("SSL")

    @property
    def signs_in(self) -> bool:
        """True if it is by SASL."""
        return self.protocol.startswith("SASL")

    def check(self) -> None:
        """Raise BadConfig for keys that do not fit each other, and a file that is not there or that all may read."""
        if self.protocol not in PROTOCOLS:
            raise BadConfig(f"[{SECTION}] protocol", f"is {self.protocol!r}; one of {', '.join(PROTOCOLS)}")
        self._check_tls()
        self._check_login()
        for name in self.settings:
            check_setting(name)

    def of_client(self, client: Client) -> dict[str, Any]:
        """Return the settings of a new client, secrets among them. BadConfig; Unavailable for a token that expired."""
        found: dict[str, Any] = {"security.protocol": self.protocol, **self.own(client)}
        if self.has_tls:
            found |= self._tls()
        if self.signs_in:
            found["sasl.mechanism"] = self.mechanism
            if self.mechanism == OAUTHBEARER:
                self.token()  # else its client waits for one
                found["oauth_cb"] = self._renewal()
            else:
                password = self.password or secret_of("password_file", self.password_file)
                found |= {"sasl.username": self.user, "sasl.password": password}
        return found

    def without_login(self, client: Client) -> dict[str, Any]:
        """Return what a client can be made of that connects to nobody, to see if it takes all."""
        tls = self._tls() if self.has_tls else {}
        return {"security.protocol": "SSL" if tls else PROTOCOLS[0], **self.own(client), **tls}

    def own(self, client: Client) -> dict[str, str]:
        """Return those of the settings by their names that a kind of client has."""
        return {name: text for name, text in self.settings.items() if name in _OF_CLIENT[client]}

    def token(self) -> tuple[str, float]:
        """Return the token of the file, and until when it may be used before the file is read again, in seconds since
        1970. BadConfig; Unavailable for one that has expired."""
        text, now = secret_of("token_file", self.token_file), time.time()
        until = _end_of(text)
        if until is not None and until <= now:
            ended = clock.text(datetime.fromtimestamp(until, UTC))
            why = f"expired at {ended}; see that what writes the file runs, or put a new one there"
            raise Unavailable(f"the token in {self.token_file} ([{SECTION}] token_file)", why)
        again = now + _LOOK_AGAIN
        return text, again if until is None else min(until, again)

    def _renewal(self) -> Callable[[object], tuple[str, float]]:
        return lambda _: self.token()

    def _tls(self) -> dict[str, str]:
        found = {"ssl.ca.location": self.ca_file or "probe"}  # of the system, wherever that has them
        if self.ca_file:
            _readable("ca_file", self.ca_file)
        if self.certificate_file:
            _readable("certificate_file", self.certificate_file)
            _readable("key_file", self.key_file, secret=True)
            found |= {"ssl.certificate.location": self.certificate_file, "ssl.key.location": self.key_file}
            password = self.key_password
            if self.key_password_file:
                password = secret_of("key_password_file", self.key_password_file)
            if password:
                found["ssl.key.password"] = password
        return found

    def _check_tls(self) -> None:
        if bool(self.certificate_file) != bool(self.key_file):
            lacks = "key_file" if self.certificate_file else "certificate_file"
            raise BadConfig(f"[{SECTION}] {lacks}", "is not set; a client's certificate needs that, and its key")
        for key in ("ca_file", "certificate_file", "key_password", "key_password_file"):
            if getattr(self, key) and not self.has_tls:
                why = f"is set, and protocol is {self.protocol}; set protocol to SSL or SASL_SSL"
                raise BadConfig(f"[{SECTION}] {key}", why)
        if (self.key_password or self.key_password_file) and not self.key_file:
            raise BadConfig(f"[{SECTION}] key_file", "is not set, and a password for it is")
        if self.has_tls:
            self._tls()

    def _check_login(self) -> None:
        bearer = self.mechanism == OAUTHBEARER
        for key in ("mechanism", "user", "password", "password_file", "token_file"):
            if getattr(self, key) and not self.signs_in:
                why = f"is set, and protocol is {self.protocol}; set protocol to SASL_SSL or SASL_PLAINTEXT"
                raise BadConfig(f"[{SECTION}] {key}", why)
            if getattr(self, key) and key in (("user", "password", "password_file") if bearer else ("token_file",)):
                raise BadConfig(f"[{SECTION}] {key}", f"is set, and the mechanism {self.mechanism} has none; remove it")
        if not self.signs_in:
            return
        if self.mechanism not in MECHANISMS:
            is_what = f"is {self.mechanism!r}" if self.mechanism else "is not set"
            raise BadConfig(f"[{SECTION}] mechanism", f"{is_what}; one of {', '.join(MECHANISMS)}")
        if bearer:
            secret_of("token_file", self.token_file)
            return
        if not self.user:
            raise BadConfig(f"[{SECTION}] user", f"is not set; the mechanism {self.mechanism} needs one")
        if not self.password:
            secret_of("password_file", self.password_file)


def check_setting(name: str) -> None:
    """Raise BadConfig for a setting of the client that may not be set, with what to do in its place."""
    if name in NAMES:
        return
    todo = _TODO.get(name) or next((todo for start, todo in _BEGINNINGS if name.startswith(start)), "")
    if not todo and any(word in name for word in _SECRETS):
        todo = f"a secret may not be in luigi.cfg itself; [{SECTION}] has keys for files"
    if not todo:
        meant = nearest(name, NAMES, 0.75)
        ask = f"did you mean {meant}? There" if meant else "there"
        todo = f"there is no such setting here; {ask} are {', '.join(NAMES)}"
    raise BadConfig(f"[{SETTINGS}] {name}", todo)


def secret_of(key: str, path: str) -> str:
    """Return the one line of a file with a secret. BadConfig when it is not set, not readable, or readable for all."""
    if not path:
        raise BadConfig(f"[{SECTION}] {key}", "is not set, and the secret is nowhere else")
    data = _readable(key, path, secret=True)
    try:
        text = data.decode("utf-8").strip()
    except UnicodeDecodeError:
        text = ""
    if not text or any(ord(one) < ord(" ") for one in text):
        raise BadConfig(f"[{SECTION}] {key}", f"{path} does not have the secret as its only line")
    return text


def _readable(key: str, path: str, *, secret: bool = False) -> bytes:
    try:
        with Path(path).open("rb") as file:
            mode, data = os.fstat(file.fileno()).st_mode, file.read(_LARGEST + 1)
    except OSError as error:
        raise BadConfig(f"[{SECTION}] {key}", f"{path} cannot be read: {error.strerror or error}") from error
    if secret and mode & 0o007:
        raise BadConfig(f"[{SECTION}] {key}", f"{path} is open to everybody, and holds a secret: chmod o= {path}")
    if len(data) > _LARGEST and secret:
        raise BadConfig(f"[{SECTION}] {key}", f"{path} has more than {_LARGEST:,} bytes; that is not such a file")
    return data


def _end_of(token: str) -> float | None:
    """The time at which a token expires, in seconds since 1970: `exp` of a JWT (RFC 7519, 4.1.4). None for one of
    another kind, or without an end."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        found = claims.get("exp")
        end = float(found) if isinstance(found, int | float) and not isinstance(found, bool) else math.nan
    except (ValueError, AttributeError, OverflowError, RecursionError):
        return None
    return max(end, 0.0) if math.isfinite(end) else None
