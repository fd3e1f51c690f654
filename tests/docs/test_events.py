"""The fields of events are those that docs/events.md says, on a backend that runs."""

from __future__ import annotations

import json
import re

import pytest

from jupyter_pai.following import observe
from tests.docs.pages import read
from tests.docs.place import Place

ROLE = {"name": "main", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 100, "gpuNumber": 0}
PAYLOADS = {
    kind: set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE))
    for kind, text in re.findall(
        r"^### `([\w.-]+)`\n(.*?)(?=^### |\Z)", read("docs/events.md"), re.MULTILINE | re.DOTALL
    )
}


@pytest.mark.timeout(120)
def test_payloads_have_the_documented_fields(place: Place) -> None:
    assert place.run("pai backend start")[0] == 0
    failing = {"jobName": "failing", "image": "none", "retryCount": 1, "taskRoles": [{**ROLE, "command": "exit 3"}]}
    waiting = {"jobName": "waiting", "image": "none", "taskRoles": [{**ROLE, "command": "sleep 600"}]}
    with place.client() as client:
        for document in (failing, waiting):
            client.submit(json.dumps(document).encode())
        client.stop("waiting")
        for name in ("failing", "waiting"):
            assert list(client.iterate(observe(client.api, name, log=False)))
        events = client.events("failing") + client.events("waiting")
    seen = {event["type"] for event in events}
    assert seen == PAYLOADS.keys()
    for event in events:
        assert event.keys() == {"job", "seq", "at", "type", "payload"}
        assert event["payload"].keys() == PAYLOADS[event["type"]], event["type"]
