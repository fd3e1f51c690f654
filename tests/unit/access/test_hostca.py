"""Certificates of tasks' host keys, as OpenSSH reads them."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pai_backend.access.hostca import (
    authority_line,
    certify_host,
    host_ca_key,
    host_ca_public_key,
    names_of_task,
)
from pai_backend.access.keys import make_ed25519, public_line
from pai_backend.testing.builders import make_job, make_role, make_spec
from tests.support.ssh_fakes import MemoryStore

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
CA, HOST = make_ed25519("ca")[0], make_ed25519("host")[0]


def shown(certificate: str, directory: Path) -> list[str]:
    """What ssh-keygen says of a certificate, line by line."""
    file = directory / "host_key-cert.pub"
    file.write_text(f"{certificate}\n")
    words = ["ssh-keygen", "-L", "-f", str(file)]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60, env={"TZ": "UTC"})
    return [line.strip() for line in done.stdout.splitlines()]


def test_openssh_reads_names_key_and_life_of_a_certificate(tmp_path: Path) -> None:
    names = ["demo", "demo--worker-0"]
    lines = shown(certify_host(CA, HOST, key_id="j1-0-0", principals=names, now=NOW), tmp_path)
    assert "Type: ssh-ed25519-cert-v01@openssh.com host certificate" in lines
    assert 'Key ID: "j1-0-0"' in lines
    assert "Valid: from 2026-11-21T12:00:00 to 2036-11-29T12:00:00" in lines
    assert lines[lines.index("Principals:") + 1 :][:2] == names
    for word, pem in (("Public key", HOST), ("Signing CA", CA)):
        (tmp_path / "key.pub").write_text(public_line(pem))
        told = subprocess.run(["ssh-keygen", "-l", "-f", tmp_path / "key.pub"], capture_output=True, text=True)
        assert any(told.stdout.split()[1] in line for line in lines if line.startswith(word))


def test_a_certificate_for_no_name_is_not_made() -> None:
    with pytest.raises(ValueError, match="needs the host names"):
        certify_host(CA, HOST, key_id="j1-0-0", principals=(), now=NOW)


@pytest.mark.parametrize(("ca", "host"), [("hush-hush", HOST), (CA, "hush-hush")], ids=["ca", "host"])
def test_what_is_no_key_is_refused_without_being_repeated(ca: str, host: str) -> None:
    with pytest.raises(ValueError, match=r"(?i)openssh private key") as caught:
        certify_host(ca, host, key_id="j1-0-0", principals=["demo"], now=NOW)
    assert "hush" not in repr(caught.value)


def test_only_the_first_task_has_the_name_of_its_job() -> None:
    job = make_job(spec=make_spec(roles=[make_role("ps"), make_role("worker", instances=2)]))
    assert names_of_task(job, "ps", 0) == (job.alias, f"{job.alias}--ps-0")
    assert names_of_task(job, "worker", 0) == (f"{job.alias}--worker-0",)
    assert names_of_task(job, "worker", 1) == (f"{job.alias}--worker-1",)


def test_openssh_finds_the_line_for_names_of_the_job_alone(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    file.write_text(authority_line("demo", public_line(CA)) + "\n")
    found = {
        name: subprocess.run(["ssh-keygen", "-F", name, "-f", file], capture_output=True).returncode == 0
        for name in ("demo", "demo--worker-0", "demo2", "other", "other--demo")
    }
    assert found == {"demo": True, "demo--worker-0": True, "demo2": False, "other": False, "other--demo": False}


@pytest.mark.asyncio
async def test_the_ca_is_made_once() -> None:
    store = MemoryStore().as_store()
    assert await host_ca_public_key(store) == public_line(await host_ca_key(store)) == await host_ca_public_key(store)
