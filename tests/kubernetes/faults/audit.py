"""What must be true after every fault: nothing lost, nothing run twice, nothing left over, and the story told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pai_backend.engine.kubernetes import naming
from pai_backend.model.job import Job, Phase
from pai_backend.store.base import JobFilter
from pai_backend.store.keyring import KeyFile
from pai_backend.store.sql import Store
from tests.kubernetes.cluster.commands import NotInTime, until
from tests.kubernetes.cluster.kubectl import Json
from tests.kubernetes.faults.jobs import Wanted
from tests.kubernetes.faults.product import LIMIT_S, Product, Site


async def settled(product: Product, database: str = "") -> None:
    """Wait until all jobs have ended and are cleaned up; then hold every promise against what is there."""
    for wanted in product.wanted:
        await product.ended(wanted)
    data = product.backend.data_dir
    store = Store(database or f"sqlite:///{data / 'pai.sqlite'}", KeyFile(data / "secret.key"))
    await store.open()
    try:
        await forgotten(store)
        found = await broken(store, product.site, product.wanted)
        assert not found, "\n".join(found)
    finally:
        await store.aclose()


async def forgotten(store: Store) -> None:
    """Wait until the engine has cleaned up after every task."""

    async def all_are() -> bool:
        return all(task.forgotten for job in (await _jobs(store)).values() for task in job.tasks)

    await until(all_are, "all tasks to be forgotten", LIMIT_S)


async def broken(store: Store, site: Site, wanted: Sequence[Wanted]) -> list[str]:
    """Every promise that does not hold, in words."""
    jobs = await _jobs(store)
    found = [line for each in wanted for line in _ending(each, jobs.get(each.name))]
    found += _runs(site, jobs)
    found += [f"port {lease.port} is still leased to {lease.owner}" for lease in await store.ports.leases()]
    for job in jobs.values():
        found += await _story(store, job)
    return found + await _leftovers(site)


async def _jobs(store: Store) -> dict[str, Job]:
    rows, _ = await store.jobs.page(JobFilter(limit=1000))
    return {row.name: await store.jobs.get(row.uid) for row in rows}


def _ending(wanted: Wanted, job: Job | None) -> list[str]:
    if job is None:
        return [f"{wanted.name} was acknowledged and is lost"]
    (task,) = job.tasks
    ended = task.exit
    if ended is None:
        return [f"{wanted.name} has no exit: {job.state} {job.why}"]
    if wanted.reason == "stopped":
        right = ended.reason == "stopped"
    else:
        right = (ended.code, ended.signal, ended.reason) == (wanted.code, wanted.signal, wanted.reason)
    found = [] if right else [f"{wanted.name} ended otherwise than it should: {ended}"]
    if wanted.attempts is not None and job.attempt + 1 != wanted.attempts:
        found.append(f"{wanted.name} was run {job.attempt + 1} times, not {wanted.attempts}: {job.retries}")
    if job.retries.charged:
        found.append(f"{wanted.name} was charged for what was not its fault: {job.retries}")
    return found


def _runs(site: Site, jobs: dict[str, Job]) -> list[str]:
    """No attempt ran its command twice; the last one of each job that was not stopped or refused ran it."""
    lines = Counter(site.lines())
    found = [f"{line} ran {times} times" for line, times in lines.items() if times > 1]
    for job in jobs.values():
        (task,) = job.tasks
        ran = task.exit is not None and task.exit.reason in ("exited", "signalled")
        if ran and not lines[f"{job.name} {task.uid}"]:
            found.append(f"{job.name} ended without having run")
    return found


async def _story(store: Store, job: Job) -> list[str]:
    """The event log has no gap, and tells every retry, the end of every run, and once that of the job, as it was."""
    events = await store.events.of_job(job.uid, limit=100_000)
    found = []
    if [event.seq for event in events] != list(range(1, len(events) + 1)):
        found.append(f"{job.name}: its event log has gaps")
    seen = Counter(event.type for event in events)
    wanted = {"job.exit": 1, "job.retry": job.attempt}
    found += [f"{job.name}: {seen[kind]} times {kind}, not {n}" for kind, n in wanted.items() if seen[kind] != n]
    ends = {
        event.payload["attempt"]: event.payload["exit"]
        for event in events
        if event.type == "task.state" and event.payload["phase"] == Phase.ENDED.value
    }
    (task,) = job.tasks
    if ends.keys() != set(range(job.attempt + 1)):
        found.append(f"{job.name}: its event log tells the ends of runs {list(ends)} of {job.attempt + 1}")
    elif task.exit is not None and ends[job.attempt] != task.exit.model_dump(mode="json"):
        found.append(f"{job.name}: its event log has another end than the job: {ends[job.attempt]}")
    return found


async def _leftovers(site: Site) -> list[str]:
    """Objects of ours beyond the marks of forgotten tasks, which hold nothing secret and go with their attempt."""
    pods: list[Json] = []

    async def no_pods() -> bool:
        pods[:] = (await site.kubectl.get("pods", "-l", f"{naming.MANAGED_BY}={naming.MANAGER}"))["items"]
        return not pods

    try:
        await until(no_pods, "all pods to be gone", LIMIT_S, 0.2)
    except NotInTime:
        return [f"pod {each['metadata']['name']} is left over: {each['metadata']}" for each in pods]
    ours = f"-l={naming.MANAGED_BY}={naming.MANAGER}"
    secrets = (await site.kubectl.get("secrets", ours))["items"]
    found = []
    for each in secrets:
        about = each["metadata"]
        if naming.FORGOTTEN not in about["annotations"] or each.get("data"):
            found.append(f"secret {about['name']} is left over: {about['annotations']}")
    owners = {owner["uid"] for each in secrets for owner in each["metadata"].get("ownerReferences", ())}
    shared = [
        each for kind in ("configmaps", "networkpolicies") for each in (await site.kubectl.get(kind, ours))["items"]
    ]
    for each in shared:
        about = each["metadata"]
        if about["labels"].get(naming.COMPONENT) in (naming.Component.POLICY, naming.Component.HOLDER):
            continue  # of the namespace: for all tasks without peers to come, and for the backend
        if about["uid"] not in owners and not {o["uid"] for o in about.get("ownerReferences", ())} & owners:
            found.append(f"{each['kind']} {about['name']} belongs to no task")
    return found
