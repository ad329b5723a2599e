"""The reasons for which a Kafka does not take its client, in words of luigi.cfg. Connects to a broker to see how it
speaks, as the client's own errors do not say which of the two sides is wrong.
"""

from __future__ import annotations

import socket
import ssl
from collections import deque
from typing import Final

from confluent_kafka import KafkaError

from warcmill.clients.bus import BusRefused
from warcmill.clients.bus.access import OAUTHBEARER, KafkaAccess
from warcmill.errors import BadConfig, Unavailable

_SECONDS: Final = 3.0
_KEPT: Final = 8
_SHOWN: Final = 300
_DOWN: Final = KafkaError._ALL_BROKERS_DOWN  # noqa: SLF001 the name that the client has for an error of its own
_UNKNOWN: Final = KafkaError._RESOLVE  # noqa: SLF001
_FIRST_NAME: Final = "/bootstrap"  # behind the name of a broker that we have set ourselves
_TRANSPORT: Final = (KafkaError._TRANSPORT, KafkaError._SSL, _DOWN)  # noqa: SLF001
_LOGIN: Final = KafkaError._AUTHENTICATION  # noqa: SLF001
GROUPS: Final = {
    KafkaError.INVALID_SESSION_TIMEOUT: "does not take session.timeout.ms: correct [kafka_settings], or its own bounds",
    KafkaError.INCONSISTENT_GROUP_PROTOCOL:
        "has readers of the group {group} that share topics in another way, such as Scrapy Cluster's: end them, "
        "or set another KAFKA_GROUP",
    KafkaError.GROUP_MAX_SIZE_REACHED: "takes no more readers of the group {group}: end some, or set group.max.size",
}  # fmt: skip
"""The reasons for which no reader of a group gets anything, by the client's codes."""
_ACCESS: Final = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "the topic {topic}",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "the group {group} (KAFKA_GROUP)",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "the cluster",
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "transactions",
}
_MISMATCHES: Final = (62, 64)  # X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH of OpenSSL
_EXPIRED: Final = 10
_OURS: Final = "Failed to acquire SASL OAUTHBEARER token: "


