"""A network for each attempt of a job: its tasks reach each other by name, and those of other jobs not at all.

The address of a task is decided before it starts and is the same for every run of its slot. Making a network takes as
long as starting a container, so that those of jobs that are over are kept for later ones. ``<root>/networks/`` says
whose each is. All methods block: call them in a thread.
"""

from __future__ import annotations

import ipaddress
import json
import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pai_backend.engine.base import EngineError
from pai_backend.engine.bundle.host_names import host_name
from pai_backend.engine.containers.podman import LABEL, TaskAddress, network_name, network_words
from pai_backend.engine.containers.programs import Podman
from pai_backend.engine.local.builder import replace_file
from pai_backend.model.ids import JobUid, TaskUid, job_of
from pai_backend.model.plan import TaskPlan

log = logging.getLogger(__name__)

FOLDER: Final = "networks"
LEAST_BITS: Final = 4  # of a network's addresses: 13 tasks, which most jobs have fewer of
RESERVED: Final = 3  # addresses of a network that no task has: its own, the machine's in it, that of all
TRIES: Final = 64
SPARE: Final = 24  # networks without a job that are kept

Network = ipaddress.IPv4Network


@dataclass
class JobNetwork:
    """A network, the job that has it (none: it is spare), and the addresses in it by the names of tasks."""

    number: int
    subnet: str
    job: str = ""
    attempt: int = 0
    hosts: dict[str, str] = field(default_factory=dict)

    @property
    def room(self) -> int:
        """How many tasks it has addresses for."""
        return Network(self.subnet).num_addresses - RESERVED


def free_subnet(pool: Network, taken: Iterable[str], tasks: int) -> str:
    """The first part of the pool with room for so many tasks that nothing has. Raises EngineError."""
    bits = max(LEAST_BITS, (tasks + RESERVED - 1).bit_length())
    used = [Network(each) for each in taken]
    if bits <= 32 - pool.prefixlen:
        for subnet in pool.subnets(new_prefix=32 - bits):
            if not any(subnet.overlaps(each) for each in used):
                return str(subnet)
    raise EngineError(f"{pool} has no room for a network of {tasks} tasks; see containers.addresses")


def free_address(network: JobNetwork) -> str:
    """The first address that no task has. Raises EngineError when there is none."""
    subnet, taken = Network(network.subnet), set(network.hosts.values())
    for number in range(RESERVED - 1, subnet.num_addresses - 1):
        if (address := str(subnet[number])) not in taken:
            return address
    raise EngineError(f"the network of job {network.job} has no address left: {network.subnet} is full")


class JobNetworks:
    """Those of one engine's root."""

    def __init__(self, root: Path, podman: Podman, addresses: str) -> None:
        """``addresses`` is what their own are part of, as ``10.201.0.0/16``."""
        self._folder = root / FOLDER
        self._root = str(root)
        self._podman = podman
        self._pool = Network(addresses)
        self._lock = threading.Lock()
        self._networks: dict[int, JobNetwork] | None = None
        self._others: list[str] = []
        """Subnets that others of the machine have."""
        self._placing: list[JobUid] = []
        """Jobs of tasks that are being started, which may not be among the live ones yet."""

    @contextmanager
    def placing(self, plan: TaskPlan) -> Iterator[tuple[TaskAddress, dict[str, str]]]:
        """The address of a task in a network, and those of its job's tasks; the block makes the task a live one.

        Raises EngineError.
        """
        job = job_of(plan.uid)
        with self._lock:
            self._placing.append(job)
        try:
            network, hosts = self._of(plan, job)
            yield TaskAddress(network, hosts[host_name(plan.role, plan.index)]), hosts
        finally:
            with self._lock:
                self._placing.remove(job)

    def _of(self, plan: TaskPlan, job: JobUid) -> tuple[str, dict[str, str]]:
        """The network of a task's job by its name, and the addresses in it, the task's among them."""
        attempt, name = plan.job_attempt, host_name(plan.role, plan.index)
        with self._lock:
            every = self._known()
            network = next((each for each in every.values() if (each.job, each.attempt) == (job, attempt)), None)
            if network is None:
                free = [each for each in every.values() if not each.job and each.room >= plan.job_tasks]
                network = min(free, key=lambda each: each.room, default=None)
            if network is None:
                network = self._made(every, plan.job_tasks)
            network.job, network.attempt = job, attempt
            if name not in network.hosts:
                network.hosts[name] = free_address(network)
                self._write(network)
            return self._name(network), dict(network.hosts)  # a copy: others are being started, too

    def _made(self, every: dict[int, JobNetwork], tasks: int) -> JobNetwork:
        """A new one. What others of the machine have, which only Podman sees, is passed over."""
        number = next(number for number in range(len(every) + 1) if number not in every)
        for _ in range(TRIES):
            taken = [*self._others, *(each.subnet for each in every.values())]
            subnet = free_subnet(self._pool, taken, tasks)
            try:
                self._podman.do(network_words(self._root, number, subnet))
            except EngineError as error:
                if "already used" not in str(error):
                    raise
                self._others.append(subnet)
            else:
                every[number] = JobNetwork(number, subnet)
                return every[number]
        raise EngineError(f"the addresses {self._pool} are used by others on this machine; see containers.addresses")

    def hosts(self, job: JobUid, attempt: int) -> dict[str, str]:
        """The addresses that tasks of an attempt were given, by their names."""
        with self._lock:
            found = (each.hosts for each in self._known().values() if (each.job, each.attempt) == (job, attempt))
            return dict(next(found, {}))

    def clear(self, live: Callable[[], Iterable[TaskUid]]) -> None:
        """Take their networks from jobs without a live task. What Podman refuses to remove is tried again."""
        with self._lock:
            every = self._known()
            jobs = {*map(job_of, live()), *self._placing}
            for network in every.values():
                if network.job and network.job not in jobs:
                    network.job, network.attempt, network.hosts = "", 0, {}
                    self._write(network)
            free = [each for each in every.values() if not each.job]
            for network in free[SPARE:]:
                if self._podman.ask(["network", "rm", self._name(network)]) is not None:
                    (self._folder / str(network.number)).unlink(missing_ok=True)
                    del every[network.number]

    def _name(self, network: JobNetwork) -> str:
        return network_name(self._root, network.number)

    def _known(self) -> dict[int, JobNetwork]:
        """What was written down and what Podman still has, by number; what only one of the two has is forgotten."""
        if self._networks is None:
            listed = json.loads(self._podman.do(["network", "ls", "--format=json"]))
            own = {each["name"] for each in listed if each.get("labels", {}).get(LABEL) == self._root}
            others = (part["subnet"] for each in listed if each["name"] not in own for part in each.get("subnets", ()))
            self._others = [each for each in others if ":" not in each]
            written = {network.number: network for network in map(_read, self._folder.glob("[0-9]*")) if network}
            self._networks = {
                number: each for number, each in written.items() if network_name(self._root, number) in own
            }
            for name in own - {self._name(each) for each in self._networks.values()}:
                self._podman.ask(["network", "rm", name])
        return self._networks

    def _write(self, network: JobNetwork) -> None:
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(self._folder / str(network.number), json.dumps(vars(network)).encode())
        except OSError as error:
            raise EngineError(f"the address of a task could not be written down: {error}") from error


def _read(path: Path) -> JobNetwork | None:
    try:
        return JobNetwork(**json.loads(path.read_text("ascii")))
    except (OSError, ValueError, TypeError) as error:
        log.warning("%s says nothing of a network and is left out: %s", path, error)
        return None
