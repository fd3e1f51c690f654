"""A task that meets all tasks of its job: each asks every other, and itself, for its name at the address it was told.

Addresses come from the variables; the job info file and the host lists must say the same. It listens on its own
address, as programs for distributed training do, on the first of its ports ``hello``.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import time

PATIENCE_S = 120.0
NAME = os.environ["PAI_CURRENT_TASK_ROLE_NAME"] + ":" + os.environ["PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX"]


def peers() -> dict[str, tuple[str, int]]:
    """Every task of the job by the variables, held against the job info file. Raises AssertionError, KeyError."""
    found = {}
    for name in os.environ["PAI_TASK_ROLE_INSTANCES"].split(","):
        variable = name.replace(":", "_")
        ports = os.environ[f"PAI_PORT_LIST_{variable}_hello"].split(",")
        found[name] = (os.environ[f"PAI_HOST_IP_{variable}"], int(ports[0]))
    with open(os.environ["PAI_JOB_INFO_FILE"]) as file:
        tasks = json.load(file)["tasks"]
    told = {f"{task['role']}:{task['index']}": (task["host"], task["ports"]["hello"][0]) for task in tasks}
    assert found == told, f"{found} and {told} differ"
    return found


def serve(server: socket.socket, asked: set[str]) -> None:
    """Tell everyone our name, and note theirs."""
    while True:
        connection, _ = server.accept()
        with connection, connection.makefile("rw") as stream:
            asker = stream.readline().strip()
            stream.write(NAME + "\n")
            stream.flush()
            asked.add(asker)


def ask(where: tuple[str, int]) -> str:
    """The name of the task at an address, once it listens."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            with socket.create_connection(where, timeout=PATIENCE_S) as connection, connection.makefile("rw") as stream:
                stream.write(NAME + "\n")
                stream.flush()
                return stream.readline().strip()
        except ConnectionError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def main() -> int:
    """0 when all have answered with their own names and have asked us for ours."""
    everyone = peers()
    asked: set[str] = set()
    with socket.create_server(everyone[NAME]) as server:
        threading.Thread(target=serve, args=(server, asked), daemon=True).start()
        answers = {name: ask(where) for name, where in everyone.items()}
        deadline = time.monotonic() + PATIENCE_S
        while asked < everyone.keys() and time.monotonic() < deadline:
            time.sleep(0.05)
    print(json.dumps({"answers": answers, "asked": sorted(asked), "variables": dict(os.environ)}), flush=True)
    return 0 if asked == everyone.keys() and all(name == answer for name, answer in answers.items()) else 1


if __name__ == "__main__":
    sys.exit(main())
