"""Images that an engine keeps, and the rule by which it removes some. Pure.

Rules of the file. An image is removed as a whole, with all its names, or not at all. The rule never selects an image
that a task uses or that has a name which is wanted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol, runtime_checkable

from pai_backend.engine.base import EngineError
from pai_backend.engine.bundle.registry_login import full_reference
from pai_backend.model.job import Job


class ImageBusy(EngineError):
    """The image is in use, or changed while it was to be removed."""


class KeptBecause(StrEnum):
    """Why an image is not removed by the rule."""

    IN_USE = "in-use"
    """A task uses it, or a container that is not of this engine."""
    RUNTIME = "runtime"
    """It holds what every container is started with."""
    WAITING = "waiting"
    """A job that has not ended names it."""
    OFFERED = "offered"
    """``jobs.images``, a template or ``containers.images.keep`` names it."""
    NOT_FETCHED = "not-fetched"
    """It has a name that a person gave it on the machine."""


@dataclass(frozen=True)
class Layer:
    """A layer by what is below it and in it: images that share it have the same."""

    identity: str
    size_bytes: int


@dataclass(frozen=True)
class Image:
    """An image of the machine.

    ``names`` are its tags, in full; ``digests`` are more names by which documents can name it. ``users`` ran tasks by a
    name, which others may not learn. ``used_at`` is None where no task of this engine ever used it.
    """

    identity: str
    names: tuple[str, ...]
    digests: tuple[str, ...]
    layers: tuple[Layer, ...]
    made_at: datetime
    used_at: datetime | None = None
    is_fetched: bool = False
    """Whether the engine fetched it, by each of its names."""
    is_runtime: bool = False
    tasks: int = 0
    containers: int = 0
    """Those on the machine, tasks' or others'."""
    users: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def every_name(self) -> frozenset[str]:
        """Tags and digests."""
        return frozenset((*self.names, *self.digests))

    @property
    def size_bytes(self) -> int:
        """With layers that other images have, too."""
        return sum(layer.size_bytes for layer in self.layers)


@dataclass(frozen=True)
class ImageRule:
    """Which images are removed. ``most_bytes`` of all together, ``keep`` since the last use; None: no limit.

    ``others``: whether also images that the engine did not fetch are removed, once they were used by its tasks.
    """

    most_bytes: int | None = None
    keep: timedelta | None = None
    others: bool = False

    @property
    def is_set(self) -> bool:
        """Whether it removes anything."""
        return self.most_bytes is not None or self.keep is not None


@dataclass(frozen=True)
class Wanted:
    """Exact names of images that stay: of jobs that have not ended, and of what the site offers."""

    waiting: frozenset[str] = frozenset()
    offered: frozenset[str] = frozenset()


class ImageStore(Protocol):
    """The images of an engine."""

    async def list(self) -> Sequence[Image]:
        """All images of the machine. Raises EngineError."""
        ...

    async def remove(self, image: Image) -> None:
        """Remove it with all its names; no-op when it is gone. Raises ImageBusy, EngineError.

        A task that starts meanwhile either has the image, so that it is not removed, or fetches it again.
        """
        ...


@runtime_checkable
class KeepsImages(Protocol):
    """What an engine is beside :class:`Engine` if it may keep images."""

    @property
    def images(self) -> ImageStore | None:
        """Its images; None where it keeps none."""
        ...


def exact_reference(image: str) -> str:
    """The name that Podman knows an image by: with registry and tag; with a digest, the tag is left out.

    Source: containers-image's docker/reference: ``TagNameOnly``, normalisation of ``docker.io``.
    """
    name = full_reference(image)
    for hub in ("index.docker.io/", "docker.io/"):
        if name.startswith(hub):
            rest = name.removeprefix(hub)
            name = f"docker.io/{rest}" if "/" in rest else f"docker.io/library/{rest}"
            break
    name, at, digest = name.partition("@")
    path, slash, last = name.rpartition("/")
    bare, colon, tag = last.partition(":")
    if at:
        return f"{path}{slash}{bare}@{digest}"
    return f"{path}{slash}{bare}:{tag if colon else 'latest'}"


def images_of_jobs(jobs: Iterable[Job]) -> frozenset[str]:
    """Exact names of the images that the tasks of these jobs have."""
    return frozenset(exact_reference(job.spec.image_of(role)) for job in jobs for role in job.spec.task_roles)


def kept_because(image: Image, wanted: Wanted, *, others: bool = False) -> list[KeptBecause]:
    """Why the rule keeps an image; empty when it may be removed."""
    found = {
        KeptBecause.IN_USE: bool(image.tasks or image.containers),
        KeptBecause.RUNTIME: image.is_runtime,
        KeptBecause.WAITING: bool(image.every_name & wanted.waiting),
        KeptBecause.OFFERED: bool(image.every_name & wanted.offered),
        KeptBecause.NOT_FETCHED: not image.is_fetched and not (others and image.used_at is not None),
    }
    return [reason for reason, holds in found.items() if holds]


def total_bytes(images: Iterable[Image]) -> int:
    """What images take together: a layer that several share counts once."""
    return sum({layer.identity: layer.size_bytes for image in images for layer in image.layers}.values())


def expired_images(images: Sequence[Image], wanted: Wanted, rule: ImageRule, now: datetime) -> list[Image]:
    """Those that go, the least recently used first: unused for too long, or more than fit."""
    shares = Counter(layer for image in images for layer in set(image.layers))
    total, gone = total_bytes(images), []
    free = [image for image in images if not kept_because(image, wanted, others=rule.others)]
    for image in sorted(free, key=lambda each: (each.used_at or each.made_at, each.identity)):
        too_old = rule.keep is not None and now - (image.used_at or image.made_at) > rule.keep
        too_many = rule.most_bytes is not None and total > rule.most_bytes
        if too_old or too_many:
            gone.append(image)
            shares.subtract(set(image.layers))
            total -= sum(layer.size_bytes for layer in set(image.layers) if not shares[layer])
    return gone
