"""Certificates for the user's SSH key: fetched when there is none that will do, and renewed while they are used.

OpenSSH and others offer ``<identity>-cert.pub`` by themselves when it lies beside ``<identity>``. A program that logs
in at any time must not find one there that is not renewed, so ``pai ssh`` keeps its own elsewhere and names it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from jupyter_pai import broker
from jupyter_pai.errors import ClientError
from pai_backend.model.text import Text

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.serialization import SSHCertificate

    from jupyter_pai.sync import Client

SPARE = timedelta(minutes=5)
"""A certificate that ends sooner than this is replaced: logging in and starting an editor take a moment."""

LOOK_S = 60.0
"""How often the end of a certificate in use is looked at: often, because a laptop that slept counts no seconds."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class WantedCertificate:
    """A certificate of ``identity``'s key (whose ``.pub`` is there) and the file that keeps it.

    ``job``: a new one is for that job only (one that is shared with the user has to be named); None: for all of the
    user's own. ``alias``: it has to name that alias. ``lifetime_s`` None: as long as the backend gives it by itself.
    """

    identity: Path
    path: Path
    job: str | None = None
    alias: str | None = None
    lifetime_s: int | None = None
    spare: timedelta = SPARE

    @property
    def public(self) -> str:
        """The public key. Raises ClientError."""
        try:
            return self.identity.with_name(f"{self.identity.name}.pub").read_text(encoding="utf-8")
        except OSError as error:
            raise ClientError(
                Text("{identity}.pub cannot be read: {strerror}", identity=self.identity, strerror=error.strerror),
                code="InvalidParametersError",
                hint="Make the key first: `pai ssh-config` does.",
            ) from None


def certificate_file(identity: Path) -> Path:
    """Where OpenSSH looks for the certificate of a key."""
    return identity.with_name(f"{identity.name}-cert.pub")


def ensure_certificate(client: Client, identity: Path, alias: str | None = None, *, job: str | None = None) -> Path:
    """The file of a certificate beside ``identity`` that is good for some minutes yet; see :func:`ensure`."""
    return ensure(client, WantedCertificate(identity, certificate_file(identity), job, alias))


def ensure(client: Client, wanted: WantedCertificate) -> Path:
    """The file of a certificate that the backend accepts and that lasts some minutes yet. Raises ClientError.

    The one that is kept is asked about: it may have been revoked, or be of a backend that was made again.
    """
    kept = _kept(wanted, datetime.now(UTC))
    if kept is None or kept.serial not in {
        each["serial"] for each in client.thread.run(broker.certificates(client.api))
    }:
        _fetch(client, wanted)
    return wanted.path


@contextlib.contextmanager
def renewed(client: Client, wanted: WantedCertificate) -> Iterator[None]:
    """Meanwhile replace the certificate shortly before its end, in a thread, without a word.

    A backend that is away is asked again. When there is no new one, the gateway says why it ends.
    """
    done = threading.Event()

    def renew() -> None:
        while not done.wait(LOOK_S):
            try:
                if _kept(wanted, datetime.now(UTC)) is None:
                    _fetch(client, wanted)
            except (ClientError, OSError) as error:
                log.info("no new certificate yet: %s", error)

    thread = threading.Thread(target=renew, name="pai-certificate", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def over(path: Path, now: datetime) -> bool:
    """Whether a file has a certificate that has run out."""
    kept = _read(path)
    return kept is not None and kept.valid_before <= now.timestamp()


def write(path: Path, certificate: str) -> None:
    """Write a certificate, whole or not at all."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(f"{certificate.strip()}\n")
        os.replace(draft, path)
    except BaseException:
        os.unlink(draft)
        raise


def _fetch(client: Client, wanted: WantedCertificate) -> None:
    asked = broker.certify(client.api, wanted.public, job=wanted.job, lifetime_s=wanted.lifetime_s)
    write(wanted.path, client.thread.run(asked)["certificate"])


def _kept(wanted: WantedCertificate, now: datetime) -> SSHCertificate | None:
    """The certificate of that file when it is one of that key, lasts long enough and names the alias."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    kept = _read(wanted.path)
    if kept is None or kept.valid_before < (now + wanted.spare).timestamp():
        return None
    certified = kept.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode("ascii").split()
    if certified != wanted.public.split()[:2]:
        return None
    return kept if wanted.alias is None or wanted.alias.encode() in kept.valid_principals else None


def _read(path: Path) -> SSHCertificate | None:
    from cryptography.hazmat.primitives.serialization import SSHCertificate, load_ssh_public_identity

    try:
        kept = load_ssh_public_identity(path.read_bytes())
    except (OSError, ValueError):
        return None
    return kept if isinstance(kept, SSHCertificate) else None
