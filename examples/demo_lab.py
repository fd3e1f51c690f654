"""The seeds' scheduling lab on a laptop: five experiments and a question, on two simulated machines.

Usage: ``python examples/demo_lab.py [--picture FILE.svg] [--seconds N]``. Runs the job files and both cluster files of
``examples/lab`` on private backends, checks what must be seen, prints it as the table of the lab report, and draws when
each task ran where. Tasks train for ``--seconds`` (1) and hold their GPU for twice as long. Exit code 0, or 1 with the
line that says what was not as it must be.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from html import escape
from itertools import pairwise
from pathlib import Path

from jupyter_pai.embedded import Embedded
from jupyter_pai.errors import ClientError
from jupyter_pai.render import table
from jupyter_pai.sync import Client
from jupyter_pai.wire import ACTIVE_STATES, FINAL_STATES
from jupyter_pai.wire_types import JobDetail

LAB = Path(__file__).resolve().parent / "lab"
CAROL, DAN = "hostname-carol", "hostname-dan"
BACKEND = """\
cluster_name: lab
cluster: {{config: {config}}}
engine:
  grace_s: 1
  nodes:
    - {{name: hostname-carol, simulated: true, gpus: {{type: GPU-C, count: 1}}}}
    - {{name: hostname-dan, simulated: true, gpus: {{type: GPU-D, count: 1}}}}
"""
PATIENCE_S = 120.0
LOOK_S = 0.05
COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb")


class NotAsItMust(Exception):
    """Something was not seen that the lab report must say; the message is one line."""


@dataclass(frozen=True)
class Run:
    """One run of a task: where and from when to when, in seconds since the lab began."""

    experiment: str
    job: str
    index: int
    node: str
    begin: float
    end: float
    how: str


@dataclass
class Lab:
    """A backend with one of the cluster files, and what was seen so far."""

    client: Client
    train_s: float
    runs: list[Run] = field(default_factory=list)
    rows: list[tuple[str, str, str]] = field(default_factory=list)
    experiment: str = ""

    def submit(self, number: int, name: str, *changes: tuple[str, str]) -> str:
        """Submit one of the lab's job files under a name of its own, with these texts replaced."""
        text = (LAB / f"job-config-{number}.yaml").read_text(encoding="utf-8")
        text = text.replace("${LAB_TRAIN_SECONDS:-60}", str(self.train_s))
        text = text.replace("${LAB_HOLD_SECONDS:-300}", str(2 * self.train_s))
        for old, new in changes:
            if old not in text:
                raise NotAsItMust(f"job-config-{number}.yaml has no {old!r}")
            text = text.replace(old, new)
        return self.client.submit(text.encode(), name=name, filename="job.yaml")["name"]

    def until(self, job: str, wanted: Callable[[JobDetail], bool]) -> JobDetail:
        """The job once it is as wanted. Raises NotAsItMust when that takes too long."""
        deadline = time.monotonic() + PATIENCE_S
        while not wanted(seen := self.client.job(job)):
            if time.monotonic() > deadline:
                raise NotAsItMust(f"{self.experiment}: {job} stays {seen['state']}: {seen['why']}")
            time.sleep(LOOK_S)
        return seen

    def running(self, job: str) -> JobDetail:
        """The job once it runs."""
        return self.until(job, lambda seen: seen["state"] == "RUNNING")

    def waiting(self, job: str) -> JobDetail:
        """The job once it has been told why it waits."""
        return self.until(job, lambda seen: seen["state"] == "WAITING" and bool(seen["why"]))

    def final(self, job: str) -> JobDetail:
        """The job once it has ended."""
        return self.until(job, lambda seen: seen["state"] in FINAL_STATES)

    def history(self, *jobs: str) -> list[Run]:
        """All runs of these jobs, which have ended, by their begin; remembered for the picture."""
        found = [run for job in jobs for run in self._runs(job)]
        self.runs += found
        return sorted(found, key=lambda run: run.begin)

    def _runs(self, job: str) -> list[Run]:
        began: dict[tuple[int, int], tuple[float, str]] = {}
        found = []
        for event in self.client.events(job):
            payload = event["payload"]
            if event["type"] != "task.state":
                continue
            key, at = (int(str(payload["index"])), int(str(payload["attempt"]))), _seconds(event["at"])
            if payload["phase"] == "running":
                began.setdefault(key, (at, str(payload["node"])))
            elif payload["phase"] == "ended" and key in began:
                begin, node = began.pop(key)
                exit_ = payload["exit"]
                how = str(exit_["reason"]) if isinstance(exit_, dict) else ""
                found.append(Run(self.experiment, job, key[0], node, begin, at, how))
        return found

    def must(self, true: bool, what: str) -> None:
        """Raise NotAsItMust unless it is so."""
        if not true:
            raise NotAsItMust(f"{self.experiment}: not seen: {what}")

    def report(self, question: str, seen: str) -> None:
        """One line of the report."""
        self.rows.append((self.experiment, question, seen))


