"""``pai ssh`` and the written names with everything real: OpenSSH, gateway, tasks, and users who have nothing yet."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from jupyter_pai import access, broker
from jupyter_pai.certificates import WantedCertificate, ensure, over
from jupyter_pai.endpoint import Endpoint
from jupyter_pai.sync import Client
from jupyter_pai.wire import tasks_of
from pai_backend.access.keys import make_ed25519
from tests.docs.pages import fences
from tests.support.backend_process import until
from tests.support.private_backend import private_backend
from tests.support.ssh_people import BOB, CONFIG, Person, run, runs, submitted

ROLE = {"taskNumber": 1, "cpuNumber": 1, "memoryMB": 100, "gpuNumber": 0, "command": "exec sleep 600"}
ROLES = [{"name": "main", **ROLE}, {"name": "second", **ROLE}]


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A backend with a job of alice's that runs."""
    place = tmp_path_factory.mktemp("logins")
    (place / "backend.yaml").write_text(CONFIG)
    (place / "backend.yaml").chmod(0o600)
    with private_backend(place / "data", place / "backend.yaml") as client:
        uid = submitted(client, "demo", ROLES)
        runs(client, uid)
        until(lambda: all(entry["reachable"] for entry in client.ssh(uid)["entries"]), 60)
        yield client


@pytest.fixture
def alice(backend: Client, tmp_path: Path) -> Iterator[Person]:
    person = Person(backend.api.endpoint, tmp_path / "alice")
    yield person
    registered = backend.keys()
    for key in registered:
        backend.delete_key(key["fingerprint"])


@pytest.fixture
def bob(backend: Client, tmp_path: Path) -> Person:
    return Person(Endpoint(backend.api.endpoint.url, BOB), tmp_path / "bob")


def test_a_user_who_has_nothing_gets_in_by_a_certificate_alone(alice: Person, backend: Client) -> None:
    before = {each["serial"] for each in backend.thread.run(broker.certificates(backend.api))}
    first = alice.pai("ssh", "demo", "echo in")
    assert (first.stdout, first.stderr, first.returncode) == ("in\n", "", 0)
    assert backend.keys() == []
    (kept,) = alice.files.certificates
    (issued,) = [each for each in backend.thread.run(broker.certificates(backend.api)) if each["serial"] not in before]
    assert (kept.name, issued["principals"], issued["lastUsedAt"] is None) == ("demo-cert.pub", ["demo"], False)

    text = kept.read_bytes()
    assert alice.pai("ssh", "--role", "second", "demo", "exit 7").returncode == 7
    assert kept.read_bytes() == text, "it still will do"
    backend.thread.run(broker.revoke(backend.api, issued["serial"]))
    assert alice.pai("ssh", "demo", "echo in").stdout == "in\n"
    assert kept.read_bytes() != text, "it was revoked"
    plain = alice.ssh("demo", "true")
    assert (plain.returncode, "Permission denied" in plain.stderr) == (255, True), "no other program is let in by it"


@pytest.mark.parametrize("told", ["by the option", "by the variable"])
def test_a_user_may_keep_to_registered_keys(alice: Person, backend: Client, told: str) -> None:
    if told == "by the option":
        done = alice.pai("ssh", "--no-certificate", "demo", "echo in")
    else:
        done = alice.pai("ssh", "demo", "echo in", PAI_SSH_CERTIFICATE="no")
    assert (done.stdout, done.stderr) == ("in\n", "")
    assert len(backend.keys()) == 1
    assert alice.files.certificates == []


def test_a_certificate_that_is_over_does_no_harm_beside_a_registered_key(alice: Person, backend: Client) -> None:
    assert alice.pai("ssh-config").returncode == 0
    beside = alice.files.identity.with_name("id_ed25519-cert.pub")
    named = alice.files.certificate("demo")
    for path in (beside, named):
        ensure(backend, WantedCertificate(alice.files.identity, path, "demo", lifetime_s=1))
    until(lambda: all(over(path, datetime.now(UTC)) for path in (beside, named)), 60)
    done = alice.ssh("-o", f"CertificateFile={named}", "demo", "echo in")
    assert (done.stdout, done.stderr) == ("in\n", "")
    assert alice.pai("ssh", "demo", "echo in").stdout == "in\n"
    assert alice.pai("ssh-config", "--remove").returncode == 0
    assert alice.files.certificates == []


