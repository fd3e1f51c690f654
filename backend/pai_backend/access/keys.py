"""SSH keys: reading what users register, making what the backend needs, writing known_hosts lines.

Everything but the store functions at the end is pure. Only public keys are ever read here; a
private key pasted by mistake is refused without being repeated (its text reaches no message or log).
asyncssh is not imported: the API process reads keys too and should not carry an SSH stack.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_ssh_private_key,
    load_ssh_public_key,
)

from pai_backend.access.broker.stock import make_rsa
from pai_backend.model.errors import InvalidParameters
from pai_backend.model.ids import JobUid
from pai_backend.store.base import job_key_slots

if TYPE_CHECKING:
    from pai_backend.store.sql import Store

RSA_MIN_BITS = 2048  # NIST SP 800-131A rev. 2: shorter RSA keys are disallowed for signatures
MAX_TEXT = 16384  # characters; an RSA-16384 line, the longest OpenSSH makes, is under 3,000
CLIENT_KEY_SECRET = "gateway-client-key"
HOST_KEY_SECRET = "gateway-host-key"
RSA_HOST_KEY_SECRET = "gateway-host-key-rsa"
ECDSA_HOST_KEY_SECRET = "gateway-host-key-ecdsa"

ACCEPTED = (
    "ssh-ed25519",
    "ssh-rsa",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "sk-ssh-ed25519@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
)
_PRIVATE_MARKS = ("PRIVATE KEY", "PuTTY-User-Key-File")
_PRIVATE_BEGIN, _PRIVATE_END = "-----BEGIN OPENSSH PRIVATE KEY-----", "-----END OPENSSH PRIVATE KEY-----"
_PRIVATE_MAGIC = b"openssh-key-v1\0"
_RFC4716_BEGIN = "---- BEGIN SSH2 PUBLIC KEY ----"
_RFC4716_END = "---- END SSH2 PUBLIC KEY ----"


@dataclass(frozen=True)
class PublicKey:
    """A valid public key. ``line`` is ``type base64`` without comment, in one spelling only."""

    type: str
    line: str
    comment: str
    fingerprint: str


def fingerprint(blob: bytes) -> str:
    """OpenSSH's form of a key's SHA-256 (``ssh-keygen -l``): ``SHA256:`` and base64 without padding."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode("ascii").rstrip("=")


def parse_public_key(text: str) -> PublicKey:
    """Read one public key as a user pastes it: an OpenSSH line, or the file PuTTYgen saves (RFC 4716).

    Raises InvalidParameters that says what is wrong and what to paste instead. The message repeats
    nothing of the text but a key type that we know.
    """
    if any(mark in text for mark in _PRIVATE_MARKS):
        _refuse(
            "This is a private key. It was not stored; never give it to anyone.",
            "Paste the public half: the file with the same name and the ending .pub.",
        )
    if len(text) > MAX_TEXT:
        _refuse(
            f"The text is longer than {MAX_TEXT} characters, too long for a public key.",
            "Paste one line of a .pub file.",
        )
    if text.strip().startswith(_RFC4716_BEGIN):
        return _checked(*_read_rfc4716(text.strip()))
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if len(lines) != 1:
        found = "There is no key in it" if not lines else f"{len(lines)} lines were given"
        _refuse(
            f"{found}; one public key is expected.", "Paste one line of a .pub file, such as ~/.ssh/id_ed25519.pub."
        )
    words = lines[0].split(maxsplit=2)
    if words[0] not in ACCEPTED:
        _refuse_type(lines[0])
    if len(words) < 2:
        _refuse("The key has a type but no key data.", "Paste the whole line of the .pub file.")
    return _checked(_decode(words[1]), words[2].strip() if len(words) == 3 else "")


def _refuse(message: str, hint: str) -> NoReturn:
    raise InvalidParameters(message, hint=hint)


