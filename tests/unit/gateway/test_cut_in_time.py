"""Who has lost a right is out within 2 s (architecture, section 8): what the pauses on the way there add up to.

That a login is cut at all is tested with real ones; how fast a machine is says nothing about the promise.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest

from pai_backend.access.broker.rights import Credential, CredentialKind
from pai_backend.access.gateway import watch
from pai_backend.access.gateway.joined import front
from pai_backend.access.gateway.login import Login
from pai_backend.access.keys import make_ed25519
from tests.support.ssh_fakes import MemoryStore

PROMISED_S = 2.0


def test_a_look_and_the_last_words_take_less_than_is_promised() -> None:
    assert max(watch.PAUSE_S, watch.CLOCK_S) + front.GOODBYE_S < PROMISED_S


class _Idle:
    """A login that has entered no task."""

    entries = ()
    ended = False

    def end(self, refused: Exception) -> None:
        self.ended = True


@pytest.mark.asyncio
async def test_a_term_that_a_key_gets_while_it_is_used_counts_at_every_look() -> None:
    """Between two changes of the store only those with a term are looked at, so it has to be known."""
    store = MemoryStore()
    key = store.register("alice", make_ed25519("laptop")[1])
    watching, login = watch.LoginWatch(store.as_store()), _Idle()
    watching.add(cast("Login", login), Credential("alice", key.fingerprint, CredentialKind.KEY))
    soon = datetime.now(UTC) + timedelta(hours=1)
    store.registered[key.fingerprint] = replace(key, expires_at=soon)
    await watching.look()
    store.registered[key.fingerprint] = replace(key, expires_at=soon - timedelta(hours=2))
    await watching.look(whole=False)
    assert login.ended
