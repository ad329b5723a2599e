"""The way to a Kafka: keys that fit each other, files of secrets, settings by name, the end of a token."""

from __future__ import annotations

import base64
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from warcmill.clients.bus.access import NAMES, KafkaAccess, check_setting
from warcmill.clients.bus.kafka import KafkaBus
from warcmill.clients.bus.opening import open_bus
from warcmill.errors import BadConfig, Unavailable

SECRET = "never-to-be-printed"
LOGIN = {"protocol": "SASL_SSL", "mechanism": "PLAIN", "user": "archivist"}


def secret(folder: Path, text: str = SECRET, mode: int = 0o600) -> str:
    path = folder / "secret"
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def token(**claims: object) -> str:
    parts = (json.dumps(part).encode() for part in ({"alg": "none"}, {"sub": "archivist", **claims}))
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts) + "."


def refusal(**keys: Any) -> str:
    with pytest.raises(BadConfig) as refused:
        open_bus("kafka://127.0.0.1:1", Path("nowhere"), access=KafkaAccess(**keys))
    assert SECRET not in str(refused.value)
    return str(refused.value).removeprefix("configuration, ")


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ({"protocol": "TLS"}, "[kafka] protocol: is 'TLS'; one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        ({"ca_file": "x"}, "[kafka] ca_file: is set, and protocol is PLAINTEXT; set protocol to SSL or SASL_SSL"),
        ({"user": "x"}, "[kafka] user: is set, and protocol is PLAINTEXT; set protocol to SASL_SSL or SASL_PLAINTEXT"),
        ({"protocol": "SSL", "key_file": "x"}, "[kafka] certificate_file: is not set"),
        ({"protocol": "SSL", "certificate_file": "x"}, "[kafka] key_file: is not set"),
        ({"protocol": "SSL", "key_password": SECRET}, "[kafka] key_file: is not set, and a password for it is"),
        ({"protocol": "SSL", "ca_file": "no/such"}, "[kafka] ca_file: no/such cannot be read: No such file"),
        ({"protocol": "SASL_SSL"}, "[kafka] mechanism: is not set; one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"),
        ({**LOGIN, "mechanism": "GSSAPI"}, "[kafka] mechanism: is 'GSSAPI'; one of PLAIN"),
        ({**LOGIN, "user": ""}, "[kafka] user: is not set; the mechanism PLAIN needs one"),
        (LOGIN, "[kafka] password_file: is not set, and the secret is nowhere else"),
        ({**LOGIN, "token_file": "x"}, "[kafka] token_file: is set, and the mechanism PLAIN has none; remove it"),
        ({**LOGIN, "mechanism": "OAUTHBEARER"}, "[kafka] user: is set, and the mechanism OAUTHBEARER has none"),
        ({"protocol": "SASL_SSL", "mechanism": "OAUTHBEARER"}, "[kafka] token_file: is not set"),
    ],
)
def test_keys_that_do_not_fit_each_other_are_refused_by_name(keys: dict[str, Any], text: str) -> None:
    assert refusal(**keys).startswith(text)


def test_the_file_of_a_secret_is_there_has_one_line_and_is_not_open_to_everybody(tmp_path: Path) -> None:
    assert "nowhere cannot be read: No such file" in refusal(**LOGIN, password_file=f"{tmp_path}/nowhere")
    assert "cannot be read: Is a directory" in refusal(**LOGIN, password_file=str(tmp_path))
    for mode in (0o604, 0o602):
        path = secret(tmp_path, mode=mode)
        assert refusal(**LOGIN, password_file=path) == (
            f"[kafka] password_file: {path} is open to everybody, and holds a secret: chmod o= {path}"
        )
    for text in ("", f"{SECRET}\nmore", "\xff" * (1 << 18)):
        assert "[kafka] password_file: " in refusal(**LOGIN, password_file=secret(tmp_path, text))
    found = KafkaAccess(**LOGIN, password_file=secret(tmp_path, f"{SECRET}\n", 0o640))
    found.check()
    assert found.of_client("admin")["sasl.password"] == SECRET
    assert SECRET not in repr(KafkaAccess(password=SECRET, key_password=SECRET))


def test_a_secret_of_a_file_is_read_anew_for_each_client(tmp_path: Path) -> None:
    found = KafkaAccess(**LOGIN, password_file=secret(tmp_path, "old"))
    assert found.of_client("producer")["sasl.password"] == "old"
    secret(tmp_path, "new")
    assert found.of_client("producer")["sasl.password"] == "new"


