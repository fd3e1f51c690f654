"""The environment of a task as a function of its plan and of this process's environment."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from pai_backend.engine.base import TaskPlan
from pai_backend.engine.local.environment import inherited, task_environment
from pai_backend.engine.local.interpreter import Interpreter
from pai_backend.model.ids import TaskUid
from pai_backend.model.node import Placement
from tests.support.local_engine import PYTHON as BELOW

TASK = "/tasks/j0-0-0-0"
SOURCE = {"PATH": "/bin", "HOME": "/home/u", "SECRET": "x", "VIRTUAL_ENV": "/other", "PYTHONPATH": "/other"}


def env_of(
    *,
    env: dict[str, str] | None = None,
    simulated: bool = False,
    gpus: tuple[int, ...] = (),
    root: Path,
    source: dict[str, str] = SOURCE,
    below: Interpreter = BELOW,
) -> dict[str, str]:
    placement = Placement(node="n", address="127.0.0.1", machine="m", gpus=gpus, simulated_gpu=simulated)
    plan = TaskPlan(
        uid=TaskUid("j0-0-0-0"), job_name="j", user="u", role="r", index=0, image="i", command="true", env=env or {},
        placement=placement,
    )  # fmt: skip
    return task_environment(plan, Path(TASK), source, below, root)


def test_secrets_of_the_backend_are_not_inherited() -> None:
    source = {"PAI_BACKEND_TOKEN": "x", "JUPYTER_TOKEN": "x", "LC_ALL": "C", "CONDA_PREFIX": "/c", "HOME": "/h"}
    assert inherited(source) == {"LC_ALL": "C", "CONDA_PREFIX": "/c", "HOME": "/h"}


def test_the_tasks_own_python_comes_before_the_named_one_and_the_machines_path(tmp_path: Path) -> None:
    assert env_of(root=tmp_path)["PATH"] == f"{TASK}/python/bin:{TASK}/python/commands:/env/bin:/bin"


def test_a_path_of_the_plan_replaces_the_machines(tmp_path: Path) -> None:
    path = env_of(env={"PATH": "/opt/bin"}, root=tmp_path)["PATH"]
    assert path == f"{TASK}/python/bin:{TASK}/python/commands:/env/bin:/opt/bin"


def test_the_commands_of_an_environment_that_the_backend_alone_runs_in_are_not_found(tmp_path: Path) -> None:
    ours = str(Path(sys.executable).parent)
    source = {"PATH": f"/first:{ours}:/bin"}
    expected = ours if sys.prefix == sys.base_prefix else ""
    assert env_of(root=tmp_path, source=source)["PATH"].endswith(":/env/bin:/first:" + f"{expected}:/bin".lstrip(":"))
    own = replace(BELOW, executable=sys.executable)
    assert env_of(root=tmp_path, source=source, below=own)["PATH"].endswith(f"/commands:/first:{ours}:/bin")


def test_installers_and_jupyter_are_led_to_the_tasks_directory(tmp_path: Path) -> None:
    env = env_of(root=tmp_path, source={**SOURCE, "CONDA_PREFIX": "/conda"})
    own = ("VIRTUAL_ENV", "PYTHONUSERBASE", "CONDA_PREFIX")
    assert {env[name] for name in own} == {f"{TASK}/python"}
    assert {env[name] for name in ("UV_TOOL_BIN_DIR", "PIPX_BIN_DIR")} == {f"{env['VIRTUAL_ENV']}/bin"}
    tools = ("UV_TOOL_DIR", "UV_PYTHON_INSTALL_DIR", "PIPX_HOME")
    assert len({env[name] for name in tools if env[name].startswith(f"{env['VIRTUAL_ENV']}/")}) == len(tools)
    assert {env[name] for name in ("PIP_CACHE_DIR", "UV_CACHE_DIR")} == {
        f"{TASK}/python/cache/pip",
        f"{TASK}/python/cache/uv",
    }
    assert "PYTHONPATH" not in env
    assert env["JUPYTER_PATH"].endswith(":/env/share/jupyter")


def test_the_simulated_driver_comes_first_where_gpus_are_simulated(tmp_path: Path) -> None:
    env = env_of(simulated=True, gpus=(0,), root=tmp_path)
    assert env["PATH"].split(":")[0] == "/tasks/j0-0-0-0/bin"
    assert (env["CUDA_VISIBLE_DEVICES"], env["NVIDIA_VISIBLE_DEVICES"]) == ("", "none")


def test_a_plan_cannot_widen_its_gpus_or_lose_its_mark(tmp_path: Path) -> None:
    env = env_of(env={"CUDA_VISIBLE_DEVICES": "0,1,2", "PAI_TASK_UID": "other"}, gpus=(1,), root=tmp_path)
    assert (env["CUDA_VISIBLE_DEVICES"], env["NVIDIA_VISIBLE_DEVICES"]) == ("1", "1")
    assert env["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID", "else another GPU may be meant"
    assert env["PAI_TASK_UID"] == "j0-0-0-0"
