"""The key of the database as an administrator meets it: missing, wrong, rotated under a running backend."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import psutil

from pai_backend.store.cipher import key_id, new_key
from tests.support.backend_process import START_S, Backend, backend, command, until
from tests.support.documents import scm_document
from tests.support.warm_start import run_backend


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return run_backend(*arguments, timeout=START_S, env={**os.environ, **environment})


def submit(running: Backend, name: str) -> None:
    with running.client() as client:
        assert client.post("/api/v2/jobs", content=scm_document(name)).status_code == 202


def config(running: Backend, name: str) -> bytes:
    with running.client() as client:
        answer = client.get(f"/api/v2/jobs/{name}/config")
    assert answer.status_code == 200, answer.text
    return answer.content


def test_keys_are_rotated_while_jobs_run_and_the_old_one_is_not_needed_after(tmp_path: Path) -> None:
    data, file = tmp_path / "data", tmp_path / "data" / "secret.key"
    with backend(data) as running:
        submit(running, "before")
        (old,) = file.read_text().split()

        done = run("rotate-key", "--data-dir", str(data))

        assert (done.returncode, done.stderr) == (0, ""), done
        new, kept = file.read_text().split()
        assert kept == old
        assert old not in done.stdout
        assert new not in done.stdout
        assert key_id(new) in done.stdout
        assert config(running, "before") == scm_document("before"), "no restart is needed"
        submit(running, "after")
        assert config(running, "after") == scm_document("after")
        until(running.ready)
    again = run("rotate-key", "--data-dir", str(data))
    assert again.returncode == 0, again
    newest = file.read_text().split()[0]
    file.write_text(f"{newest}\n")
    with backend(data) as running:
        assert config(running, "before") == scm_document("before")
        assert config(running, "after") == scm_document("after")


def test_without_its_key_a_backend_does_not_start_and_says_what_to_do(tmp_path: Path) -> None:
    data, file = tmp_path / "data", tmp_path / "data" / "secret.key"
    with backend(data) as running:
        submit(running, "kept")
    key = file.read_text()
    file.unlink()

    refused = subprocess.run(
        command(data, "--log-dir", str(tmp_path / "log")), capture_output=True, text=True, timeout=START_S
    )

    assert refused.returncode == 2
    assert refused.stderr.startswith(f"pai_backend: secret_key_file: {file}: the file is missing")
    assert "restore it from a backup (nothing was changed)" in refused.stderr
    assert not file.exists()
    file.write_text(f"{new_key()}\n")
    file.chmod(0o600)
    wrong = run("rotate-key", "--data-dir", str(data))
    assert wrong.returncode == 2
    assert key_id(key.strip()) in wrong.stderr
    file.write_text(key)
    with backend(data) as running:
        assert config(running, "kept") == scm_document("kept")


def test_keys_may_come_from_the_environment_and_reach_no_child_by_it(tmp_path: Path) -> None:
    old, new = new_key(), new_key()
    with backend(tmp_path / "data", env={"PAI_BACKEND_SECRET_KEY": old}) as running:
        submit(running, "kept")
        assert not (running.data_dir / "secret.key").exists()
        for process in (psutil.Process(running.process.pid), *running.children().values()):
            assert old not in " ".join(process.cmdline())
            assert old not in str(process.environ())
    place = ("rotate-key", "--data-dir", str(tmp_path / "data"))
    told = run(*place, PAI_BACKEND_SECRET_KEY=old)
    assert (told.returncode, "put a new one first" in told.stdout) == (0, True)

    rotated = run(*place, PAI_BACKEND_SECRET_KEY=f"{new}, {old}")

    assert rotated.returncode == 0, rotated
    with backend(tmp_path / "data", env={"PAI_BACKEND_SECRET_KEY": new}) as running:
        assert config(running, "kept") == scm_document("kept")


def test_a_mistyped_directory_does_not_become_a_backend(tmp_path: Path) -> None:
    done = run("rotate-key", "--data-dir", str(tmp_path / "nothing"))

    assert done.returncode == 2
    assert f"there is no {tmp_path}/nothing/pai.sqlite" in done.stderr
    assert not (tmp_path / "nothing").exists()


def test_a_key_that_is_none_is_refused_without_being_repeated(tmp_path: Path) -> None:
    done = run("serve", "--data-dir", str(tmp_path / "data"), PAI_BACKEND_SECRET_KEY="hunter2-hunter2")

    assert done.returncode == 2
    assert done.stderr.startswith("pai_backend: PAI_BACKEND_SECRET_KEY: secret_key must be Fernet keys")
    assert "hunter2" not in done.stderr + done.stdout