def vc_safety(lab: Lab) -> None:
    """Three jobs for ``vc1``, which owns one machine: they take turns there, and the other one stays idle."""
    lab.experiment = "VC safety"
    names = [lab.submit(0, f"safety-{user}") for user in ("alice", "bob", "carol")]
    for name in names:
        lab.final(name)
    runs = lab.history(*names)
    lab.must([run.job for run in runs] == names, "the jobs run in the order of submission")
    lab.must({run.node for run in runs} == {DAN}, "all of them run on the machine of vc1")
    lab.must(all(a.end <= b.begin for a, b in pairwise(runs)), "one at a time")
    lab.report("Where do they run? Is the idle machine of default used?", f"all on {DAN}, one by one; never")


def priority_and_preemption(lab: Lab) -> None:
    """A production job ends a test job at once, which starts again when the production job has ended."""
    lab.experiment = "Priority"
    low = lab.submit(1, "priority-test")
    lab.running(low)
    high = lab.submit(2, "priority-prod")
    ended = {name: lab.final(name) for name in (low, high)}
    runs = lab.history(low, high)
    lab.must([run.job for run in runs] == [low, high, low], "the test job is ended for the other and runs again")
    lab.must(runs[0].how == "preempted", "its exit says that it was preempted")
    lab.must(ended[low]["retries"] == 1 and ended[low]["state"] == "SUCCEEDED", "it succeeds in a second attempt")
    lab.must(runs[1].end <= runs[2].begin, "it waits until the production job has ended")
    waited = runs[1].begin - runs[0].end
    seen = f"no: test was preempted, prod began {max(waited, 0):.1f} s later; prod ended first, then test"
    lab.report("Does the later job wait for the earlier one?", seen)


def opportunistic(lab: Lab) -> None:
    """An opportunistic job borrows the idle machine of another virtual cluster, until its owner wants it."""
    lab.experiment = "Opportunistic"
    busy = lab.submit(3, "oppo-prod")
    lab.running(busy)
    guest = lab.submit(4, "oppo-guest")
    first = lab.running(guest)
    lab.must(first["taskRoles"][0]["taskStatuses"][0]["node"] == CAROL, "it starts at once on the idle machine")
    lab.must(lab.client.job(busy)["state"] == "RUNNING", "it does not wait for the production job")
    owner = lab.submit(1, "oppo-owner", ("virtualCluster: vc1", "virtualCluster: default"))
    for name in (busy, guest, owner):
        lab.final(name)
    runs = lab.history(busy, guest, owner)
    of_guest = [run for run in runs if run.job == guest]
    of_owner = next(run for run in runs if run.job == owner)
    lab.must([run.how for run in of_guest] == ["preempted", "exited"], "the owner's test job preempts it")
    lab.must(of_owner.node == CAROL and of_guest[0].end <= of_owner.begin, "the owner takes its machine over")
    seen = f"at once, on {CAROL}; a test job of default preempts it there, and it ran again later"
    lab.report("When does it start? What does a test job of default do?", seen)


