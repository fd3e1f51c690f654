"""A real kube-apiserver on a real etcd, without nodes: enough for whatever lists, watches and writes objects.

Both listen on loopback only, keep everything in a directory of their own, and die with the process that started them:
each is the child of a shell that kills it when its standard input ends.
"""

from __future__ import annotations

import asyncio
import base64
import os
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import aiohttp
import pytest
import yaml

from pai_backend.testing.free_ports import free_ports
from tests.support.kubeconfigs import kubeconfig

ROOT = Path(__file__).parents[2]
TOKEN = "a-token-of-the-tests"
READY_S = 60.0
_KEEPER = '"$@" >>"$LOG" 2>&1 & echo $!; read -r _; kill -9 $! 2>/dev/null; wait'


def programs() -> Path:
    """The directory of kube-apiserver and etcd, built first where that was not done before.

    Skips the test, with the reason, where they cannot be built; in CI (``CI`` is set) that is a failure.
    """
    command = [sys.executable, str(ROOT / "tools" / "kubernetes-binaries"), "etcd", "kube-apiserver"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1500)
    if done.returncode == 0:
        return Path(done.stdout.strip().splitlines()[-1])
    reason = f"no kube-apiserver: {done.stderr.strip()[-500:]}"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


class _Program:
    """A program that can be killed and started again with the same options."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self._command = list(command)
        self.log = log
        self._keeper: subprocess.Popen[bytes] | None = None
        self.pid = 0

    def start(self) -> None:
        self._keeper = subprocess.Popen(
            ["sh", "-c", _KEEPER, "sh", *self._command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "LOG": str(self.log)},
        )
        assert self._keeper.stdout is not None
        self.pid = int(self._keeper.stdout.readline())

    def kill(self) -> None:
        """Kill -9, and wait until it is gone with all its sockets."""
        if self._keeper is None:
            return
        os.kill(self.pid, signal.SIGKILL)
        self._keeper.communicate(timeout=60)  # the keeper ends after the program was waited for
        self._keeper = None

    def pause(self) -> None:
        """Stop it from doing anything; its sockets stay open."""
        os.kill(self.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        os.kill(self.pid, signal.SIGCONT)


class ApiServer:
    """The two programs, on fixed ports, so that one that comes back is the same to its clients."""

    def __init__(self, programs: Path, directory: Path, options: Sequence[str] = ()) -> None:
        self._directory = directory
        etcd_port, peer_port, self.port = free_ports(3)
        (directory / "tokens.csv").write_text(f'{TOKEN},admin,1,"system:masters"\nstranger,stranger,2\n')
        key = directory / "accounts.key"
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True, timeout=60)
        etcd = f"http://127.0.0.1:{etcd_port}"
        peer = f"http://127.0.0.1:{peer_port}"
        self.etcd = _Program(
            [
                str(programs / "etcd"),
                f"--data-dir={directory / 'etcd'}",
                f"--listen-client-urls={etcd}",
                f"--advertise-client-urls={etcd}",
                f"--listen-peer-urls={peer}",
                f"--initial-advertise-peer-urls={peer}",
                f"--initial-cluster=default={peer}",
                "--unsafe-no-fsync",  # it survives kill -9, which is all that tests do
            ],
            directory / "etcd.log",
        )
        self.api = _Program(
            [
                str(programs / "kube-apiserver"),
                f"--etcd-servers={etcd}",
                "--bind-address=127.0.0.1",
                "--advertise-address=127.0.0.1",
                f"--secure-port={self.port}",
                f"--cert-dir={directory / 'certs'}",
                f"--token-auth-file={directory / 'tokens.csv'}",
                "--authorization-mode=RBAC",
                f"--service-account-key-file={key}",
                f"--service-account-signing-key-file={key}",
                "--service-account-issuer=https://kubernetes.default.svc",
                "--disable-admission-plugins=ServiceAccount",  # its controller does not run, pods would be refused
                *options,
            ],
            directory / "kube-apiserver.log",
        )

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def authority(self) -> Path:
        return self._directory / "certs" / "apiserver.crt"

    def kubeconfig(self, path: Path, server: str | None = None, token: str = TOKEN) -> Path:
        """A kubeconfig, of an administrator by default; ``server`` for one that is reached through something else."""
        text = kubeconfig(server or self.url, token=token)
        if server is None or server.startswith("https"):
            authority = base64.b64encode(self.authority.read_bytes()).decode()
            text["clusters"][0]["cluster"]["certificate-authority-data"] = authority
        path.write_text(yaml.safe_dump(text))
        return path

    async def ready(self) -> None:
        """Return once it answers that it is ready."""
        unchecked = ssl.create_default_context()
        unchecked.check_hostname, unchecked.verify_mode = False, ssl.CERT_NONE
        headers = {"Authorization": f"Bearer {TOKEN}"}
        connector = aiohttp.TCPConnector(ssl=unchecked, force_close=True)
        async with aiohttp.ClientSession(connector=connector, headers=headers) as session, asyncio.timeout(READY_S):
            while not await self._answers(session):  # noqa: ASYNC110 - nothing of ours tells
                await asyncio.sleep(0.1)

    async def _answers(self, session: aiohttp.ClientSession) -> bool:
        try:
            async with session.get(f"{self.url}/readyz", timeout=aiohttp.ClientTimeout(total=5)) as answer:
                return answer.status == 200
        except (aiohttp.ClientError, OSError):
            return False

    def tail(self) -> str:
        """The last that it said, for a failed test."""
        return self.api.log.read_text(errors="replace")[-3000:] if self.api.log.exists() else ""


@contextmanager
def serve(programs: Path, directory: Path, options: Sequence[str] = ()) -> Iterator[ApiServer]:
    """A server that is ready, until the block ends. Works in a directory that is there and empty."""
    server = ApiServer(programs, directory, options)
    try:
        server.etcd.start()
        server.api.start()
        try:
            asyncio.run(server.ready())
        except TimeoutError:
            pytest.fail(f"the API server is not ready after {READY_S:.0f} s: {server.tail()}")
        yield server
    finally:
        # The API server first, and not by SIGTERM: without etcd it would hang.
        server.api.kill()
        server.etcd.kill()
