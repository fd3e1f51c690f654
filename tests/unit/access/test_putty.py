"""Key files for PuTTY: byte for byte what puttygen itself writes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from pai_backend.access.broker.putty import Version, ppk
from pai_backend.access.broker.stock import RSA_BITS, make_rsa
from pai_backend.access.keys import make_ed25519, pem_rsa, public_line

KEYS = {"ed25519": make_ed25519("")[0], "rsa": make_rsa()}


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("kind", KEYS)
def test_the_file_is_puttygens_own(kind: str, version: Version, tmp_path: Path) -> None:
    pem, theirs = tmp_path / "key", tmp_path / "theirs.ppk"
    pem.write_text(KEYS[kind])
    command = ["puttygen", str(pem), "-C", "pai-job-train", "-O", "private", "--ppk-param", f"version={version}"]
    subprocess.run([*command, "-o", str(theirs)], check=True, timeout=60, capture_output=True)
    assert ppk(KEYS[kind], "pai-job-train", version) == theirs.read_text()


def test_puttygen_finds_a_changed_file(tmp_path: Path) -> None:
    """It checks the sum, so the test above would notice a wrong one."""
    file = tmp_path / "key.ppk"
    file.write_text(ppk(KEYS["ed25519"], "pai-job-train").replace("Comment: pai", "Comment: pay"))
    command = ["puttygen", str(file), "-O", "private-openssh", "-o", str(tmp_path / "out")]
    done = subprocess.run(command, timeout=60, capture_output=True, text=True)
    assert done.returncode != 0
    assert "MAC" in done.stderr


def test_the_rsa_pair_has_the_form_of_old_clients(tmp_path: Path) -> None:
    file = tmp_path / "key.pem"
    file.write_text(pem_rsa(KEYS["rsa"]))
    file.chmod(0o600)
    assert file.read_text().startswith("-----BEGIN RSA PRIVATE KEY-----\n")
    shown = subprocess.run(["ssh-keygen", "-l", "-f", file], check=True, timeout=60, capture_output=True, text=True)
    assert shown.stdout.startswith(f"{RSA_BITS} ")
    public = subprocess.run(["ssh-keygen", "-y", "-f", file], check=True, timeout=60, capture_output=True, text=True)
    assert public.stdout.split()[:2] == public_line(KEYS["rsa"]).split()
