"""Who a connection has proved to be: keys and certificates that have signed."""

from __future__ import annotations

import base64
import logging
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import asyncssh

from pai_backend.access.broker import lookup
from pai_backend.access.broker.lookup import CertificateFacts
from pai_backend.access.broker.rights import Credential
from pai_backend.access.gateway.door import Door, utc_now

if TYPE_CHECKING:
    from pai_backend.store.sql import Store

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ProvenCredential:
    """A key or certificate of a known user, and whether it may enter the target that was named."""

    credential: Credential
    welcome: bool
    public_key: str
    """What has signed, as a line of authorized_keys."""


class Proof:
    """The proofs of one connection, for the one name that it may log in under."""

    def __init__(self, store: Store, door: Door) -> None:
        self._store, self.door = store, door
        self.offer: ProvenCredential | None = None
        """The last proof, if it is a known user's."""

    async def take_key(self, fingerprint: str, public_key: str) -> bool:
        """Whether the public key, which has signed, is a known user's, or one that the job's document names."""
        await self._take(lookup.by_public_key(self._store, fingerprint, utc_now()), public_key)
        known = self.offer
        if known is None or not known.welcome:
            await self._take(self.door.named_key(fingerprint, public_key), public_key)
            self.offer = self.offer or known
        return self.offer is not None

    async def take_certificate(self, facts: CertificateFacts) -> bool:
        """Whether the certificate, whose key has signed, is one of ours and good."""
        return await self._take(lookup.by_certificate(self._store, facts, utc_now()), facts.public_key)

    async def _take(self, finding: Coroutine[Any, Any, Credential | None], public_key: str) -> bool:
        self.offer = None
        try:
            credential = await finding
            if credential is not None:
                self.offer = ProvenCredential(credential, await self.door.admits(credential), public_key)
        except Exception:
            log.exception("the store does not answer; a login is closed")
            raise
        return self.offer is not None


def line_of(key: asyncssh.SSHKey) -> str:
    """A public key as a line of authorized_keys, without a comment."""
    return f"{key.algorithm.decode('ascii')} {base64.b64encode(key.public_data).decode('ascii')}"
