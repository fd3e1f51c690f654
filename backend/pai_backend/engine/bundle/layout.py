"""What is where in a task's pod: the paths that builders, launcher and staging agree on.

``/pai/runtime``  the runtime bundle: launcher, SSH server, bash. Read-only in the task's container
``/pai/plan``     the task's Secret: what to run, with which variables, keys. Read-only
``/pai/job``      the job's ConfigMap: job info and hosts, replaced by the kubelet as a whole. Read-only.
                  The Secret again where the job has one task: it has the job info then
``/pai/state``    memory that the launcher writes: it is gone with the pod
``/pai/work``     the working directory

``docs/engine-kubernetes.md`` has the launcher's contract.
"""

from __future__ import annotations

from typing import Final

ROOT: Final = "/pai"
RUNTIME: Final = f"{ROOT}/runtime"
PLAN: Final = f"{ROOT}/plan"
JOB: Final = f"{ROOT}/job"
STATE: Final = f"{ROOT}/state"
WORK: Final = f"{ROOT}/work"

LAUNCHER: Final = f"{RUNTIME}/bin/launch"
BASH: Final = f"{RUNTIME}/commands/bash"  # of the bundle, for images that have none
INSTALLER: Final = "/runtime/bin/install"  # in the runtime image; its arguments are RUNTIME and STATE

# Containers of a pod; the first two run one after the other before the third, and end.
RUNTIME_CONTAINER: Final = "runtime"
INPUTS_CONTAINER: Final = "inputs"
TASK_CONTAINER: Final = "task"

# Keys of the task's Secret, files below PLAN.
COMMAND: Final = "command.gz"  # shell text for one bash parse
ENVIRON: Final = "environ.gz"  # NAME=VALUE of the whole environment, each ended by a NUL byte
OPTIONS: Final = "options"  # the same format: what the launcher must know, see ``secret.launcher_options``
STAGE: Final = "stage.json"  # for the staging program, see ``pai_backend.storage.stage``
HOST_KEY: Final = "host_key"
HOST_CERTIFICATE: Final = "host_certificate"
AUTHORIZED_KEYS: Final = "authorized_keys"
PEER_KEY: Final = "peer_key"  # by which the task logs in to the others of its job
KNOWN_HOSTS: Final = "known_hosts"  # by which it recognises them

# Keys of the job's ConfigMap, or of the Secret of a job's only task: files below JOB.
JOB_INFO: Final = "job-info.json.gz"
HOSTS: Final = "hosts"

# Files below STATE.
JOB_INFO_FILE: Final = f"{STATE}/job-info.json"  # what PAI_JOB_INFO_FILE names
HOSTS_FILE: Final = "hosts"  # mounted over /etc/hosts where the launcher keeps it

BEGUN_FILE: Final = f"{STATE}/begun"  # exists from when the command runs
EXIT_FILE: Final = f"{STATE}/exit.json"  # exists from when the command has ended; the termination message has the same
TERMINATION_LOG: Final = "/dev/termination-log"

MARK: Final = "PAI_TASK_UID"  # environment variable that every process of a task has
