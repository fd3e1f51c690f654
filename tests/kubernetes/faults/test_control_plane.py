"""The control plane away, or odd, under load: jobs are taken, what runs goes on, nothing is lost or runs twice."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from aiohttp import web

from tests.kubernetes.cluster.cluster import Cluster
from tests.kubernetes.cluster.commands import until
from tests.kubernetes.faults.audit import settled
from tests.kubernetes.faults.jobs import patient
from tests.kubernetes.faults.product import LIMIT_S, Product
from tests.support.fault_proxy import Answer, EndStreams, Fault, FaultProxy, Hang, LoseAnswer

pytestmark = pytest.mark.asyncio(loop_scope="session")

Record = Callable[[str, object], None]


async def test_api_server_and_etcd_are_killed_under_load(
    product: Product, faulty: Cluster, record_property: Record
) -> None:
    through = await product.submit(patient("through-kills"))
    await product.running(through)
    record_property("s_of_a_job_without_faults", await product.probe())
    await product.hand_in(3)
    await faulty.plane.api.kill()
    await product.hand_in(2)  # taken while there is no API server
    await faulty.plane.start_api()
    record_property("recovered_s_api_server", await product.probe())
    await product.hand_in(3)
    await faulty.plane.etcd.kill()
    await product.hand_in(2)
    faulty.plane.start_etcd()
    record_property("recovered_s_etcd", await product.probe())
    await product.release(through)
    await settled(product)


async def test_a_cluster_that_is_away_is_told_wherever_somebody_looks(product: Product, faulty: Cluster) -> None:
    through = await product.submit(patient("through-absence"))
    await product.running(through)
    about = f"/api/v2/jobs/{through.name}"
    await faulty.plane.api.kill()
    try:
        job = await product.until(through, lambda job: job["doubt"], "to say that it may be out of date")
        assert (job["state"], "API server" in job["doubt"]) == ("RUNNING", True), job["doubt"]
        assert (await product.client.get(f"{about}/why")).json()["doubt"]
        ready = await product.client.get("/readyz")
        assert ready.status_code == 503
        (engine,) = [each for each in ready.json()["checks"] if each["name"] == "engine"]
        assert (engine["ok"], "API server" in engine["message"]) == (False, True), engine
        log = await product.client.get(f"{about}/logs", params={"role": "r", "index": 0}, timeout=120)
        assert (log.status_code, log.json()["code"]) == (503, "UnavailableError"), log.text
        assert "API server" in log.json()["message"]
    finally:
        await faulty.plane.start_api()
    await product.until(through, lambda job: not job["doubt"], "to be certain again")

    async def ready_again() -> bool:
        return (await product.client.get("/readyz")).status_code == 200

    await until(ready_again, "the backend to be ready again", LIMIT_S)
    await product.release(through)
    await settled(product)


def is_watch(request: web.Request) -> bool:
    return request.query.get("watch") == "1"


def is_write(request: web.Request) -> bool:
    return request.method != "GET"


async def test_an_api_server_that_misbehaves_is_borne(product: Product, record_property: Record) -> None:
    """One fault after the other, each until four requests have met it; probes tell how soon all is well."""
    faults: dict[str, tuple[Fault, Callable[[web.Request], bool]]] = {
        "ends every second": (EndStreams(after_s=1.0), is_watch),
        "410 on resume": (Answer(410), is_watch),
        "429": (Answer(429, {"Retry-After": "1"}), lambda request: True),
        "500": (Answer(500), lambda request: True),
        "time-out": (Hang(), lambda request: True),
        "answers of writes lost": (LoseAnswer(), is_write),
    }
    through = await product.submit(patient("through-faults"))
    await product.running(through)
    proxy = product.site.proxy
    for _ in range(5):
        await product.hand_in(1)
        proxy.cut()
    for name, (fault, concerned) in faults.items():
        before = proxy.requests.total()
        proxy.misbehave(fault, concerned)
        proxy.cut()
        await product.hand_in(2)
        await until(met(proxy, before + 4), f"four requests to meet {name}", LIMIT_S)
        proxy.behave()
        record_property(f"recovered_s_{name}", await product.probe())
    await product.release(through)
    await settled(product)


def met(proxy: FaultProxy, number: int) -> Callable[[], Awaitable[bool]]:
    """Whether so many requests have come to the proxy."""

    async def there() -> bool:
        return proxy.requests.total() >= number

    return there
