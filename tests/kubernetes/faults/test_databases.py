"""Databases that are lost, restored or mistaken for others: what runs goes on, and every job is accounted for."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kubernetes.cluster.commands import until
from tests.kubernetes.cluster.simulation import Simulation, toleration
from tests.kubernetes.faults.audit import settled
from tests.kubernetes.faults.jobs import patient
from tests.kubernetes.faults.product import LIMIT_S, Product, Site, product_on, site_on

DRILL_JOBS = 200
"""Jobs that run when the backup is taken."""

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(600)]


async def administer(*words: str) -> subprocess.CompletedProcess[str]:
    """Run ``python -m pai_backend``."""
    line = [sys.executable, "-P", "-m", "pai_backend", *words]
    return await asyncio.to_thread(
        subprocess.run, line, capture_output=True, text=True, timeout=LIMIT_S, check=False, stdin=subprocess.DEVNULL
    )


async def pods(site: Site) -> dict[str, str]:
    """Pods of tasks and their uids: one that was made again has another."""
    found = (await site.kubectl.get("pods"))["items"]
    return {each["metadata"]["name"]: each["metadata"]["uid"] for each in found}


async def test_a_restored_database_ends_no_pod_and_knows_every_job(site: Site, tmp_path: Path) -> None:
    data, place = tmp_path / "backend", tmp_path / "backup"
    old, ends, new = patient("old"), patient("ends"), patient("new")
    async with product_on(site, data) as before:
        for each in (old, ends):
            await before.submit(each)
        for each in (old, ends):
            await before.running(each)
        done = await administer("backup", str(place), "--data-dir", str(data))
        assert done.returncode == 0, done
        await before.submit(new)
        await before.running(new)
        await before.release(ends)
        await before.ended(ends)
        alive = await until_pods(site, 2)
    assert await pods(site) == alive, "the end of a backend ends no task"
    done = await administer("restore", str(place), "--data-dir", str(data))
    assert done.returncode == 0, done
    async with product_on(site, data) as after:
        after.wanted = [old, ends, new]
        await after.ended(ends)
        for each in (old, new):
            await after.running(each)
        assert await orphans(after) == []
        assert await pods(site) == alive
        for each in (old, new):
            await after.release(each)
        await settled(after)


@pytest.mark.timeout(900)
async def test_a_restore_under_two_hundred_jobs_ends_none_and_forgets_none(scale: Simulation, tmp_path: Path) -> None:
    """On simulated nodes, whose pods run until they are deleted: two hundred real ones need a larger machine."""
    await scale.add_nodes(5)
    pods_here = {"volumes": [], "tolerations": [toleration()]}
    data, place = tmp_path / "backend", tmp_path / "backup"
    async with site_on(scale.cluster, "drill", tmp_path, "none:1") as site:
        async with product_on(site, data, pods_here) as before:
            await hand_in(before, "old", DRILL_JOBS)
            done = await administer("backup", str(place), "--data-dir", str(data))
            assert done.returncode == 0, done
            await hand_in(before, "new", 20)
            alive = await pods(site)
            assert len(alive) == DRILL_JOBS + 20
        done = await administer("restore", str(place), "--data-dir", str(data))
        assert done.returncode == 0, done
        async with product_on(site, data, pods_here) as after:
            await until_running(after, DRILL_JOBS + 20)
            assert await orphans(after) == []
            assert await pods(site) == alive


async def hand_in(product: Product, prefix: str, count: int) -> None:
    """Submit so many small jobs and wait until they run, too."""
    before = await running_jobs(product)
    for number in range(count):
        await product.submit(patient(f"{prefix}-{number}"))
    await until_running(product, before + count)


async def running_jobs(product: Product) -> int:
    """How many jobs run."""
    answer = await product.client.get("/api/v2/jobs", params={"limit": 1000})
    assert answer.status_code == 200, answer.text
    return sum(row["state"] == "RUNNING" for row in answer.json())


async def until_running(product: Product, count: int) -> None:
    """Wait until so many jobs run."""

    async def there() -> bool:
        return await running_jobs(product) == count

    await until(there, f"{count} jobs to run", LIMIT_S, 1.0)


async def test_two_backends_of_one_name_do_not_end_each_others_tasks(site: Site, tmp_path: Path) -> None:
    """Colleagues who both follow the quick start; then one whose database is lost."""
    mine = patient("mine")
    other = ["--data-dir", str(tmp_path / "other"), *site.arguments(None, {})]
    async with product_on(site, tmp_path / "first") as first:
        await first.submit(mine)
        await first.running(mine)
        alive = await until_pods(site, 1)
        refused = await administer("serve", *other)
        assert refused.returncode == 2, refused
        for told in ("another database", "cluster_name", "pai_backend adopt"):
            assert told in refused.stderr
        early = await administer("adopt", *other)
        assert early.returncode == 1
        assert "is at work" in early.stderr
        assert await pods(site) == alive
        await first.running(mine)
    taken = await administer("adopt", "--force", *other)
    assert taken.returncode == 0, taken
    async with product_on(site, tmp_path / "other") as second:
        orphan = await one_orphan(second)
        assert orphan["why"] == "its record is sealed with a key that this database does not have"
        await second.probe()
        assert alive.items() <= (await pods(site)).items()
        assert "pai_orphans 1.0" in (await second.client.get("/metrics")).text
        answer = await second.client.delete(f"/api/v2/cluster/orphans/{orphan['task']}")
        assert answer.status_code == 204, answer.text

        async def gone() -> bool:
            return await orphans(second) == [] and not await pods(site)

        await until(gone, "the orphan to be ended", LIMIT_S)
        await settled(second)


async def test_an_empty_database_with_the_keys_of_the_lost_one_takes_its_jobs_back(site: Site, tmp_path: Path) -> None:
    mine = patient("taken-back")
    async with product_on(site, tmp_path / "first") as first:
        await first.submit(mine)
        await first.running(mine)
        alive = await until_pods(site, 1)
    second_place = tmp_path / "second"
    second_place.mkdir(mode=0o700)
    shutil.copy2(tmp_path / "first" / "secret.key", second_place)
    taken = await administer("adopt", "--force", "--data-dir", str(second_place), *site.arguments(None, {}))
    assert taken.returncode == 0, taken
    async with product_on(site, second_place) as second:
        second.wanted = [mine]

        async def known() -> bool:
            return (await second.client.get(f"/api/v2/jobs/{mine.name}")).status_code == 200

        await until(known, "the job to be taken back", LIMIT_S)
        await second.running(mine)
        assert await orphans(second) == []
        assert await pods(site) == alive
        await second.release(mine)
        await settled(second)


async def orphans(product: Product) -> list[dict[str, str]]:
    """What it says that the database does not know."""
    answer = await product.client.get("/api/v2/cluster/orphans")
    assert answer.status_code == 200, answer.text
    return list(answer.json()["data"])


async def one_orphan(product: Product) -> dict[str, str]:
    """The only one, once it is seen."""

    async def seen() -> bool:
        return len(await orphans(product)) == 1

    await until(seen, "an orphan to be told", LIMIT_S)
    return (await orphans(product))[0]


async def until_pods(site: Site, count: int) -> dict[str, str]:
    """The pods, once there are so many: those of ended tasks are gone."""

    async def there() -> bool:
        return len(await pods(site)) == count

    await until(there, f"{count} pods", LIMIT_S)
    return await pods(site)