def gang(lab: Lab) -> None:
    """A gang of two starts together, when both machines are free."""
    lab.experiment = "Gang"
    first, both = lab.submit(5, "gang-first"), ""
    lab.running(first)
    both = lab.submit(6, "gang-both")
    waiting = lab.waiting(both)["taskRoles"][0]["taskStatuses"]
    lab.must(all(task["node"] is None for task in waiting), "both tasks wait though one machine is free")
    for name in (first, both):
        lab.final(name)
    runs = lab.history(first, both)
    together = [run for run in runs if run.job == both]
    lab.must({run.node for run in together} == {CAROL, DAN}, "each task has a machine of its own")
    lab.must(all(run.begin >= runs[0].end for run in together), "they start when the first job has ended")
    apart = together[1].begin - together[0].begin
    lab.must(apart < lab.train_s / 2, "they start together")
    lab.report("When does it start? One task after the other?", f"when the first job ends; together ({apart:.2f} s)")


def incremental(lab: Lab) -> None:
    """Without gang allocation the first task starts at once, the second when there is room."""
    lab.experiment = "Incremental"
    first = lab.submit(5, "incremental-first")
    lab.running(first)
    grows = lab.submit(7, "incremental-both", ("minSucceededInstances: 1", "minSucceededInstances: 2"))
    lab.running(grows)
    tasks = lab.client.job(grows)["taskRoles"][0]["taskStatuses"]
    lab.must([task["state"] for task in tasks] == ["RUNNING", "WAITING"], "one task runs, the other waits")
    trap = lab.submit(7, "incremental-as-given")
    for name in (first, grows, trap):
        lab.final(name)
    runs = lab.history(first, grows, trap)
    own = [run for run in runs if run.job == grows]
    lab.must(own[0].begin < runs[0].end, "its first task does not wait for the first job")
    lab.must(len(own) == 2 and own[1].begin >= own[0].end, "its second task starts when a GPU is free")
    lab.must(lab.client.job(trap)["state"] == "SUCCEEDED", "as given, one task that succeeds ends the job")
    lab.report("When does it start? One task after the other?", "the first task at once, the second when a GPU is free")


def four_gpus(lab: Lab) -> None:
    """More than the quota: refused as a gang, accepted without, and never started in one task."""
    lab.experiment = "4 GPUs"
    four = ("instances: 2", "instances: 4")
    try:
        lab.submit(6, "four-gang", four)
    except ClientError as error:
        refused = str(error)
    else:
        raise NotAsItMust("4 GPUs: not seen: a gang of 4 is refused")
    numbers = re.search(r"requests 4 SKUs.*maximum of 2 SKUs in VC default", refused)
    lab.must(numbers is not None, "the refusal has the numbers")
    lab.report("Can 4 GPUs be asked for, with 2 in the cluster?", "as a gang: no, 4 SKUs exceed the maximum of 2")
    grows = lab.submit(7, "four-one-by-one", four, ("minSucceededInstances: 1", "minSucceededInstances: 4"))
    lab.final(grows)
    runs = lab.history(grows)
    most = max(sum(a.begin <= run.begin < a.end for a in runs) for run in runs)
    lab.must((len(runs), most) == (4, 2), "without gang allocation all four run, two at a time")
    lab.report("", "one by one: yes, two at a time")
    huge = lab.submit(7, "four-in-one-task", ("instances: 2", "instances: 1"), ("gpu: 1", "gpu: 4"))
    why = lab.waiting(huge)["why"]
    lab.client.stop(huge)
    lab.final(huge)
    lab.report("", f"in one task: accepted, never started: {why}")