def _refuse_type(line: str) -> NoReturn:
    """Say why a line that does not begin with an accepted type is no key we take."""
    words = line.split()
    if "-cert-v01@openssh.com" in words[0]:
        _refuse("This is a certificate, not a public key.", "Paste the .pub file without -cert in its name.")
    if words[0] in ("ssh-dss", "ssh-dsa"):
        _refuse("DSA keys are too weak and no longer accepted.", "Make a new key: ssh-keygen -t ed25519")
    if any(word in ACCEPTED for word in words):
        _refuse("Options before the key are not accepted.", "Paste only the part that begins with the key type.")
    _refuse(
        "The text does not begin with a public key type.", f"Accepted types: {', '.join(ACCEPTED)}. See ~/.ssh/*.pub."
    )


def _decode(data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error:
        _refuse("The key data is damaged: it is not base64.", "Copy the line again, without line breaks inside it.")


def _read_rfc4716(text: str) -> tuple[bytes, str]:
    """(key blob, comment) of an RFC 4716 file; headers may continue over lines that end in a backslash."""
    comment, data, continued = "", "", False
    lines = text.splitlines()
    if lines[-1].strip() != _RFC4716_END:
        _refuse("The end of the key is missing.", f"Paste the whole file, to the line {_RFC4716_END}")
    for line in lines[1:-1]:
        is_header = continued or ":" in line
        if not continued and line.lower().startswith("comment:"):
            comment = line.partition(":")[2].strip().strip('"')
        if not is_header:
            data += line.strip()
        continued = is_header and line.endswith("\\")
    return _decode(data), comment


def _checked(blob: bytes, comment: str) -> PublicKey:
    """The key in ``blob`` after a full parse; the type inside it counts, not the word in front."""
    size = int.from_bytes(blob[:4], "big")
    name = blob[4 : 4 + size].decode("ascii", "replace")
    if name not in ACCEPTED:
        _refuse("The key data has an unsupported type or is damaged.", f"Accepted: {', '.join(ACCEPTED)}.")
    line = f"{name} {base64.b64encode(blob).decode('ascii')}"
    try:
        key = load_ssh_public_key(line.encode("ascii"))
    except (ValueError, UnsupportedAlgorithm):
        _refuse("The key data is damaged or cut short.", "Copy the whole line of the .pub file again.")
    if isinstance(key, RSAPublicKey) and key.key_size < RSA_MIN_BITS:
        _refuse(
            f"The RSA key has {key.key_size} bits; at least {RSA_MIN_BITS} are needed.",
            "Make a new key: ssh-keygen -t ed25519 (or -t rsa -b 3072).",
        )
    clean = "".join(c for c in comment if c.isprintable())[:200]
    return PublicKey(name, line, clean, fingerprint(blob))


def make_ed25519(comment: str) -> tuple[str, str]:
    """A new key pair: (OpenSSH private PEM without passphrase, public line with ``comment``)."""
    private = Ed25519PrivateKey.generate()
    pem = _pem(private)
    public = private.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode("ascii")
    return pem, f"{public} {comment}".rstrip()


def _pem(private: Ed25519PrivateKey | ec.EllipticCurvePrivateKey) -> str:
    return private.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()).decode("ascii")


def public_line(private_pem: str) -> str:
    """``type base64`` of the public half of an OpenSSH private key of ours.

    It stands before the private half, which is neither read nor checked. Raises ValueError, without the text, when it
    is not one. Source: OpenSSH, PROTOCOL.key.
    """
    lines = private_pem.split()
    try:
        data = base64.b64decode("".join(lines[4:-4]), validate=True)
        rest = _after(_PRIVATE_MAGIC, data)
        for none in (b"none", b"none", b""):  # cipher, how its key is made, and what of
            rest = _after(_string(none), rest)
        rest = _after((1).to_bytes(4, "big"), rest)  # keys
        blob = rest[4 : 4 + int.from_bytes(rest[:4], "big")]
        name = blob[4 : 4 + int.from_bytes(blob[:4], "big")].decode("ascii")
    except (ValueError, binascii.Error):
        name = ""
    if name not in ACCEPTED or " ".join(lines[:4]) != _PRIVATE_BEGIN or " ".join(lines[-4:]) != _PRIVATE_END:
        raise ValueError("not an OpenSSH private key without passphrase")
    return f"{name} {base64.b64encode(blob).decode('ascii')}"


def _string(data: bytes) -> bytes:
    """RFC 4251 section 5."""
    return len(data).to_bytes(4, "big") + data


