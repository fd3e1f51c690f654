"""Stands in for TensorFlow's benchmark: trusts nothing, trains nothing.

It listens on its own address and asks every task of the job, at the address that the host lists give, who it is.
It prints what it was told and exits with 0 only if every task answered with its own name. A parameter server
waits for ever, as TensorFlow's does, unless the job copies its model afterwards (the v2 example).
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import time

PATIENCE_S = 60.0
TRAIN_DIR_MARK = "checkpoint"


def main() -> int:
    """Check, meet the others, and end as the job's document expects of this role."""
    flags = dict(word.removeprefix("--").split("=", 1) for word in sys.argv[1:])
    hosts = {"ps": flags["ps_hosts"].split(","), "worker": flags["worker_hosts"].split(",")}
    me = (flags["job_name"], int(flags["task_index"]))
    variables = {name: value for name, value in os.environ.items() if name.startswith(("PAI_", "QIZHI_", "FC_"))}
    told = {"flags": flags, "variables": variables, "cwd": os.getcwd(), "files": sorted(os.listdir())}
    print(json.dumps(told), flush=True)
    check(flags, hosts, me)
    os.makedirs(flags["train_dir"], exist_ok=True)
    meet(hosts, me)
    if me[0] == "ps" and "QIZHI_JOB_NAME" in os.environ:
        threading.Event().wait()
    if me[0] == "worker" and "QIZHI_JOB_NAME" not in os.environ:
        await_file(os.path.join(os.environ["PAI_DEFAULT_FS_URI"], "copied"))
    with open(os.path.join(flags["train_dir"], f"{TRAIN_DIR_MARK}-{me[0]}-{me[1]}"), "w") as file:
        file.write("trained")
    return 0


def check(flags: dict[str, str], hosts: dict[str, list[str]], me: tuple[str, int]) -> None:
    """Hold what the command line was told against every other way of telling it. Raises AssertionError, KeyError."""
    prefix = "QIZHI" if "QIZHI_JOB_NAME" in os.environ else "PAI"
    own = os.environ[f"{prefix}_CONTAINER_HOST_IP"] + ":" + os.environ[f"{prefix}_CONTAINER_HOST_http_PORT_LIST"]
    assert hosts[me[0]][me[1]] == own, f"{own} is not at my place of the host list"
    assert os.path.isdir(flags["data_dir"]), f"{flags['data_dir']} is no directory"
    with open(os.environ["PAI_JOB_INFO_FILE"]) as file:
        tasks = json.load(file)["tasks"]
    roles = {"ps": "ps_server", "worker": "worker"}
    for job, role in roles.items():
        listed = [f"{task['host']}:{task['ports']['http'][0]}" for task in tasks if task["role"] == role]
        single = [
            os.environ[f"PAI_HOST_IP_{role}_{index}"] + ":" + os.environ[f"PAI_PORT_LIST_{role}_{index}_http"]
            for index in range(int(os.environ[f"PAI_TASK_ROLE_TASK_COUNT_{role}"]))
        ]
        assert hosts[job] == listed == single, f"{hosts[job]}, {listed} and {single} differ"
    assert os.environ[f"{prefix}_CURRENT_TASK_ROLE_NAME"] == roles[me[0]]


def meet(hosts: dict[str, list[str]], me: tuple[str, int]) -> None:
    """Ask each task of the lists for its name, and return when all have asked for ours. Raises AssertionError."""
    everyone = {(job, index): address for job, list_ in hosts.items() for index, address in enumerate(list_)}
    address, _, port = everyone[me].rpartition(":")
    asked: set[str] = set()
    with socket.create_server((address, int(port))) as server:
        threading.Thread(target=answer, args=(server, name(me), asked), daemon=True).start()
        for peer, where in everyone.items():
            assert ask(where, name(me)) == name(peer), f"at {where} is not {name(peer)}"
        deadline = time.monotonic() + PATIENCE_S
        while len(asked) < len(everyone):
            assert time.monotonic() < deadline, f"only {sorted(asked)} have asked"
            time.sleep(0.02)


def name(task: tuple[str, int]) -> str:
    """A task's name between the programs."""
    return f"{task[0]}-{task[1]}"


def answer(server: socket.socket, own: str, asked: set[str]) -> None:
    """Tell everyone our name, and note theirs."""
    while True:
        try:
            connection, _ = server.accept()
        except OSError:  # closed: all have asked
            return
        with connection, connection.makefile("rw") as stream:
            asker = stream.readline().strip()
            stream.write(own + "\n")
            stream.flush()
            asked.add(asker)


def ask(where: str, own: str) -> str:
    """The name of the task at an address, once it listens."""
    address, _, port = where.rpartition(":")
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            connection = socket.create_connection((address, int(port)), timeout=PATIENCE_S)
            with connection, connection.makefile("rw") as stream:
                stream.write(own + "\n")
                stream.flush()
                return stream.readline().strip()
        except ConnectionError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def await_file(path: str) -> None:
    """Return when there is such a file. Raises AssertionError when none comes."""
    deadline = time.monotonic() + PATIENCE_S
    while not os.path.exists(path):
        assert time.monotonic() < deadline, f"nobody made {path}"
        time.sleep(0.05)


if __name__ == "__main__":
    sys.exit(main())
