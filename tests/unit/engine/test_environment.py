"""The environment of a task as a function of its plan and of this process's environment."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pai_backend.engine.base import TaskPlan
from pai_backend.engine.local.environment import inherited, task_environment
from pai_backend.model.ids import TaskUid
from pai_backend.model.node import Placement

PYTHON = os.path.dirname(sys.executable)


def env_of(*, env: dict[str, str] | None = None, simulated: bool = False, gpus: tuple[int, ...] = ()) -> dict[str, str]:
    placement = Placement(node="n", address="127.0.0.1", machine="m", gpus=gpus, simulated_gpu=simulated)
    plan = TaskPlan(
        uid=TaskUid("j0-0-0-0"), job_name="j", user="u", role="r", index=0, image="i", command="true", env=env or {},
        placement=placement,
    )  # fmt: skip
    return task_environment(plan, Path("/tasks/j0-0-0-0"), {"PATH": "/bin", "HOME": "/home/u", "SECRET": "x"})


def test_secrets_of_the_backend_are_not_inherited() -> None:
    source = {"PAI_BACKEND_TOKEN": "x", "JUPYTER_TOKEN": "x", "LC_ALL": "C", "CONDA_PREFIX": "/c", "HOME": "/h"}
    assert inherited(source) == {"LC_ALL": "C", "CONDA_PREFIX": "/c", "HOME": "/h"}


def test_the_backends_python_comes_before_the_machines_path() -> None:
    assert env_of()["PATH"] == f"{PYTHON}:/bin"


def test_a_path_of_the_plan_replaces_the_machines() -> None:
    assert env_of(env={"PATH": "/opt/bin"})["PATH"] == f"{PYTHON}:/opt/bin"


def test_the_simulated_driver_comes_first_where_gpus_are_simulated() -> None:
    env = env_of(simulated=True, gpus=(0,))
    assert env["PATH"].split(":")[0] == "/tasks/j0-0-0-0/bin"
    assert (env["CUDA_VISIBLE_DEVICES"], env["NVIDIA_VISIBLE_DEVICES"]) == ("", "none")


def test_a_plan_cannot_widen_its_gpus_or_lose_its_mark() -> None:
    env = env_of(env={"CUDA_VISIBLE_DEVICES": "0,1,2", "PAI_TASK_UID": "other"}, gpus=(1,))
    assert (env["CUDA_VISIBLE_DEVICES"], env["NVIDIA_VISIBLE_DEVICES"]) == ("1", "1")
    assert env["PAI_TASK_UID"] == "j0-0-0-0"
