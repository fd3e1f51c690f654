"""Images with a real Podman: whose they are, what removes them, and a start that meets a removal."""

from __future__ import annotations

import asyncio
import io
import tarfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic import SecretStr

from pai_backend.engine.base import TaskPlan, TaskState
from pai_backend.engine.containers.engine import ContainerEngine
from pai_backend.engine.images import Image, ImageBusy, ImageRule, Wanted, expired_images
from pai_backend.model.container_settings import ContainerSettings
from pai_backend.model.ids import JobUid, task_uid
from pai_backend.model.node import Placement
from pai_backend.model.plan import RegistryLogin
from pai_backend.testing.engine_contract.observing import Watching, watching
from tests.support.local_engine import NODE
from tests.support.played_registry import PASSWORD, USER, registry
from tests.support.podman_site import PodmanSite

PLACEMENT = Placement(node="carol", address="worker-0", machine=NODE.machine)
LARGEST = ImageRule(most_bytes=1)
pytestmark = pytest.mark.asyncio


@pytest.fixture
def address(site: PodmanSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A registry whose every image is one that is not on the machine."""
    for name, value in site.environment.items():
        monkeypatch.setenv(name, value)
    archive = tmp_path / "image.tar"
    with tarfile.open(archive, "w") as made:
        about = tarfile.TarInfo("only-file")
        about.size = len(str(tmp_path))
        made.addfile(about, io.BytesIO(str(tmp_path).encode()))
    site.podman("import", str(archive), "localhost/to-push:1")
    site.podman("push", "localhost/to-push:1", f"oci:{tmp_path / 'oci'}")
    site.podman("rmi", "localhost/to-push:1")
    with registry(tmp_path / "oci") as address:
        trusted = tmp_path / "registries.conf"
        trusted.write_text(f'[[registry]]\nlocation = "{address}"\ninsecure = true\n')
        monkeypatch.setenv("CONTAINERS_REGISTRIES_CONF", str(trusted))
        yield address
    for each in site.podman("images", "--format", "{{.Repository}}:{{.Tag}}").split():
        if each.startswith(("127.0.0.1", "localhost/by-hand")):
            site.podman("rmi", "--force", each)


class Machine:
    """An engine, and what a test asks of it."""

    def __init__(self, engine: ContainerEngine, watch: Watching, address: str) -> None:
        self.engine, self.watch, self.address = engine, watch, address

    def plan(self, command: str, job: str, name: str = "team/made:1", user: str = "alice") -> TaskPlan:
        """A task with an image of the registry."""
        login = RegistryLogin(username=USER, password=SecretStr(PASSWORD), registry_uri=self.address)
        given = {"job_name": "job", "user": user, "role": "worker", "env": {}, "image": f"{self.address}/{name}"}
        uid = task_uid(JobUid(job), 0, 0, 0)
        return TaskPlan.model_validate(
            {**given, "uid": uid, "index": 0, "command": command, "placement": PLACEMENT, "image_login": login}
        )

    async def ran(self, plan: TaskPlan) -> None:
        """Start a task, and see it end well."""
        await self.engine.start(plan)
        await self.ended(plan)

    async def ended(self, plan: TaskPlan) -> None:
        """See a task end well, and have it forgotten."""
        seen = await self.watch.state(plan.uid, TaskState.EXITED)
        assert seen.exit is not None
        assert seen.exit.code == 0, seen.exit.message
        await self.engine.forget(plan.uid)

    async def images(self) -> dict[str, Image]:
        """Those of the registry, by the end of their name."""
        found = await self.engine.images.list()
        prefix = f"{self.address}/"
        return {name.removeprefix(prefix): each for each in found for name in each.names if name.startswith(prefix)}

    async def removable(self) -> list[Image]:
        """What a bound of one byte removes."""
        images = await self.engine.images.list()
        return expired_images(images, Wanted(), LARGEST, datetime.now(UTC))


@pytest.fixture
def engine_of(site: PodmanSite, tmp_path: Path) -> Callable[..., ContainerEngine]:
    def made(**more: object) -> ContainerEngine:
        settings = ContainerSettings.model_validate({"runtime_image": site.runtime_image, **more})
        return ContainerEngine(tmp_path / "engine", [NODE], settings)

    return made


async def test_a_fetched_image_may_go_once_no_task_uses_it_and_only_that(
    engine_of: Callable[..., ContainerEngine], address: str, site: PodmanSite
) -> None:
    engine = engine_of()
    async with watching(engine) as watch:
        machine = Machine(engine, watch, address)
        await machine.ran(machine.plan("true", "j0", user="bob"))
        long = machine.plan("read _ </pai/work/end; true", "j1")
        long = long.model_copy(update={"command": "until [ -e /pai/work/end ]; do read -t 0.1 _ <> <(:) || :; done"})
        await engine.start(long)
        await watch.state(long.uid, TaskState.RUNNING)
        in_use = (await machine.images())["team/made:1"]
        assert (in_use.tasks, in_use.is_fetched) == (1, True)
        assert in_use.users[f"{address}/team/made:1"] == {"alice", "bob"}
        assert await machine.removable() == []
        with pytest.raises(ImageBusy):
            await engine.images.remove(in_use)
        await engine.stop(long.uid, 0.0)
        await watch.state(long.uid, TaskState.EXITED)
        await engine.forget(long.uid)
        (free,) = await machine.removable()  # and none of the site's own, which people loaded
        assert free.names == in_use.names
        assert free.used_at is not None
        await engine_of().images.remove(free)  # as another process does it
        assert await machine.images() == {}
        assert site.image in site.podman("images", "--format", "{{.Repository}}:{{.Tag}}").split()
        await engine.images.remove(free)  # gone already
        await machine.ran(machine.plan("true", "j2"))  # although it was seen here a moment ago
        assert (await machine.images())["team/made:1"].is_fetched


async def test_an_image_that_people_put_here_is_theirs(
    engine_of: Callable[..., ContainerEngine], address: str, site: PodmanSite
) -> None:
    engine = engine_of()
    site.podman("pull", "--creds", f"{USER}:{PASSWORD}", f"{address}/team/pulled:1")
    async with watching(engine) as watch:
        machine = Machine(engine, watch, address)
        await machine.ran(machine.plan("true", "j0", "team/pulled:1"))
        assert not (await machine.images())["team/pulled:1"].is_fetched
        assert await machine.removable() == []
        # The same image by a name of its own that the engine fetches: the other name is still a person's.
        await machine.ran(machine.plan("true", "j1", "team/made:1"))
        assert await machine.removable() == []
        site.podman("rmi", f"{address}/team/pulled:1")
        assert [each.names for each in await machine.removable()] == [(f"{address}/team/made:1",)]
        site.podman("tag", f"{address}/team/made:1", "localhost/by-hand:1")
        assert await machine.removable() == []


async def test_a_fetch_of_what_a_person_has_here_does_not_make_it_the_engines(
    engine_of: Callable[..., ContainerEngine], address: str, site: PodmanSite
) -> None:
    engine = engine_of(pull="always")
    site.podman("pull", "--creds", f"{USER}:{PASSWORD}", f"{address}/team/pulled:1")
    async with watching(engine) as watch:
        machine = Machine(engine, watch, address)
        await machine.ran(machine.plan("true", "j0", "team/pulled:1"))
        assert await machine.removable() == []
        await machine.ran(machine.plan("true", "j1", "team/made:1"))
        site.podman("rmi", f"{address}/team/pulled:1")
        assert len(await machine.removable()) == 1


async def test_starts_that_meet_removals_always_have_their_image(
    engine_of: Callable[..., ContainerEngine], address: str
) -> None:
    engine, other = engine_of(), engine_of()
    async with watching(engine) as watch:
        machine = Machine(engine, watch, address)
        removed = 0

        async def removes() -> None:
            nonlocal removed
            while True:
                for image in expired_images(await other.images.list(), Wanted(), LARGEST, datetime.now(UTC)):
                    try:
                        await other.images.remove(image)
                        removed += 1
                    except ImageBusy:
                        continue

        removing = asyncio.create_task(removes())
        try:
            for number in range(8):
                await machine.ran(machine.plan("true", f"j{number}"))
        finally:
            removing.cancel()
            await asyncio.gather(removing, return_exceptions=True)
        assert removed > 0


async def test_who_removes_an_image_by_hand_leaves_nothing_that_is_taken_for_it(
    engine_of: Callable[..., ContainerEngine], address: str, site: PodmanSite
) -> None:
    engine = engine_of()
    async with watching(engine) as watch:
        machine = Machine(engine, watch, address)
        failing = machine.plan("true", "j0", "team/nothing:1")
        await engine.start(failing)
        await watch.state(failing.uid, TaskState.EXITED)
        await engine.forget(failing.uid)
        site.podman("tag", site.image, f"{address}/team/nothing:1")  # a person makes what could not be fetched
        assert not (await machine.images())["team/nothing:1"].is_fetched
        assert await machine.removable() == []
