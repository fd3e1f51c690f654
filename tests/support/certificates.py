"""A certificate authority of a test, and certificates of hosts."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Authority:
    """Signs certificates; clients trust nothing else."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tests")])
        self._certificate = self._signed(self._name, self._key, x509.BasicConstraints(ca=True, path_length=0))

    @property
    def pem(self) -> bytes:
        """Its own certificate."""
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    def client(self) -> ssl.SSLContext:
        """For clients."""
        return ssl.create_default_context(cadata=self.pem.decode())

    def write(self, certificate: Path, key: Path, *hosts: str, days: float = 1) -> int:
        """Put a new certificate of these hosts in the place of what is there, for so many days; returns its number."""
        made = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts])
        signed = self._signed(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hosts[0])]), made, names, days)
        form = serialization.PrivateFormat.PKCS8
        pem = made.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
        for path, text in ((key, pem), (certificate, signed.public_bytes(serialization.Encoding.PEM))):
            draft = path.with_suffix(".draft")
            draft.write_bytes(text)
            draft.replace(path)
        return signed.serial_number

    def _signed(
        self, name: x509.Name, key: ec.EllipticCurvePrivateKey, extension: x509.ExtensionType, days: float = 1
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=30))
            .not_valid_after(now + timedelta(days=days))
            .add_extension(extension, critical=False)
            .sign(self._key, hashes.SHA256())
        )
