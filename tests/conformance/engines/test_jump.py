"""``ssh -J gateway <alias>``: encrypted from end to end, and both ends know each other by certificates alone."""

from __future__ import annotations

import subprocess
from pathlib import Path

from jupyter_pai.certificates import ensure_certificate
from tests.conformance.engines.documents import submitted, v2, v2_role
from tests.conformance.engines.room import AGAIN, JOB_S, SSH_S, Job, Room
from tests.support.backend_process import until

SLEEP = "exec sleep 1000"
WHO = "echo $PAI_CURRENT_TASK_ROLE_NAME-$FC_TASK_INDEX"


def configured(room: Room, job: Job) -> Path:
    """A configuration of ssh with a key that nobody has registered, its certificate, and the CA of hosts."""
    directory = room.directory / "jump"
    directory.mkdir()
    key, answer = directory / "key", room.client.ssh(job.uid)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", key], check=True, timeout=SSH_S)
    ensure_certificate(room.client, key)
    (directory / "gateway").write_text("".join(f"{line}\n" for line in answer["knownHosts"]))
    (directory / "tasks").write_text(f"{answer['certAuthority']}\n")
    config = directory / "config"
    config.write_text(
        f"Host gateway\n    HostName {answer['host']}\n    Port {answer['port']}\n    User {job.detail['alias']}\n"
        f"    HostKeyAlias {answer['hostKeyAlias']}\n    UserKnownHostsFile {directory}/gateway\n"
        f"Host {job.detail['alias']}*\n    ProxyJump gateway\n    UserKnownHostsFile {directory}/tasks\n"
        f"Host *\n    IdentityFile {key}\n    IdentitiesOnly yes\n    IdentityAgent none\n    BatchMode yes\n"
        "    GlobalKnownHostsFile /dev/null\n    StrictHostKeyChecking yes\n    ConnectTimeout 20\n"
    )
    return config


@submitted(v2({"main": v2_role(SLEEP), "second": v2_role(SLEEP)}))
def test_a_jump_ends_in_the_task_whose_certificate_has_its_name(room: Room, job: Job) -> None:
    job.running()
    config, alias = configured(room, job), job.detail["alias"]

    def run(*words: str) -> subprocess.CompletedProcess[bytes]:
        """Again while the gateway says that the task answers too late for it, as on a busy machine."""
        done: list[subprocess.CompletedProcess[bytes]] = []

        def answered() -> bool:
            line = [words[0], "-F", str(config), *words[1:]]
            done.append(subprocess.run(line, input=b"", capture_output=True, timeout=SSH_S))
            return AGAIN not in done[-1].stderr

        until(answered, JOB_S)
        return done[-1]

    for name, task in ((alias, b"main-0\n"), (f"{alias}--main-0", b"main-0\n"), (f"{alias}--second-0", b"second-0\n")):
        done = run("ssh", "-l", "root", name, WHO)
        assert (done.stdout, done.returncode) == (task, 0), done.stderr
    copied = run("scp", "-q", str(config), f"root@{alias}--second-0:copied")
    assert copied.returncode == 0, copied.stderr
    assert run("ssh", f"root@{alias}--second-0", "cat copied").stdout == config.read_bytes()

    other = run("ssh", "-o", f"HostKeyAlias={alias}--main-0", f"root@{alias}--second-0", "true")
    assert b"name is not a listed principal" in other.stderr
    unknown = run("ssh", f"root@{alias}--third-0", "true")
    assert unknown.returncode == 255
    (config.parent / "tasks").write_text("")
    assert b"Host key verification failed" in run("ssh", f"root@{alias}", "true").stderr
