"""A network for each attempt of a job: its tasks reach each other by name, and those of other jobs not at all.

The address of a task is decided before it starts and is the same for every run of its slot. What was given is in
``<root>/networks/``. All methods block: call them in a thread.
"""

from __future__ import annotations

import ipaddress
import json
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pai_backend.engine.base import EngineError
from pai_backend.engine.bundle.host_names import host_name
from pai_backend.engine.containers.podman import TaskAddress, network_name, network_words
from pai_backend.engine.containers.programs import Podman
from pai_backend.engine.local.builder import replace_file
from pai_backend.model.ids import JobUid, TaskUid, job_of
from pai_backend.model.plan import TaskPlan

FOLDER: Final = "networks"
_FIRST: Final = 2  # of a network's addresses: before it come that of the network and that of the machine in it


@dataclass(frozen=True)
class JobNetwork:
    """A network, and the addresses in it by the names of tasks."""

    name: str
    subnet: str
    hosts: dict[str, str]


class JobNetworks:
    """Those of one engine's root."""

    def __init__(self, root: Path, podman: Podman) -> None:
        self._folder = root / FOLDER
        self._root = str(root)
        self._podman = podman
        self._lock = threading.Lock()
        self._placing: list[JobUid] = []
        """Jobs of tasks that are being started, which may not be among the live ones yet."""

    @contextmanager
    def placing(self, plan: TaskPlan) -> Iterator[tuple[TaskAddress, JobNetwork]]:
        """The address of a task, in a network that stays until the block has made the task a live one.

        Raises EngineError.
        """
        job, attempt = job_of(plan.uid), plan.job_attempt
        with self._lock:
            self._placing.append(job)
        try:
            with self._lock:
                network = self._network(job, attempt)
                name = host_name(plan.role, plan.index)
                if name not in network.hosts:
                    network.hosts[name] = _free(network)
                    self._write(network)
            yield TaskAddress(network.name, network.hosts[name]), network
        finally:
            with self._lock:
                self._placing.remove(job)

    def _network(self, job: JobUid, attempt: int) -> JobNetwork:
        name = network_name(self._root, job, attempt)
        there = self._podman.ask(["network", "inspect", name])
        if there is None:
            self._podman.do(network_words(self._root, job, attempt))
            there = self._podman.ask(["network", "inspect", name])
        try:
            subnet = str(json.loads(there or "")[0]["subnets"][0]["subnet"])
        except (ValueError, LookupError, TypeError) as error:
            raise EngineError(f"podman tells no subnet of the network {name}: {error!r}") from None
        known = self._read(name)
        return known if known is not None and known.subnet == subnet else JobNetwork(name, subnet, {})

    def _read(self, name: str) -> JobNetwork | None:
        try:
            return JobNetwork(**json.loads((self._folder / name).read_text("ascii")))
        except (FileNotFoundError, ValueError, TypeError):
            return None

    def _write(self, network: JobNetwork) -> None:
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(self._folder / network.name, json.dumps(vars(network)).encode())
        except OSError as error:
            raise EngineError(f"the address of a task could not be written down: {error}") from error

    def hosts(self, job: JobUid, attempt: int) -> dict[str, str]:
        """The addresses that tasks of an attempt were given, by their names."""
        known = self._read(network_name(self._root, job, attempt))
        return known.hosts if known is not None else {}

    def clear(self, live: Callable[[], Iterable[TaskUid]]) -> None:
        """Remove the networks of jobs without a live task. What Podman refuses is tried again the next time."""
        with self._lock:
            jobs = {*map(job_of, live()), *self._placing}
            for file in self._folder.glob("*"):
                used = any(file.name.startswith(network_name(self._root, job, "")) for job in jobs)
                if not used and self._podman.ask(["network", "rm", file.name]) is not None:
                    file.unlink(missing_ok=True)


def _free(network: JobNetwork) -> str:
    """The first address that no task has. Raises EngineError when there is none."""
    subnet = ipaddress.ip_network(network.subnet)
    taken = set(network.hosts.values())
    for number in range(_FIRST, subnet.num_addresses - 1):
        if (address := str(subnet[number])) not in taken:
            return address
    raise EngineError(f"the network {network.name} has no address left: {subnet} is full")
