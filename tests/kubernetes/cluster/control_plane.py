"""etcd, the API server, controllers and the scheduler of a cluster: real programs, each killed and started alone."""

from __future__ import annotations

import asyncio
import json
import ssl
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from tests.kubernetes.cluster.addresses import Addresses
from tests.kubernetes.cluster.commands import NotInTime, until
from tests.kubernetes.cluster.credentials import Authority
from tests.kubernetes.cluster.processes import Daemon

READY_S = 90.0
MASTERS = "system:masters"
_AUDIT = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "None", "userGroups": ["system:serviceaccounts:kube-system"]},  # the cluster's own controllers
        {"level": "Metadata", "userGroups": ["system:serviceaccounts"]},
        {"level": "None"},
    ],
}
"""Who asked for what, of pods alone: administrators, and with them most tests and benches, cost nothing."""


@dataclass(frozen=True)
class Timing:
    """How soon a silent node is noticed. The usual ones make every test of a lost node last a minute."""

    node_status_s: int = 2
    node_lease_s: int = 8
    node_grace_s: int = 12  # shorter ones flap on a busy machine: measured with 6


USUAL = Timing()


class ControlPlane:
    """The four programs, their logs and their data below a directory."""

    def __init__(self, directory: Path, programs: Path, addresses: Addresses, timing: Timing) -> None:
        self._directory, self.programs, self._addresses, self._timing = directory, programs, addresses, timing
        self.authority = Authority(directory / "credentials")
        self.server = f"https://{addresses.host}:6443"
        self.kubeconfig = directory / "kubeconfig"
        self.audit = directory / "audit.log"
        self.etcd = Daemon(directory, "etcd")
        self.api = Daemon(directory, "kube-apiserver")
        self.controllers = Daemon(directory, "kube-controller-manager")
        self.scheduler = Daemon(directory, "kube-scheduler")

    @property
    def daemons(self) -> tuple[Daemon, ...]:
        """All four, in the order in which they start."""
        return self.etcd, self.api, self.controllers, self.scheduler

    def user(self, name: str, *groups: str) -> Path:
        """A kubeconfig for a user of this name and these groups."""
        identity = self.authority.issue(name, groups)
        return self.authority.kubeconfig(identity.key.with_suffix(".kubeconfig"), self.server, identity)

    async def create(self) -> None:
        """Make credentials, start all four and wait until pods can be made."""
        await asyncio.to_thread(self.authority.create)
        admin = self.authority.issue("admin", [MASTERS])
        self.authority.kubeconfig(self.kubeconfig, self.server, admin)
        self.start_etcd()
        await self.start_api()
        self.start_controllers()
        self.start_scheduler()
        # The controllers make it, and no pod is accepted before it is there.
        await self._until_answers("/api/v1/namespaces/default/serviceaccounts/default", admin.certificate, admin.key)

    def start_etcd(self) -> None:
        """Start etcd; the API server waits for it by itself."""
        here = self._addresses.loopback
        command: list[str | Path] = [
            self.programs / "etcd",
            f"--data-dir={self._directory / 'etcd'}",
            f"--listen-client-urls=http://{here}:2379",
            f"--advertise-client-urls=http://{here}:2379",
            f"--listen-peer-urls=http://{here}:2380",
            "--log-level=warn",
            "--unsafe-no-fsync",  # it survives kill -9, which is what tests do; not a power cut of this machine
        ]
        self.etcd.start(command, self._directory)

    async def start_api(self) -> None:
        """Start the API server and wait until it is ready. One that was killed must be gone first."""
        host = self._addresses.host
        authority = self.authority
        serving = authority.issue(
            "kube-apiserver", hosts=[host, str(self._addresses.services[1]), "kubernetes.default.svc"]
        )
        towards_nodes = authority.issue("kube-apiserver-kubelet-client", [MASTERS])
        command: list[str | Path] = [
            self.programs / "kube-apiserver",
            f"--etcd-servers=http://{self._addresses.loopback}:2379",
            f"--bind-address={host}",
            f"--advertise-address={host}",
            "--secure-port=6443",
            f"--service-cluster-ip-range={self._addresses.services}",
            f"--client-ca-file={authority.certificate}",
            f"--tls-cert-file={serving.certificate}",
            f"--tls-private-key-file={serving.key}",
            f"--kubelet-certificate-authority={authority.certificate}",
            f"--kubelet-client-certificate={towards_nodes.certificate}",
            f"--kubelet-client-key={towards_nodes.key}",
            "--kubelet-preferred-address-types=InternalIP",  # nodes have no names that this machine can look up
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={authority.accounts}",
            f"--service-account-signing-key-file={authority.accounts}",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            "--allow-privileged",
            f"--audit-policy-file={self._audit_policy()}",
            f"--audit-log-path={self.audit}",
            "--delete-collection-workers=16",  # deletes thousands of pods within a request's minute
        ]
        self.api.start(command, self._directory)
        await self._until_answers("/readyz")

    def _audit_policy(self) -> Path:
        path = self._directory / "audit-policy.json"
        path.write_text(json.dumps(_AUDIT))
        return path

    def start_controllers(self) -> None:
        """Start the controller manager."""
        command: list[str | Path] = [
            self.programs / "kube-controller-manager",
            f"--kubeconfig={self.user('system:kube-controller-manager')}",
            f"--service-account-private-key-file={self.authority.accounts}",
            f"--root-ca-file={self.authority.certificate}",
            f"--bind-address={self._addresses.loopback}",
            "--use-service-account-credentials",
            "--leader-elect=false",
            "--node-monitor-period=1s",
            f"--node-monitor-grace-period={self._timing.node_grace_s}s",
        ]
        self.controllers.start(command, self._directory)

    def start_scheduler(self) -> None:
        """Start the scheduler, with a request rate at which it is not what limits a test."""
        command: list[str | Path] = [
            self.programs / "kube-scheduler",
            f"--kubeconfig={self.user('system:kube-scheduler')}",
            f"--bind-address={self._addresses.loopback}",
            "--leader-elect=false",
            "--kube-api-qps=1000",
            "--kube-api-burst=2000",
        ]
        self.scheduler.start(command, self._directory)

    async def _until_answers(self, path: str, certificate: Path | None = None, key: Path | None = None) -> None:
        trust = ssl.create_default_context(cafile=str(self.authority.certificate))
        if certificate is not None:
            trust.load_cert_chain(certificate, key)
        limit = aiohttp.ClientTimeout(total=5)
        async with aiohttp.ClientSession(timeout=limit, connector=aiohttp.TCPConnector(ssl=trust)) as session:

            async def answers() -> bool:
                if self.api.pid is None:
                    raise NotInTime("the API server has ended")
                try:
                    async with session.get(self.server + path) as answer:
                        return answer.status == 200
                except (aiohttp.ClientError, TimeoutError):
                    return False

            try:
                await until(answers, f"{path} of the API server", READY_S)
            except NotInTime as late:
                raise NotInTime(f"{late}\n{self.api.tail()}") from None
