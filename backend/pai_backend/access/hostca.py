"""The host CA: one key by which a client, or another task, recognises every task's SSH server.

A task's own host key stays what it is; a certificate beside it says under which names it may be reached. A client that
trusts the CA for those names needs no line for any task, also not for one that is still to be started.
Source: OpenSSH, PROTOCOL.certkeys; ssh-keygen(1), CERTIFICATES; sshd(8), SSH_KNOWN_HOSTS FILE FORMAT.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Final, cast

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    SSHCertificateBuilder,
    SSHCertificateType,
    load_ssh_private_key,
    load_ssh_public_key,
)

from pai_backend.access.keys import make_ed25519, public_line
from pai_backend.model import alias
from pai_backend.model.job import Job

if TYPE_CHECKING:
    from pai_backend.store.sql import Store

HOST_CA_SECRET: Final = "host-ca-key"
LIFE: Final = timedelta(days=3660)
"""Of a certificate: longer than any task runs. It names addresses of one job, and every start gets a new one."""
EARLIER: Final = timedelta(days=1)
"""A certificate is good from before it was made: clocks of clients may be behind."""


async def host_ca_key(store: Store) -> str:
    """The host CA's key (private PEM), made at the first call; the same for every replica. Raises Unavailable."""
    return await store.secrets.get(HOST_CA_SECRET, make_ed25519("pai-host-ca")[0])


async def host_ca_public_key(store: Store) -> str:
    """What clients trust: ``type base64`` of the CA. Raises Unavailable."""
    return public_line(await host_ca_key(store))


def certify_host(ca: str, host_key: str, *, key_id: str, principals: Sequence[str], now: datetime) -> str:
    """A host certificate of ``host_key``: one line, as in a file ``host_key-cert.pub``.

    Both keys are OpenSSH private PEM texts of ours; ``principals`` are the names that a client may connect to.
    Raises ValueError, without a key's text, when a key is not one of ours or there is no principal: a certificate
    without any would be good for every name.
    """
    if not principals:
        raise ValueError("a host certificate needs the host names that it is for")
    signer = _signer(ca)
    public = cast(Ed25519PublicKey, load_ssh_public_key(public_line(host_key).encode("ascii")))
    made = (
        SSHCertificateBuilder()
        .public_key(public)
        .serial(0)
        .type(SSHCertificateType.HOST)
        .key_id(key_id.encode())
        .valid_principals([name.encode() for name in principals])
        .valid_after(int((now - EARLIER).timestamp()))
        .valid_before(int((now + LIFE).timestamp()))
        .sign(signer)
    )
    return made.public_bytes().decode("ascii")


@lru_cache(maxsize=2)
def _signer(ca: str) -> Ed25519PrivateKey:
    """A CA's key, read once: it signs for every task. Raises ValueError."""
    found = load_ssh_private_key(ca.encode("ascii"), password=None)
    if not isinstance(found, Ed25519PrivateKey):
        raise ValueError("the host CA's key is not an ed25519 key")
    return found


def names_of_task(job: Job, role: str, index: int) -> tuple[str, ...]:
    """The names that a task may be reached by: the job's when it is the first task, and last its own."""
    own = alias.task_alias(job.alias, job.spec, role, index)
    first = job.spec.task_roles[0].name
    return (job.alias, own) if (role, index) == (first, 0) else (own,)


def authority_line(job_alias: str, ca: str) -> str:
    """A known_hosts line: a host with a certificate of ``ca`` for a name of this job is that task."""
    return f"@cert-authority {job_alias},{job_alias}--* {ca}"
