"""SSH certificates of users (OpenSSH PROTOCOL.certkeys): their making. Pure but for the random part of a signature.

A certificate says its limits in OpenSSH's own terms, so that a server that knows nothing of us, such as the one inside
a task, allows at most what was promised. What those terms cannot say (one labelled port) it forbids whole; the gateway
reads the exact limits where they were written down, by the serial.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import (
    SSHCertificateBuilder,
    SSHCertificateType,
    load_ssh_private_key,
    load_ssh_public_key,
)

from pai_backend.model.errors import Bug, InvalidParameters
from pai_backend.model.rights import Limits, Sftp
from pai_backend.model.text import Text
from pai_backend.store.grants import Certificate

MOST_PRINCIPALS = 256  # OpenSSH does not read more (sshkey.c, SSHKEY_CERT_MAX_PRINCIPALS)
SKEW = timedelta(minutes=1)
"""How much earlier than now a certificate begins, for servers whose clocks are behind."""

_SFTP_COMMAND = {Sftp.WRITE: "internal-sftp", Sftp.READ: "internal-sftp -R", Sftp.NONE: "/bin/false"}


def sign(terms: Certificate, public_key: str, ca_pem: str) -> str:
    """The certificate of these terms for a public key, as the line of a ``-cert.pub`` file.

    Raises InvalidParameters for a key of a type that cannot be certified here (those of security tokens).
    """
    if not 0 < len(terms.principals) <= MOST_PRINCIPALS:
        raise Bug(f"a certificate with {len(terms.principals)} principals would be good for any or for none")
    builder = (
        SSHCertificateBuilder()
        .public_key(_certifiable(public_key))
        .serial(terms.serial)
        .type(SSHCertificateType.USER)
        .key_id(key_id(terms).encode())
        .valid_principals([principal.encode() for principal in terms.principals])
        .valid_after(_seconds(terms.issued_at - SKEW))
        .valid_before(_seconds(terms.expires_at))
    )
    for option, value in options(terms.limits).items():
        builder = builder.add_critical_option(option, value)
    for name in extensions(terms.limits):
        builder = builder.add_extension(name.encode(), b"")
    ca = load_ssh_private_key(ca_pem.encode(), password=None)
    if not isinstance(ca, Ed25519PrivateKey):
        raise Bug("the key that signs certificates is not Ed25519")
    return builder.sign(ca).public_bytes().decode("ascii")


def key_id(terms: Certificate) -> str:
    """What servers write into their logs: who it is, and which certificate."""
    return f"{terms.user} {terms.serial}"


def extensions(limits: Limits) -> tuple[str, ...]:
    """What OpenSSH's server allows with these limits (``PROTOCOL.certkeys``, extensions)."""
    allowed = {
        "permit-X11-forwarding": limits.x11,
        "permit-agent-forwarding": limits.agent,
        "permit-port-forwarding": limits.ports is None and limits.listen,
        "permit-pty": limits.pty,
        "permit-user-rc": limits.commands,
    }
    return tuple(name for name, is_allowed in allowed.items() if is_allowed)


def options(limits: Limits) -> dict[bytes, bytes]:
    """What OpenSSH's server must do with these limits (``PROTOCOL.certkeys``, critical options)."""
    return {} if limits.commands else {b"force-command": _SFTP_COMMAND[limits.sftp].encode()}


def _certifiable(public_key: str) -> Ed25519PublicKey | RSAPublicKey | EllipticCurvePublicKey:
    key = load_ssh_public_key(public_key.encode("ascii"))
    if public_key.startswith("sk-") or not isinstance(key, Ed25519PublicKey | RSAPublicKey | EllipticCurvePublicKey):
        raise InvalidParameters(
            Text("A key of a security token cannot be certified here."),
            hint=Text("Register it (`pai keys add`), or have an ordinary key certified."),
        )
    return key


def _seconds(moment: datetime) -> int:
    return int(moment.timestamp())