@pytest.mark.parametrize(
    ("name", "todo"),
    [
        ("bootstrap.servers", "set [requests] bus="),
        ("sasl.password", "set [kafka] password_file"),
        ("ssl.key.password", "set [kafka] key_password_file"),
        ("ssl.key.pem", "a secret may not be in luigi.cfg itself; [kafka] has keys for files"),
        ("sasl.oauthbearer.client.secret", "set [kafka] token_file"),
        ("sasl.jaas.config", "set [kafka] mechanism, user and password_file"),
        ("ssl.truststore.password", "set [kafka] ca_file, in PEM"),
        ("enable.ssl.certificate.verification", "are always checked"),
        ("acks", "a bus that loses nothing needs it as it is"),
        ("plugin.library.paths", "it loads code"),
        ("group.id", "set KAFKA_GROUP"),
        ("message.timeout.ms", "write delivery.timeout.ms"),
        ("linger.sm", "there is no such setting here; did you mean linger.ms?"),
        ("nothing.like.it", "there is no such setting here; there are batch.num.messages"),
    ],
)
def test_a_setting_that_may_not_be_set_is_refused_by_name_with_what_to_do(name: str, todo: str) -> None:
    with pytest.raises(BadConfig) as refused:
        check_setting(name)
    assert str(refused.value).startswith(f"configuration, [kafka_settings] {name}: ")
    assert todo in str(refused.value)


@pytest.mark.parametrize("name", NAMES)
def test_each_setting_that_may_be_set_is_one_of_the_client(name: str) -> None:
    """A value that no setting takes is refused by its name, or by the older name of the same."""
    texts = ("client.id", "client.rack", "ssl.cipher.suites", "ssl.curves.list", "ssl.sigalgs.list", "ssl.crl.location")
    if name in texts:
        KafkaBus("127.0.0.1:1", access=KafkaAccess(settings={name: "archive"}))
    else:
        assert refusal(settings={name: "\x01"}).startswith("[kafka_settings]: ")


def test_settings_that_do_not_go_together_are_refused_before_anybody_is_asked() -> None:
    assert "must be set <= 5" in refusal(settings={"max.in.flight.requests.per.connection": "9"})
    for text in ("9" * 400, "-1", "soon", ""):
        assert "message.timeout.ms" in refusal(settings={"delivery.timeout.ms": text})
    assert "session.timeout.ms" in refusal(settings={"max.poll.interval.ms": "5000"})


def test_what_is_no_certificate_and_no_key_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.pem").write_text("no certificate")
    assert refusal(protocol="SSL", ca_file=f"{tmp_path}/a.pem").startswith("[kafka] ca_file: ")
    keys = {"protocol": "SSL", "certificate_file": f"{tmp_path}/a.pem", "key_file": secret(tmp_path)}
    assert refusal(**keys).startswith("[kafka] certificate_file: ")
    secret(tmp_path, mode=0o644)
    assert refusal(**keys).startswith(f"[kafka] key_file: {tmp_path}/secret is open to everybody")


def test_a_token_is_used_until_it_expires_and_looked_at_again_before(tmp_path: Path) -> None:
    access = KafkaAccess(protocol="SASL_SSL", mechanism="OAUTHBEARER", token_file=secret(tmp_path))
    now = time.time()
    assert access.token()[0] == SECRET
    for text, most in (("opaque", 70), (token(exp=now + 9000), 70), (token(exp=now + 30), 31), (token(), 70)):
        secret(tmp_path, text)
        assert now + 20 < access.token()[1] < now + most
    for odd in (token(exp="soon"), token(exp=True), token(exp=float("inf")), token(exp=None), "a.b.c", "..", "a.W10.c"):
        secret(tmp_path, odd)
        assert access.token()[0] == odd
    for end in (now - 1, -1e300, 0):
        path = secret(tmp_path, token(exp=end))
        with pytest.raises(Unavailable, match=r"expired at [0-9TZ:-]{20}; see that what writes the file runs") as ended:
            access.token()
        assert path in str(ended.value)
        access.check()  # it is renewed by others: a role begins, and waits
    os.unlink(path)
    with pytest.raises(BadConfig, match=r"token_file: .* cannot be read"):
        access.token()
