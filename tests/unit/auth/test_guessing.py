"""How long who fails to sign in must wait."""

from __future__ import annotations

import pytest

from pai_backend.auth.guessing import FORGET_S, FREE, LONGEST_S, SUSPECT, Guesses
from pai_backend.model.errors import TooManyRequests

PAIR, OTHER_SOURCE, OTHER_USER = ("ann", "10.0.0.1"), ("ann", "10.0.0.2"), ("bob", "10.0.0.1")


def test_a_pair_is_locked_for_longer_and_longer_and_no_other_is() -> None:
    now = [0.0]
    guesses = Guesses(lambda: now[0])
    waits = []
    for number in range(FREE + 12):
        guesses.admit(PAIR)
        guesses.failed(PAIR)
        if number + 1 >= FREE:
            with pytest.raises(TooManyRequests):
                guesses.admit(PAIR)
            guesses.admit(OTHER_SOURCE)
            guesses.admit(OTHER_USER)
            began = now[0]
            while True:
                now[0] += 1
                try:
                    guesses.admit(PAIR)
                except TooManyRequests:
                    continue
                waits.append(now[0] - began)
                break
    assert waits[:4] == [1, 2, 4, 8]
    assert waits[-1] == LONGEST_S
    now[0] += FORGET_S
    assert not guesses.is_suspect(PAIR)


def test_a_source_that_fails_with_many_names_is_suspect_but_for_who_signed_in_there() -> None:
    guesses = Guesses(lambda: 1.0)
    guesses.succeeded(OTHER_USER)
    for number in range(SUSPECT):
        assert not guesses.is_suspect(PAIR)
        guesses.failed((f"user-{number}", PAIR[1]))
    assert guesses.is_suspect(PAIR)
    assert not guesses.is_suspect(OTHER_USER)
    assert not guesses.is_suspect(OTHER_SOURCE)
    guesses.failed(OTHER_USER)
    guesses.succeeded(OTHER_USER)
    guesses.admit(OTHER_USER)
