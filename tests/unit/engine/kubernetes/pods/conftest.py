"""A plan to make pods of, and what else the builders take."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pydantic import SecretStr

from pai_backend.engine.base import SshPlan, TaskPlan
from pai_backend.engine.kubernetes.pods.owner import PodOwner
from pai_backend.model.ids import TaskUid
from pai_backend.model.node import Placement
from pai_backend.model.pod_settings import PodSettings

MakePlan = Callable[..., TaskPlan]


@pytest.fixture
def owner() -> PodOwner:
    return PodOwner(namespace="team", name="j0123456789abcdef-a1", uid="0f7d2b3c", instance="lab")


@pytest.fixture
def settings() -> PodSettings:
    return PodSettings(runtime_image="registry.example/runtime:1")


@pytest.fixture
def make_plan() -> MakePlan:
    """Makes the plan of worker 3 of ``alice~train``; fields as given."""

    def make(**fields: object) -> TaskPlan:
        place = Placement(
            node="carol", address="10.0.0.7", machine="carol", gpus=(0, 3), gpu_type="TITANX", ports={"http": (20100,)}
        )
        plan = TaskPlan(
            uid=TaskUid("j0123456789abcdef-0-3-1"),
            job_name="train",
            user="alice",
            role="worker",
            index=3,
            job_attempt=1,
            image="registry.example/image:1",
            command="python train.py",
            env={"PAI_JOB_NAME": "train"},
            placement=place,
            cpus=4,
            memory_mb=8192,
            shm_mb=64,
            job_info="{}",
        )
        return plan.model_copy(update=fields)

    return make


@pytest.fixture
def ssh() -> SshPlan:
    return SshPlan(port=20101, host_key=SecretStr("PRIVATE KEY"), authorized_keys=("ssh-ed25519 A", "ssh-rsa B"))
