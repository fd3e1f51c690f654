"""What sealing promises, for any content and any keys."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pai_backend.store.cipher import Cipher, UnknownKey, new_key

KEYS = [new_key() for _ in range(4)]
CONTENT = st.binary(max_size=300)
SOME_KEYS = st.lists(st.sampled_from(KEYS), min_size=1, unique=True)


def opened(cipher: Cipher, sealed: bytes) -> bytes | None:
    try:
        return cipher.open(sealed)
    except UnknownKey:
        return None


@given(CONTENT, SOME_KEYS, st.data())
def test_what_was_sealed_is_opened_by_whoever_has_the_key(content: bytes, keys: list[str], data: st.DataObject) -> None:
    sealed = Cipher(keys).sealed(content)
    others = data.draw(st.lists(st.sampled_from(KEYS), min_size=1, unique=True))
    reader = Cipher(others)

    if keys[0] in others:
        assert reader.open(sealed.data) == content
        assert sealed.by in reader.ids
    else:
        assert sealed.by not in reader.ids
        with pytest.raises(UnknownKey):
            reader.open(sealed.data)


@given(CONTENT, SOME_KEYS)
def test_resealing_needs_the_newest_key_alone_afterwards(content: bytes, keys: list[str]) -> None:
    old = Cipher([keys[-1]]).seal(content)

    fresh = Cipher(keys).reseal(old)

    assert Cipher([keys[0]]).open(fresh) == content


@given(CONTENT, st.integers(0), st.integers(1, 255))
def test_a_changed_byte_is_never_taken_for_content(content: bytes, place: int, change: int) -> None:
    cipher = Cipher(KEYS[:1])
    sealed = bytearray(cipher.seal(content))
    sealed[place % len(sealed)] ^= change

    # Base64 has bits at its end that mean nothing: a change there may go unnoticed, and does no harm.
    assert opened(cipher, bytes(sealed)) in (None, content)


@given(st.binary(min_size=8, max_size=300))
def test_sealed_content_cannot_be_seen(content: bytes) -> None:
    assert content not in Cipher(KEYS).seal(content)
    assert Cipher(KEYS).seal(content) != Cipher(KEYS).seal(content)
