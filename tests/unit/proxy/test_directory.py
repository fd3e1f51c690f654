"""Where a service runs is looked up rarely, and never believed for long."""

from __future__ import annotations

import asyncio

import pytest

from pai_backend.access.proxy.directory import AHEAD_S, FRESH_S, ServiceDirectory
from pai_backend.access.proxy.refusal import Refused
from pai_backend.launch.jupyter import made_token
from pai_backend.model.job import Job, State
from tests.support.proxy_fakes import KEY, SERVICE, FakeStore, service_job


class Ticks:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.asyncio
async def test_many_requests_at_once_ask_the_store_once() -> None:
    store = FakeStore(service_job(15000))
    directory = ServiceDirectory(store, KEY, Ticks())
    found = await asyncio.gather(*(directory.find(SERVICE) for _ in range(100)))
    assert {service.place.port for service in found if service.place} == {15000}
    assert store.lookups == 1


@pytest.mark.asyncio
async def test_an_address_follows_its_task_to_a_new_port_within_half_a_second() -> None:
    store, clock = FakeStore(service_job(15000)), Ticks()
    directory = ServiceDirectory(store, KEY, clock)
    await directory.find(SERVICE)
    store.put(service_job(15001))
    clock.now += FRESH_S
    place = (await directory.find(SERVICE)).place
    assert place is not None
    assert place.port == 15001


@pytest.mark.asyncio
async def test_nobody_waits_while_an_answer_is_looked_up_ahead() -> None:
    gate = asyncio.Event()
    gate.set()

    class SlowStore(FakeStore):
        async def by_alias(self, alias: str) -> Job | None:
            await gate.wait()
            return await super().by_alias(alias)

    store, clock = SlowStore(service_job(15000)), Ticks()
    directory = ServiceDirectory(store, KEY, clock)
    old = await directory.find(SERVICE)
    store.put(service_job(15001))
    gate.clear()
    clock.now = AHEAD_S
    assert [await directory.find(SERVICE) for _ in range(3)] == [old] * 3
    clock.now = FRESH_S
    late = asyncio.ensure_future(directory.find(SERVICE))
    await asyncio.sleep(0)
    assert not late.done(), "the old answer counts no longer"
    gate.set()
    place = (await late).place
    assert place is not None
    assert (place.port, store.lookups) == (15001, 2)


@pytest.mark.asyncio
async def test_a_place_that_did_not_answer_is_forgotten_at_once() -> None:
    store = FakeStore(service_job(15000))
    directory = ServiceDirectory(store, KEY, Ticks())
    await directory.find(SERVICE)
    store.put(service_job(None))
    directory.forget(SERVICE)
    assert (await directory.find(SERVICE)).place is None


@pytest.mark.asyncio
async def test_one_visitor_who_leaves_does_not_take_the_answer_from_the_others() -> None:
    gate = asyncio.Event()

    class SlowStore(FakeStore):
        async def by_alias(self, alias: str) -> Job | None:
            await gate.wait()
            return await super().by_alias(alias)

    directory = ServiceDirectory(SlowStore(service_job(15000)), KEY, Ticks())
    first = asyncio.ensure_future(directory.find(SERVICE))
    second = asyncio.ensure_future(directory.find(SERVICE))
    await asyncio.sleep(0)
    first.cancel()
    gate.set()
    assert (await second).place is not None


@pytest.mark.asyncio
@pytest.mark.parametrize("alias", ["other--web", "lab--other", "lab--worker-1--web", "lab--worker-0", "lab"])
async def test_other_names_are_no_service(alias: str) -> None:
    with pytest.raises(Refused):
        await ServiceDirectory(FakeStore(service_job(15000)), KEY, Ticks()).find(alias)


@pytest.mark.asyncio
async def test_the_memory_of_the_directory_is_bounded() -> None:
    directory = ServiceDirectory(FakeStore(service_job(15000)), KEY, Ticks())
    for number in range(3000):
        with pytest.raises(Refused):
            await directory.find(f"job-{number}--web")
    assert len(directory._answers) <= 1024


@pytest.mark.asyncio
@pytest.mark.parametrize(("state", "runs"), [(State.RUNNING, True), (State.STOPPING, True), (State.FAILED, False)])
async def test_only_a_task_that_lives_has_a_place(state: State, runs: bool) -> None:
    service = await ServiceDirectory(FakeStore(service_job(15000, state=state)), KEY, Ticks()).find(SERVICE)
    assert (service.place is not None) is runs


@pytest.mark.asyncio
async def test_a_jupyters_token_is_known_from_its_command_and_environment() -> None:
    job = service_job(15000, command="jupyter lab --port=$PAI_CONTAINER_HOST_web_PORT_LIST")
    place = (await ServiceDirectory(FakeStore(job), KEY, Ticks()).find(SERVICE)).place
    assert place is not None
    assert place.token == made_token(KEY, job.uid)
