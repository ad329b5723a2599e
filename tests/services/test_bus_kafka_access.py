"""The way to a real Kafka: TLS, SASL, tokens that end, ACLs, settings of the client. Each refusal is named."""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import preloaded
import pytest
from confluent_kafka import Consumer, KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from confluent_kafka.cimpl import NewTopic
from requesting.bus_conformance import PATIENCE, take

from servers.authority import CertificateAuthority
from servers.kafka import MECHANISMS, PASSWORD, REAUTH_SECONDS, USER, KafkaServer
from warcmill.clients.bus import Bus, BusRefused
from warcmill.clients.bus.access import OAUTHBEARER, KafkaAccess
from warcmill.clients.bus.opening import open_bus
from warcmill.errors import BadConfig, Unavailable

SOON = 6.0  # seconds for which a broker may be silent here
_numbers = itertools.count()


def topic() -> str:
    return f"access.topic-{next(_numbers)}"


def secret(path: Path, text: str) -> str:
    half = path.with_name(f"{path.name}.half")
    half.touch(0o600)
    half.write_text(text)
    half.replace(path)
    return str(path)


def token(seconds: float) -> str:
    """A token without a signature, for so long (RFC 7515, A.5)."""
    now = time.time()
    claims = {"sub": USER, "iat": now - 60, "exp": now + seconds}
    parts = (json.dumps(part).encode() for part in ({"alg": "none"}, claims))
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts) + ".\n"


class Ways:
    """Buses of the broker, by each way to it."""

    def __init__(self, server: KafkaServer, folder: Path) -> None:
        self.server, self.folder = server, folder
        self.opened: list[Bus] = []

    def open(self, way: str = "SASL_SSL", at: str = "", seconds: float = SOON, **keys: Any) -> Bus:
        """A bus at the port of a way, or another one; by keys of [kafka], or those that are right."""
        protocol = keys.pop("protocol", way)
        access = KafkaAccess(**{"protocol": protocol, **self.keys(protocol), **keys})
        self.opened.append(open_bus(at or self.server.at(way), Path("nowhere"), seconds=seconds, access=access))
        return self.opened[-1]

    def keys(self, protocol: str, mechanism: str = "SCRAM-SHA-512") -> dict[str, str]:
        """The keys that are right."""
        found = {"ca_file": str(self.server.authority)} if protocol.endswith("SSL") else {}
        if protocol == "SSL":
            certificate, key = map(str, self.server.client)
            password = secret(self.folder / "key-password", PASSWORD)
            found |= {"certificate_file": certificate, "key_file": key, "key_password_file": password}
        if protocol.startswith("SASL"):
            found |= {"mechanism": mechanism, "user": USER, "password_file": secret(self.folder / "pass", PASSWORD)}
        return found

    def by_token(self, text: str) -> dict[str, str]:
        """The keys of OAUTHBEARER in place of a password's."""
        file = secret(self.folder / "token", text)
        return {"mechanism": OAUTHBEARER, "user": "", "password_file": "", "token_file": file}


