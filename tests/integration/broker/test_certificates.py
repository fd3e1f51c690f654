"""User certificates as OpenSSH takes them: ``ssh-keygen -L`` reads them, and its server accepts and refuses by them."""

from __future__ import annotations

import asyncio
import getpass
import subprocess
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import pytest_asyncio

from pai_backend.access.broker.certificates import sign
from pai_backend.access.keys import make_ed25519, parse_public_key
from pai_backend.model.errors import Bug, InvalidParameters
from pai_backend.model.rights import EVERYTHING, Limits, limits_of
from pai_backend.store.grants import Certificate
from pai_backend.testing.free_ports import free_port
from tests.support.ssh_world import answers, program, write_sshd_config

ALIAS = "train"
CA, OTHER_CA = make_ed25519("ca"), make_ed25519("other")


def terms(limits: Limits = EVERYTHING, **changes: object) -> Certificate:
    now = datetime.now(UTC)
    values: dict[str, object] = {
        "serial": 2**53 - 1,
        "user": "alice",
        "fingerprint": "SHA256:x",
        "ca": "SHA256:ca",
        "principals": (ALIAS, f"{ALIAS}--worker-0"),
        "limits": limits,
        "issued_at": now,
        "expires_at": now + timedelta(hours=1),
    }
    return Certificate(**{**values, **changes})  # type: ignore[arg-type]


@dataclass
class Key:
    """A key pair in files, and the certificate beside it."""

    path: Path
    public: str

    def certify(self, made: Certificate, ca: str = CA[0]) -> Path:
        file = self.path.with_name(f"{self.path.name}-cert.pub")
        file.write_text(sign(made, self.public, ca))
        return file


@pytest.fixture(params=["ed25519", "rsa", "ecdsa"])
def key(tmp_path: Path, request: pytest.FixtureRequest) -> Key:
    return make_key(tmp_path, request.param)


def make_key(directory: Path, kind: str = "ed25519") -> Key:
    path = directory / "id"
    command = ["ssh-keygen", "-q", "-t", kind, "-N", "", "-C", "", "-f", str(path)]
    subprocess.run(command, check=True, timeout=60, stdin=subprocess.DEVNULL)
    return Key(path, path.with_suffix(".pub").read_text())


def test_ssh_keygen_reads_what_was_promised(key: Key) -> None:
    shown = subprocess.run(
        ["ssh-keygen", "-L", "-f", key.certify(terms())], check=True, timeout=60, capture_output=True, text=True
    ).stdout
    lines = [line.strip() for line in shown.splitlines()]
    assert f"Signing CA: ED25519 {parse_public_key(CA[1]).fingerprint} (using ssh-ed25519)" in lines
    assert f'Key ID: "alice {2**53 - 1}"' in lines
    assert f"Serial: {2**53 - 1}" in lines
    assert lines[lines.index("Principals:") + 1 : lines.index("Critical Options: (none)")] == [
        ALIAS,
        f"{ALIAS}--worker-0",
    ]
    assert lines[lines.index("Extensions:") + 1 :] == [
        "permit-X11-forwarding",
        "permit-agent-forwarding",
        "permit-port-forwarding",
        "permit-pty",
        "permit-user-rc",
    ]


@pytest.mark.parametrize(
    ("words", "pty", "options", "extensions"),
    [
        (
            [],
            False,
            [],
            ["permit-X11-forwarding", "permit-agent-forwarding", "permit-port-forwarding", "permit-user-rc"],
        ),
        (["shell"], True, [], ["permit-pty", "permit-user-rc"]),
        (["exec"], True, [], ["permit-user-rc"]),
        (["sftp"], True, ["force-command internal-sftp"], []),
        (["sftp-read"], True, ["force-command internal-sftp -R"], []),
        (["port:web"], True, ["force-command /bin/false"], []),
    ],
)
def test_limits_are_said_in_openssh_s_own_terms(
    words: Sequence[str], pty: bool, options: list[str], extensions: list[str], tmp_path: Path
) -> None:
    file = make_key(tmp_path).certify(terms(limits_of(words, pty=pty)))
    shown = subprocess.run(["ssh-keygen", "-L", "-f", file], check=True, timeout=60, capture_output=True, text=True)
    _, _, told = shown.stdout.partition("Critical Options: ")
    critical, _, extended = told.partition("Extensions: ")
    assert [line.strip() for line in critical.splitlines()[1:] if line.strip()] == options
    assert [line.strip() for line in extended.splitlines()[1:] if line.strip()] == extensions


