"""A backend as root whose users do not trust each other: their tasks run as different accounts of the machine.

Real here: the backend's processes, accounts (by uids that nobody has), OpenSSH, control groups where there are some.
"""

from __future__ import annotations

import json
import os
import shlex
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from pai_backend.engine.local.listeners import listening_uids
from tests.attack.site import OTHER, OWNER, Site, document, ok, token_of
from tests.support.backend_process import Backend, backend, command, until
from tests.support.living_trees import paths_below, stdout_of
from tests.support.other_accounts import FIRST_UID, open_place, open_python, why_not
from tests.support.wheels import make_wheel

pytestmark = [
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
    pytest.mark.xdist_group("task-accounts"),
    pytest.mark.timeout(300),
]

LIMIT_S = 60
ADMIN = "ada"
USERS = (ADMIN, OWNER, OTHER)
TOKENS = [{"user": user, "token": token_of(user), "admin": user == ADMIN} for user in USERS]
ENVIRONMENT = {"PAI_BACKEND_API__TOKENS": json.dumps(TOKENS), "PAI_BACKEND_USER": ADMIN}
POOL = ("--engine-accounts-first-uid", str(FIRST_UID), "--engine-accounts-count", str(len(USERS)))
SHARED = ("--storage-shared", '["pub"]', "--gateway-drain-s", "120")

LOOK = r"""
import json, os, signal, sys
found = {"reads": [], "lists": [], "writes": [], "environs": [], "signals": []}
for path in json.load(open(sys.argv[1])):
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
        found["lists" if os.path.isdir(path) else "reads"].append(path)
    except OSError: pass
    try:
        if os.path.isdir(path): os.close(os.open(path + "/planted", os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        else: os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
        found["writes"].append(path)
    except OSError: pass
for name in os.listdir("/proc"):
    if name.isdigit():
        try: open(f"/proc/{name}/environ", "rb").read(1); found["environs"].append(int(name))
        except OSError: pass
        try: os.kill(int(name), 0); found["signals"].append(int(name))
        except OSError: pass
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    with open_place() as path:
        yield path


@pytest.fixture(scope="module")
def python(place: Path) -> str:
    return open_python(place)


@pytest.fixture(scope="module")
def site(place: Path, python: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A backend with an administrator and two users."""
    with backend(place / "data", (*POOL, *SHARED), ENVIRONMENT, python) as running:
        yield Site(running, tmp_path_factory.mktemp("users"))


def finished(site: Site, name: str, text: str, user: str = OWNER, **changes: Any) -> tuple[str, str]:
    """Run a job to its end: its state and output."""
    with site.http(user) as client:
        ok(client.post("/api/v2/jobs", content=document(name, text, **changes)))
        until(lambda: client.get(f"/api/v2/jobs/{name}").json()["completedTime"] is not None, LIMIT_S)
        detail = client.get(f"/api/v2/jobs/{name}").json()
        said = ok(client.get(f"/api/v2/jobs/{name}/logs?role=worker&index=0")).text
    return detail["state"], said


def account_of(site: Site, user: str) -> int:
    """The uid that a user's tasks run as."""
    return _owners(site.backend.data_dir)[user]


def _owners(data: Path) -> dict[str, int]:
    """The uids that were given, by user."""
    return {user: int(uid) for uid, user in json.loads((data / "engine" / "accounts.json").read_text()).items()}


def test_users_have_different_accounts_that_are_not_roots(site: Site) -> None:
    uids = {user: account_of(site, user) for user in USERS}
    assert len(set(uids.values())) == len(USERS)
    assert set(uids.values()) == set(range(FIRST_UID, FIRST_UID + len(USERS)))
    for user in (OWNER, OTHER):
        state, said = finished(site, f"who-{user}", 'id -u; id -G; echo "$HOME $USER $LOGNAME"; touch "$HOME/x"', user)
        assert state == "SUCCEEDED"
        uid = str(uids[user])
        home = site.backend.data_dir / "engine" / "homes" / uid
        assert said.split("\n")[:3] == [uid, uid, f"{home} pai-{uid} pai-{uid}"]


