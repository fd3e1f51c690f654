"""A job with an idle timeout and a GPU that no device is behind: what NVIDIA's driver would say, the test says."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from tests.kubernetes.cluster.commands import until
from tests.kubernetes.cluster.kubectl import Json
from tests.kubernetes.deploy.release import LIMIT_S, Release

GKE = "/usr/local/nvidia/bin"  # a place of nvidia-smi where the PATH of no image looks


@dataclass
class Training:
    """The job of a release by that name, once it runs."""

    release: Release
    name: str
    idle_s: int

    async def gpu_works(self, percent: int) -> None:
        """Let the program that bears the name of the driver's tell this from now on."""
        (pod,) = await self.release.task_pods(self.name)
        written = f"mkdir -p {GKE} && printf '#!/bin/sh\\necho 0, {percent}\\n' >{GKE}/draft && chmod 755 {GKE}/draft"
        script = f"{written} && mv {GKE}/draft {GKE}/nvidia-smi"
        await self.release.tasks("exec", pod, "-c", "task", "--", "sh", "-c", script)

    async def told(self, kind: str) -> list[Json]:
        """The payloads of its events of a type."""
        answer = await self.release.client.get(f"/api/v2/jobs/{self.name}/events")
        assert answer.status_code == 200, answer.text
        return [dict(each["payload"]) for each in answer.json()["data"] if each["type"] == kind]

    async def until_told(self, kind: str) -> Json:
        """The first of these, waiting for it if need be."""

        async def known() -> bool:
            return bool(await self.told(kind))

        await until(known, f"{kind} of {self.name}", LIMIT_S, 0.2)
        return (await self.told(kind))[0]

    async def idle(self) -> Json:
        """Its idle clock as its user sees it."""
        return dict((await self.release.job(self.name))["idle"])

    async def until_used(self, since: datetime, by: str) -> datetime:
        """Wait until it is used by that longer than its idle timeout after ``since``; when that is."""
        used: list[datetime] = []

        async def now() -> bool:
            idle = await self.idle()
            used.append(datetime.fromisoformat(idle["since"]))
            return idle["usedBy"] == by and (used[-1] - since).total_seconds() > self.idle_s

        await until(now, f"{self.name} to be used by {by}", LIMIT_S, 0.2)
        return used[-1]
