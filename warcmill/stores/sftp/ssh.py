"""SSH connections by paramiko, with pinned host keys, a key file, AES-GCM, and a limit on every wait."""

from __future__ import annotations

import logging
import socket
from pathlib import Path
from urllib.parse import urlsplit

import paramiko
from msgspec import Struct
from paramiko.hostkeys import InvalidHostKey

from warcmill.errors import BadConfig, Unavailable
from warcmill.stores.remote_files import Broken
from warcmill.stores.sftp.session import SftpSession

CONNECT_SECONDS, ANSWER_SECONDS, KEEPALIVE_SECONDS = 10.0, 60.0, 15
PORT = 22
_KEY = "sftp URL"
# paramiko prefers AES-CTR, at half the speed. All others are refused: CBC, 3DES, MD5, SHA-1.
_CIPHERS = ("aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "aes256-ctr", "aes128-ctr")
_DIGESTS = ("hmac-sha2-256-etm@openssh.com", "hmac-sha2-512-etm@openssh.com", "hmac-sha2-256", "hmac-sha2-512")
_RSA = ("rsa-sha2-512", "rsa-sha2-256")
logging.getLogger("paramiko").setLevel(logging.CRITICAL)  # our own errors report its failures


class SshHost(Struct, frozen=True):
    """A host, and our user there."""

    user: str
    host: str
    port: int = PORT

    @property
    def known_as(self) -> str:
        """The host's name in known_hosts (sshd(8))."""
        return self.host if self.port == PORT else f"[{self.host}]:{self.port}"

    def __str__(self) -> str:
        return f"{self.user}@{self.host}:{self.port}"

    def session(self, credentials: Credentials) -> SftpSession:
        """Open an SFTP session. Broken when the host cannot be reached, Unavailable when its key is not known."""
        return SftpSession(str(self), connect(self, credentials))


class SftpUrl(Struct, frozen=True):
    """The parts of `sftp://user@host:port/path`."""

    server: SshHost
    path: str

    @classmethod
    def parse(cls, url: str) -> SftpUrl:
        """Parse such a URL; BadConfig for any other, and for one with a password."""
        parts = urlsplit(url)
        if parts.password is not None:
            raise BadConfig(_KEY, "a password has no place in it; name a key file as [sftp] key_file")
        try:
            port = parts.port or PORT
        except ValueError as error:
            raise BadConfig(_KEY, str(error)) from error
        path = parts.path.rstrip("/")
        if not parts.username or not parts.hostname or not path or "//" in path or parts.query or parts.fragment:
            raise BadConfig(_KEY, "it reads sftp://USER@HOST[:PORT]/PATH and nothing more; the root is below '/'")
        return cls(SshHost(parts.username, parts.hostname, port), path)


class Credentials(Struct, frozen=True):
    """The files with the host keys that we trust, and with our own key."""

    known_hosts: str
    key_file: str

    def host_keys(self, server: SshHost) -> dict[str, paramiko.PKey]:
        """Return the pinned keys of a host, by type; BadConfig when there is none."""
        if not self.known_hosts:
            raise BadConfig(
                "[sftp] known_hosts", f"is not set; it names the file that holds the host key of {server.host}"
            )
        try:
            keys = paramiko.HostKeys(self.known_hosts).lookup(server.known_as)
        except (OSError, InvalidHostKey, paramiko.SSHException) as error:
            raise BadConfig("[sftp] known_hosts", f"{self.known_hosts} cannot be read: {error}") from error
        if not keys:
            raise BadConfig(
                "[sftp] known_hosts",
                f"{self.known_hosts} has no key of {server.known_as}. See what the host shows with"
                f" 'ssh-keyscan -p {server.port} {server.host}', and add it once its administrator confirms it",
            )
        return dict(keys)

    def user_key(self) -> paramiko.PKey:
        """Return our private key; BadConfig when it cannot be read, or has a passphrase."""
        if not self.key_file:
            raise BadConfig("[sftp] key_file", "is not set; it names a private key without a passphrase")
        try:
            return paramiko.PKey.from_path(Path(self.key_file))
        except (OSError, ValueError, TypeError, paramiko.SSHException) as error:
            why = f"{self.key_file} is not a private key without a passphrase, or cannot be read: {error}"
            raise BadConfig("[sftp] key_file", why) from error


class SshWire:
    """A channel together with its own connection."""

    def __init__(self, channel: paramiko.Channel, transport: paramiko.Transport) -> None:
        self.sendall, self.recv, self.close = channel.sendall, channel.recv, transport.close


def connect(server: SshHost, credentials: Credentials, timeout: float = ANSWER_SECONDS) -> SshWire:
    """Connect to the SFTP subsystem. Broken when the host cannot be reached, Unavailable when its key is not known."""
    pinned, key = credentials.host_keys(server), credentials.user_key()
    try:
        wire = socket.create_connection((server.host, server.port), CONNECT_SECONDS)
    except OSError as error:
        raise Broken(str(server), f"no connection: {error.strerror or error}", sent=False) from error
    transport = None
    try:
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else each small packet waits for the last
        transport = paramiko.Transport(wire)
        _choose(transport, pinned)
        channel = _open(transport, server, pinned, key)
        channel.settimeout(timeout)
        return SshWire(channel, transport)
    except (OSError, EOFError, paramiko.SSHException) as error:
        (transport or wire).close()
        raise Broken(
            str(server), f"the connection could not be set up: {str(error) or type(error).__name__}"
        ) from error
    except (Unavailable, BadConfig):
        (transport or wire).close()
        raise


def _choose(transport: paramiko.Transport, pinned: dict[str, paramiko.PKey]) -> None:
    options = transport.get_security_options()
    options.ciphers, options.digests = _CIPHERS, _DIGESTS
    kinds = [kind for name in pinned for kind in (_RSA if name == "ssh-rsa" else (name,))]
    options.key_types = [kind for kind in options.key_types if kind in kinds]  # the server shows a key that we know
    transport.banner_timeout = transport.auth_timeout = transport.channel_timeout = CONNECT_SECONDS * 2


def _open(
    transport: paramiko.Transport, server: SshHost, pinned: dict[str, paramiko.PKey], key: paramiko.PKey
) -> paramiko.Channel:
    try:
        transport.start_client(timeout=CONNECT_SECONDS * 2)
    except paramiko.ssh_exception.IncompatiblePeer as error:
        why = f"no common ground ({error}); the host may show a key of another kind than known_hosts has"
        raise Unavailable(str(server), why) from error
    shown = transport.get_remote_server_key()
    if shown != pinned.get(shown.get_name()):
        raise Unavailable(
            str(server),
            f"it shows the host key {shown.fingerprint}, which is not the one in known_hosts: another machine,"
            " or a new key. Nothing was sent. Replace the line in known_hosts only when the host's administrator"
            " confirms that key",
        )
    try:
        transport.auth_publickey(server.user, key)
    except paramiko.AuthenticationException as error:
        if not transport.is_active():  # paramiko calls a connection that ended meanwhile by the same name
            raise Broken(str(server), f"the connection ended before {server.user} was let in") from error
        why = f"the host does not let in {server.user} with the key {key.fingerprint}: {error}"
        raise Unavailable(str(server), why) from error
    transport.set_keepalive(KEEPALIVE_SECONDS)
    channel = transport.open_session(timeout=CONNECT_SECONDS * 2)
    channel.invoke_subsystem("sftp")
    return channel
