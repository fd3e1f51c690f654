"""Job documents for tests, as the text a user would send."""

from __future__ import annotations

import json
from typing import Any


def scm_document(name: str = "hello", **changes: Any) -> bytes:
    """A small valid SCM document; ``changes`` replace its top-level fields, None removes one."""
    fields: dict[str, Any] = {
        "jobName": name,
        "image": "example/tensorflow:1.8",
        "gpuType": "TITANX",
        "virtualCluster": "default",
        "retryCount": 0,
        "taskRoles": [
            {
                "name": "worker",
                "taskNumber": 2,
                "cpuNumber": 1,
                "memoryMB": 1024,
                "shmMB": 64,
                "gpuNumber": 1,
                "minFailedTaskCount": 1,
                "minSucceededTaskCount": None,
                "command": "echo hello",
                "portList": [{"label": "web", "beginAt": 0, "portNumber": 1}],
            }
        ],
    }
    fields.update(changes)
    return json.dumps({key: value for key, value in fields.items() if value is not None}, indent=2).encode()
