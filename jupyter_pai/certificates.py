"""A certificate for the user's SSH key: fetched when there is none that will do, and kept beside the key.

OpenSSH and others offer ``<identity>-cert.pub`` by themselves when it lies beside ``<identity>``.
"""

from __future__ import annotations

import os
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from jupyter_pai import broker
from jupyter_pai.errors import ClientError

if TYPE_CHECKING:
    from jupyter_pai.sync import Client

SPARE = timedelta(minutes=5)
"""A certificate that ends sooner than this is replaced: logging in and starting an editor take a moment."""


def certificate_file(identity: Path) -> Path:
    """Where OpenSSH looks for the certificate of a key."""
    return identity.with_name(f"{identity.name}-cert.pub")


def ensure_certificate(client: Client, identity: Path, alias: str | None = None, *, job: str | None = None) -> Path:
    """The file of a certificate for ``identity`` (whose ``.pub`` is there) that is good for some minutes yet.

    With ``alias`` it names that alias of a job; with ``job`` a new one is for that job only (one that is shared with
    the user has to be named). Raises ClientError.
    """
    path = certificate_file(identity)
    if not _will_do(path, alias, datetime.now(UTC)):
        try:
            public = identity.with_name(f"{identity.name}.pub").read_text(encoding="utf-8")
        except OSError as error:
            raise ClientError(
                f"{identity}.pub cannot be read: {error.strerror}",
                code="InvalidParametersError",
                hint="Make the key first: `pai ssh-config` does.",
            ) from None
        write(path, client.thread.run(broker.certify(client.api, public, job=job))["certificate"])
    return path


def write(path: Path, certificate: str) -> None:
    """Write a certificate, whole or not at all."""
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(f"{certificate.strip()}\n")
        os.replace(draft, path)
    except BaseException:
        os.unlink(draft)
        raise


def _will_do(path: Path, alias: str | None, now: datetime) -> bool:
    """Whether the certificate of that file is one, lasts long enough and names the alias."""
    from cryptography.hazmat.primitives.serialization import SSHCertificate, load_ssh_public_identity

    try:
        kept = load_ssh_public_identity(path.read_bytes())
    except (OSError, ValueError):
        return False
    if not isinstance(kept, SSHCertificate) or kept.valid_before < (now + SPARE).timestamp():
        return False
    return alias is None or alias.encode() in kept.valid_principals