def test_a_task_reaches_its_own_files_alone(site: Site, place: Path) -> None:
    data = site.backend.data_dir
    (place / "look.py").write_text(LOOK)
    finished(site, "outputs", 'echo secret > "$PAI_OUTPUT_DIR/out"; echo x > "$HOME/mine"', OTHER)
    site.job("neighbour", "echo secret > file; sleep 1000", OTHER)
    with site.http(OTHER) as client:
        ok(client.put(f"/api/v2/fs/{OTHER}/note.txt", content=b"secret"))
    everything = [str(path) for path in paths_below(data)] + [str(data)]
    (place / "paths.json").write_text(json.dumps(everything))
    before = {each.pid: each.info["uids"].real for each in psutil.process_iter(["uids"]) if each.info["uids"]}
    state, said = finished(site, "look", f"python {place}/look.py {place}/paths.json", OWNER)
    site.stop("neighbour", OTHER)
    assert state == "SUCCEEDED", said
    seen = json.loads(said)
    own, uid = (data / "fs" / OWNER, data / "fs" / "Output" / OWNER), account_of(site, OWNER)
    mine = tuple(map(str, (*own, data / "engine" / "homes" / str(uid))))
    open_to_all = tuple(map(str, (data / "engine" / "interpreters", data / "fs" / "pub")))
    assert [path for path in seen["reads"] + seen["lists"] if not path.startswith((*mine, *open_to_all))] == []
    assert [path for path in seen["writes"] if not path.startswith((*mine, str(data / "fs" / "pub")))] == []
    assert str(data / "fs" / OWNER) in seen["writes"]
    assert not [pid for pid in seen["environs"] + seen["signals"] if before.get(pid, uid) != uid]


def test_a_task_cannot_end_or_read_what_keeps_it(site: Site) -> None:
    text = "kill -9 $PPID; cat /proc/$PPID/environ ../launch ../plan.json; echo > ../exit.json; rm -r ../lock; exit 0"
    state, said = finished(site, "killer", text)
    assert state == "SUCCEEDED"
    assert said.count("not permitted") + said.count("denied") + said.count("cannot") >= 5


def test_files_put_over_the_api_are_the_users(site: Site) -> None:
    uid = account_of(site, OWNER)
    with site.http(OWNER) as client:
        ok(client.put(f"/api/v2/fs/{OWNER}/in/a.txt", content=b"from the API"))
        ok(client.put("/api/v2/fs/pub/for-all/b.txt", content=b"shared"))
    root = site.backend.data_dir / "fs"
    assert {path.stat().st_uid for path in (root / OWNER).rglob("*")} == {uid}
    text = f"""
        cat $PAI_DEFAULT_FS_URI/{OWNER}/in/a.txt $PAI_DEFAULT_FS_URI/pub/for-all/b.txt
        echo >> $PAI_DEFAULT_FS_URI/{OWNER}/in/a.txt && echo mine > $PAI_DEFAULT_FS_URI/pub/for-all/c.txt
        echo result > $PAI_OUTPUT_DIR/out.txt; cat in/a.txt"""
    state, said = finished(site, "reads", text, codeDir=f"$PAI_DEFAULT_FS_URI/{OWNER}/in")
    assert (state, said.count("from the API")) == ("SUCCEEDED", 2), said
    assert "shared" in said
    with site.http(OWNER) as client:
        assert ok(client.get("/api/v2/fs/Output/reads/out.txt")).text == "result\n"
        assert ok(client.get("/api/v2/fs/pub/for-all/c.txt")).text == "mine\n"


def test_inputs_are_read_with_the_rights_of_the_account(site: Site) -> None:
    with site.http(OTHER) as client:
        ok(client.put(f"/api/v2/fs/{OTHER}/code/a.txt", content=b"another's"))
    with site.http(OWNER) as client:
        code = document("thief", "cat code/a.txt", codeDir=str(site.backend.data_dir / "fs" / OTHER / "code"))
        ok(client.post("/api/v2/jobs", content=code))
        until(lambda: client.get("/api/v2/jobs/thief").json()["completedTime"] is not None, LIMIT_S)
        assert client.get("/api/v2/jobs/thief").json()["state"] == "FAILED"


def test_what_a_task_installs_is_its_accounts(site: Site, place: Path) -> None:
    wheel = make_wheel(place, "accounted", "1.0", {"accounted_module.py": "WORD = 'mine'\n"})
    install = f"python -m pip install --no-index --no-deps {shlex.quote(str(wheel))}"
    run = "python -c 'import accounted_module as m, sys; print(m.WORD, m.__file__.startswith(sys.prefix))'"
    state, said = finished(site, "installs", f"{install} && {run}")
    assert (state, "mine True" in said) == ("SUCCEEDED", True), said