class Complaints:
    """The last errors of a client, each once, and what they come to."""

    def __init__(self, hosts: str, access: KafkaAccess) -> None:
        self.name = f"Kafka at {hosts}"
        self._hosts, self._access = hosts, access
        self._last: deque[tuple[int, str]] = deque(maxlen=_KEPT)

    def hear(self, error: KafkaError) -> None:
        """Keep an error of the client."""
        found = error.code(), error.str().partition(" (after ")[0][:_SHOWN]
        if found in self._last:
            self._last.remove(found)
        self._last.append(found)

    def error(self, why: str, error: KafkaError | None = None, *, topic: str = "", group: str = "") -> Unavailable:
        """Return what is wrong: of an `error`, if there is one, else of the last ones; `why` where none names it."""
        if error is not None and (place := _ACCESS.get(error.code())):
            who = f"the user {self._access.user}" if self._access.user else "this client"
            where = place.format(topic=topic, group=group)
            todo = "allow it there by an ACL, or set another user or certificate in [kafka]"
            return BusRefused(self.name, f"does not let {who} use {where}: {todo}")
        if error is not None and (why_not := GROUPS.get(error.code())):
            return BusRefused(self.name, why_not.format(group=group))
        newest = next(((code, text) for code, text in reversed(self._last) if code != _DOWN), (_DOWN, ""))
        if newest[0] == _LOGIN:
            return self._login(newest[1])
        if self._last and newest[0] in _TRANSPORT and (refused := self._spoken()):
            return BusRefused(self.name, refused)
        heard = newest[1]
        if newest[0] == _UNKNOWN and _FIRST_NAME not in heard:
            heard += ". Brokers advertise that name (advertised.listeners); it has to be known here"
        if self._last and not heard and not self._access.signs_in:  # all that it does is to close connections
            heard = (
                "It closes connections, as where users sign in: then set [kafka] protocol to SASL_SSL or SASL_PLAINTEXT"
            )
        return Unavailable(self.name, f"{why}. {heard}" if heard and heard not in why else why)

    def _login(self, text: str) -> Unavailable:
        access = self._access
        if known := text.partition("supported mechanisms:")[2].strip():
            return BusRefused(self.name, f"takes no {access.mechanism}, but {known}: correct [kafka] mechanism")
        if "mechanism handshake failed" in text:
            why = "takes nobody by SASL at this port"
            return BusRefused(self.name, f"{why}: correct [kafka] protocol, {access.protocol}, or the port")
        if access.mechanism == OAUTHBEARER:
            try:
                access.token()
            except (BadConfig, Unavailable) as error:
                return Unavailable(self.name, f"it is not asked. {error}")
            if _OURS in text:
                why = f"the token in {access.token_file} had ended before its file had the next one. It is retried"
                return Unavailable(self.name, why)
            return BusRefused(self.name, f"does not take the token of {access.token_file}: see [kafka] token_file")
        key = "password" if access.password else "password_file"
        why = f"does not take the user {access.user} with that password by {access.mechanism}"
        return BusRefused(self.name, f"{why}: correct [kafka] user or {key}")

    def _spoken(self) -> str:
        """The reason, where a broker of a complaint speaks otherwise than is set, or is not trusted; else ''."""
        host, port = self._broker()
        access, found = self._access, _tls_of(host, port, self._access.ca_file if self._access.has_tls else None)
        if found is None:
            return ""
        if not access.has_tls:
            return "" if found == _NO_TLS else f"speaks TLS at {host}:{port}: set [kafka] protocol to SASL_SSL or SSL"
        if found == _NO_TLS:
            plain = "SASL_PLAINTEXT" if access.signs_in else "PLAINTEXT"
            return f"speaks no TLS at {host}:{port}: correct the port, or set [kafka] protocol to {plain}"
        if found and any("verif" in text for _, text in self._last):  # else there is another reason
            return found
        if any("alert" in text for _, text in self._last):
            if not access.certificate_file:
                wanted = "wants the certificate of its client: set [kafka] certificate_file and key_file"
                return wanted if access.signs_in else f"{wanted}; or protocol to SASL_SSL, if users sign in there"
            return f"does not take the certificate of {access.certificate_file}: correct [kafka] certificate_file"
        return ""

    def _broker(self) -> tuple[str, int]:
        """The broker of the last complaint that names one, else the first that is set."""
        for _, text in reversed(self._last):
            address = text.partition(": ")[0].rpartition("://")[2].partition("/")[0]
            host, _, port = address.rpartition(":")
            if host and " " not in host and port.isascii() and port.isdigit() and int(port) < 1 << 16:
                return _address(address)
        return _address(self._hosts.partition(",")[0])


_NO_TLS: Final = "no TLS"


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)


def _tls_of(host: str, port: int, trusted: str | None) -> str | None:
    """'' for a broker that speaks TLS, with a certificate to trust; what is wrong with that; _NO_TLS; None if it is not
    reached. Nothing is sent to it but the greeting. `trusted`: a file, '' for those of the system; None: any passes."""
    try:
        context = ssl.create_default_context(cafile=trusted or None)
    except OSError:  # ssl.SSLError is one: the file is another one by now
        return None
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # the client of Kafka has not got it
    if trusted is None:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with (
            socket.create_connection((host, port), _SECONDS) as plain,
            context.wrap_socket(plain, server_hostname=host),
        ):
            return ""
    except ssl.SSLCertVerificationError as error:
        return _unverified(error, f"{host}:{port}", host, trusted or "")
    except (ssl.SSLError, ConnectionResetError):
        return _NO_TLS
    except OSError:
        return None


def _unverified(error: ssl.SSLCertVerificationError, where: str, host: str, trusted: str) -> str:
    if error.verify_code in _MISMATCHES:
        why = f"has a certificate at {where} that is not for {host}"
        return f"{why}: name it in [requests] bus as its certificate does, or give it one with that name"
    if error.verify_code == _EXPIRED:
        return f"has a certificate at {where} that has expired: renew it there"
    by = f"the authorities of {trusted}" if trusted else "the authorities of this system"
    return f"has a certificate at {where} that {by} did not sign ({error.verify_message}): correct [kafka] ca_file"