def _after(beginning: bytes, data: bytes) -> bytes:
    if not data.startswith(beginning):
        raise ValueError("its start is different")
    return data[len(beginning) :]


def known_hosts_line(host: str, port: int, public_key: str) -> str:
    """A known_hosts line for an address: ``host key`` on port 22, else ``[host]:port key`` (sshd(8))."""
    words = public_key.split()
    return f"{host if port == 22 else f'[{host}]:{port}'} {words[0]} {words[1]}"


def known_hosts_alias_line(alias: str, public_key: str) -> str:
    """A known_hosts line for a ``HostKeyAlias``, which OpenSSH looks up without the port."""
    return known_hosts_line(alias, 22, public_key)


async def gateway_host_key(store: Store) -> str:
    """The gateway's host key (private PEM), made at the first call; the same for every replica."""
    return await store.secrets.get(HOST_KEY_SECRET, make_ed25519("pai-gateway")[0])


async def gateway_host_keys(store: Store) -> tuple[str, ...]:
    """All host keys of the gateway (private PEMs), made at the first call: Ed25519, RSA and ECDSA."""
    rsa = await store.secrets.kept(RSA_HOST_KEY_SECRET)
    if rsa is None:  # takes up to a second to make, so not at every call
        rsa = await store.secrets.get(RSA_HOST_KEY_SECRET, await asyncio.to_thread(make_rsa))
    ecdsa = await store.secrets.get(ECDSA_HOST_KEY_SECRET, _pem(ec.generate_private_key(ec.SECP256R1())))
    return await gateway_host_key(store), rsa, ecdsa


async def gateway_known_hosts(store: Store, host: str, port: int, alias: str) -> tuple[str, ...]:
    """The known_hosts lines for every host key of the gateway, by its address and by its ``HostKeyAlias``."""
    public = [public_line(key) for key in await gateway_host_keys(store)]
    return (
        *(known_hosts_line(host, port, key) for key in public),
        *(known_hosts_alias_line(alias, key) for key in public),
    )


async def gateway_host_public_key(store: Store) -> str:
    """What clients pin: the public half of the gateway's host key, ``type base64``."""
    return public_line(await gateway_host_key(store))


async def gateway_client_key(store: Store) -> str:
    """The key the gateway itself logs in to tasks with (private PEM), made at the first call."""
    return await store.secrets.get(CLIENT_KEY_SECRET, make_ed25519("pai-gateway-client")[0])


async def gateway_public_key(store: Store) -> str:
    """What every task authorises: the public half of the gateway's client key, with a comment."""
    return f"{public_line(await gateway_client_key(store))} pai-gateway-client"


async def task_host_key(store: Store, slot: str) -> str:
    """The SSH host key (private PEM) of a task slot, made once and kept over attempts. Idempotent.

    Two callers at once get the same key: the store keeps the first.
    """
    kept = await store.task_keys.get(slot)
    if kept is not None:
        return kept
    pem, public = make_ed25519(slot)
    return await store.task_keys.put(slot, pem, public)


async def job_key(store: Store, job: JobUid) -> str:
    """The job's own key (private PEM), by which its owner enters the job at the gateway. Made once. Idempotent.

    Raises ReadOnlyJob for a job that has ended.
    """
    return await task_host_key(store, job_key_slot(job))


async def job_rsa_key(store: Store, job: JobUid, make: Callable[[], Awaitable[str]]) -> str:
    """The job's RSA key (OpenSSH private PEM), for clients that know no Ed25519. Idempotent.

    ``make`` gives a new one when there is none. Raises ReadOnlyJob for a job that has ended.
    """
    slot = job_key_slots(job)[1]
    kept = await store.task_keys.get(slot)
    if kept is not None:
        return kept
    pem = await make()
    return await store.task_keys.put(slot, pem, public_line(pem))


def pem_rsa(private_pem: str) -> str:
    """An RSA key of ours as old clients read it: ``BEGIN RSA PRIVATE KEY`` (PKCS #1, RFC 8017 appendix A.1.2)."""
    key = load_ssh_private_key(private_pem.encode("ascii"), password=None)
    return key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()).decode("ascii")


def job_key_slot(job: JobUid) -> str:
    """The name that the job's own key is kept under, beside those of its tasks."""
    return job_key_slots(job)[0]
