"""A device plugin for GPUs that do not exist: ``python -m tests.kubernetes.devices.plugin DIRECTORY --count 4``.

It speaks to a real kubelet, over the sockets in its directory of plugins, as NVIDIA's does: a container gets the
numbers of its devices in NVIDIA_VISIBLE_DEVICES. Devices whose numbers stand in the file ``--sick`` are unhealthy. A
kubelet that has started anew has forgotten its plugins and removed their sockets: the plugin then begins anew as well.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import grpc

messages, services = grpc.protos_and_services("tests/kubernetes/devices/deviceplugin.proto")

KUBELET, OWN = "kubelet.sock", "gpus-of-tests.sock"
LOOK_EVERY_S = 0.1


class Plugin(services.DevicePluginServicer):  # type: ignore[name-defined, misc] # made of the .proto when it runs
    """Answers one kubelet."""

    def __init__(self, count: int, sick: Path) -> None:
        self._count, self._sick = count, sick
        self._health = self._look()
        self._changed = asyncio.Condition()

    async def GetDevicePluginOptions(self, request: Any, context: Any) -> Any:  # noqa: N802 - the protocol says so
        return messages.DevicePluginOptions()

    async def ListAndWatch(self, request: Any, context: Any) -> AsyncIterator[Any]:  # noqa: N802 - the protocol says so
        """All devices, now and whenever the health of one is another."""
        while True:
            told = self._health
            yield messages.ListAndWatchResponse(
                devices=[messages.Device(ID=f"gpu-{index}", health=health) for index, health in enumerate(told)]
            )
            async with self._changed:
                await self._changed.wait_for(partial(self._differs, told))

    async def Allocate(self, request: Any, context: Any) -> Any:  # noqa: N802 - the protocol says so
        """What each container gets for the devices that the kubelet has chosen for it."""
        answers = []
        for each in request.container_requests:
            numbers = sorted(int(name.removeprefix("gpu-")) for name in each.devices_ids)
            print(f"allocated {numbers}", flush=True)
            visible = ",".join(map(str, numbers))
            answers.append(messages.ContainerAllocateResponse(envs={"NVIDIA_VISIBLE_DEVICES": visible}))
        return messages.AllocateResponse(container_responses=answers)

    async def look(self) -> None:
        """Notice that devices fell ill or are well again."""
        seen = self._look()
        if seen != self._health:
            async with self._changed:
                self._health = seen
                self._changed.notify_all()

    def _differs(self, told: list[str]) -> bool:
        return self._health != told

    def _look(self) -> list[str]:
        sick = self._sick.read_text().split() if self._sick.exists() else []
        return ["Unhealthy" if str(index) in sick else "Healthy" for index in range(self._count)]


async def serve(directory: Path, resource: str, plugin: Plugin) -> None:
    """Offer the devices until the kubelet is another one."""
    kubelet, own = directory / KUBELET, directory / OWN
    own.unlink(missing_ok=True)
    server = grpc.aio.server()
    services.add_DevicePluginServicer_to_server(plugin, server)
    server.add_insecure_port(f"unix:{own}")
    met = _identity(kubelet)
    await server.start()
    try:
        # The name of the server's host is the path of its socket otherwise, which Go refuses.
        options = [("grpc.default_authority", "localhost")]
        async with grpc.aio.insecure_channel(f"unix:{kubelet}", options=options) as channel:
            wanted = messages.RegisterRequest(version="v1beta1", endpoint=OWN, resource_name=resource)
            await services.RegistrationStub(channel).Register(wanted, timeout=5)
        print("registered", flush=True)
        while _identity(kubelet) == met and own.exists():
            await plugin.look()
            await asyncio.sleep(LOOK_EVERY_S)
    finally:
        await server.stop(None)


def _identity(socket: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(socket)
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_ctime_ns


async def main(directory: Path, resource: str, plugin: Plugin) -> None:
    """Serve one kubelet after the other."""
    while True:
        try:
            await serve(directory, resource, plugin)
        except grpc.aio.AioRpcError as error:
            print(f"the kubelet does not answer: {error.code().name}", flush=True)
        await asyncio.sleep(LOOK_EVERY_S)


async def _until_told() -> None:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("directory", type=Path)
    words.add_argument("--resource", default="nvidia.com/gpu")
    words.add_argument("--count", type=int, required=True)
    words.add_argument("--sick", type=Path, required=True)
    given = words.parse_args()
    serving = asyncio.create_task(main(given.directory, given.resource, Plugin(given.count, given.sick)))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, serving.cancel)
    await asyncio.wait([serving])
    if not serving.cancelled():
        serving.result()


if __name__ == "__main__":
    asyncio.run(_until_told())
