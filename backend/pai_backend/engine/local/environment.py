"""The environment of a task: a short list of what this machine gives, then the plan, then what the engine must add.

The backend's own environment is not inherited, so that its tokens and settings cannot reach a task.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from pai_backend.engine.base import TaskPlan
from pai_backend.engine.debugger import debugger_variables
from pai_backend.engine.local import layout
from pai_backend.engine.local.account import SystemAccount
from pai_backend.engine.local.interpreter import Interpreter
from pai_backend.engine.local.overlay import overlay_path, overlay_variables
from pai_backend.engine.local.peers import has_peers
from pai_backend.launch.plan import path_variables

INHERITED = frozenset({"PATH", "HOME", "USER", "LOGNAME", "LANG", "TMPDIR", "TZ", "SHELL", "TERM", "LD_LIBRARY_PATH"})
INHERITED_PREFIXES = ("LC_", "CONDA")


def inherited(source: Mapping[str, str]) -> dict[str, str]:
    """What of this process's environment a task may see."""
    return {k: v for k, v in source.items() if k in INHERITED or k.startswith(INHERITED_PREFIXES)}


def task_environment(
    plan: TaskPlan,
    directory: Path,
    source: Mapping[str, str],
    below: Interpreter,
    root: Path,
    account: SystemAccount | None = None,
) -> dict[str, str]:
    """The whole environment of the task's command and of its SSH sessions; ``account`` is the one that it runs as.

    PATH finds the simulated ``nvidia-smi`` and the ``ssh`` that knows the job's tasks first, then the task's own Python
    and the commands of the one ``below`` it, so that ``python`` and ``jupyter`` in a job mean the ones that the user
    knows. A simulated GPU hides the real ones: a job that asked for a pretended device must not compute on another
    user's real one. Raises OSError when what tasks share (see ``overlay``) cannot be written.
    """
    base = inherited(source)
    if account is not None:
        base = {name: value for name, value in base.items() if name != "TMPDIR"} | account.environment
    real = plan.placement.gpus if not plan.placement.simulated_gpu else ()
    devices = ",".join(str(index) for index in real)
    path = overlay_path(directory, below, plan.env.get("PATH") or base.get("PATH") or os.defpath)
    if (plan.placement.simulated_gpu and plan.placement.gpus) or has_peers(plan):
        path.insert(0, str(directory / layout.BIN))
    work = str(directory / layout.WORK)
    place = str(directory / layout.DEBUGGER)
    return {
        **base,
        **overlay_variables(directory, below, root, base),
        **plan.env,
        **path_variables(plan.env, work_dir=work, job_info_file=str(directory / layout.JOB_INFO)),
        **(debugger_variables(plan.env, place, place) if plan.debugger else {}),
        "PATH": os.pathsep.join(path),
        "PWD": work,
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",  # numbers as the driver has them; CUDA puts the fastest first
        "CUDA_VISIBLE_DEVICES": devices,
        "NVIDIA_VISIBLE_DEVICES": devices or "none",
        layout.MARK: plan.uid,
    }