def test_a_certificate_for_nobody_in_particular_is_never_signed(tmp_path: Path) -> None:
    key = make_key(tmp_path)
    for principals in ((), tuple(f"job-{number}" for number in range(257))):
        with pytest.raises(Bug, match="principals"):
            sign(terms(principals=principals), key.public, CA[0])
    data = "AAAAGnNrLXNzaC1lZDI1NTE5QG9wZW5zc2guY29tAAAAIP4qgpaPUGbfPBdSBTLE1mZ5sTLHzlUPJDfSUNbWCCpvAAAABHNzaDo="
    with pytest.raises(InvalidParameters, match="security token"):
        sign(terms(), f"sk-ssh-ed25519@openssh.com {data}", CA[0])


@dataclass
class Server:
    """OpenSSH's server, which trusts the CA for the principals of one alias."""

    directory: Path
    port: int

    async def run(self, key: Key, *command: str, options: Sequence[str] = ()) -> tuple[int, str]:
        argv = ["ssh", "-F", "none", "-p", str(self.port), "-i", str(key.path), "-o", "IdentitiesOnly=yes"]
        argv += ["-o", f"UserKnownHostsFile={self.directory / 'known'}", "-o", "StrictHostKeyChecking=yes"]
        argv += ["-o", "BatchMode=yes", *options, f"{getpass.getuser()}@127.0.0.1", *command]
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        async with asyncio.timeout(60):
            said, _ = await process.communicate()
        assert process.returncode is not None
        return process.returncode, said.decode()


@pytest_asyncio.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    directory, port = tmp_path / "server", free_port()
    directory.mkdir()
    host_pem, host_public = make_ed25519("host")
    config = write_sshd_config(directory, port, host_pem, "")
    (directory / "ca.pub").write_text(f"{CA[1]}\n")
    (directory / "principals").write_text(f"{ALIAS}\n")
    trust = f"TrustedUserCAKeys {directory / 'ca.pub'}\nAuthorizedPrincipalsFile {directory / 'principals'}\n"
    config.write_text(config.read_text() + trust)
    (directory / "known").write_text(f"[127.0.0.1]:{port} {' '.join(host_public.split()[:2])}\n")
    argv = ["/usr/sbin/sshd", "-D", "-e", "-f", str(config)]
    async with program(argv, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL):
        await answers(port)
        yield Server(directory, port)


@pytest.mark.asyncio
async def test_openssh_accepts_and_refuses_as_promised(server: Server, key: Key) -> None:
    assert (await server.run(key, "true"))[0] == 255, "the key alone opens nothing"
    key.certify(terms())
    assert await server.run(key, "echo in") == (0, "in\n")
    now = datetime.now(UTC)
    refused = {
        "it is over": terms(issued_at=now - timedelta(hours=2), expires_at=now - timedelta(seconds=1)),
        "it has not begun": terms(issued_at=now + timedelta(minutes=5)),
        "it is for another job": terms(principals=("other", f"{ALIAS}--worker-0")),
    }
    for reason, made in refused.items():
        key.certify(made)
        assert (await server.run(key, "true"))[0] == 255, reason
    key.certify(terms(), ca=OTHER_CA[0])
    assert (await server.run(key, "true"))[0] == 255, "another CA has signed it"


@pytest.mark.asyncio
async def test_openssh_holds_a_login_to_its_limits(server: Server, tmp_path: Path) -> None:
    key = make_key(tmp_path)
    key.certify(terms(limits_of(["sftp-read"])))
    files = [*("-oBatchMode=yes", "-F", "none", "-P", str(server.port), "-i", str(key.path), "-b", "-")]
    files += ["-o", f"UserKnownHostsFile={server.directory / 'known'}", f"{getpass.getuser()}@127.0.0.1"]

    async def sftp(line: str) -> tuple[int | None, bytes]:
        process = await asyncio.create_subprocess_exec(
            *("sftp", *files),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        async with asyncio.timeout(60):
            said, _ = await process.communicate(line.encode())
        return process.returncode, said

    got, put = tmp_path / "got", tmp_path / "put"
    code, said = await sftp(f"get {server.directory / 'ca.pub'} {got}\n")
    assert code == 0, said
    assert got.read_text() == f"{CA[1]}\n"
    assert (await sftp(f"put {got} {put}\n"))[0] == 1
    assert not put.exists()

    key.certify(terms(limits_of(["port:web"])))
    assert (await server.run(key, "true"))[0] == 1, "no command"
    forward = ("-o", "ExitOnForwardFailure=yes", "-W", f"127.0.0.1:{server.port}")
    code, said_text = await server.run(key, options=forward)
    assert code == 255
    assert "administratively prohibited" in said_text
