"""Who has lost a right is out within 2 s (architecture, section 8): what the pauses on the way there add up to.

That a login is cut at all is tested with real ones; how fast a machine is says nothing about the promise.
"""

from __future__ import annotations

from pai_backend.access.gateway import front, watch

PROMISED_S = 2.0


def test_a_look_and_the_last_words_take_less_than_is_promised() -> None:
    assert max(watch.PAUSE_S, watch.CLOCK_S) + front.GOODBYE_S < PROMISED_S