def run(place: Path, cluster: str, experiments: Sequence[Callable[[Lab], None]], train_s: float) -> Lab:
    """Experiments one after the other on a backend of their own. Raises NotAsItMust, ClientError."""
    place.mkdir()
    config = place / "backend.yaml"
    config.write_text(BACKEND.format(config=LAB / cluster), encoding="utf-8")
    private = Embedded(place / "data", config)
    try:
        with Client(private.ensure()) as client:
            lab = Lab(client, train_s)
            for experiment in experiments:
                began = time.monotonic()
                experiment(lab)
                print(f"  {time.monotonic() - began:5.1f} s  {lab.experiment}: as it must be", flush=True)
            return lab
    finally:
        _end(private)


def _end(private: Embedded) -> None:
    """Stop what still runs (after a failure), and the backend."""
    endpoint = private.find()
    if endpoint is not None:
        with Client(endpoint) as client:
            for job in client.jobs(state=",".join(ACTIVE_STATES)):
                client.stop(job["uid"])
            deadline = time.monotonic() + PATIENCE_S
            while client.active_count() and time.monotonic() < deadline:
                time.sleep(LOOK_S)
    private.stop()


def _seconds(at: str) -> float:
    return datetime.fromisoformat(at.replace("Z", "+00:00")).timestamp()


def gantt(runs: Sequence[Run]) -> str:
    """The text of an SVG: for each experiment a line a machine, with a bar a run; preempted ones end in red."""
    left, width, line = 230, 760, 26
    rows: list[str] = []
    experiments = list(dict.fromkeys(run.experiment for run in runs))
    for number, experiment in enumerate(experiments):
        own = [run for run in runs if run.experiment == experiment]
        begin, end = min(run.begin for run in own), max(run.end for run in own)
        jobs, scale = list(dict.fromkeys(run.job for run in own)), width / max(end - begin, 0.001)
        for row, node in enumerate((CAROL, DAN)):
            top = 10 + number * (2 * line + 26) + row * line
            rows.append(f'<text x="10" y="{top + 17}">{escape(experiment)}: {node}</text>')
            for run in own:
                if run.node != node:
                    continue
                x, wide = left + (run.begin - begin) * scale, max((run.end - run.begin) * scale, 2)
                edge = "#cc0000" if run.how == "preempted" else "#333333"
                label = f"{run.job}-{run.index}: {run.end - run.begin:.1f} s, {run.how}"
                rows.append(
                    f'<rect x="{x:.1f}" y="{top + 2}" width="{wide:.1f}" height="{line - 4}" stroke="{edge}" '
                    f'stroke-width="2" fill="{COLOURS[jobs.index(run.job) % len(COLOURS)]}">'
                    f"<title>{escape(label)}</title></rect>"
                )
                rows.append(f'<text x="{x + 4:.1f}" y="{top + 17}" font-size="10">{escape(run.job)}</text>')
    height = 10 + len(experiments) * (2 * line + 26)
    size = f'width="{left + width + 20}" height="{height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">'
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *rows, "</svg>\n"])


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(description="The scheduling lab on two simulated machines.")
    parser.add_argument("--picture", type=Path, default=Path("lab-gantt.svg"), help="where the picture is written")
    parser.add_argument("--seconds", type=float, default=1.0, help="how long a task trains")
    options = parser.parse_args(arguments)
    for name in [name for name in os.environ if name.startswith("PAI_")]:
        del os.environ[name]
    with tempfile.TemporaryDirectory(prefix="pai-lab-", ignore_cleanup_errors=True) as scratch:
        place = Path(scratch)
        try:
            first = [vc_safety, priority_and_preemption, opportunistic]
            two = run(place / "two", "cluster-two-vcs.yaml", first, options.seconds)
            one = run(place / "one", "cluster-one-vc.yaml", [gang, incremental, four_gpus], options.seconds)
        except (NotAsItMust, ClientError) as error:
            print(f"The lab failed: {error}", file=sys.stderr)
            return 1
    print("\n" + table(("EXPERIMENT", "QUESTION", "SEEN"), [*two.rows, *one.rows]))
    options.picture.write_text(gantt([*two.runs, *one.runs]), encoding="utf-8")
    print(f"\nWhen each task ran where: {options.picture}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
