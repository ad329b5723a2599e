"""The reasons for which a Kafka refuses, from the errors of its client. Those of a real broker are in the services."""

from __future__ import annotations

import contextlib
import socket
import socketserver
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from confluent_kafka import KafkaError
from sites.certificates import server_context

from servers.authority import CertificateAuthority
from warcmill.clients.bus import BusRefused
from warcmill.clients.bus.access import KafkaAccess
from warcmill.clients.bus.opening import open_bus
from warcmill.clients.bus.refusals import Complaints
from warcmill.errors import BadConfig, Unavailable

AUTH, DOWN, RESOLVE, TRANSPORT = (
    KafkaError._AUTHENTICATION, KafkaError._ALL_BROKERS_DOWN, KafkaError._RESOLVE, KafkaError._TRANSPORT,
)  # fmt: skip
LOGIN = KafkaAccess("SASL_PLAINTEXT", mechanism="PLAIN", user="archivist", password="never-to-be-printed")
ODD = ["", ": ", "://", "ssl://", "ssl://h:x/1: no", "ssl://h:99999/1: no", "a" * 100_000, "ssl://:1/", "\x1b[31m\n"]


def heard(*errors: tuple[int, str], access: KafkaAccess = LOGIN, hosts: str = "127.0.0.1:1") -> Complaints:
    found = Complaints(hosts, access)
    for code, text in errors:
        found.hear(KafkaError(code, text))
    return found


def why(complaints: Complaints) -> str:
    text = str(complaints.error("it is silent"))
    assert "never-to-be-printed" not in text
    return text


def test_the_newest_complaint_counts_and_the_end_of_all_brokers_is_none() -> None:
    login = (AUTH, "b:1/bootstrap: SASL authentication error: no (after 3ms in state AUTH_REQ)")
    gone = (TRANSPORT, "b:1/1: Connect failed: Connection refused (after 0ms)")
    assert "does not take the user archivist with that password" in why(heard(gone, login, (DOWN, "1/1 are down")))
    found = heard(login, gone, (DOWN, "1/1 are down")).error("it is silent")
    assert (type(found), found.exit_code) == (Unavailable, 4)
    assert str(found).endswith("it is silent. b:1/1: Connect failed: Connection refused")
    assert str(heard().error("it is silent")) == "Kafka at 127.0.0.1:1 is unavailable: it is silent"


def test_a_mechanism_that_a_broker_has_not_got_is_named_with_those_that_it_has() -> None:
    text = "b:1/bootstrap: SASL PLAIN mechanism handshake failed: broker's supported mechanisms: SCRAM-SHA-512"
    assert "takes no PLAIN, but SCRAM-SHA-512: correct [kafka] mechanism" in why(heard((AUTH, text)))
    found = heard((AUTH, text.removesuffix("SCRAM-SHA-512"))).error("it is silent")
    assert isinstance(found, BusRefused)
    assert "takes nobody by SASL at this port" in str(found)


def test_a_name_that_brokers_advertise_and_nobody_knows_is_theirs() -> None:
    text = "sasl_ssl://kafka-7.example:1/1: Failed to resolve 'kafka-7.example:1': Name or service not known"
    assert why(heard((RESOLVE, text))).endswith("(advertised.listeners); it has to be known here")
    assert "advertise" not in why(heard((RESOLVE, text.replace("/1:", "/bootstrap:"))))


@pytest.fixture
def silent() -> Iterator[int]:
    """A port that takes connections, and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize("text", ODD)
def test_texts_of_brokers_may_be_anything(text: str) -> None:
    assert len(why(heard((TRANSPORT, text), (AUTH, text)))) < 1000
    assert len(why(heard((TRANSPORT, text), access=KafkaAccess("SSL")))) < 1000


def test_who_takes_connections_and_is_silent_is_unavailable(silent: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warcmill.clients.bus.refusals._SECONDS", 0.1)
    access = KafkaAccess("SSL")
    found = heard((TRANSPORT, "timed out"), access=access, hosts=f"127.0.0.1:{silent}").error("it is silent")
    assert type(found) is Unavailable


def test_a_file_of_authorities_that_is_gone_meanwhile_is_no_reason(tmp_path: Path) -> None:
    server_context(tmp_path)
    access = KafkaAccess("SSL", ca_file=f"{tmp_path}/gone.pem")
    assert type(heard((TRANSPORT, "timed out"), access=access).error("it is silent")) is Unavailable


@contextmanager
def speaking(context: ssl.SSLContext) -> Iterator[str]:
    """The address of one that speaks TLS, and nothing else."""

    class Greeting(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with contextlib.suppress(OSError):
                context.wrap_socket(self.request, server_side=True).close()

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Greeting) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.mark.parametrize(
    ("minutes", "address", "text"),
    [
        (-1, "127.0.0.1", " that has expired: renew it there"),
        (1, "127.0.0.2", " that is not for 127.0.0.1: name it in [requests] bus as its certificate does"),
        (1, "127.0.0.1", "it is silent. certificate verify failed"),
    ],
)
def test_a_certificate_that_has_expired_or_is_of_another_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, minutes: int, address: str, text: str
) -> None:
    by = CertificateAuthority(tmp_path, "authority")
    monkeypatch.setattr("servers.authority._LIFE", timedelta(minutes=minutes))
    certificate, key = by.issue("broker", address)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    access = KafkaAccess("SSL", ca_file=str(by.file))
    with speaking(context) as hosts:
        assert text in why(heard((TRANSPORT, "certificate verify failed"), access=access, hosts=hosts))


def test_a_password_in_the_name_of_a_bus_is_refused_and_not_printed(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match=r"set \[kafka\] user, password_file") as refused:
        open_bus("kafka://archivist:never-to-be-printed@h:9092", tmp_path)
    assert "never-to-be-printed" not in str(refused.value)
