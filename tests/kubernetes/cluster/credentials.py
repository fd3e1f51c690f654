"""Who may talk to whom: one authority for a cluster, certificates for its parts and its users, kubeconfig files."""

from __future__ import annotations

import base64
import ipaddress
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFE = timedelta(days=30)


@dataclass(frozen=True)
class Identity:
    """Files of a certificate and its key."""

    certificate: Path
    key: Path


class Authority:
    """The cluster's own certificate authority, kept in a directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.certificate = directory / "ca.crt"

    def create(self) -> None:
        """Make the authority, and the key that signs the tokens of service accounts."""
        self._directory.mkdir(mode=0o700)
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name("jupyter-pai tests", ())
        built = _unsigned(name, name, key).add_extension(x509.BasicConstraints(True, None), critical=True)
        self._write("ca", built.sign(key, hashes.SHA256()), key)
        accounts = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        _save(self.accounts, _pem(accounts))

    @property
    def accounts(self) -> Path:
        """The key that signs the tokens of service accounts."""
        return self._directory / "accounts.key"

    def issue(self, name: str, groups: Sequence[str] = (), hosts: Sequence[str] = ()) -> Identity:
        """A certificate for a user of the API, or for a server of these hosts. One that is there is given again."""
        file = name.replace(":", "-")
        identity = Identity(self._directory / f"{file}.crt", self._directory / f"{file}.key")
        if identity.key.exists() and identity.certificate.exists():
            return identity
        issuer = x509.load_pem_x509_certificate(self.certificate.read_bytes())
        signer = serialization.load_pem_private_key((self._directory / "ca.key").read_bytes(), None)
        assert isinstance(signer, ec.EllipticCurvePrivateKey)
        key = ec.generate_private_key(ec.SECP256R1())
        uses = [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
        built = _unsigned(_name(name, groups), issuer.subject, key).add_extension(x509.ExtendedKeyUsage(uses), False)
        if hosts:
            built = built.add_extension(x509.SubjectAlternativeName([_host(host) for host in hosts]), False)
        self._write(file, built.sign(signer, hashes.SHA256()), key)
        return identity

    def kubeconfig(self, path: Path, server: str, identity: Identity) -> Path:
        """Write a kubeconfig file that needs no other file."""
        user = {"client-certificate-data": _base64(identity.certificate), "client-key-data": _base64(identity.key)}
        cluster = {"server": server, "certificate-authority-data": _base64(self.certificate)}
        text = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "testbed", "cluster": cluster}],
            "users": [{"name": "testbed", "user": user}],
            "contexts": [{"name": "testbed", "context": {"cluster": "testbed", "user": "testbed"}}],
            "current-context": "testbed",
        }
        _save(path, json.dumps(text, indent=1).encode())  # JSON is YAML
        return path

    def _write(self, name: str, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        _save(self._directory / f"{name}.crt", certificate.public_bytes(serialization.Encoding.PEM))
        _save(self._directory / f"{name}.key", _pem(key))


def _unsigned(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    # From an hour ago: some tests let a part's clock be wrong.
    now = datetime.now(UTC)
    serial = x509.random_serial_number()
    begun = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).serial_number(serial)
    return begun.not_valid_before(now - timedelta(hours=1)).not_valid_after(now + _LIFE).public_key(key.public_key())


def _name(name: str, groups: Sequence[str]) -> x509.Name:
    rows = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*rows, x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    plain = serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)


def _base64(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def _save(path: Path, content: bytes) -> None:
    path.touch(mode=0o600)
    path.write_bytes(content)
