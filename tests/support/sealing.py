"""Keys for stores in tests: fixed, so that every process of a test has the same."""

from __future__ import annotations

from pai_backend.store.keyring import GivenKeys

KEYS = GivenKeys(("A" * 43 + "=",))
