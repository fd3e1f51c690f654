"""The cluster as its administrator sees it, by the real kubectl: behind the back of what is tested."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.kubernetes.cluster.commands import Ended, NotInTime, attempt, run, until

Json = dict[str, Any]


class Kubectl:
    """kubectl with one kubeconfig, in one namespace."""

    def __init__(self, program: Path, kubeconfig: Path, namespace: str = "default") -> None:
        self.kubeconfig, self.namespace, self._program = kubeconfig, namespace, program

    def within(self, namespace: str) -> Kubectl:
        """The same in another namespace."""
        return Kubectl(self._program, self.kubeconfig, namespace)

    def as_user(self, kubeconfig: Path) -> Kubectl:
        """The same as another user."""
        return Kubectl(self._program, kubeconfig, self.namespace)

    async def attempt(self, *words: str, given: str | None = None, limit_s: float = 120.0) -> Ended:
        """Run it, whatever its exit code."""
        return await attempt(*self.command(*words), given=given, limit_s=limit_s)

    async def __call__(self, *words: str, given: str | None = None, limit_s: float = 120.0) -> str:
        """What it prints. Raises CommandFailed."""
        return await run(*self.command(*words), given=given, limit_s=limit_s)

    async def get(self, *words: str) -> Json:
        """An object, or a list of them."""
        found: Json = json.loads(await self("get", *words, "-o", "json"))
        return found

    async def create(self, *objects: Mapping[str, Any]) -> None:
        """Create objects."""
        whole = {"apiVersion": "v1", "kind": "List", "items": objects}
        await self("create", "-f", "-", given=json.dumps(whole))

    async def phase(self, pod: str) -> str:
        """A pod's phase; empty when there is no such pod."""
        ended = await self.attempt("get", "pod", pod, "--ignore-not-found", "-o", "jsonpath={.status.phase}")
        return ended.out if ended.code == 0 else ""

    async def until_phase(self, pod: str, *phases: str, limit_s: float = 60.0) -> Json:
        """The pod, once it is in one of these phases. Raises NotInTime with what the pod says of itself."""

        async def there() -> bool:
            return await self.phase(pod) in phases

        try:
            await until(there, f"pod {pod} to be {' or '.join(phases)}", limit_s, 0.2)
        except NotInTime as late:
            told = await self.attempt("describe", "pod", pod)
            raise NotInTime(f"{late}\n{told.out}{told.err}") from None
        return await self.get("pod", pod)

    async def until_ready(self, *nodes: str, limit_s: float = 60.0) -> None:
        """Wait until these nodes are Ready. Raises CommandFailed."""
        await self.until_condition("Ready=True", *nodes, limit_s=limit_s)

    async def until_condition(self, condition: str, *nodes: str, limit_s: float = 60.0) -> None:
        """Wait until nodes have a condition such as ``Ready=Unknown``. Raises CommandFailed."""
        names = [f"node/{name}" for name in nodes]
        await self("wait", f"--for=condition={condition}", f"--timeout={limit_s:.0f}s", *names, limit_s=limit_s + 10)

    def command(self, *words: str) -> list[str | Path]:
        """The command that runs it with these words."""
        return [self._program, f"--kubeconfig={self.kubeconfig}", f"--namespace={self.namespace}", *words]
