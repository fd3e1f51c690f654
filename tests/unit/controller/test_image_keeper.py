"""What the controller removes of images, whom it tells, and what it does when it cannot."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pai_backend.controller.image_keeper import ImageKeeper
from pai_backend.engine.base import EngineError
from pai_backend.engine.images import Image, ImageRule, ImageStore, exact_reference
from pai_backend.store.auditing import AuditFilter
from pai_backend.store.sql import Store
from tests.support.played_images import PlayedImages, played_image
from tests.support.scripted_cluster import Cluster, on_gpu, opened
from tests.support.scripted_engine import ScriptedEngine

pytestmark = pytest.mark.asyncio
OLD = ImageRule(keep=timedelta(days=1))


def keeper(store: Store, images: ImageStore, rule: ImageRule = OLD, *offered: str) -> ImageKeeper:
    return ImageKeeper(store, images, rule, lambda: frozenset(offered), lambda: datetime.now(UTC), look_s=0.01)


async def test_what_is_removed_is_in_the_log_and_in_the_audit(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    images = PlayedImages([played_image(1, "docker.io/lab/old:1"), played_image(2, "docker.io/lab/offered:1")])
    caplog.set_level(logging.INFO)
    async with opened(tmp_path) as store:
        gone = await keeper(store, images, OLD, "docker.io/lab/offered:1").sweep()
        (event,) = await store.audit.page(AuditFilter(types=("image.removed",)))
    assert [each.names for each in gone] == [("docker.io/lab/old:1",)]
    assert [each.names for each in images.images] == [("docker.io/lab/offered:1",)]
    assert (event.by, event.user, event.subject) == ("jupyter-pai", "", "docker.io/lab/old:1")
    assert event.detail == "10000000 bytes, by containers.images"
    assert "the image docker.io/lab/old:1 was removed: 10000000 bytes" in caplog.text


async def test_the_image_of_a_job_that_waits_stays_until_it_has_ended(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        lab = Cluster(store, ScriptedEngine())
        job = await lab.submit(on_gpu())
        images = PlayedImages([played_image(1, "docker.io/library/other:1")])
        wanted = job.spec.image_of(job.spec.task_roles[0])
        images.images.append(played_image(2, exact_reference(wanted)))
        await keeper(store, images).sweep()
    assert [each.names for each in images.images] == [(exact_reference(wanted),)]


async def test_an_image_that_a_task_took_meanwhile_stays_and_others_go(tmp_path: Path) -> None:
    images = PlayedImages([played_image(1, "docker.io/lab/a:1"), played_image(2, "docker.io/lab/b:1")])
    images.busy.add(images.images[0].identity)
    async with opened(tmp_path) as store:
        gone = await keeper(store, images).sweep()
        assert len(await store.audit.page(AuditFilter(types=("image.removed",)))) == 1
    assert [each.names for each in gone] == [("docker.io/lab/b:1",)]
    assert len(images.images) == 1


class Away(PlayedImages):
    """Podman fails twice before it answers."""

    looks = 0

    async def list(self) -> Sequence[Image]:
        """Raises EngineError."""
        self.looks += 1
        if self.looks < 3:
            raise EngineError("podman images failed: it said nothing")
        return await super().list()


async def test_trouble_is_said_once_and_tried_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    images = Away([replace(played_image(1, "docker.io/lab/old:1"))])
    async with opened(tmp_path) as store:
        running = asyncio.create_task(keeper(store, images).run())
        async with asyncio.timeout(30):
            while images.images:  # noqa: ASYNC110 - a list sends no event
                await asyncio.sleep(0.01)
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
    assert caplog.text.count("images that are not to be kept stay: podman images failed") == 1


async def test_without_a_limit_it_does_nothing(tmp_path: Path) -> None:
    images = Away([played_image(1, "docker.io/lab/old:1")])
    async with opened(tmp_path) as store:
        await keeper(store, images, ImageRule()).run()
    assert images.looks == 0
