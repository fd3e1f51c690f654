"""What ``kubectl`` shows of the Events that a backend makes of its pods."""

from __future__ import annotations

from tests.kubernetes.cluster.commands import until
from tests.kubernetes.cluster.kubectl import Kubectl


async def until_told(kubectl: Kubectl, pod: str, reasons: set[str]) -> dict[str, str]:
    """Events of a pod, by reason, once there are some of all these reasons."""
    found: dict[str, str] = {}
    of_pod = f"--field-selector=source=jupyter-pai,involvedObject.name={pod}"

    async def told() -> bool:
        events = (await kubectl.get("events", of_pod))["items"]
        found.update({each["reason"]: each["message"] for each in events})
        return reasons <= found.keys()

    await until(told, f"events of {pod} to tell of {sorted(reasons)}", 60, 0.2)
    return found