def test_a_jump_recognises_the_task_by_the_authority_of_hosts_alone(alice: Person) -> None:
    shown = alice.pai("ssh-config", "--jump", "--dry-run")
    assert "+Host demo.jump\n" in shown.stdout, shown.stderr
    assert not alice.files.directory.exists()
    assert alice.pai("ssh-config", "--jump").returncode == 0
    for name, role in (("demo", "main"), ("demo--second-0", "second")):
        done = alice.ssh(f"{name}.jump", "echo $PAI_CURRENT_TASK_ROLE_NAME")
        assert (done.stdout, done.stderr) == (f"{role}\n", "")
    copied = alice.ssh("-q", str(alice.files.config), "demo.jump:copied", program="scp")
    assert copied.returncode == 0, copied.stderr
    assert alice.ssh("demo", "cat copied").stdout == alice.files.config.read_text()

    assert alice.pai("ssh-config").stdout == "Nothing to change.\n", "names for jumps stay until they are taken away"
    other = alice.ssh("-o", "HostKeyAlias=demo", "demo--second-0.jump", "true")
    assert "name is not a listed principal" in other.stderr
    lines = alice.files.known_hosts.read_text().splitlines(keepends=True)
    assert [line for line in lines if line.startswith("@cert-authority demo,demo--* ")]
    alice.files.known_hosts.write_text("".join(line for line in lines if not line.startswith("@")))
    assert "Host key verification failed" in alice.ssh("demo.jump", "true").stderr
    assert alice.ssh("demo", "echo in").stdout == "in\n"
    assert alice.pai("ssh-config", "--no-jump").returncode == 0
    assert ".jump" not in alice.files.config.read_text()


def test_who_got_a_share_enters_by_it_and_within_it(bob: Person, backend: Client) -> None:
    refused = bob.pai("ssh", "demo", "true")
    assert (refused.returncode, "There is no job 'demo'" in refused.stderr) == (2, True)
    backend.thread.run(broker.share(backend.api, "demo", "bob"))
    assert bob.pai("ssh", "demo", "echo in").stdout == "in\n"
    assert bob.pai("ssh-config", "--jump").returncode == 0
    assert bob.ssh("demo.jump", "echo in").stdout == "in\n"

    backend.thread.run(broker.share(backend.api, "demo", "bob", only=["sftp"]))
    shut = bob.pai("ssh", "demo", "true")
    assert (shut.returncode, shut.stdout) == (255, "")
    assert bob.pai("ssh-config").returncode == 0
    assert "Host demo\n" in bob.files.config.read_text()
    assert ".jump" not in bob.files.config.read_text(), "a limited login cannot jump"
    guide = bob.json("connect", "demo")
    assert isinstance(guide, dict)
    assert (guide["sharedBy"], guide["only"], guide["until"]) == ("alice", ["sftp"], None)
    assert (guide["command"], guide["links"]) == ("sftp demo", [])
    copied = bob.ssh("-q", str(bob.files.config), f"{guide['alias']}:from-bob", program="scp")
    assert copied.returncode == 0, copied.stderr
    told = bob.pai("connect", "demo").stdout
    assert "Shared     by alice until the job's end; allowed: sftp\n" in told
    assert "Editors" not in told
    backend.thread.run(broker.unshare(backend.api, "demo", "bob"))


