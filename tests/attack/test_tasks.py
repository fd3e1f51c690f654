"""What a task may learn of others, and do to them, on a machine that they share."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path

import psutil
import pytest

from tests.attack.site import LIMIT_S, OTHER, OWNER, PYTHON, Site, document, ok, token_of
from tests.support.backend_process import backend, command, until
from tests.support.living_trees import paths_below
from tests.support.other_accounts import FIRST_UID, open_place, open_python, why_not
from tests.support.wheels import make_wheel

SECRET = "swordfish-0123456789"
V2 = f"""
protocolVersion: 2
name: hidden
type: job
prerequisites:
  - {{name: image, type: dockerimage, uri: "example/any:1"}}
secrets: {{word: {SECRET}}}
taskRoles:
  worker:
    instances: 1
    dockerImage: image
    resourcePerInstance: {{cpu: 1, memoryMB: 256, gpu: 0}}
    commands: ["T='<% $secrets.word %>' sleep 1000; true"]
"""


@pytest.mark.attack(25, "the secrets of a document are in the list of processes")
def test_secrets_are_in_no_list_of_processes(site: Site) -> None:
    with site.http(OWNER) as client:
        ok(client.post("/api/v2/jobs", content=V2.encode()))
        until(lambda: client.get("/api/v2/jobs/hidden").json()["state"] == "RUNNING")
        until(lambda: any("sleep 1000" in line for line in _lines()))
        assert not [line for line in _lines() if SECRET in line]
    site.stop("hidden")


def _lines() -> list[str]:
    """Every command line that any user of this machine can read."""
    return [" ".join(process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"])]


@pytest.mark.attack(26, "what finished jobs leave on the disk stays for ever")
def test_a_finished_job_is_deleted_with_all_that_it_left(site: Site) -> None:
    go = site.path / "go"
    leaving = f"until [ -e {shlex.quote(str(go))} ]; do sleep 0.1; done; head -c 1000000 /dev/urandom >left"
    with site.http(OTHER) as other, site.http(OWNER) as client:
        ok(client.post("/api/v2/jobs", content=document("leaves", leaving)))
        assert client.delete("/api/v2/jobs/leaves").status_code == 409
        go.touch()
        until(lambda: client.get("/api/v2/jobs/leaves").json()["completedTime"] is not None, LIMIT_S)
        uid = client.get("/api/v2/jobs/leaves").json()["uid"]
        assert other.delete(f"/api/v2/jobs/{uid}").status_code == 404
        ok(client.delete("/api/v2/jobs/leaves"))
        until(lambda: client.get(f"/api/v2/jobs/{uid}").status_code == 404, LIMIT_S)
    engine = site.backend.data_dir / "engine"
    until(lambda: not [path for path in paths_below(engine) if path.name.startswith(uid) and path.is_dir()], LIMIT_S)


@pytest.mark.attack(27, "a task that kills its shim runs again for ever, and leaves processes behind")
def test_a_task_that_kills_its_shim_ends(site: Site) -> None:
    mark = f"98765.{os.getpid()}"
    with site.http(OWNER) as client:
        killing = f"env -i setsid sleep {mark} & kill -9 $PPID; sleep {mark}"
        ok(client.post("/api/v2/jobs", content=document("killer", killing)))
        until(lambda: client.get("/api/v2/jobs/killer").json()["completedTime"] is not None, LIMIT_S)
        detail = client.get("/api/v2/jobs/killer").json()
    assert (detail["state"], detail["retries"]) == ("FAILED", 0)
    until(lambda: not [line for line in _lines() if line == f"sleep {mark}"], LIMIT_S)


@pytest.mark.attack(29, "what a task installs goes into the backend's own environment")
def test_a_task_installs_for_itself(site: Site, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "attackers", "1.0", {"attackers_module.py": "WORD = 'mine'\n"})
    install = f"python -m pip install --no-index --no-deps {shlex.quote(str(wheel))}"
    run = "python -c 'import attackers_module as m; print(m.WORD)'"
    with site.http(OWNER) as client:
        ok(client.post("/api/v2/jobs", content=document("installer", f"{install} && {run}")))
        until(lambda: client.get("/api/v2/jobs/installer").json()["completedTime"] is not None, LIMIT_S)
        assert client.get("/api/v2/jobs/installer").json()["state"] == "SUCCEEDED"
    seen = subprocess.run([PYTHON, "-c", "import attackers_module"], capture_output=True, text=True, timeout=LIMIT_S)
    if seen.returncode == 0:
        subprocess.run([PYTHON, "-m", "pip", "uninstall", "-y", "attackers"], capture_output=True, timeout=LIMIT_S)
    assert "ModuleNotFoundError" in seen.stderr


@pytest.mark.attack(31, "tasks of several users run as one account, and nobody was told")
def test_users_who_do_not_trust_each_other_are_refused(tmp_path: Path) -> None:
    config = tmp_path / "backend.yaml"
    config.touch(0o600)
    tokens = ", ".join(f"{{user: {user}, token: {token_of(user)}}}" for user in (OWNER, OTHER))
    config.write_text(f"api:\n  tokens: [{tokens}]\n")
    line = [PYTHON, "-P", "-m", "pai_backend", "rotate-key", "--config", str(config)]
    done = subprocess.run([*line, "--data-dir", str(tmp_path)], capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 2
    assert "engine.trust_all_users" in done.stderr


@pytest.mark.attack(31, "a task reads the database, the keys and another's files, and ends what keeps it")
@pytest.mark.skipif(bool(why_not()), reason=why_not())
def test_a_task_reaches_neither_the_backend_nor_other_users() -> None:
    tokens = [{"user": user, "token": token_of(user), "admin": False} for user in (OWNER, OTHER)]
    pool = ("--engine-accounts-first-uid", str(FIRST_UID), "--engine-accounts-count", "3")
    with open_place() as place:
        settings = {"PAI_BACKEND_API__TOKENS": json.dumps(tokens)}
        with backend(place / "data", pool, settings, open_python(place)) as running:
            with Site(running, place).http(OTHER) as client:
                ok(client.put(f"/api/v2/fs/{OTHER}/secret.txt", content=b"theirs"))
            files = ("pai.sqlite", "secret.key", "token", f"fs/{OTHER}/secret.txt", "engine/accounts.json")
            reading = " ".join(f"{running.data_dir}/{name}" for name in files)
            attack = f"cat {reading} ../plan.json /proc/$PPID/environ | wc -c; kill -9 $PPID || echo kept; rm ../lock"
            with Site(running, place).http(OWNER) as client:
                ok(client.post("/api/v2/jobs", content=document("reader", f"{attack}; true")))
                until(lambda: client.get("/api/v2/jobs/reader").json()["completedTime"] is not None, LIMIT_S)
                assert client.get("/api/v2/jobs/reader").json()["state"] == "SUCCEEDED"
                said = ok(client.get("/api/v2/jobs/reader/logs?role=worker&index=0&stream=stdout")).text
    assert said.split() == ["0", "kept"]


@pytest.mark.attack(38, "a backend with another database ends every task that runs")
def test_another_database_ends_no_task(tmp_path: Path) -> None:
    mark = f"87654.{os.getpid()}"
    with backend(tmp_path / "data", python=PYTHON) as running, running.client() as client:
        ok(client.post("/api/v2/jobs", content=document("goes-on", f"exec sleep {mark}")))
        until(lambda: f"sleep {mark}" in _lines(), LIMIT_S)
        running.process.terminate()
        running.process.wait(LIMIT_S)
        other = {**os.environ, "PAI_BACKEND_DATABASE": f"sqlite:///{tmp_path / 'other.sqlite'}"}
        second = subprocess.Popen(command(tmp_path / "data", python=PYTHON), env=other, stderr=subprocess.PIPE)
        try:
            until(lambda: second.poll() is not None or f"sleep {mark}" not in _lines(), LIMIT_S)
            assert f"sleep {mark}" in _lines()
            assert second.stderr is not None
            assert b"adopt" in second.stderr.read()
        finally:
            second.kill()
            second.wait()
            for process in psutil.process_iter(["cmdline"]):
                if process.info["cmdline"] == ["sleep", mark]:
                    process.kill()
