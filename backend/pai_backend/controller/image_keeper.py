"""Removes images that are not to be kept, see ``engine.images.expired_images``; the log and the audit tell of each."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from pai_backend.controller.audit_keeper import WHO
from pai_backend.engine.base import EngineError
from pai_backend.engine.images import (
    Image,
    ImageBusy,
    ImageRule,
    ImageStore,
    Wanted,
    expired_images,
    images_of_jobs,
)
from pai_backend.model.audit import AuditEvent
from pai_backend.model.errors import Unavailable

if TYPE_CHECKING:
    from pai_backend.store.sql import Store

log = logging.getLogger(__name__)

LOOK_S = 60.0
"""Between two looks at the images."""


class ImageKeeper:
    """That of one engine. Several may run: a removal that came first leaves nothing to do."""

    def __init__(
        self,
        store: Store,
        images: ImageStore,
        rule: ImageRule,
        offered: Callable[[], frozenset[str]],
        clock: Callable[[], datetime],
        *,
        look_s: float = LOOK_S,
    ) -> None:
        """``offered`` are exact names of images that always stay, read at each look; it may block."""
        self._store, self._images, self._rule, self._offered, self._clock = store, images, rule, offered, clock
        self._look_s = look_s
        self._trouble = ""

    async def run(self) -> None:
        """Until it is cancelled; nothing where the rule removes nothing."""
        while self._rule.is_set:
            try:
                await self.sweep()
                self._trouble = ""
            except (EngineError, Unavailable) as error:
                if str(error) != self._trouble:
                    log.warning("images that are not to be kept stay: %s", error)
                self._trouble = str(error)
            await asyncio.sleep(self._look_s)

    async def sweep(self) -> list[Image]:
        """Remove what is to go now. Raises EngineError, Unavailable."""
        images = await self._images.list()
        # After the list: a job that was submitted since then is among those that want an image.
        waiting = images_of_jobs(await self._store.jobs.unfinished())
        wanted = Wanted(waiting, await asyncio.to_thread(self._offered))
        gone = []
        for image in expired_images(images, wanted, self._rule, self._clock()):
            try:
                await self._images.remove(image)
            except ImageBusy as busy:
                log.info("the image %s stays: %s", title(image), busy)
                continue
            except EngineError as error:  # others may go all the same
                log.warning("the image %s could not be removed: %s", title(image), error)
                continue
            gone.append(image)
            log.info("the image %s was removed: %d bytes", title(image), image.size_bytes)
            detail = f"{image.size_bytes} bytes, by containers.images"
            event = AuditEvent("image.removed", self._clock(), "", WHO, subject=title(image), detail=detail)
            await self._store.audit.add(event)
        return gone


def title(image: Image) -> str:
    """What the log calls it."""
    return ", ".join(image.names or image.digests) or image.identity[:12]
