"""The images of the machine, as Podman has them: listed with what the engine remembers of them, and removed.

A removal and a start of the same image meet in a lock of its name. A task that was made first is seen by the removal;
one that is made later finds that the image is gone, and fetches it again. All methods block.
"""

from __future__ import annotations

import json
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from pai_backend.engine.base import EngineError
from pai_backend.engine.containers.image_records import ImageRecord, ImageRecords
from pai_backend.engine.containers.image_words import LIST, ListedImage, layers_of, listed_images
from pai_backend.engine.containers.programs import Podman
from pai_backend.engine.images import Image, ImageBusy, Layer, exact_reference

log = logging.getLogger(__name__)

REMOVE_S: Final = 600.0
"""An image of many small files takes its time."""
USED_S: Final = 60.0
"""A use is written down when the last one is that old: to write costs a start some milliseconds."""
STALE_S: Final = 86_400.0
"""A record of a name that is not here is forgotten when it was not used for so long."""


class ContainerImages:
    """Those of the machine, for one engine's root."""

    def __init__(
        self, podman: Podman, records: ImageRecords, runtime_image: str, used_names: Callable[[], Sequence[str]]
    ) -> None:
        """``used_names`` tells the images of live tasks, one name for each task."""
        self._podman = podman
        self._records = records
        self._runtime = exact_reference(runtime_image) if runtime_image else ""
        self._used_names = used_names
        self._layers: dict[str, tuple[Layer, ...]] = {}
        """Of images by identity: they never change."""

    @contextmanager
    def starting(self, image: str) -> Iterator[None]:
        """No image of this name is removed within it: a task that uses it is made."""
        with self._records.held([exact_reference(image)]):
            yield

    def note_start(self, image: str, user: str, *, pulls: bool, is_here: bool) -> None:
        """Remember that a task of this user begins, and that its image is fetched. Raises OSError, EngineError.

        ``is_here``: whether there may be an image of that name before the fetch.
        """
        name = exact_reference(image)
        before = (self._identity(name) if is_here else "") if pulls else None

        def noted(record: ImageRecord) -> ImageRecord:
            recent = time.time() - record.used_at < USED_S
            if recent and user in record.users and not pulls:
                return record
            users = record.users if user in record.users else (*record.users, user)
            after = replace(record, users=users, used_at=time.time())
            # A fetch that is under way already decides: what it brings is the engine's.
            return replace(after, before=before) if pulls and record.before is None else after

        self._records.change(name, noted)

    def note_end(self, image: str) -> None:
        """Remember that a task has ended, and what a fetch for it brought. The task is no longer a live one."""
        name = exact_reference(image)
        try:
            record = self._records.get(name)
            fetching = record.before is not None
            identity = self._identity(name) if fetching else ""
            last = fetching and name not in map(exact_reference, self._used_names())

            def noted(record: ImageRecord) -> ImageRecord:
                after = record.fetched(identity)
                if last:  # it brought nothing: what has the name later was put there by others
                    after = replace(after, before=None)
                return after if time.time() - after.used_at < USED_S else replace(after, used_at=time.time())

            if record.users:
                self._records.change(name, noted)
        except (OSError, EngineError) as error:
            log.warning("the last use of %s could not be written down: %s", name, error)

    def _identity(self, name: str) -> str:
        """Of the image that has this name; empty where there is none."""
        if self._podman.ask(["image", "exists", "--", name]) is None:
            return ""
        return self._podman.do(["image", "inspect", "--format={{.Id}}", "--", name]).strip()

    def list(self) -> list[Image]:
        """All of them. Raises EngineError."""
        try:
            listed, records = listed_images(self._podman.do(LIST)), self._records.all()
            # After the list: a task that was made since then only adds to what is in use.
            tasks = Counter(map(exact_reference, self._used_names()))
            images = [self._image(each, records, tasks) for each in listed]
            self._forget_stale(images, records, tasks)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise EngineError(f"the images of this machine cannot be read: {error}") from error
        self._layers = {image.identity: image.layers for image in images}
        return images

    def _image(self, listed: ListedImage, records: dict[str, ImageRecord], tasks: Counter[str]) -> Image:
        every = (*listed.names, *listed.digests)
        known = {name: records[name] for name in every if name in records}
        for name, record in known.items():
            if (after := record.fetched(listed.identity)) is not record:
                self._records.change(name, lambda now: now.fetched(listed.identity))
                known[name] = after
        if listed.names:
            is_fetched = all(name in known and listed.identity in known[name].identities for name in listed.names)
        else:  # its name went to a newer one, or it was fetched by its digest
            is_fetched = any(listed.identity in record.identities for record in records.values())
        used = max((record.used_at for record in known.values()), default=0.0)
        in_use = sum(tasks[name] for name in every)
        if in_use:
            used = time.time()
        return Image(
            listed.identity,
            listed.names,
            listed.digests,
            self._layers_of(listed),
            listed.made_at,
            datetime.fromtimestamp(used, UTC) if used else None,
            is_fetched,
            self._runtime in every,
            in_use,
            listed.containers,
            {name: frozenset(record.users) for name, record in known.items()},
        )

    def _layers_of(self, listed: ListedImage) -> tuple[Layer, ...]:
        if listed.identity in self._layers:
            return self._layers[listed.identity]
        inspected = self._podman.ask(["image", "inspect", listed.identity])
        history = self._podman.ask(["history", "--no-trunc", "--format=json", listed.identity])
        if inspected is None or history is None:  # removed just now
            return (Layer(listed.identity, listed.size_bytes),)
        return layers_of(json.loads(inspected)[0], json.loads(history), listed.size_bytes)

    def _forget_stale(self, images: Sequence[Image], records: dict[str, ImageRecord], tasks: Counter[str]) -> None:
        here = {name for image in images for name in image.every_name}
        identities = {image.identity for image in images}
        for name, record in records.items():
            if name not in here and not tasks[name] and identities.isdisjoint(record.identities):
                self._records.change(name, lambda now: None if time.time() - now.used_at > STALE_S else now)

    def remove(self, image: Image) -> None:
        """Remove it with all its names; no-op when it is gone. Raises ImageBusy, EngineError."""
        names = image.every_name
        try:
            with self._records.held(names or {image.identity}, alone=True):
                found = next((each for each in self.list() if each.identity == image.identity), None)
                if found is None:
                    return
                if found.every_name != names:
                    raise ImageBusy("its names have just changed; try again")
                if found.is_runtime or found.tasks or found.containers:
                    raise ImageBusy("it is in use")
                self._records.note_removal()
                self._remove(found)
                for name, record in self._records.all().items():
                    if name in names or found.identity in record.identities:
                        self._records.change(name, lambda now: now.without(found.identity))
        except OSError as error:
            raise EngineError(f"an image could not be removed: {error}") from error

    def _remove(self, image: Image) -> None:
        """Its last name takes it along; one without names goes by its identity."""
        for name in image.names:
            self._podman.do(["rmi", "--", name], REMOVE_S)
        if not image.names:
            self._podman.do(["rmi", "--", image.identity], REMOVE_S)
