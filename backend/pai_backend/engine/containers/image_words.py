"""What Podman prints of images, as values. Pure.

Source: podman-images(1), podman-image-inspect(1), podman-history(1) of 4.3.1 and 5.4.2.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from pai_backend.engine.images import Layer

LIST: Final = ("images", "--no-trunc", "--format=json")


@dataclass(frozen=True)
class ListedImage:
    """An image as ``podman images`` lists it."""

    identity: str
    names: tuple[str, ...]
    digests: tuple[str, ...]
    size_bytes: int
    made_at: datetime
    containers: int


def listed_images(text: str) -> list[ListedImage]:
    """Each image once: Podman repeats one for each of its names. Raises ValueError, KeyError, TypeError."""
    found = {str(each["Id"]): each for each in json.loads(text)}
    return [
        ListedImage(
            identity,
            tuple(sorted(each.get("Names") or ())),
            tuple(sorted(each.get("RepoDigests") or ())),
            int(each["Size"]),
            datetime.fromtimestamp(int(each["Created"]), UTC),
            int(each.get("Containers") or 0),
        )
        for identity, each in found.items()
    ]


def layers_of(inspected: Mapping[str, Any], history: Sequence[Mapping[str, Any]], size_bytes: int) -> tuple[Layer, ...]:
    """The layers of an image with their sizes.

    ``podman history`` has sizes and no layers, the newest first; ``inspect`` has layers, and which steps of the history
    made none. Where the two do not match, the image counts as one layer that no other image has.
    """
    chain = [str(each) for each in (inspected.get("RootFS") or {}).get("Layers") or ()]
    steps = inspected.get("History") or ()
    sizes = [int(each.get("size") or 0) for each in reversed(history)]
    if len(steps) == len(sizes):
        sizes = [size for size, step in zip(sizes, steps, strict=True) if not step.get("empty_layer")]
    if len(chain) == 1:
        sizes = [size_bytes]
    if not chain or len(sizes) != len(chain):
        return (Layer(str(inspected["Id"]), size_bytes),)
    layers, below = [], ""
    for difference, size in zip(chain, sizes, strict=True):
        below = hashlib.sha256(f"{below} {difference}".encode()).hexdigest()
        layers.append(Layer(below, size))
    return tuple(layers)
