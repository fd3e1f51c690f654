"""The bridge between the nodes and this machine. Everything that is set, is set for this bridge alone."""

from __future__ import annotations

import ipaddress
import json
from pathlib import Path

from tests.kubernetes.cluster.addresses import Addresses
from tests.kubernetes.cluster.commands import attempt, run

_FORWARD = "FORWARD"


async def taken(addresses: Addresses) -> bool:
    """Whether this machine already routes some of these addresses elsewhere."""
    for route in json.loads(await run("ip", "-4", "-json", "route", "show")):
        if route["dst"] == "default" or route.get("dev") == addresses.bridge:
            continue
        if ipaddress.ip_network(route["dst"], strict=False).overlaps(addresses.network):
            return True
    return False


async def create(addresses: Addresses) -> None:
    """Make the bridge. Pods of different nodes reach each other through this machine, which forwards for it only."""
    bridge = addresses.bridge
    await run("ip", "link", "add", bridge, "type", "bridge")
    await run("ip", "address", "add", f"{addresses.host}/24", "dev", bridge)
    await run("ip", "link", "set", bridge, "up")
    settings = Path("/proc/sys/net/ipv4/conf") / bridge
    (settings / "forwarding").write_text("1")
    (settings / "send_redirects").write_text("0")
    # Where Docker runs, the policy of the chain is to drop what nobody accepts.
    await run("iptables", "--wait", "-I", _FORWARD, *_rule(bridge))


async def remove(addresses: Addresses) -> None:
    """Remove what of it is there."""
    bridge = addresses.bridge
    while (await attempt("iptables", "--wait", "-D", _FORWARD, *_rule(bridge))).code == 0:
        pass
    for link in json.loads(await run("ip", "-json", "link", "show") or "[]"):
        if link["ifname"] == bridge or link.get("master") == bridge:
            await attempt("ip", "link", "delete", link["ifname"])


def _rule(bridge: str) -> list[str]:
    return ["-i", bridge, "-o", bridge, "-j", "ACCEPT"]


async def plug(addresses: Addresses, number: int, pid: int) -> None:
    """Lay the cable from the bridge into the network namespace of a process, and route the node's pods through it."""
    link = addresses.link(number)
    await run("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", str(pid))
    await run("ip", "link", "set", link, "master", addresses.bridge, "up")
    via = addresses.node(number)
    await run("ip", "route", "replace", str(addresses.pods_of(number)), "via", via, "dev", addresses.bridge)


async def unplug(addresses: Addresses, number: int) -> None:
    """Take the cable away, where it is there."""
    await attempt("ip", "link", "delete", addresses.link(number))
    await attempt("ip", "route", "delete", str(addresses.pods_of(number)), "dev", addresses.bridge)