@pytest.fixture(scope="module")
def room(site: Site) -> Iterator[str]:
    """The alias of a running task that a user enters."""
    yield str(site.job("room", "echo mine > file; sleep 100000")["alias"])
    site.stop("room")


def until_in(site: Site, alias: str) -> None:
    """Wait until the task's SSH server is there."""
    until(lambda: site.ssh(OWNER, alias, "true").returncode == 0, LIMIT_S)


def test_ssh_is_as_the_account(site: Site, room: str) -> None:
    until_in(site, room)
    uid, data = account_of(site, OWNER), site.backend.data_dir
    done = site.ssh(OWNER, room, f"id -u; pwd; cat file; cat {data}/secret.key; echo $HOME; cat /proc/self/cgroup")
    said = done.stdout.splitlines()
    assert (said[0], said[2]) == (str(uid), "mine")
    assert "secret.key: Permission denied" in done.stderr
    on_terminal = site.ssh(OWNER, room, "id -u; stat -c %u $SSH_TTY; tty", options=("RequestTTY=force",)).stdout
    assert on_terminal.split()[:2] == [str(uid), str(uid)]
    groups = next((data / "engine" / "tasks").glob("*/groups"), None)
    assert groups is None or "pai-task-" in done.stdout


def test_files_over_ssh_are_the_accounts(site: Site, room: str, tmp_path: Path) -> None:
    until_in(site, room)
    host, port = site.gateway()
    data = site.backend.data_dir
    (tmp_path / "sent").write_text("sent")
    batch = tmp_path / "batch"
    reading = f"-get {data}/secret.key {tmp_path}/key\n-get {data}/token\n"
    batch.write_text(f"put {tmp_path}/sent sent\nls -n sent\n{reading}")
    options = site.ssh_options(site.key(OWNER))
    line = ["sftp", *options, "-P", str(port), "-b", str(batch), f"{room}@{host}"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=LIMIT_S, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert str(account_of(site, OWNER)) in done.stdout
    assert not (tmp_path / "key").exists()
    assert not (tmp_path / "token").exists()


def test_sockets_over_ssh_are_reached_with_the_rights_of_the_account(site: Site, room: str, place: Path) -> None:
    until_in(site, room)
    path = place / "roots.socket"
    with socket.socket(socket.AF_UNIX) as served:
        served.bind(str(path))
        path.chmod(0o600)
        served.listen()
        with _forwarding(site, room, f"{place}/near.socket:{path}") as forward:
            until((place / "near.socket").exists)
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(LIMIT_S)
                client.connect(str(place / "near.socket"))
                assert client.recv(1) == b""
            forward.terminate()
        served.settimeout(0.0)
        with pytest.raises(BlockingIOError):
            served.accept()


def _forwarding(site: Site, alias: str, what: str) -> subprocess.Popen[bytes]:
    host, port = site.gateway()
    options = site.ssh_options(site.key(OWNER), "ExitOnForwardFailure=yes")
    return subprocess.Popen(["ssh", *options, "-N", "-L", what, "-p", str(port), f"{alias}@{host}"])


def test_who_ends_the_ssh_server_of_their_task_can_log_in_again(site: Site, room: str) -> None:
    until_in(site, room)
    site.ssh(OWNER, room, "kill -9 $PPID")
    until_in(site, room)
    assert site.ssh(OWNER, room, "id -u").stdout.strip() == str(account_of(site, OWNER))


def test_a_session_outlives_the_agent_that_began_it(site: Site, room: str) -> None:
    until_in(site, room)
    host, port = site.gateway()
    line = ["ssh", *site.ssh_options(site.key(OWNER)), "-p", str(port), f"{room}@{host}"]
    line.append("echo in; read word; echo said $word; id -u")
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as session:
        assert session.stdout is not None
        assert session.stdout.readline() == "in\n"
        agent = site.backend.children()["agent"]
        agent.terminate()
        until(lambda: site.backend.children().get("agent", agent).pid != agent.pid, LIMIT_S)
        successor = site.backend.children()["agent"]
        until(lambda: any(each.status == psutil.CONN_LISTEN for each in successor.net_connections("tcp")), LIMIT_S)
        until_in(site, room)
        said, _ = session.communicate("hello\n", LIMIT_S)
    assert said.split() == ["said", "hello", str(account_of(site, OWNER))]


def test_a_jump_leads_to_the_account(site: Site, room: str) -> None:
    until_in(site, room)
    host, port = site.gateway()
    options = site.ssh_options(site.key(OWNER))
    proxy = shlex.join(["ssh", *options, "-p", str(port), "-W", "%h:%p", f"{room}@{host}"])
    ours = ["StrictHostKeyChecking=no" if word == "StrictHostKeyChecking=yes" else word for word in options]
    line = ["ssh", *ours, "-o", f"ProxyCommand={proxy}", f"any@{room}", "id -u"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.stdout.strip() == str(account_of(site, OWNER)), done.stderr


def test_a_task_that_is_kept_is_entered_as_the_account(site: Site) -> None:
    with site.http(OWNER) as client:
        ok(client.post("/api/v2/jobs", content=document("kept", "touch here; exit 3", jobEnvs={"isDebug": True})))
        until(lambda: client.get("/api/v2/jobs/kept").json()["phase"] == "kept for debugging", LIMIT_S)
    until_in(site, "kept")
    assert site.ssh(OWNER, "kept", "id -u; ls").stdout.split() == [str(account_of(site, OWNER)), "here"]
    site.stop("kept")


def test_a_service_is_not_another_users_program_on_its_port(site: Site) -> None:
    ports = [{"label": "web", "beginAt": 0, "portNumber": 1}]
    detail = site.job("served", "sleep 100000", role={"portList": ports})
    (service,) = detail["services"]
    (plan,) = (site.backend.data_dir / "engine" / "tasks").glob(f"{detail['uid']}-*/plan.json")
    (port,) = json.loads(plan.read_text())["placement"]["ports"]["web"]
    site.job("taker", f"exec python -m http.server --bind 127.0.0.1 {port}", OTHER)
    until(lambda: account_of(site, OTHER) in listening_uids(port), LIMIT_S)
    with site.http(OWNER) as client:
        answer = client.get(f"/s/{service['alias']}/")
    assert answer.status_code >= 500
    assert "Directory listing" not in answer.text
    site.stop("taker", OTHER)
    site.stop("served")


def test_nothing_stays_of_a_task_that_is_stopped(site: Site) -> None:
    seconds = f"4242{os.getpid()}"  # of this run alone: what another has left is not counted
    alias = str(site.job("hides", f"env -i setsid sleep {seconds} & sleep 100000")["alias"])
    until_in(site, alias)
    site.ssh(OWNER, alias, f"setsid sleep {seconds} </dev/null >/dev/null 2>&1 & exit")
    until(lambda: len(_sleepers(seconds)) == 2, LIMIT_S)  # each is another program at first
    site.stop("hides")
    until(lambda: not _sleepers(seconds), LIMIT_S)


def test_a_task_whose_shim_was_killed_leaves_nothing(site: Site) -> None:
    seconds = f"6262{os.getpid()}"
    detail = site.job("killed", f"env -i setsid sleep {seconds} & sleep {seconds}")
    until(lambda: len(_sleepers(seconds)) == 2, LIMIT_S)
    (shim,) = [p for p in psutil.process_iter(["cmdline"]) if _keeps(p.info["cmdline"] or [], detail["uid"])]
    assert shim.uids().real == 0
    shim.kill()
    with site.http(OWNER) as client:
        until(lambda: client.get("/api/v2/jobs/killed").json()["completedTime"] is not None, LIMIT_S)
    assert _sleepers(seconds) == []


def _keeps(line: list[str], job: str) -> bool:
    """Whether this is the command line of the shim of a job's task."""
    return any(word.endswith("boot.py") for word in line) and any(f"/{job}-" in word for word in line)


def test_a_task_is_held_to_its_memory(site: Site) -> None:
    state, _ = finished(site, "hungry", "python -c 'bytearray(900 << 20)'", role={"memoryMB": 128})
    with site.http(OWNER) as client:
        exit_ = client.get("/api/v2/jobs/hungry").json()["exit"]
    if "memory" in site.backend.errors.read_text():
        pytest.skip("no control groups for memory here")
    assert state == "FAILED"
    assert "it used more memory than it may" in exit_["message"]


def _sleepers(seconds: str) -> list[int]:
    return [p.pid for p in psutil.process_iter(["cmdline"]) if p.info["cmdline"] == ["sleep", seconds]]


def test_a_restart_keeps_tasks_and_who_has_which_account(place: Path, python: str) -> None:
    data = place / "again"
    arguments = (*POOL, "--engine-grace-s", "1")

    def client(running: Backend, user: str) -> httpx.Client:
        return Site(running, place).http(user)

    with backend(data, arguments, ENVIRONMENT, python) as running, client(running, OWNER) as owner:
        ok(owner.post("/api/v2/jobs", content=document("stays", "sleep 525253")))
        until(lambda: bool(_sleepers("525253")), LIMIT_S)
        given = (data / "engine" / "accounts.json").read_text()
        running.process.terminate()
        running.process.wait(LIMIT_S)
    (pid,) = _sleepers("525253")
    assert psutil.Process(pid).uids().real == _owners(data)[OWNER]
    fourth = [*TOKENS, {"user": "zoe", "token": token_of("zoe"), "admin": False}]
    refused = subprocess.run(
        command(data, *arguments, python=python),
        env={**os.environ, **ENVIRONMENT, "PAI_BACKEND_API__TOKENS": json.dumps(fourth)},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert refused.returncode == 2
    assert f"engine.accounts: zoe has no account for tasks on this machine: all {len(USERS)}" in refused.stderr
    with backend(data, arguments, ENVIRONMENT, python) as running, client(running, OWNER) as owner:
        assert (data / "engine" / "accounts.json").read_text() == given
        assert owner.get("/api/v2/jobs/stays").json()["state"] == "RUNNING"
        ok(owner.put("/api/v2/jobs/stays/executionType", json={"value": "STOP"}))
        until(lambda: not _sleepers("525253"), LIMIT_S)
        until(lambda: owner.get("/api/v2/jobs/stays").json()["state"] == "STOPPED", LIMIT_S)


def test_who_is_not_root_is_told_so(place: Path, python: str) -> None:
    home = place / "not-root"
    home.mkdir()
    os.chown(home, FIRST_UID, FIRST_UID)
    refused = subprocess.run(
        command(home / "data", *POOL, python=python),
        env={**os.environ, **ENVIRONMENT, "HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        cwd="/",
        user=FIRST_UID,
        group=FIRST_UID,
        extra_groups=[FIRST_UID],
    )
    assert refused.returncode == 2
    assert "engine.accounts: only root can run tasks as other accounts" in refused.stderr


def test_a_python_that_accounts_do_not_reach_is_refused(place: Path, python: str) -> None:
    closed = place / "closed"
    closed.mkdir(mode=0o700)
    (closed / "python").symlink_to(python)
    refused = subprocess.run(
        command(place / "third", *POOL, "--engine-python", str(closed / "python"), python=python),
        env={**os.environ, **ENVIRONMENT},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert refused.returncode == 2
    assert f"{closed}/python may not be executed" in refused.stderr


def test_what_another_account_could_replace_is_not_used_as_root(place: Path, python: str) -> None:
    folder = place / "anothers"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to(python)
    os.chown(folder, FIRST_UID, FIRST_UID)
    refused = subprocess.run(
        command(place / "fourth", *POOL, "--engine-python", str(folder / "bin" / "python"), python=python),
        env={**os.environ, **ENVIRONMENT},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert refused.returncode == 2
    assert f"engine.accounts: {folder} belongs to another account" in refused.stderr


def test_named_accounts_have_their_groups_and_know_their_peers(place: Path, python: str) -> None:
    named = {OWNER: "games", OTHER: "daemon", ADMIN: "nobody"}
    with backend(place / "named", ("--engine-accounts-map", json.dumps(named)), ENVIRONMENT, python) as running:
        named_site = Site(running, place / "keys")
        named_site.path.mkdir()
        text = "id -un; id -gn; echo $USER; until ssh worker-0 id -un; do sleep 0.2; done"
        assert finished_in(named_site, text) == ["games", "games", "games", "games"]


def finished_in(site: Site, text: str) -> list[str]:
    """The words on standard output of a job."""
    with site.http(OWNER) as client:
        ok(client.post("/api/v2/jobs", content=document("named", text)))
        until(lambda: client.get("/api/v2/jobs/named").json()["completedTime"] is not None, LIMIT_S)
    return stdout_of(site.backend.data_dir / "engine", "*").split()
