"""Certificates at a task's own port, with real OpenSSH: the task's, by which it is recognised, and those of users."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import pytest_asyncio
from pydantic import SecretStr

from pai_backend.access.hostca import authority_line, certify_host
from pai_backend.access.keys import make_ed25519, public_line
from pai_backend.engine.base import SshPlan, TaskPlan
from pai_backend.engine.local.engine import LocalEngine
from pai_backend.testing.free_ports import free_port
from tests.integration.engine.conftest import MakePlan
from tests.integration.engine.test_agent_ssh import agent, run, served

__all__ = ["agent"]

HOST_CA, USER_CA = make_ed25519("host-ca")[0], make_ed25519("user-ca")[0]
NAMES = ("demo", "demo--worker-0")


@pytest_asyncio.fixture
async def task(engine: LocalEngine, agent: subprocess.Popen[bytes], make_plan: MakePlan) -> AsyncIterator[TaskPlan]:
    """A task called demo that lets in nobody but users with a certificate for its name."""
    host_key = make_ed25519("host")[0]
    line = f'cert-authority,principals="{",".join(NAMES)}" {public_line(USER_CA)} pai-user-ca-1'
    ssh = SshPlan(
        port=free_port(),
        host_key=SecretStr(host_key),
        host_certificate=certify_host(HOST_CA, host_key, key_id="t", principals=NAMES, now=datetime.now(UTC)),
        authorized_keys=(line,),
    )
    plan = make_plan("sleep 1000", ssh=ssh)
    await engine.start(plan)
    await served(ssh.port)
    yield plan
    await engine.stop(plan.uid, 0)


def certificate(directory: Path, principals: str, *options: str) -> Path:
    """A user's key with a certificate made by ssh-keygen; empty principals: one without any."""
    ca, key = directory / "ca", directory / "key"
    ca.write_text(USER_CA)
    ca.chmod(0o600)
    if not key.exists():
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True, timeout=60)
    named = ["-n", principals] if principals else []
    words = ["ssh-keygen", "-q", "-s", str(ca), "-I", "alice", *named, *options, f"{key}.pub"]
    subprocess.run(words, check=True, timeout=60)
    return key


async def login(
    task: TaskPlan, key: Path, *words: str, name: str = "demo", options: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[bytes]:
    """Run ssh as ``ssh -J`` ends at a task: by its name, with nothing known but the CA of hosts."""
    assert task.ssh is not None
    known = key.parent / "known_hosts"
    known.write_text(authority_line("demo", public_line(HOST_CA)) + "\n")
    given = {
        "IdentityFile": key,
        "IdentitiesOnly": "yes",
        "IdentityAgent": "none",
        "UserKnownHostsFile": known,
        "GlobalKnownHostsFile": "/dev/null",
        "StrictHostKeyChecking": "yes",
        "BatchMode": "yes",
        "HostKeyAlias": name,
    }
    settings = [word for option, value in given.items() for word in ("-o", f"{option}={value}")]
    return await run("ssh", "-F", "none", *settings, *options, "-p", str(task.ssh.port), "x@127.0.0.1", *words)


@pytest.mark.asyncio
@pytest.mark.parametrize("name", NAMES)
async def test_a_task_is_recognised_by_its_names_and_takes_certificates_for_them(
    task: TaskPlan, tmp_path: Path, name: str
) -> None:
    done = await login(task, certificate(tmp_path, name), "echo in", name=name)
    assert (done.stdout, done.stderr) == (b"in\n", b"")


@pytest.mark.asyncio
async def test_under_another_name_a_task_is_not_recognised(task: TaskPlan, tmp_path: Path) -> None:
    done = await login(task, certificate(tmp_path, "demo"), "echo in", name="demo--worker-1")
    assert (done.stdout, done.returncode) == (b"", 255)
    assert b"name is not a listed principal" in done.stderr


@pytest.mark.asyncio
async def test_certificates_that_are_not_for_the_task_or_not_for_now_are_refused(
    task: TaskPlan, tmp_path: Path
) -> None:
    wrong = {
        "of another job": ("other",),
        "for any name": ("",),
        "over": ("demo", "-V", "-2h:-1h"),
        "of a host": ("demo", "-h"),
        "with an option that only the gateway can keep": ("demo", "-O", "critical:ports@example.org=jupyter"),
    }
    for what, (principals, *options) in wrong.items():
        done = await login(task, certificate(tmp_path, principals, *options), "echo in")
        assert (done.stdout, done.returncode) == (b"", 255), what
        assert b"Permission denied (publickey)" in done.stderr, what


@pytest.mark.asyncio
async def test_what_a_certificate_forbids_is_forbidden(task: TaskPlan, tmp_path: Path) -> None:
    key = certificate(tmp_path, "demo", "-O", "clear", "-O", "permit-pty")
    forwarded = await login(task, key, options=("-W", "127.0.0.1:1"))
    assert b"administratively prohibited" in forwarded.stderr
    fixed = certificate(tmp_path, "demo", "-O", "force-command=echo only this")
    assert (await login(task, fixed, "echo in")).stdout == b"only this\n"


@pytest.mark.asyncio
@pytest.mark.parametrize("forced", ["/bin/false", "internal-sftp"])
@pytest.mark.parametrize("name", ["BASH_ENV", "LD_PRELOAD"])
async def test_a_forced_command_is_all_that_runs(task: TaskPlan, tmp_path: Path, forced: str, name: str) -> None:
    ran = tmp_path / "ran"
    (tmp_path / "script").write_text(f"touch {ran}\n")
    key = certificate(tmp_path, "demo", "-O", f"force-command={forced}")
    done = await login(task, key, "echo in", options=("-o", f"SetEnv={name}={tmp_path / 'script'}"))
    assert done.returncode != 0
    assert (done.stdout, b"LD_PRELOAD" in done.stderr, ran.exists()) == (b"", False, False)
