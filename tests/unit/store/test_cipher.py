"""Keys: which texts are any, and that none is ever shown."""

from __future__ import annotations

import pytest

from pai_backend.store.cipher import BadKey, Cipher, key_id, new_key


@pytest.mark.parametrize("text", ["", "short", "A" * 44, "not base64 at all, but of some length......", "é" * 44])
def test_a_text_that_is_no_key_is_refused_without_being_repeated(text: str) -> None:
    with pytest.raises(BadKey) as refusal:
        Cipher([new_key(), text])
    assert not text or text not in str(refusal.value)
    assert refusal.value.__suppress_context__ or refusal.value.__context__ is None


def test_no_key_at_all_is_refused() -> None:
    with pytest.raises(BadKey, match="no key"):
        Cipher([])


def test_keys_are_told_apart_and_not_shown() -> None:
    keys = [new_key() for _ in range(3)]
    cipher = Cipher(keys)

    assert cipher.newest == key_id(keys[0])
    assert cipher.ids == {key_id(key) for key in keys}
    assert not any(key in repr(cipher) for key in keys)
    assert not any(key[:8] in repr(cipher) for key in keys)
