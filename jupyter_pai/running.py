"""A command as a job: the document that is made for it, and its code on the way there."""

from __future__ import annotations

import json
import os
import re
import secrets
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jupyter_pai.client import AsyncClient
from jupyter_pai.wire_types import JobDetail

IMAGE = "python:3.12"
"""The image of a command without one. Each user may have another, in ``PAI_IMAGE``."""
ROLE = "main"
_NOT_IN_NAME = re.compile(r"[^A-Za-z0-9_-]+")
_INTERPRETERS = re.compile(r"(python|pypy)[\d.]*|(ba|z|da)?sh|env|nohup|torchrun|accelerate|uv|run|-.*")


@dataclass(frozen=True)
class Needs:
    """What a command gets: GPUs and their type, CPUs and MiB of memory (None: by the GPUs), and where it runs."""

    gpus: int = 0
    gpu_type: str = ""
    cpus: int | None = None
    memory_mb: int | None = None
    image: str = ""
    virtual_cluster: str = ""
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Command:
    """A command of bash, the directory whose files it finds around it, and further files of these contents.

    ``notebook`` is the path of the notebook that it runs, for the panel.
    """

    text: str
    needs: Needs = Needs()
    name: str = ""
    code: Path | None = None
    files: Mapping[str, bytes] = field(default_factory=dict)
    notebook: str = ""


def command_text(words: Sequence[str]) -> str:
    """Words as a command of bash. A single one is a command line already, as for ``ssh``."""
    return words[0] if len(words) == 1 else shlex.join(words)


def job_name(words: Sequence[str]) -> str:
    """A new name after the program that is run: ``train-3f2a1c`` for ``python train.py``."""
    parts = [part for word in words for part in (word.split() if len(words) == 1 else [word])]
    stems = [Path(part).stem for part in parts if not _INTERPRETERS.fullmatch(part)]
    stem = _NOT_IN_NAME.sub("-", stems[0]).strip("-")[:40] if stems else ""
    return f"{stem or 'run'}-{secrets.token_hex(3)}"


def document(command: Command, code_dir: str = "", folder: str = "") -> bytes:
    """The job document, in OpenPAI v1, whose commands have no tags: what is typed is what runs.

    The command starts in ``folder``, a directory of the task's working directory.
    """
    needs = command.needs
    role = {
        "name": ROLE,
        "taskNumber": 1,
        "cpuNumber": needs.cpus or max(2 * needs.gpus, 1),
        "memoryMB": needs.memory_mb or max(8192 * needs.gpus, 2048),
        "gpuNumber": needs.gpus,
        "command": f"cd {shlex.quote(folder)} || exit\n{command.text}" if folder else command.text,
    }
    optional = {
        "codeDir": code_dir,
        "virtualCluster": needs.virtual_cluster,
        "gpuType": needs.gpu_type,
        "jobEnvs": dict(needs.env),
        "extras": {"jupyterPai": {"notebook": command.notebook}} if command.notebook else {},
    }
    value = {
        "jobName": command.name,
        "image": needs.image or os.environ.get("PAI_IMAGE") or IMAGE,
        **{name: given for name, given in optional.items() if given},
        "taskRoles": [role],
    }
    return json.dumps(value, ensure_ascii=False, indent=2).encode()


async def prepared(client: AsyncClient, command: Command, say: Callable[[str], None]) -> bytes:
    """The document, once the code that it names is there. Raises ClientError."""
    if command.code is None and not command.files:
        return document(command)
    from jupyter_pai.fs import code

    sent = await code.send(client, command.code, command.files, say)
    return document(command, sent.code_dir, sent.name)


async def start(client: AsyncClient, command: Command, say: Callable[[str], None]) -> JobDetail:
    """Submit the command as a job. Raises ClientError."""
    return await client.submit(await prepared(client, command, say))
