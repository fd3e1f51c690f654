"""Pods that serve and pods that knock: who reaches which port of whom, by a connection that is really tried."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tests.kubernetes.cluster import images
from tests.kubernetes.cluster.commands import NotInTime, run, until
from tests.kubernetes.cluster.kubectl import Json, Kubectl

PORT, SSH = 8000, 2222
SERVED, LOGIN, NOTHING = "served", "SSH-2.0", "nothing"
"""What is heard from a port of ours, from one of an SSH server, and from one that a policy has closed."""
OPEN_S = 90.0

SERVE = """
import selectors, socket, sys
ports = selectors.DefaultSelector()
for port in sys.argv[1:]:
    ports.register(socket.create_server(("", int(port))), selectors.EVENT_READ)
while True:
    for key, _ in ports.select():
        peer = key.fileobj.accept()[0]
        peer.sendall(b"served\\n")
        peer.close()
"""
"""Python that says so to whoever connects to one of the ports that it is given."""

_KNOCK = """
import concurrent.futures, json, socket, sys
def heard(target):
    host, _, port = target.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), 3) as peer:
            return peer.recv(7).decode().strip()
    except ConnectionRefusedError:
        return "refused"
    except (TimeoutError, socket.gaierror):
        return "nothing"
with concurrent.futures.ThreadPoolExecutor(len(sys.argv)) as pool:
    print(json.dumps(dict(zip(sys.argv[1:], pool.map(heard, sys.argv[1:])))))
"""
"""Three seconds are time for a second try, should the first come before the pod's address is known everywhere."""


@dataclass(frozen=True)
class Knocker:
    """A pod that runs, or this machine."""

    kubectl: Kubectl | None = None
    name: str = ""

    def __str__(self) -> str:
        return f"{self.kubectl.namespace}/{self.name}" if self.kubectl is not None else "this machine"

    async def hears(self, targets: Sequence[str]) -> dict[str, str]:
        """What each ``host:port`` answers."""
        if self.kubectl is None:
            said = await run(sys.executable, "-c", _KNOCK, *targets)
        else:
            said = await self.kubectl("exec", self.name, "--", "python3", "-c", _KNOCK, *targets)
        found: dict[str, str] = json.loads(said)
        return found

    async def until_it_hears(self, expected: Mapping[str, str]) -> None:
        """Wait until each answers so; what starts or was just changed needs a moment. Raises NotInTime."""
        heard: dict[str, str] = {}

        async def as_expected() -> bool:
            heard.update(await self.hears(list(expected)))
            return heard == expected

        try:
            await until(as_expected, f"{self} to hear {expected}", OPEN_S)
        except NotInTime as late:
            raise NotInTime(f"{late}; it heard {heard}") from None

    async def is_shut_out(self, targets: Iterable[str]) -> None:
        """Fail unless no target answers."""
        heard = await self.hears(list(targets))
        answered = {target: said for target, said in heard.items() if said != NOTHING}
        assert not answered, f"{self} got in: {answered}"


async def address_of(kubectl: Kubectl, pod: str) -> str:
    """The pod's address, once its containers run."""
    return str((await kubectl.until_phase(pod, "Running", limit_s=OPEN_S))["status"]["podIP"])


def stand_in(name: str, node: str, labels: Mapping[str, str], ports: Iterable[Json] = ()) -> Json:
    """A pod that serves these ports of a container; one that only knocks has none."""
    told = list(ports)
    container = {
        "name": "stand-in",
        "image": images.PYTHON,
        "command": ["python3", "-c", SERVE, *(str(port["containerPort"]) for port in told)],
        "ports": told,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": dict(labels)},
        "spec": {"nodeName": node, "terminationGracePeriodSeconds": 0, "containers": [container]},
    }
