"""A reflector beside a real API server and etcd: through every fault, what is mirrored ends equal to what is there."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from pai_backend.engine.kubernetes.access import Access
from pai_backend.engine.kubernetes.calls import Calls
from pai_backend.engine.kubernetes.client import connect
from tests.support.api_world import World, Worlds
from tests.support.fault_proxy import Answer, EndStreams, Fault, Hang, Slow
from tests.support.followed import QUICK, churning, config_map, following


@pytest.mark.asyncio
@pytest.mark.parametrize("streaming", [True, False], ids=["streamed", "in pages"])
async def test_changes_are_followed_after_a_list(worlds: Worlds, streaming: bool) -> None:
    async with worlds.open() as world:
        async with churning(world.direct, world.resource.path, "before") as before:
            await before.more(3)
        async with following(world.calls, world.resource, streaming=streaming) as followed:
            await followed.until_equal(await world.there())
            async with churning(world.direct, world.resource.path) as churn:
                await churn.more(12)
            await followed.until_equal(await world.there())
            assert followed.listed == 1
            assert len(followed.gone) == len({gone.last["metadata"]["uid"] for gone in followed.gone}) >= 8
            assert all(gone.witnessed and gone.last["data"] == {"number": "2"} for gone in followed.gone)
            assert followed.reflector.health.ready(5.0)
            assert world.proxy.requests == ({"watch": 1} if streaming else {"GET": 1, "watch": 1})


@pytest.mark.asyncio
async def test_a_long_list_comes_in_pages(worlds: Worlds) -> None:
    async with worlds.open() as world:
        await asyncio.gather(
            *(world.direct.create(world.resource.path, config_map(f"many-{n}", n)) for n in range(1100))
        )
        async with following(world.calls, world.resource, streaming=False) as followed:
            await followed.until_equal(await world.there())
            assert world.proxy.requests["GET"] == 3


@pytest.mark.asyncio
async def test_an_idle_reflector_asks_for_nothing(worlds: Worlds) -> None:
    async with worlds.open() as world, following(world.calls, world.resource) as followed:
        await followed.until_equal({})
        asked = world.client.counts.total()
        await world.direct.create(world.resource.path, config_map("one", 1))
        await followed.until_equal(await world.there())
        assert (asked, world.client.counts.total()) == (1, 1)


@pytest.mark.asyncio
async def test_an_object_made_again_under_its_name_is_an_end_and_a_beginning(worlds: Worlds) -> None:
    async with worlds.open() as world, following(world.calls, world.resource) as followed:
        await followed.until_equal({})
        for number in range(5):
            await world.direct.create(world.resource.path, config_map("same", number))
            await world.direct.delete(f"{world.resource.path}/same")
        await world.direct.create(world.resource.path, config_map("same", 5))
        await followed.until_equal(await world.there())
        assert len({gone.last["metadata"]["uid"] for gone in followed.gone}) == 5


@pytest.mark.asyncio
async def test_a_server_that_is_killed_and_comes_back_is_followed_again(worlds: Worlds) -> None:
    async with worlds.open() as world, following(world.calls, world.resource) as followed:
        async with churning(world.direct, world.resource.path) as churn:
            for _ in range(2):
                await churn.more(5)
                world.server.api.kill()
                world.server.api.start()
                await world.server.ready()
        await followed.until_equal(await world.there())
        assert followed.reflector.health.ready(5.0)


@pytest.mark.asyncio
async def test_while_the_server_is_away_it_is_asked_less_and_less_and_knowledge_ages(worlds: Worlds) -> None:
    async with worlds.open() as world, following(world.calls, world.resource) as followed:
        await world.direct.create(world.resource.path, config_map("one", 1))
        await followed.until_equal(await world.there())
        world.server.api.kill()
        try:
            asked = world.client.counts.total()
            await asyncio.sleep(4.0)  # the time that is measured
            health = followed.reflector.health
            assert 3 <= world.client.counts.total() - asked <= 25  # 20 from pauses of 1 s at most, drawn around half
            assert health.age_s >= 3.5
            assert not health.watching
            assert health.trouble
            assert not health.ready(3.0)
            assert len(followed.mirrored) == 1, "what was known stays known"
        finally:
            world.server.api.start()
            await world.server.ready()
        await world.direct.create(world.resource.path, config_map("two", 2))
        await followed.until_equal(await world.there())


@pytest.mark.asyncio
async def test_an_etcd_that_is_killed_and_comes_back_is_no_end(worlds: Worlds) -> None:
    async with worlds.open() as world, following(world.calls, world.resource) as followed:
        async with churning(world.direct, world.resource.path) as churn:
            await churn.more(5)
            world.server.etcd.kill()
            await asyncio.sleep(1.0)  # how long it is away
            world.server.etcd.start()
            await churn.more(3)
        await followed.until_equal(await world.there())


@pytest.mark.asyncio
async def test_a_watch_that_is_cut_again_and_again_goes_on(worlds: Worlds) -> None:
    async with worlds.open() as world, following(world.calls, world.resource) as followed:
        async with churning(world.direct, world.resource.path) as churn:
            cuts = 0
            for _ in range(20):
                await churn.more(2)
                cuts += world.proxy.cut()
        await followed.until_equal(await world.there())
        assert cuts >= 10, "the watch was open when it was to be cut"
        assert world.proxy.requests["GET"] == 0, "a cut is no reason for a list in pages"


@pytest.mark.asyncio
async def test_streams_that_end_all_the_time_are_followed_without_a_storm(worlds: Worlds) -> None:
    async with worlds.open() as world, following(world.calls, world.resource) as followed:
        await followed.until_equal({})
        world.proxy.misbehave(EndStreams(after_s=0.2))
        world.proxy.cut()
        async with churning(world.direct, world.resource.path):
            await asyncio.sleep(2.0)  # the time that is measured
        await followed.until_equal(await world.there())
        busy = world.proxy.requests.total()
        assert busy <= 25
        await asyncio.sleep(3.0)  # nothing changes now: every watch ends and brings nothing
        assert world.proxy.requests.total() - busy <= 12
        world.proxy.behave()
        await world.direct.create(world.resource.path, config_map("after", 1))
        await followed.until_equal(await world.there())


@pytest.mark.asyncio
async def test_a_connection_that_fell_silent_is_given_up(worlds: Worlds) -> None:
    timing = replace(QUICK, silence_s=2.0)
    async with worlds.open() as world, following(world.calls, world.resource, timing=timing) as followed:
        await followed.until_equal({})
        world.proxy.freeze()
        await world.direct.create(world.resource.path, config_map("unheard", 1))
        await followed.until_equal(await world.there())
        assert world.proxy.requests["watch"] >= 2


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("fault", "most"),
    [
        (Answer(410), 40),
        (Answer(429, {"Retry-After": "1"}), 6),
        (Answer(500), 40),
        (Answer(504), 40),
        (Answer(401), 40),
        (Hang(), 4),
        (Slow(chunk_bytes=400, every_s=0.02), 4),
    ],
    ids=str,
)
@pytest.mark.parametrize("streaming", [True, False], ids=["streamed", "in pages"])
async def test_a_server_that_misbehaves_for_a_while_is_followed_afterwards(
    worlds: Worlds, fault: Fault, most: int, streaming: bool
) -> None:
    async with worlds.open() as world, following(world.calls, world.resource, streaming=streaming) as followed:
        await followed.until_equal({})
        before = world.proxy.requests.total()
        world.proxy.misbehave(fault)
        world.proxy.cut()
        async with churning(world.direct, world.resource.path):
            await asyncio.sleep(3.0)  # the time that is measured
        assert 1 <= world.proxy.requests.total() - before <= most
        world.proxy.behave()
        await followed.until_equal(await world.there())
        await followed.until_health(lambda health: health.watching and not health.trouble)


@pytest.mark.asyncio
async def test_a_version_that_is_no_longer_kept_costs_one_list(worlds: Worlds) -> None:
    """A killed API server remembers no events: the first watch from before it is answered 410 by the real server."""
    async with worlds.open() as world, following(world.calls, world.resource) as followed:
        await world.direct.create(world.resource.path, config_map("kept", 1))
        await world.direct.create(world.resource.path, config_map("left", 1))
        await followed.until_equal(await world.there())
        world.proxy.misbehave(Hang())
        world.proxy.cut()
        await world.direct.delete(f"{world.resource.path}/left")
        world.server.api.kill()
        world.server.api.start()
        await world.server.ready()
        for number in range(3):
            await world.direct.create(world.resource.path, config_map(f"later-{number}", 1))
        world.proxy.behave()
        await followed.until_equal(await world.there())
        assert [gone.last["metadata"]["name"] for gone in followed.gone] == ["left"]


@pytest.mark.asyncio
async def test_a_consumer_that_is_behind_bounds_what_waits_and_loses_nothing(worlds: Worlds) -> None:
    async with worlds.open() as world, following(world.calls, world.resource, limit=5) as followed:
        for number in range(40):
            await world.direct.create(world.resource.path, config_map(f"quick-{number}", number))
        await followed.until_equal(await world.there())


@pytest.mark.asyncio
async def test_a_role_that_forbids_is_told_and_forgiven(worlds: Worlds) -> None:
    async with worlds.open() as world:
        stranger = await connect(
            Access(world.server.kubeconfig(Path(tempfile.mkdtemp()) / "stranger", token="stranger"))
        )
        try:
            async with following(Calls(stranger), world.resource) as followed:
                await followed.until_health(lambda health: "403 Forbidden" in health.trouble)
                assert not followed.reflector.health.ready(1000.0)
                await allow(world, "stranger")
                await world.direct.create(world.resource.path, config_map("one", 1))
                await followed.until_equal(await world.there())
        finally:
            await stranger.aclose()


async def allow(world: World, user: str) -> None:
    """Let a user read the configmaps of the world's namespace."""
    namespace = world.resource.path.split("/")[4]
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "watch"]}]
    await world.direct.create(f"{rbac}/roles", {"metadata": {"name": "reads"}, "rules": rules})
    binding = {
        "metadata": {"name": "reads"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reads"},
        "subjects": [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}],
    }
    await world.direct.create(f"{rbac}/rolebindings", binding)
