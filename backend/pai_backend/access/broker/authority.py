"""The key that certifies users: one for a cluster, made at the first use, sealed, and changed by command.

After a change the old key's certificates stay good until they run out; its private half is deleted at once.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pai_backend.access.broker.certificates import sign
from pai_backend.access.keys import make_ed25519, parse_public_key
from pai_backend.model.errors import Bug
from pai_backend.store.grants import Act, Certificate, UserCa

if TYPE_CHECKING:
    from pai_backend.store.sql import Store

SERIAL_BITS = 53  # every serial is exact in a browser's numbers, and two alike are never met
_TRIES = 5


async def accepted(store: Store, act: Act) -> Sequence[UserCa]:
    """Whose certificates are accepted, the one that signs first; makes the first one when there is none."""
    return await store.grants.user_cas(act.at) or (await _follow(store, 0, act),)


async def rotate(store: Store, act: Act) -> UserCa:
    """Sign with a new key from now on; returns it. Of two rotations at once one counts, and both get its key."""
    return await _follow(store, (await accepted(store, act))[0].number, act)


async def issue(store: Store, terms: Certificate, public_key: str, act: Act) -> tuple[Certificate, str]:
    """Write a certificate down and return it with its line. ``terms`` has neither serial nor signer yet.

    Raises InvalidParameters for a key that cannot be certified.
    """
    for _ in range(_TRIES):
        ca = (await accepted(store, act))[0]
        pem = await store.grants.ca_key(ca.number)
        if pem is not None:
            made = replace(terms, serial=1 + secrets.randbelow(2**SERIAL_BITS - 1), ca=ca.fingerprint)
            line = sign(made, public_key, pem)
            await store.grants.issue(made, act)
            return made, line
        # It was rotated in between: the next look finds its successor.
    raise Bug("the key that signs certificates has no private half")


async def _follow(store: Store, after: int, act: Act) -> UserCa:
    pem, public = make_ed25519("")
    key = parse_public_key(public)
    return await store.grants.follow_ca(after, UserCa(after + 1, key.line, key.fingerprint, act.at), pem, act)
