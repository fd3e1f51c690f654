"""The fields of events are those that docs/events.md says, on a backend that runs."""

from __future__ import annotations

import json
import re

import httpx

from pai_backend.testing.free_ports import free_port
from tests.docs.pages import read
from tests.docs.place import Place

ROLE = {"name": "main", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 100, "gpuNumber": 0}
PAYLOADS = {
    kind: set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE))
    for kind, text in re.findall(
        r"^### `([\w.-]+)`\n(.*?)(?=^### |\Z)", read("docs/events.md"), re.MULTILINE | re.DOTALL
    )
}


def incremental(name: str) -> dict[str, object]:
    """A v2 document of a task that fails twice, the second time for good."""
    role = {
        "dockerImage": "none",
        "taskRetryCount": 1,
        "resourcePerInstance": {"cpu": 1, "memoryMB": 100, "gpu": 0},
        "commands": ["exit 3"],
    }
    return {
        "protocolVersion": 2,
        "name": name,
        "type": "job",
        "prerequisites": [{"type": "dockerimage", "name": "none", "uri": "none"}],
        "taskRoles": {"main": role},
        "extras": {"gangAllocation": False},
    }


def figures_of(port: int, name: str) -> float:
    """The sum of a figure of the controller."""
    lines = httpx.get(f"http://127.0.0.1:{port}/metrics").text.splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))


def test_payloads_have_the_documented_fields(place: Place) -> None:
    port = free_port()
    looks = "PAI_BACKEND_METRICS__SAMPLE_S=0.2 PAI_BACKEND_METRICS__IDLE_GPUS_S=1"
    looks += f" PAI_BACKEND_CONTROLLER__METRICS_PORT={port}"
    assert place.run(f"{looks} PAI_BACKEND_CONFIG=examples/backend.yaml pai backend start")[0] == 0
    failing = {"jobName": "failing", "image": "none", "retryCount": 1, "taskRoles": [{**ROLE, "command": "exit 3"}]}
    on_gpu = {**ROLE, "gpuNumber": 1, "command": "sleep 600"}
    sleeping = {"jobName": "sleeping", "image": "none", "taskRoles": [{**on_gpu, "taskNumber": 2}]}
    queued = [{"jobName": name, "image": "none", "taskRoles": [on_gpu]} for name in ("early", "late")]
    keeping = {**failing, "jobName": "keeping", "retryCount": 0, "jobEnvs": {"isDebug": True}}
    names = ("failing", "sleeping", "keeping", "again", "early", "late")
    with place.client() as client:
        for document in (failing, sleeping, keeping, incremental("again")):
            client.submit(json.dumps(document).encode())
        assert "RUNNING" in place.run_until("pai status sleeping", lambda text: "RUNNING" in text)
        place.run_until("pai top sleeping", lambda _: figures_of(port, "pai_idle_gpus") == 2)
        place.run_until(
            "pai top sleeping", lambda _: any(each["type"] == "job.gpus-idle" for each in client.events("sleeping"))
        )
        rows = json.loads(place.run("pai top sleeping --json")[1])
        assert [(row["node"], row["now"]["gpuPercent"], row["now"]["memoryMb"] > 0) for row in rows] == [
            ("carol", 0, True),
            ("dan", 0, True),
        ]
        assert {point["idleGpus"] for task in client.metrics("sleeping")["tasks"] for point in task["samples"]} == {1}
        assert "2 of 2 GPUs" in place.run("pai cluster status")[1]
        assert re.search(r"carol +ready +TITANX +1/1", place.run("pai nodes")[1])
        assert (
            figures_of(port, "pai_user_gpus") == figures_of(port, 'pai_node_gpus{gpu_type="TITANX",state="used"}') == 2
        )
        assert httpx.get(f"http://127.0.0.1:{port}/readyz").json() == {"ready": True, "message": ""}
        for each in queued:
            client.submit(json.dumps(each).encode())
        assert place.run_until("pai move late --before early", lambda text: "late" in text)
        nothing_owned = "pai cluster show --derived | sed 's/cellNumber: 2/cellNumber: 0/' >cluster.yaml"
        assert place.run(f"{nothing_owned} && pai cluster apply cluster.yaml --yes")[0] == 0
        place.run_until(
            "pai why sleeping", lambda _: any(each["type"] == "job.claim" for each in client.events("sleeping"))
        )
        for name in ("sleeping", "early", "late"):
            client.stop(name)
        assert "kept" in place.run_until("pai status keeping", lambda text: "kept for debugging" in text)
        client.release("keeping")
        assert [place.run(f"pai status {name} --watch")[0] for name in names] == [1] * len(names)
        early = client.job("early")["uid"]
        client.submit(json.dumps({**failing, "jobName": "early"}).encode(), replace=True)
        client.start("failing")
        assert [place.run(f"pai status {name} --watch")[0] for name in ("early", "failing")] == [1, 1]
        events = [event for name in (*names, early) for event in client.events(name)]
    seen = {event["type"] for event in events}
    # Of another user than the owner: tests/integration/api/test_live_rights.py has that one. The last one of a job that
    # is gone: tests/integration/store/test_deletion.py. Of a used-up budget: tests/unit/controller/test_budgets.py.
    assert seen == PAYLOADS.keys() - {"job.admin-entry", "job.deleted", "job.budget"}
    for event in events:
        assert event.keys() == {"job", "seq", "at", "type", "payload"}
        texts = {name for name in event["payload"] if not name.endswith("Wording")}
        assert texts == PAYLOADS[event["type"]], event["type"]
        assert event["payload"].keys() - texts <= {f"{name}Wording" for name in ("why", "reason", "text")}
