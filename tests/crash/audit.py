"""What must be true after a crash campaign, looked up behind the backend's back where that is possible."""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import psutil

from jupyter_pai.audit import BEGINNING, Broken, ChainCheck
from pai_backend.model.job import Job, State
from pai_backend.store.auditing import AuditFilter
from pai_backend.store.base import JobFilter
from pai_backend.store.keyring import KeyFile
from pai_backend.store.sql import Store
from tests.crash.backend import USER, Backend
from tests.crash.takeovers import NAME, Takeovers
from tests.support.living_trees import stdout_of
from tests.unit.model.test_audit import wired

LEAVING_S = 30.0


@dataclass(frozen=True)
class Expected:
    """A short job and the exit code it must end with; one with ``stop`` is asked to stop once it is submitted.

    With ``failures`` it is incremental, and each of its tasks fails so many times before. With ``debug`` a failed
    task is kept; ``release`` says whether somebody lets it go before the clock does. With a priority ``on_gpu`` each
    task wants one of the few GPUs, so that it is preempted, or preempts.
    """

    name: str
    code: int
    instances: int
    seconds: float
    stop: bool = False
    failures: int = 0
    debug: bool = False
    release: bool = False
    on_gpu: str = ""

    @property
    def kept(self) -> bool:
        """Whether its tasks are kept for debugging when they end."""
        return self.debug and self.code != 0

    def document(self, runs: Path, image: str) -> bytes:
        """Its document, OpenPAI v2 when it is incremental, else v1; each run of a task adds one line to ``runs``."""
        line = f'me="$PAI_JOB_NAME $PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX"; echo "$me" >> {runs}'
        rest = f"echo begin; sleep {self.seconds}; echo end; exit {self.code}"
        if self.on_gpu:
            return json.dumps(self._on_gpu(f"{line}; {rest}", image)).encode()
        if self.failures:
            command = f'{line}; if [ "$(grep -c "^$me$" {runs})" -le {self.failures} ]; then exit 9; fi; {rest}'
            return json.dumps(self._incremental(command, image)).encode()
        role = {
            "name": "short",
            "taskNumber": self.instances,
            "cpuNumber": 1,
            "memoryMB": 100,
            "gpuNumber": 0,
            "minFailedTaskCount": None,
            "command": f"{line}; {rest}",
        }
        env = {"jobEnvs": {"isDebug": True}} if self.debug else {}
        return json.dumps({"jobName": self.name, "image": image, "taskRoles": [role], **env}).encode()

    def _on_gpu(self, command: str, image: str) -> dict[str, object]:
        return self._v2(command, image, 1, {"hivedScheduler": {"jobPriorityClass": self.on_gpu}})

    def _incremental(self, command: str, image: str) -> dict[str, object]:
        return self._v2(command, image, 0, {"gangAllocation": False})

    def _v2(self, command: str, image: str, gpus: int, extras: dict[str, object]) -> dict[str, object]:
        role = {
            "instances": self.instances,
            "dockerImage": "none",
            "completion": {"minFailedInstances": -1, "minSucceededInstances": -1},
            "taskRetryCount": self.failures,
            "resourcePerInstance": {"cpu": 1, "memoryMB": 100, "gpu": gpus},
            "commands": [command],
        }
        return {
            "protocolVersion": 2,
            "name": self.name,
            "type": "job",
            "prerequisites": [{"type": "dockerimage", "name": "none", "uri": image}],
            "taskRoles": {"short": role},
            "extras": extras,
        }


async def audit(backend: Backend, expected: list[Expected], taken: Takeovers) -> list[str]:
    """Every promise that does not hold, in words."""
    store = Store(f"sqlite:///{backend.data}/pai.sqlite", KeyFile(backend.data / "secret.key"))
    await store.open()
    try:
        jobs = await _all_jobs(store)
        findings = _exits(expected, jobs) + _runs(expected, backend.runs, jobs)
        findings += [f"nobody submitted {name}" for name in {*jobs} - {job.name for job in expected} - {*taken.jobs}]
        held = [address.holder for address in await store.addresses.of_user(USER) if address.name == NAME]
        findings += taken.audit(jobs, [holder.name for holder in held if holder is not None])
        findings += [f"port {lease.port} is still leased to {lease.owner}" for lease in await store.ports.leases()]
        findings += await _told(store, jobs)
        for job in jobs.values():
            findings += await _history(store, job, is_taken=job.name in taken.jobs)
        findings += _logs(backend, {job.name: jobs[job.name] for job in expected if not job.stop and job.name in jobs})
    finally:
        await store.aclose()
    return findings + await _leftovers(backend)


async def _all_jobs(store: Store) -> dict[str, Job]:
    jobs: dict[str, Job] = {}
    page, total = await store.jobs.page(JobFilter(limit=1000))
    while page:
        for row in page:
            jobs[row.name] = await store.jobs.get(row.uid)
        page, total = await store.jobs.page(JobFilter(limit=1000, offset=len(jobs)))
    assert len(jobs) == total
    return jobs


