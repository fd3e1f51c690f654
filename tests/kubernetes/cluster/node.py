"""A node: real containerd and kubelet in namespaces of their own, so that a machine holds several.

Its network, mounts, processes, host name and control group are its own. Killing its first process is a power cut.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.kubernetes.cluster import cgroups, logind, network, node_files
from tests.kubernetes.cluster.addresses import Addresses
from tests.kubernetes.cluster.commands import CommandFailed, Ended, NotInTime, attempt, run, until
from tests.kubernetes.cluster.control_plane import MASTERS, ControlPlane, Timing
from tests.kubernetes.cluster.images import PAUSE
from tests.kubernetes.cluster.processes import ENVIRONMENT, Daemon

_UP_S = 60.0
_INIT = Path(__file__).with_name("node_init.sh")
_BUS = Path("/run/dbus/system_bus_socket")  # where every program looks for it
_QUEUE = "100"  # of the kernel, for a program that decides on packets


class NoPower(Exception):
    """The node is off, or did not boot."""


@dataclass(frozen=True)
class NodePlan:
    """What a node is."""

    name: str
    number: int  # from 1; decides its addresses
    labels: dict[str, str] = field(default_factory=dict)
    taints: Sequence[str] = ()


class Node:
    """A node of a cluster, on or off; everything of it is below a directory."""

    def __init__(self, home: Path, plan: NodePlan, plane: ControlPlane, addresses: Addresses, timing: Timing) -> None:
        self.home, self.plan, self._plane, self._addresses, self._timing = home, plan, plane, addresses, timing
        self.name = plan.name
        self.address = addresses.node(plan.number)
        self.containerd = home / "containerd.sock"
        self._init = Daemon(home, "node")

    @property
    def on(self) -> bool:
        """Whether it has power."""
        return self._init.pid is not None

    async def start(self, images: Sequence[Path]) -> None:
        """Give it power: boot, load the images that it has not, register. Ready a moment later."""
        for folder in ("cni", "containerd", "kubelet", "log"):
            (self.home / folder).mkdir(parents=True, exist_ok=True)
        for stale in (*self.home.glob("*.inner"), self.home / "up", self.containerd):
            stale.unlink(missing_ok=True)
        await asyncio.to_thread(cgroups.create, self._addresses.cgroup(self.name))
        node_files.write(self.home, self.plan.number, self.name, self._addresses, self._plane.authority, self._timing)
        await self._boot()
        await self.start_containerd()
        await self._load(images)
        await self.start_kubelet()
        await self._start_inside("kube-proxy", self._proxy())

    async def run(self, *command: str | Path, given: str | None = None, limit_s: float = 60.0) -> Ended:
        """Run a program on the node, in its namespaces, from ``/``."""
        return await attempt(*self._inside(), *command, given=given, limit_s=limit_s)

    def in_its_network(self, *command: str | Path) -> list[str | Path]:
        """The command that runs a program of this machine in the node's network; whoever runs it looks after it."""
        if self._init.pid is None:
            raise NoPower(f"{self.name} has no power")
        return ["nsenter", f"--net=/proc/{self._init.pid}/ns/net", *command]

    async def power_cut(self) -> None:
        """Kill everything on it at once; what it wrote stays."""
        await self._init.kill()
        await cgroups.remove(self._addresses.cgroup(self.name))
        await network.unplug(self._addresses, self.plan.number)

    async def start_containerd(self) -> None:
        """Start the container runtime and wait until it answers. Containers go on without it."""
        await self._start_inside("containerd", ["containerd", "--config", self.home / "containerd.toml"])

        async def answers() -> bool:
            return (await self.ctr("version")).code == 0

        await self._until(answers, "containerd")

    async def start_kubelet(self) -> None:
        """Start kubelet. Pods go on without it."""
        kubeconfig = self._plane.user(f"system:node:{self.name}", "system:nodes")
        command: list[str | Path] = [
            self._plane.programs / "kubelet",
            f"--config={self.home / 'kubelet.json'}",
            f"--kubeconfig={kubeconfig}",
        ]
        command += [f"--node-ip={self.address}", f"--hostname-override={self.name}"]
        if self.plan.labels:
            command.append("--node-labels=" + ",".join(f"{key}={value}" for key, value in self.plan.labels.items()))
        if self.plan.taints:
            command.append("--register-with-taints=" + ",".join(self.plan.taints))
        await self._start_inside("kubelet", command)

    async def enforce_policies(self, enforcer: Path) -> None:
        """Let a program decide, by NetworkPolicies, on each new connection to a pod; without it there is none."""
        # Pods of one node reach each other through its bridge, which asks nobody otherwise.
        await self.run("sh", "-c", "echo 1 >/proc/sys/net/bridge/bridge-nf-call-iptables")
        # Not in the table "filter", where kube-proxy puts before all others what it lets through.
        rule = ["-d", str(self._addresses.pods_of(self.plan.number)), "-m", "conntrack", "--ctstate", "NEW"]
        rule += ["-j", "NFQUEUE", "--queue-num", _QUEUE]
        await run(*self._inside(), "iptables", "--wait", "--table", "mangle", "--append", "FORWARD", *rule)
        kubeconfig = self._plane.user("policy-enforcer", MASTERS)
        await self._start_inside("policy-enforcer", [enforcer, f"--kubeconfig={kubeconfig}", f"--queue={_QUEUE}"])

        async def asked() -> bool:
            queues = (await self.run("cat", "/proc/net/netfilter/nfnetlink_queue")).out.splitlines()
            return any(line.split()[0] == _QUEUE for line in queues)

        await self._until(asked, "the policy enforcer")

    async def start_logind(self) -> None:
        """Start what a kubelet asks about shutdowns, once; a kubelet that is to ask is started afterwards."""
        ready = _BUS.with_name("logind.ready")
        if await self._is_there(ready)():
            return
        (self.home / "bus.conf").write_text(logind.bus_configuration(_BUS))
        await self.run("mkdir", "-p", _BUS.parent)
        await self._start_inside("bus", ["dbus-daemon", f"--config-file={self.home / 'bus.conf'}", "--nofork"])
        await self._until(self._is_there(_BUS), "the message bus")
        await self._start_inside("logind", [sys.executable, logind.__file__, _BUS, ready])
        await self._until(self._is_there(ready), "logind")

    async def announce_shutdown(self) -> None:
        """Say what logind says before a machine goes down: a kubelet that listens by now ends the pods."""
        signal = ["/org/freedesktop/login1", f"{logind.NAME}.Manager.PrepareForShutdown", "boolean:true"]
        await run(*self._inside(), "dbus-send", f"--bus=unix:path={_BUS}", "--type=signal", *signal)

    def change_kubelet(self, **changes: Any) -> dict[str, Any]:
        """Change its configuration for the next start; what it was. None is the default; a power cut undoes it."""
        configuration = self.home / "kubelet.json"
        settings: dict[str, Any] = json.loads(configuration.read_text())
        before = {name: settings.get(name) for name in changes}
        settings.update(changes)
        configuration.write_text(json.dumps({name: value for name, value in settings.items() if value is not None}))
        return before

    async def kill(self, part: str) -> None:
        """Kill ``kubelet``, ``containerd`` or ``kube-proxy`` as the kernel would, and wait until it is gone."""
        note = self.home / f"{part}.inner"
        pid = note.read_text().strip()
        await self.run("kill", "-9", pid)

        async def gone() -> bool:
            return (await self.run("kill", "-0", pid)).code != 0

        await until(gone, f"the end of {part} on {self.name}", 10, 0.05)
        note.unlink()

    async def ctr(self, *words: str | Path) -> Ended:
        """Ask the container runtime, behind the API server's back."""
        return await self.run("ctr", "--address", self.containerd, "--namespace", "k8s.io", *words)

    async def has_image(self, reference: str) -> bool:
        """Whether an image is on the node."""
        return reference in (await self.ctr("images", "list", "-q")).out.split()

    async def load_image(self, archive: Path) -> None:
        """Put an image on the node."""
        # Where an image lands is named, because ctr's own default does not follow the configuration.
        done = await self.ctr("images", "import", "--snapshotter", node_files.snapshotter(self.home), archive)
        if done.code != 0:
            raise CommandFailed(["ctr", "images", "import", str(archive)], done.code, done.err + done.out)

    async def remove_image(self, reference: str) -> None:
        """Take an image off the node."""
        await self.ctr("images", "remove", "--sync", reference)

    def logs(self) -> list[Path]:
        """Its logs."""
        return sorted(self.home.glob("*.log"))

    async def _boot(self) -> None:
        namespaces = ["--net", "--mount", "--pid", "--uts", "--ipc", "--fork", "--kill-child", "--mount-proc"]
        self._init.start(["unshare", *namespaces, "bash", _INIT, self.home, self.name], Path("/"))

        async def up() -> bool:
            return (self.home / "up").exists()

        await self._until(up, "the first process")
        pid = self._init.pid
        assert pid is not None
        await network.plug(self._addresses, self.plan.number, pid)
        for words in (
            ("link", "set", "lo", "up"),
            ("address", "add", f"{self.address}/24", "dev", "eth0"),
            ("link", "set", "eth0", "up"),
            ("route", "add", "default", "via", self._addresses.host),
        ):
            await run(*self._inside(), "ip", *words)
        await run(*self._inside(), "sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward")

    async def _load(self, images: Sequence[Path]) -> None:
        there = set((await self.ctr("images", "list", "-q")).out.split())
        loaded = self.home / "images.loaded"
        known = set(loaded.read_text().splitlines()) if loaded.exists() and PAUSE in there else set()
        for archive in images:
            if archive.name not in known:
                await self.load_image(archive)
                known.add(archive.name)
        loaded.write_text("\n".join(sorted(known)) + "\n")

    async def _start_inside(self, name: str, command: Sequence[str | Path]) -> None:
        """Run a program on the node, detached: its parent is the node's first process."""
        script = 'note=$1 log=$2; shift 2; echo $$ >"$note"; exec "$@" >>"$log" 2>&1 </dev/null'
        note, log = self.home / f"{name}.inner", self.home / f"{name}.log"
        chosen = [f"{name}={value}" for name, value in ENVIRONMENT.items()]
        await run(*self._inside(), "env", *chosen, "setsid", "--fork", "sh", "-c", script, "sh", note, log, *command)

    def _inside(self) -> list[str]:
        pid = self._init.pid
        if pid is None:
            raise NoPower(f"{self.name} has no power; its first process said: {self._init.tail()}")
        # The process that was told to make the namespaces is not itself in that of processes, only its child is.
        return [
            "nsenter",
            f"--target={pid}",
            "--net",
            "--mount",
            "--uts",
            "--ipc",
            f"--pid=/proc/{pid}/ns/pid_for_children",
        ]

    def _is_there(self, path: Path) -> Callable[[], Awaitable[bool]]:
        async def there() -> bool:
            return (await self.run("test", "-e", path)).code == 0

        return there

    async def _until(self, holds: Callable[[], Awaitable[bool]], what: str) -> None:
        try:
            await until(holds, f"{what} of {self.name}", _UP_S, 0.05)
        except NotInTime as late:
            tails = [f"{log.name}:\n{log.read_text(errors='replace')[-2000:]}" for log in self.logs()]
            raise NotInTime("\n".join([str(late), *tails])) from None

    def _proxy(self) -> list[str | Path]:
        kubeconfig = self._plane.user("system:kube-proxy")
        # A namespace may not set the kernel's limits of connection tracking: 0 leaves them as they are.
        leave = ["max-per-core=0", "tcp-timeout-established=0", "tcp-timeout-close-wait=0"]
        return [
            self._plane.programs / "kube-proxy",
            f"--kubeconfig={kubeconfig}",
            f"--hostname-override={self.name}",
            "--proxy-mode=iptables",
            f"--cluster-cidr={self._addresses.pods}",
            *(f"--conntrack-{option}" for option in leave),
        ]