def test_a_notebook_has_the_commands_on_keys_and_shares(alice: Person, bob: Person, backend: Client) -> None:
    assert alice.pai("ssh-config").returncode == 0
    cells = f"""\
%load_ext jupyter_pai
job, public = "demo", "{alice.files.identity}.pub"
%pai keys add $public --name laptop --for 30d
%pai keys certify $public --job $job --only sftp
%pai share $job --with bob --for 2h --only sftp
%pai shares
%pai list
%pai keys rotate nothing --to $public
%pai unshare demo --with bob
%pai keys remove laptop"""
    ours = {"PAI_URL": alice.endpoint.url, "PAI_TOKEN": alice.endpoint.token, "IPYTHONDIR": str(alice.home / "ipython")}
    program = (
        f"for cell in {cells.splitlines()!r}:\n"
        "    shown = get_ipython().run_cell(cell).result\n"
        "    shown and print('>', shown)"
    )
    done = run(sys.executable, "-m", "IPython", "--no-banner", "--colors=NoColor", "-c", program, **ours)
    said = done.stdout + done.stderr
    assert "> SHA256:" in said, said
    assert "  laptop  until " in said
    assert f"wrote {alice.files.identity}-cert.pub" in said
    assert "> alice~demo  ssh name demo  with bob  sftp  until 20" in said
    assert "SHARED BY YOU  WITH  ALLOWED  UNTIL" in said
    assert "SHARED WITH" in said
    assert "No key of yours has the name 'nothing'." in said
    assert "> demo is no longer shared with bob." in said
    assert "Removed SHA256:" in said
    assert "Traceback" not in said
    assert (backend.keys(), bob.pai("shares").stdout) == ([], "Nothing is shared.\n")


def test_the_jobs_keys_of_both_types_open_the_job_at_the_gateway_alone(
    alice: Person, backend: Client, tmp_path: Path
) -> None:
    """As the seeds print it, ``ssh -i key -p PORT root@IP``. The RSA key is fetched before the task starts."""
    role = {**ROLE, "name": "main", "gpuNumber": 1}
    first, second = (submitted(backend, name, [role]) for name in ("first", "second"))
    runs(backend, first)
    files = {kind: tmp_path / kind for kind in ("openssh", "pem")}
    for kind, file in files.items():
        assert alice.pai("keys", "job", "second", "--format", kind, "-o", str(file)).returncode == 0
    backend.stop(first)
    detail = runs(backend, second)
    (task,) = tasks_of(detail)
    answer = backend.ssh(second)
    (entry,) = [entry for entry in answer["entries"] if entry["alias"] == "second"]
    assert entry["reachable"]
    known = ["-o", "StrictHostKeyChecking=no", "-o", f"UserKnownHostsFile={tmp_path / 'known'}"]
    for file in files.values():
        client = ["ssh", "-F", "none", "-o", "BatchMode=yes", "-i", str(file), *known]
        done = run(*client, "-p", str(answer["port"]), f"root@{answer['host']}", "echo in")
        assert done.stdout == "in\n", done.stderr
        beside = run(*client, "-p", str(task["ports"]["ssh"][0]), f"root@{task['address']}", "echo in")
        assert "Permission denied (publickey)" in beside.stderr
    assert files["pem"].read_text().startswith("-----BEGIN RSA PRIVATE KEY-----")
    backend.stop(second)


def test_the_commands_of_the_page_on_keys_do_what_it_says(alice: Person, bob: Person, backend: Client) -> None:
    """Each line of its fences, in their order, with this place's names for the page's."""
    ssh = alice.home / "ssh"
    ssh.mkdir(parents=True)
    for name in ("id_ed25519", "new"):
        (ssh / f"{name}.pub").write_text(make_ed25519(name)[1])
    here = {"~/.ssh/": f"{ssh}/", "JOB": "demo", "port:jupyter": "port:http", "LABEL": "http"}
    listed: list[list[str]] = []
    for line in [line for fence in fences("docs/ssh-keys.md") for line in fence.text.splitlines()]:
        for word, meant in here.items():
            line = line.replace(word, meant)
        done = alice.pai(*shlex.split(line)[1:])
        assert done.returncode == 0, (line, done.stderr)
        if line == "pai shares":
            listed = [row.split() for row in done.stdout.splitlines()]
            assert bob.pai("shares").stdout.startswith("SHARED WITH YOU")
    assert ["alice~demo", "bob", "sftp", "port:http"] in [row[:4] for row in listed]
    registered = backend.keys()
    assert [key["comment"] for key in registered] == ["new"]
    assert bob.pai("shares").stdout == "Nothing is shared.\n"


def test_the_notebook_shows_a_command_that_does_not_run_out(alice: Person, backend: Client) -> None:
    with Client(alice.endpoint) as client:
        reached = access.reach(client, "demo", alice.home / "ssh")
    assert len(backend.keys()) == 1
    assert run(*reached.command, "echo in").stdout == "in\n"