def _exits(expected: list[Expected], jobs: dict[str, Job]) -> list[str]:
    found = [f"job {job.name} was acknowledged and is lost" for job in expected if job.name not in jobs]
    for want in expected:
        job = jobs.get(want.name)
        if want.stop:
            if job is not None and job.state not in (State.STOPPED, State.SUCCEEDED):
                found.append(f"{want.name} was asked to stop and is {job.state}: {job.exit}")
            continue
        for task in job.tasks if job else ():
            code = task.exit.status if task.exit else None
            run = task.attempt - job.attempt if job else 0
            if code != want.code or run != want.failures:
                how = f"{code} in run {run}, not {want.code} in run {want.failures}"
                found.append(f"{want.name} task {task.index}: exit {how}: {task.exit}")
            if bool(task.released_by) != want.kept:
                found.append(f"{want.name} task {task.index}: released by {task.released_by!r}, kept: {want.kept}")
        if job is not None and (job.attempt, job.retries.total) != (_preemptions(job), job.retries.free):
            found.append(f"{want.name} was run {job.attempt + 1} times: {job.retries}")
        if job is not None and job.attempt and want.on_gpu != "test":
            found.append(f"{want.name} was preempted though nobody comes before it")
    return found


def _preemptions(job: Job) -> int:
    """How often it may have been run again: every time that the platform took its place from it."""
    return job.retries.preempted


def _runs(expected: list[Expected], runs: Path, jobs: dict[str, Job]) -> list[str]:
    """Tasks that did not run as often as they should. One that is preempted may not have come to run."""
    seen = Counter(runs.read_text(encoding="utf-8").splitlines())
    wanted = Counter(
        f"{job.name} {index}" for job in expected for index in range(job.instances) for _ in range(job.failures + 1)
    )
    may_be_stopped_first = {f"{job.name} {index}" for job in expected if job.stop for index in range(job.instances)}
    missing = {name: count for name, count in (wanted - seen).items() if name not in may_be_stopped_first}
    again = Counter(
        {
            f"{job.name} {index}": jobs[job.name].attempt
            for job in expected
            if job.name in jobs
            for index in range(job.instances)
        }
    )
    odd = (seen - wanted - again) + Counter(missing)
    return [f"task {name!r} ran {seen[name]} times" for name in sorted(odd)]


async def _history(store: Store, job: Job, *, is_taken: bool) -> list[str]:
    events = await store.events.of_job(job.uid, limit=100_000)
    if [event.seq for event in events] != list(range(1, len(events) + 1)):
        return [f"{job.name}: its event log has gaps: {[event.seq for event in events]}"]
    seen = Counter(event.type for event in events)
    if is_taken:
        again = seen["job.restart-requested"]
        return [] if again == job.attempt else [f"{job.name}: {again} restarts in its event log, not {job.attempt}"]
    runs = sum(task.attempt - job.attempt for task in job.tasks)
    kept = sum(bool(task.released_by) for task in job.tasks)
    wanted = {"job.exit": 1, "job.retry": job.attempt, "task.retry": runs, "task.kept": kept, "task.released": kept}
    return [
        f"{job.name}: {seen[kind]} times {kind} in its event log, not {count}"
        for kind, count in wanted.items()
        if seen[kind] != count
    ]


async def _told(store: Store, jobs: dict[str, Job]) -> list[str]:
    """Each submission has its one event in the store's audit, and nothing is missing in the chain of these."""
    _, head, _ = await store.audit.ends()
    events = await store.audit.page(AuditFilter(after=0, limit=1_000_000))
    check = ChainCheck(BEGINNING, [{"position": head.position, "hash": head.hash}])
    try:
        for event in wired(events):
            check.add(event)
        check.end()
    except Broken as broken:
        return [str(broken)]
    told = Counter(event.job for event in events if event.job and event.type == "job.submitted")
    submitted = Counter(job.uid for job in jobs.values())
    return [
        f"{told[uid]} events tell that {uid} was submitted"
        for uid in {*told, *submitted}
        if told[uid] != submitted[uid]
    ]


def _logs(backend: Backend, jobs: dict[str, Job]) -> list[str]:
    """Both lines of every task are in its log file, once."""
    found = []
    for job in jobs.values():
        for task in job.tasks:
            text = stdout_of(backend.data / "engine", task.uid)
            if text != "begin\nend\n":
                found.append(f"{job.name} task {task.index}: its log is {text!r}")
    return found


async def _leftovers(backend: Backend) -> list[str]:
    """Processes of ended tasks that stay: a shim removes its container last."""
    deadline = time.monotonic() + LEAVING_S
    while (found := _there(backend)) and time.monotonic() < deadline:
        await backend.something_happened()
    return found


def _there(backend: Backend) -> list[str]:
    """Processes of ended tasks that are there now."""
    found = []
    for process in psutil.process_iter(["pid", "cmdline"]):
        command = " ".join(process.info["cmdline"] or [])
        if str(backend.data / "engine" / "tasks") in command or str(backend.runs) in command:
            found.append(f"process {process.info['pid']} is left over: {command[:200]}")
    return found
