"""Property tests that give the same result for the same commit, on any machine and in any order.

Two profiles of Hypothesis: ``repeatable``, which every run takes, and ``random`` for ``make fuzz``.
"""

from __future__ import annotations

from typing import Final

from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

REPEATABLE: Final = "repeatable"
RANDOM: Final = "random"


def register_profiles() -> None:
    """Register both profiles and load ``repeatable``; pytest's ``--hypothesis-profile`` comes later and wins.

    Neither has a deadline or a health check that reads the clock: a busy machine must not fail a test.
    """
    unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.register_profile(REPEATABLE, unhurried, derandomize=True, database=None, print_blob=False)
    settings.register_profile(RANDOM, unhurried, derandomize=False, print_blob=True)
    settings.load_profile(REPEATABLE)


def ignore_loaded_modules() -> None:
    """Keep Hypothesis from trying the constants of whatever modules of ours the process has loaded so far.

    Which those are depends on the tests that the worker ran before, so the same seed would give other examples.
    Hypothesis has no setting for it, so this takes the place of a private function;
    ``integration/support/test_repeatable.py`` fails when another version has another.
    """
    providers._get_local_constants = Constants


def current() -> settings:
    """What holds for tests that say nothing else."""
    found = settings.default
    assert found is not None
    return found


def is_random() -> bool:
    """Whether this run draws other examples than the last."""
    return not current().derandomize
