"""The keys of the queue: what they allow, and the rules that the controller makes of them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from pai_backend.config.load import load
from pai_backend.config.queue_policy import policy_of
from pai_backend.config.settings import Settings
from pai_backend.scheduling.queue import Cap, Patience, Policy, VcCaps


def policy(queue: dict[str, Any]) -> Policy:
    return policy_of(Settings.model_validate({"queue": queue}).queue)


def test_nothing_is_limited_until_it_is_said() -> None:
    assert policy({}) == Policy()


def test_caps_of_users_of_virtual_clusters_and_of_users_inside_them_are_told_apart() -> None:
    made = policy(
        {
            "user": {"tasks": 40},
            "users": {"alice": {"gpus": 32}},
            "vc": {"total": {"gpus": 64}, "user": {"gpus": 8}},
            "vcs": {"vision": {"users": {"bob": {"tasks": 1, "gpus": 0}}}},
        }
    )
    assert (made.user, made.users) == (Cap(tasks=40), {"alice": Cap(gpus=32)})
    assert made.vc == VcCaps(total=Cap(gpus=64), user=Cap(gpus=8))
    assert made.vcs == {"vision": VcCaps(users={"bob": Cap(tasks=1, gpus=0)})}


def test_patience_is_a_count_and_seconds() -> None:
    assert policy({"patience": {"overtaken": 3, "first_for_s": 90}}).patience == Patience(3, timedelta(seconds=90))


@pytest.mark.parametrize(
    "queue",
    [
        {"user": {"gpus": -1}},
        {"patience": {"overtaken": 0}},
        {"patience": {"first_for_s": 0}},
        {"vcs": {"vision": {"gpus": 4}}},
    ],
)
def test_what_cannot_be_meant_is_refused(queue: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        policy(queue)


def test_a_cap_reaches_the_settings_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAI_BACKEND_QUEUE__VC__USER__GPUS", "4")
    monkeypatch.setenv("PAI_BACKEND_QUEUE__USERS", "{alice: {tasks: 2}}")
    made = policy_of(load([]).settings.queue)
    assert (made.vc.user, made.users) == (Cap(gpus=4), {"alice": Cap(tasks=2)})
