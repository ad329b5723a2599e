"""[kafka] and [kafka_settings]: the way to the brokers of a bus that is a Kafka."""

from __future__ import annotations

from tasks.config import sections
from tasks.config.sections import Section, TextKey
from tasks.config.source import configuration
from warcmill.clients.bus.access import MECHANISMS, PROTOCOLS, SECTION, SETTINGS, KafkaAccess


class kafka(Section):  # noqa: N801 - the section has the name of the class
    """[kafka]: how the bus of [requests] is reached."""

    protocol = TextKey(default=PROTOCOLS[0], description=f"what the brokers speak: {', '.join(PROTOCOLS)}")
    ca_file = TextKey(
        default="", description="certificates, in PEM, that sign those of the brokers; empty: those of the system"
    )
    certificate_file = TextKey(default="", description="a client's certificate, in PEM, where brokers want one")
    key_file = TextKey(default="", description="its key, in PEM")
    key_password = TextKey(default="", description="the password of that key, as ${ENV}")
    key_password_file = TextKey(default="", description="file with that password as its only line")
    mechanism = TextKey(default="", description=f"how to sign in, by SASL: {', '.join(MECHANISMS)}")
    user = TextKey(default="", description="the user who signs in")
    password = TextKey(default="", description="the password of that user, as ${ENV}")
    password_file = TextKey(default="", description="file with that password as its only line")
    token_file = TextKey(
        default="", description="file with the token of OAUTHBEARER, which another program renews; it is read again"
    )


def kafka_access() -> KafkaAccess:
    """The keys of both sections, or BadConfig. Files are read by who connects."""
    keys = sections.read(kafka)
    settings = {}
    if configuration().has_section(SETTINGS):
        settings = {name: sections.value(SETTINGS, name) for name in sorted(sections.own_keys(SETTINGS))}
    return KafkaAccess(
        protocol=keys.protocol.strip().upper(),
        ca_file=keys.ca_file,
        certificate_file=keys.certificate_file,
        key_file=keys.key_file,
        key_password=_of_environment("key_password"),
        key_password_file=keys.key_password_file,
        mechanism=keys.mechanism.strip().upper(),
        user=keys.user,
        password=_of_environment("password"),
        password_file=keys.password_file,
        token_file=keys.token_file,
        settings=settings,
    )


def _of_environment(key: str) -> str:
    """A secret of the environment; '' for one in a file, which each client reads anew. Or BadConfig."""
    is_in_file = sections.value(SECTION, f"{key}_file") and not sections.value(SECTION, key)
    return "" if is_in_file else sections.secret(SECTION, key)
