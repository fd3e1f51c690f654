"""The processes that a supervisor keeps: which there are, and what is known of each. Standard library only."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pai_backend.processes.generations import ChildProcess


@dataclass
class Child:
    """One process of the backend: what it runs, and its present life."""

    name: str
    roles: Sequence[str]
    copy: int = 1
    drain_s: float = 0.0
    listener: socket.socket | None = None
    left: bool = False
    """Whether its process, which may live, has released all that another needs."""
    process: ChildProcess | None = None
    ready_fd: int | None = None
    ready: dict[str, object] | None = None
    born: float = 0.0
    short_lives: int = 0
    restart_at: float | None = None
    heard: bytearray = field(default_factory=bytearray)

    @property
    def is_ready(self) -> bool:
        """Whether it has said that all its roles answer; the reason why they never will is said the same way."""
        return self.ready is not None and "error" not in self.ready


def process_name(roles: Sequence[str], copy: int = 1) -> str:
    """Name of a process in logs: ``core`` is the one with the API or the controller. A second copy has its number."""
    name = "core" if {"api", "controller"} & set(roles) else "-".join(roles)
    return name if copy == 1 else f"{name}-{copy}"


def modules_of(settings: dict[str, Any]) -> list[str]:
    """What the processes of these settings import; of an engine that a package brings, nothing is known here."""
    roles = sorted({role for roles in settings["processes"] for role in roles})
    kind = settings.get("engine", {}).get("kind", "local")
    modules = ["processes.app", *(f"processes.roles.{role}" for role in roles)]
    modules += ["processes.node_cache", f"engine.{kind}.provider", f"engine.{kind}.engine"]
    modules += ["access.gateway.joined.front"] if "gateway" in roles else []
    return [f"pai_backend.{module}" for module in modules]


def children_of(settings: dict[str, Any]) -> list[Child]:
    """The processes of these settings: one a group of roles, and as many of the gateway as it is to have."""
    gateway = settings.get("gateway", {})
    copies, drain_s = gateway.get("processes", 1), gateway.get("drain_s", 0.0)
    return [
        Child(process_name(roles, copy), roles, copy, drain_s if {"gateway", "agent"} & set(roles) else 0.0)
        for roles in settings["processes"]
        for copy in range(1, (copies if "gateway" in roles else 1) + 1)
    ]