@pytest.fixture
def ways(kafka: KafkaServer, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Iterator[Ways]:
    found = Ways(kafka, tmp_path)
    yield found
    for bus in found.opened:
        bus.close()
    assert PASSWORD not in caplog.text


def goes_through(bus: Bus, values: list[bytes]) -> None:
    """Messages are appended, and read by a group, which keeps its place."""
    name = topic()
    bus.append(name, values)
    reader = bus.reader(name, "g")
    assert sorted(take(reader, len(values))) == sorted(values)
    reader.commit()
    reader.close()
    assert name in bus.topics()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_messages_go_through_by_each_mechanism_over_tls(ways: Ways, mechanism: str) -> None:
    keys = ways.by_token(token(600)) if mechanism == OAUTHBEARER else {"mechanism": mechanism}
    goes_through(ways.open(**keys), [b"a", b"b"])


@pytest.mark.parametrize("way", ["SSL", "SASL_PLAINTEXT"])
def test_messages_go_through_by_a_certificate_and_by_a_login_without_tls(ways: Ways, way: str) -> None:
    goes_through(ways.open(way), [b"a", b"b"])


def test_a_secret_of_the_environment_is_one_too(ways: Ways) -> None:
    goes_through(ways.open(password=PASSWORD, password_file=""), [b"a"])
    goes_through(ways.open("SSL", key_password=PASSWORD, key_password_file=""), [b"a"])


def refusals(ways: Ways) -> dict[str, tuple[dict[str, Any], str]]:
    """Ways that are wrong, and what is named."""
    other = CertificateAuthority(ways.folder / "other", "other")
    stranger, key = map(str, other.issue("stranger"))
    wrong = secret(ways.folder / "wrong", "another-one")
    port = ways.server.ports["sasl_ssl"]
    login = "does not take the user archivist with that password by {}: correct [kafka] user or password_file"
    return {
        "password": ({"mechanism": "PLAIN", "password_file": wrong}, login.format("PLAIN")),
        "scram": ({"password_file": wrong}, login.format("SCRAM-SHA-512")),
        "authority": ({"ca_file": str(other.file)}, f"{other.file} did not sign (unable to get local issuer cert"),
        "system": ({"ca_file": ""}, "that the authorities of this system did not sign"),
        "name": ({"at": f"kafka://localhost:{port}", "settings": {"broker.address.family": "v4"}},
                 "that is not for localhost: name it in [requests] bus as its certificate does"),
        "plain": ({"at": ways.server.url}, "speaks no TLS at 127.0.0.1:"),
        "plain-login": ({"at": ways.server.url, "protocol": "SASL_PLAINTEXT"},
                        "takes nobody by SASL at this port: correct [kafka] protocol"),
        "tls": ({"protocol": "PLAINTEXT"}, "speaks TLS at 127.0.0.1:"),
        "no-certificate": ({"way": "SSL", **dict.fromkeys(("certificate_file", "key_file", "key_password_file"), "")},
                           "wants the certificate of its client: set [kafka] certificate_file and key_file"),
        "certificate": ({"way": "SSL", "certificate_file": stranger, "key_file": key, "key_password_file": ""},
                        f"does not take the certificate of {stranger}"),
        "token": (ways.by_token("opaque"), "does not take the token of "),
    }  # fmt: skip


@pytest.mark.parametrize("name", ["password", "scram", "authority", "system", "name", "plain", "plain-login", "tls",
                                  "no-certificate", "certificate", "token"])  # fmt: skip
def test_what_a_broker_does_not_take_is_named_at_once_with_what_to_correct(ways: Ways, name: str) -> None:
    keys, text = refusals(ways)[name]
    bus = ways.open(seconds=PATIENCE, **keys)  # so patient, and it is not waited for
    with pytest.raises(BusRefused) as refused:
        bus.append("access.none", [b"x"])
    assert text in str(refused.value)
    assert (refused.value.exit_code, str(refused.value).startswith("Kafka at ")) == (3, True)
    assert PASSWORD not in str(refused.value)


def test_a_bus_with_a_wrong_password_is_the_same_one_once_its_file_is_right(ways: Ways) -> None:
    bus = ways.open()
    secret(ways.folder / "pass", "not yet")
    with pytest.raises(BusRefused, match="with that password"):
        bus.append("access.healed", [b"x"])
    secret(ways.folder / "pass", PASSWORD)
    goes_through(bus, [b"x"])
    os.unlink(ways.folder / "pass")
    bus = ways.open(password_file=secret(ways.folder / "other-pass", PASSWORD))
    os.unlink(ways.folder / "other-pass")
    with pytest.raises(BusRefused, match=r"is not asked\. .*\[kafka\] password_file: .*cannot be read"):
        bus.topics()


def test_a_token_that_is_renewed_before_it_ends_costs_nothing(ways: Ways) -> None:
    name, ended = topic(), time.time() + 2 * REAUTH_SECONDS
    bus = ways.open(**ways.by_token(token(2 * REAUTH_SECONDS)))
    found, sent, deadline = list[bytes](), 0, time.monotonic() + PATIENCE
    with contextlib.closing(bus.reader(name, "g")) as reader:
        secret(ways.folder / "token", token(600))
        while time.time() < ended + REAUTH_SECONDS or len(found) < sent:
            assert time.monotonic() < deadline, (len(found), sent)
            bus.append(name, [b"x"])
            sent += 1
            found += [message.value for message in reader.read(100, 1)]


def test_a_token_that_ends_is_unavailable_until_its_file_has_the_next_and_nothing_is_lost(ways: Ways) -> None:
    """The broker wants to see it again every moment; by itself the client would show the old one for long."""
    name, bus = topic(), ways.open(seconds=3, **ways.by_token(token(2 * REAUTH_SECONDS)))
    bus.append(name, [b"0"])
    with contextlib.closing(bus.reader(name, "g")) as reader:
        found, sent, faults = take(reader, 1), [b"0"], list[str]()
        deadline = time.monotonic() + PATIENCE
        while not faults or set(found) != set(sent):
            assert time.monotonic() < deadline, (faults, found)
            try:
                bus.append(name, [b"%d" % len(sent)])
                sent.append(b"%d" % len(sent))
            except Unavailable as error:
                faults.append(str(error))
                secret(ways.folder / "token", token(600))
            try:
                found += [message.value for message in reader.read(100, 1)]
            except Unavailable as error:
                faults.append(str(error))
    assert [one for one in faults if "token" not in one] == []
    secret(ways.folder / "token", token(-5))
    with pytest.raises(Unavailable, match=r"token_file\) is unavailable: expired at") as refused:
        ways.open(**ways.by_token(token(-5))).topics()
    assert refused.value.exit_code == 4


@pytest.fixture
def admin(kafka: KafkaServer) -> AdminClient:
    """A client that may do all."""
    return AdminClient({"bootstrap.servers": kafka.hosts})


def allow(admin: AdminClient, kind: ResourceType, name: str, *operations: AclOperation) -> None:
    """Let the user do something with a thing that nobody else may touch."""
    how = ResourcePatternType.LITERAL, f"User:{USER}", "*"
    wanted = [AclBinding(kind, name, *how, one, AclPermissionType.ALLOW) for one in operations]
    wanted += [AclBinding(kind, name, how[0], "User:curator", "*", AclOperation.ALL, AclPermissionType.ALLOW)]
    for made in admin.create_acls(wanted).values():
        made.result(30)


def test_what_an_acl_does_not_allow_is_named(ways: Ways, admin: AdminClient) -> None:
    hidden, seen, group = "access.hidden", "access.seen", "access.group"
    for made in admin.create_topics([NewTopic(hidden), NewTopic(seen)]).values():
        made.result(30)
    allow(admin, ResourceType.TOPIC, hidden)
    allow(admin, ResourceType.TOPIC, seen, AclOperation.DESCRIBE)
    allow(admin, ResourceType.GROUP, group, AclOperation.DESCRIBE)
    bus, todo = ways.open(), r"allow it there by an ACL, or set another user or certificate in \[kafka\]"
    assert seen in bus.topics()
    with pytest.raises(BusRefused, match=f"does not let the user archivist use the topic {hidden}.*: {todo}"):
        bus.append(hidden, [b"x"])
    with pytest.raises(BusRefused, match=f"does not let the user archivist use the topic {seen}: {todo}"):
        bus.append(seen, [b"x"])
    with pytest.raises(BusRefused, match=f"use the topic {seen}: "):
        bus.reader(seen, None).read(1, PATIENCE)
    name = topic()
    bus.append(name, [b"x"])
    with pytest.raises(BusRefused, match=f"use the group {group} .KAFKA_GROUP.: "):
        bus.reader(name, group).read(1, PATIENCE)
    allow(admin, ResourceType.TOPIC, seen, AclOperation.READ, AclOperation.WRITE)
    allow(admin, ResourceType.GROUP, "warcmill-none")  # who keeps no place needs no group
    bus.append(seen, [b"x"])
    assert take(bus.reader(seen, None), 1) == [b"x"]


def test_a_group_that_takes_no_reader_is_named(ways: Ways) -> None:
    """Each would read nothing, for ever; the members of Scrapy Cluster's own share by ranges."""
    name, bus = topic(), ways.open(settings={"session.timeout.ms": "1000", "heartbeat.interval.ms": "300"})
    bus.append(name, [b"x"])
    with pytest.raises(BusRefused, match=r"does not take session\.timeout\.ms: correct \[kafka_settings\]"):
        bus.reader(name, "g").read(1, PATIENCE)
    theirs = Consumer({
        "bootstrap.servers": ways.server.hosts, "group.id": "theirs", "partition.assignment.strategy": "range",
        "auto.offset.reset": "earliest", "enable.auto.commit": False,
    })  # fmt: skip
    theirs.subscribe([name])
    assert theirs.consume(1, PATIENCE)
    reader = ways.open().reader(name, "theirs")
    with pytest.raises(BusRefused, match="has readers of the group theirs that share topics in another way"):
        reader.read(1, PATIENCE)
    theirs.close()
    assert take(reader, 1) == [b"x"]
    reader.close()


def test_settings_by_their_names_reach_the_client(ways: Ways, admin: AdminClient) -> None:
    settings = {
        "client.id": "archive-1", "retries": "7", "delivery.timeout.ms": "45000", "request.timeout.ms": "9000",
        "linger.ms": "0", "compression.type": "none", "session.timeout.ms": "9000", "message.max.bytes": "9000000",
    }  # fmt: skip
    bus, name = ways.open(settings=settings), topic()
    made = admin.create_topics([NewTopic(name, 1, config={"max.message.bytes": "8000000"})])
    made[name].result(30)
    long = os.urandom(3 << 20).hex().encode()
    bus.append(name, [long])  # a broker takes 1 MiB by default
    reader = bus.reader(name, "settings")
    assert take(reader, 1) == [long]
    group = admin.describe_consumer_groups(["settings"])["settings"].result(30)
    assert [member.client_id for member in group.members] == ["archive-1"]
    reader.close()
    log = next(path for path in ways.server.folder.rglob("*.log") if path.parent.name == f"{name}-0")
    assert log.read_bytes()[61:].count(long[:1000]) == 1, "it is not packed"


def test_an_access_that_cannot_be_is_refused_before_the_broker_is_asked(ways: Ways) -> None:
    with pytest.raises(BadConfig, match=r"key_file: .*client-key\.pem is not the key of .*, or its password is"):
        ways.open("SSL", key_password_file=secret(ways.folder / "wrong", "another-one"))
    with pytest.raises(BadConfig, match=r"\[kafka_settings\] ssl.key.password: set \[kafka\] key_password_file"):
        ways.open(settings={"ssl.key.password": PASSWORD})


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The luigi.cfg of a line that serves requests."""
    folder = tmp_path_factory.mktemp("line")
    assert preloaded.run("commands.main", "init", str(folder), "--requests", env={**os.environ}).returncode == 0
    return folder / "luigi.cfg"


def configured(config: Path, bus: str, *settings: str, **keys: str) -> dict[str, str]:
    """The environment of a command whose luigi.cfg has this way to a Kafka."""
    lines = [f"{key}={text}" for key, text in keys.items()]
    path = config.with_name("way.cfg")
    text = config.read_text().replace("bus=spool", f"bus={bus}")
    path.write_text("\n".join([text, "[kafka]", *lines, "[kafka_settings]", *settings, ""]))
    return {**os.environ, "LUIGI_CONFIG_PATH": str(path), "KAFKA_PASSWORD": PASSWORD}


@pytest.mark.parametrize(
    ("wrong", "code", "text"),
    [
        ({}, 0, "access.of-command"),
        ({"password_file": "", "password": "${KAFKA_PASSWORD}"}, 0, "access.of-command"),
        ({"password_file": "", "password": PASSWORD}, 3, "[kafka] password: may not be in luigi.cfg itself"),
        ({"password": "${KAFKA_PASSWORD}"}, 3, "[kafka] password_file: is set beside password; keep one of them"),
        ({"password_file": "wrong"}, 3, "does not take the user archivist with that password by PLAIN"),
        ({"password_file": "open"}, 3, "is open to everybody, and holds a secret: chmod o= "),
        ({"password_file": "nowhere"}, 3, "cannot be read: No such file or directory"),
        ({"sasl.password": "x"}, 3, "[kafka_settings] sasl.password: set [kafka] password_file"),
        ({"bus": "PLAINTEXT"}, 3, "speaks no TLS"),
        ({"token": "-5"}, 4, "token_file) is unavailable: expired at"),
    ],
)
def test_a_command_ends_with_the_code_of_what_is_wrong_and_prints_no_secret(
    ways: Ways, admin: AdminClient, config: Path, wrong: dict[str, str], code: int, text: str
) -> None:
    with contextlib.suppress(KafkaException):  # it is there from the test before
        admin.create_topics([NewTopic("access.of-command")])["access.of-command"].result(30)
    secret(ways.folder / "wrong", "another-one")
    Path(secret(ways.folder / "open", PASSWORD)).chmod(0o644)
    keys = {"protocol": "SASL_SSL", **ways.keys("SASL_SSL", "PLAIN"), **wrong}
    if "/" not in keys["password_file"] and keys["password_file"]:
        keys["password_file"] = str(ways.folder / keys["password_file"])
    if life := keys.pop("token", ""):
        keys |= ways.by_token(token(int(life)))
    bus = keys.pop("bus", ways.server.at("SASL_SSL")).replace("PLAINTEXT", ways.server.url)
    settings = [f"{name}={keys.pop(name)}" for name in list(keys) if "." in name]
    done = preloaded.run("commands.main", "request", "list", env=configured(config, bus, *settings, **keys))
    assert (done.returncode, text in done.stdout + done.stderr) == (code, True), done.stdout + done.stderr
    assert PASSWORD not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_doctor_health_and_request_test_name_what_is_wrong(ways: Ways, config: Path) -> None:
    wrong = secret(ways.folder / "wrong", "another-one")
    keys = {"protocol": "SASL_SSL", **ways.keys("SASL_SSL"), "password_file": wrong, "pasword": "x"}
    env = configured(config, ways.server.at("SASL_SSL"), "linger.sm=1", **keys)
    refused = "does not take the user archivist with that password"
    found = {
        one["text"] for one in json.loads(preloaded.run("commands.main", "doctor", "--json", env=env).stdout)["checks"]
    }
    assert {"[kafka] pasword", "[kafka_settings] linger.sm"} <= {text.partition(":")[0] for text in found}, found
    env = configured(
        config, ways.server.at("SASL_SSL"), "linger.ms=1", **{key: keys[key] for key in keys if key != "pasword"}
    )
    for words, where in (
        (("doctor", "--json"), "stdout"),
        (("health", "--json"), "stdout"),
        (("request", "test"), "stdout"),
    ):
        done = preloaded.run("commands.main", *words, env=env)
        assert (done.returncode, refused in getattr(done, where)) == (1, True), done.stdout + done.stderr
        assert PASSWORD not in done.stdout + done.stderr
