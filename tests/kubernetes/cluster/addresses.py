"""Names and addresses of one cluster on this machine, all from its slot's number: two slots share none."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network

SLOTS = 16
MOST_NODES = 100


@dataclass(frozen=True)
class Addresses:
    """A network 10.B.0.0/16 and a loopback address of the cluster's own."""

    slot: int

    @property
    def network(self) -> IPv4Network:
        """Everything of this cluster."""
        return IPv4Network(f"10.{180 + self.slot}.0.0/16")

    @property
    def bridge(self) -> str:
        """The interface of this machine that joins the nodes; at most 15 characters."""
        return f"pai-k{self.slot}"

    @property
    def host(self) -> str:
        """This machine, as the nodes see it; the API server listens here."""
        return str(self.network[1])

    @property
    def loopback(self) -> str:
        """Where what only this machine may reach listens, on its usual ports."""
        return f"127.180.{self.slot}.1"

    @property
    def services(self) -> IPv4Network:
        """Addresses of services; the first is the API server's."""
        return IPv4Network(f"10.{180 + self.slot}.240.0/20")

    @property
    def pods(self) -> IPv4Network:
        """Addresses of the pods of all nodes."""
        return IPv4Network(f"10.{180 + self.slot}.0.0/17")

    def node(self, number: int) -> str:
        """A node's address. Numbers begin at 1."""
        return str(self.network[10 + number])

    def pods_of(self, number: int) -> IPv4Network:
        """Addresses of the pods of one node."""
        return IPv4Network(f"10.{180 + self.slot}.{number}.0/24")

    def link(self, number: int) -> str:
        """This machine's end of the cable to a node."""
        return f"{self.bridge}-{number}"

    def cgroup(self, node: str) -> str:
        """The control group of a node."""
        return f"{self.bridge}-{node}"
