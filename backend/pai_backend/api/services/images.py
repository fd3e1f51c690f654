"""Images of the machine: seen by those who ran them, removed by administrators.

A document can carry credentials of a registry, so the name of an image may be private. A user sees the names that they
ran a task with, and those that the site offers to all; administrators see everything.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from pai_backend.api.context import ApiContext
from pai_backend.api.image_wire import ImageList, ImageShown
from pai_backend.api.services.templates import offered_documents
from pai_backend.auth.users import User
from pai_backend.engine.images import (
    Image,
    ImageBusy,
    ImageStore,
    KeepsImages,
    KeptBecause,
    Wanted,
    exact_reference,
    images_of_jobs,
    kept_because,
    total_bytes,
)
from pai_backend.model.errors import DocumentError, Forbidden, ImageInUse, NoSuchImage, NotSupported
from pai_backend.model.text import Text
from pai_backend.protocol import read_document

SHORT_ID: Final = 12
"""Digits of an identity that name an image, at least."""
_NEVER = {
    KeptBecause.IN_USE: Text("The image cannot be removed: a task or a container uses it."),
    KeptBecause.WAITING: Text("The image cannot be removed: a job that has not ended names it."),
    KeptBecause.RUNTIME: Text("The image cannot be removed: it is containers.runtime_image, which every task needs."),
}


def offered_images(named: Iterable[str], templates: Path | None) -> frozenset[str]:
    """Exact names of the images that the site offers: these, and those of its templates and the shipped ones. Blocks.

    A template that is not a valid document names none.
    """
    found = set(named)
    for text in offered_documents(templates):
        try:
            spec = read_document(text).spec
        except DocumentError:
            continue
        found.update(spec.image_of(role) for role in spec.task_roles)
    return frozenset(map(exact_reference, found))


class ImageService:
    """Images as one user sees them."""

    def __init__(self, ctx: ApiContext, user: User) -> None:
        self._ctx, self._user = ctx, user

    def _store(self) -> ImageStore:
        """Raises NotSupported."""
        images = self._ctx.engine.images if isinstance(self._ctx.engine, KeepsImages) else None
        if images is None:
            raise NotSupported(
                Text("This engine keeps no images of its own."),
                hint=Text("Images are on the nodes of the cluster, or tasks are processes without one."),
            )
        return images

    async def seen(self) -> ImageList:
        """What the user may see. Raises NotSupported, EngineError."""
        images = await self._store().list()
        site = self._ctx.site
        offered = await asyncio.to_thread(offered_images, site.images, site.templates)
        wanted = await self._wanted(offered)
        shown: list[ImageShown] = []
        for image in sorted(images, key=_age, reverse=True):
            names = self._names(image, offered)
            if names is None:
                continue
            shown.append(
                ImageShown(
                    id=image.identity,
                    names=names,
                    size_bytes=image.size_bytes,
                    created_at=image.made_at,
                    used_at=image.used_at,
                    tasks=image.tasks,
                    kept=kept_because(image, wanted, others=self._ctx.image_rule.others),
                )
            )
        total = total_bytes(images) if self._user.admin else None
        return ImageList(data=shown, total_bytes=total, most_bytes=self._ctx.image_rule.most_bytes)

    def _names(self, image: Image, offered: frozenset[str]) -> list[str] | None:
        """The names of an image that the user may know; None when it is not shown to them."""
        if self._user.admin:
            return list(image.names or image.digests)
        ran = {name for name, users in image.users.items() if self._user.name in users}
        return sorted(image.every_name & (ran | offered)) or None

    async def _wanted(self, offered: frozenset[str]) -> Wanted:
        kept = frozenset(map(exact_reference, self._ctx.kept_images))
        return Wanted(images_of_jobs(await self._ctx.store.jobs.unfinished()), offered | kept)

    async def remove(self, name: str) -> str:
        """Remove an image by a name of its own or its identity; the identity.

        Raises Forbidden, NotSupported, NoSuchImage, ImageInUse, EngineError.
        """
        if not self._user.admin:
            raise Forbidden(Text("Only administrators remove images."), hint=Text("Ask an administrator."))
        store = self._store()
        image = _named(await store.list(), name)
        wanted = await self._wanted(frozenset())
        for reason, words in _NEVER.items():
            if reason in kept_because(image, wanted):
                raise ImageInUse(words, hint=Text("`pai images` says what uses it."))
        try:
            await store.remove(image)
        except ImageBusy as busy:
            words = Text("The image cannot be removed: {why}.", why=str(busy))
            raise ImageInUse(words, hint=Text("`pai images` says what uses it.")) from None
        return image.identity


def _age(image: Image) -> tuple[datetime, str]:
    return image.used_at or datetime.fromtimestamp(0, UTC), image.identity


def _named(images: Iterable[Image], name: str) -> Image:
    """Raises NoSuchImage."""
    short = name.removeprefix("sha256:")
    by_id = len(short) >= SHORT_ID and set(short) <= set("0123456789abcdef")
    for image in images:
        if exact_reference(name) in image.every_name or (by_id and image.identity.startswith(short)):
            return image
    raise NoSuchImage(
        Text("There is no image {name} here.", name=repr(name[:200])), hint=Text("`pai images` lists them.")
    )
