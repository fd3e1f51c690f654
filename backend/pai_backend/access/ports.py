"""Which port numbers a task gets: pure choice; the lease in the store and the engine's probe make it sure.

Source: OpenPAI's port range 15000-39999 (host daemons use 40000 and up) and the seeds' ``beginAt``:
0 means chosen at random, else a fixed range. Ports are kept over a retry on the same machine.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from pai_backend.model.spec import PortSpec
from pai_backend.model.text import Text


class NoPort(Exception):
    """These ports are not available now; the message is a sentence for the user."""


@dataclass(frozen=True)
class PortRange:
    """The ports that may be leased, both ends included."""

    first: int = 15000
    last: int = 39999

    @property
    def size(self) -> int:
        """How many ports the range has."""
        return self.last - self.first + 1


def choose(
    wanted: Sequence[PortSpec],
    *,
    within: PortRange,
    taken: Collection[int],
    machine: str,
    rng: random.Random,
) -> dict[str, tuple[int, ...]]:
    """Numbers for every label: fixed ones as written, random ones free of ``taken`` and of each other.

    Raises NoPort when a fixed port is taken or the range is full.
    """
    used = set(taken)
    chosen: dict[str, tuple[int, ...]] = {}
    for spec in (spec for spec in wanted if spec.begin_at):
        fixed = range(spec.begin_at, spec.begin_at + spec.count)
        clash = next((port for port in fixed if port in used), None)
        if clash is not None:
            raise NoPort(
                Text("port {port} ({label}) of {machine} is in use", port=clash, label=spec.label, machine=machine)
            )
        used.update(fixed)
        chosen[spec.label] = tuple(fixed)
    for spec in (spec for spec in wanted if not spec.begin_at):
        chosen[spec.label] = _random(spec, within, used, machine, rng)
        used.update(chosen[spec.label])
    return {spec.label: chosen[spec.label] for spec in wanted}


def _random(spec: PortSpec, within: PortRange, used: set[int], machine: str, rng: random.Random) -> tuple[int, ...]:
    found: list[int] = []
    start = rng.randrange(within.size)
    for step in range(within.size):
        port = within.first + (start + step) % within.size
        if port not in used:
            found.append(port)
            if len(found) == spec.count:
                return tuple(found)
    raise NoPort(
        Text(
            "the ports {first}-{last} of {machine} are used up: {wanted} for {label} wanted, {free} free",
            first=within.first,
            last=within.last,
            machine=machine,
            wanted=spec.count,
            label=spec.label,
            free=len(found),
        )
    )


def fits(kept: Mapping[str, Sequence[int]], wanted: Sequence[PortSpec]) -> bool:
    """Whether ports leased before still serve what is wanted."""
    return {label: len(ports) for label, ports in kept.items()} == {spec.label: spec.count for spec in wanted}
