"""An authority of certificates, for a server on loopback and its clients. Writes PEM files, good for two days."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_LIFE: Final = timedelta(days=2)


class CertificateAuthority:
    """Signs certificates. Its own is `file`, which who trusts it has."""

    def __init__(self, folder: Path, name: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._name, self.file = folder, name, folder / f"{name}.pem"
        self._key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._signed(name, self._key, is_authority=True)
        self.file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str, address: str = "", password: str = "") -> tuple[Path, Path]:
        """Write the certificate of a name, for a server at an IP address, and its key, which may have a password;
        return their files."""
        key = ec.generate_private_key(ec.SECP256R1())
        of_key = self._folder / f"{name}-key.pem"
        of_certificate = self._folder / f"{name}.pem"
        how = serialization.BestAvailableEncryption(password.encode()) if password else serialization.NoEncryption()
        pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, how)
        of_key.touch(0o600)
        of_key.write_bytes(pem)
        certificate = self._signed(name, key, address=address)
        of_certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        return of_certificate, of_key

    def _signed(
        self, name: str, key: ec.EllipticCurvePrivateKey, *, address: str = "", is_authority: bool = False
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        subject, issuer = (x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, one)]) for one in (name, self._name))
        names = [x509.IPAddress(ip_address(address))] if address else [x509.DNSName(f"{name}.example")]
        return (
            x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + _LIFE)
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .sign(self._key, hashes.SHA256())
        )
