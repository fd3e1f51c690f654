"""The two ways in that docs/install-kubernetes.md shows, by the names of its fences."""

from __future__ import annotations

from dataclasses import dataclass

from tests.kubernetes.deploy import release
from tests.kubernetes.routes import traefik


@dataclass(frozen=True)
class Door:
    """What makes it."""

    values: str
    objects: tuple[str, ...]
    ssh: int
    """Port of the nodes at which SSH is answered."""


INGRESS = Door("ingress.yaml", (), release.SSH)
GATEWAY = Door("routes.yaml", ("gateway.yaml",), traefik.SSH)
