"""What ssh-audit says of our SSH servers, and which host keys the gateway shows to whom."""

from __future__ import annotations

import asyncio
import contextlib
import re
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import asyncssh
import pytest

from pai_backend.access.keys import gateway_host_keys, gateway_known_hosts, make_ed25519, public_line
from pai_backend.engine.local import layout
from pai_backend.engine.local.ssh_server import listen
from pai_backend.engine.local.ssh_session import TaskWorld
from pai_backend.testing.free_ports import free_port
from tests.support.ssh_world import (
    SSHD,
    World,
    answers,
    gateway,
    make_world,
    program,
    run,
    write_sshd_config,
)

pytestmark = pytest.mark.asyncio

POD_CONFIG = Path(__file__).parents[3] / "backend/runtime/sshd_config"
NOT_QUANTUM = "does not provide protection against post-quantum attacks"
"""Said of every exchange that clients of before 2022 know; with none of them hardly a client could log in."""
EXPECTED = {("curve25519-sha256", NOT_QUANTUM), ("curve25519-sha256@libssh.org", NOT_QUANTUM)}


@contextlib.asynccontextmanager
async def _gateway(path: Path) -> AsyncIterator[int]:
    async with make_world(path) as world:
        yield world.port


@contextlib.asynccontextmanager
async def _agent(path: Path) -> AsyncIterator[int]:
    (path / layout.WORK).mkdir()
    port = free_port()
    task = TaskWorld("uid", path, {"PATH": "/usr/bin:/bin"})
    listener = await listen(task, port, make_ed25519("host")[0], "", [make_ed25519("user")[1]])
    try:
        yield port
    finally:
        await listener.aclose()


@contextlib.asynccontextmanager
async def _pod(path: Path) -> AsyncIterator[int]:
    """The system's sshd with the configuration of pods."""
    port = free_port()
    write_sshd_config(path, port, make_ed25519("host")[0], "")  # for the key, and the directory that sshd needs
    where = ["-o", f"Port={port}", "-o", "ListenAddress=127.0.0.1"]
    async with program([SSHD, "-D", "-e", "-f", str(POD_CONFIG), "-h", str(path / "host_key"), *where]):
        await answers(port)
        yield port


@pytest.mark.parametrize("server", [_gateway, _agent, _pod])
async def test_an_audit_finds_nothing_broken_or_weak(tmp_path: Path, server: object) -> None:
    async with server(tmp_path) as port:  # type: ignore[operator]
        audit = str(Path(sys.executable).with_name("ssh-audit"))
        said = await run([audit, "--skip-rate-test", "--no-colors", "-l", "warn", "-p", str(port), "127.0.0.1"])
    found: set[tuple[str, str]] = set()
    name = ""
    for line in said.stdout.decode().splitlines():
        if match := re.match(r"\((?:kex|key|enc|mac|cve|sec)\) (\S+)", line):
            name = match[1]
        if match := re.search(r"\[(?:fail|warn)\] (.*)", line):
            found.add((name, match[1].strip()))
    assert EXPECTED - found == set(), said.stdout.decode()  # it has audited something
    assert found == EXPECTED


@pytest.mark.parametrize("server", [_gateway, _agent, _pod])
async def test_clients_that_know_openssh_by_its_version_use_its_extensions(tmp_path: Path, server: object) -> None:
    """Sockets in the file system: ssh2 1.17 wants its ``RE_OPENSSH`` to match, libssh 0.11 the word and a number."""
    async with server(tmp_path) as port:  # type: ignore[operator]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        said = (await reader.readline()).decode()
        writer.close()
    assert re.match(r"SSH-2\.0-OpenSSH_[5-9]", said), said


@pytest.mark.parametrize(
    ("old_clients", "kinds"),
    [(False, {"ssh-ed25519", "rsa-sha2-256"}), (True, {"ssh-ed25519", "rsa-sha2-256", "ecdsa-sha2-nistp256"})],
)
async def test_every_host_key_is_kept_and_pinned(tmp_path: Path, old_clients: bool, kinds: set[str]) -> None:
    async with make_world(tmp_path, old_clients=old_clients) as world:
        lines = await gateway_known_hosts(world.store.as_store(), "127.0.0.1", world.port, "pai")
        (tmp_path / "known_hosts").write_text("".join(f"{line}\n" for line in lines))
        kept = await gateway_host_keys(world.store.as_store())
        assert [public_line(key).split()[0] for key in kept] == ["ssh-ed25519", "ssh-rsa", "ecdsa-sha2-nistp256"]
        for kind in ("ssh-ed25519", "rsa-sha2-256", "ecdsa-sha2-nistp256"):
            outcome = await world.ssh("echo in", options=("-o", f"HostKeyAlgorithms={kind}"))
            assert (outcome.stdout == b"in\n") == (kind in kinds), outcome.stderr
        async with gateway(world):
            assert await gateway_host_keys(world.store.as_store()) == kept


JSCH = {  # what JSch 0.1.55 knows of what we may offer
    "kex_algs": ["ecdh-sha2-nistp256", "diffie-hellman-group14-sha1"],
    "server_host_key_algs": ["ssh-rsa", "ecdsa-sha2-nistp256"],
    "encryption_algs": ["aes128-ctr"],
    "mac_algs": ["hmac-sha1", "hmac-sha2-256"],
}


@pytest.mark.parametrize("old_clients", [False, True])
async def test_an_old_client_needs_the_switch(tmp_path: Path, old_clients: bool) -> None:
    async with make_world(tmp_path, old_clients=old_clients) as world:
        lines = await gateway_known_hosts(world.store.as_store(), "127.0.0.1", world.port, "pai")
        (tmp_path / "known_hosts").write_text("".join(f"{line}\n" for line in lines))
        if old_clients:
            async with _jsch(world) as conn:
                assert (await conn.run("echo in")).stdout == "in\n"
        else:
            with pytest.raises(asyncssh.KeyExchangeFailed):
                async with _jsch(world):
                    pass


def _jsch(world: World) -> AbstractAsyncContextManager[asyncssh.SSHClientConnection]:
    return asyncssh.connect(
        *("127.0.0.1", world.port),
        username="demo",
        client_keys=[str(world.key)],
        known_hosts=str(world.path / "known_hosts"),
        config=None,
        agent_path=None,
        **JSCH,
    )
