"""The staging program: copies a task's inputs and makes its output directories before its command runs.

``python -P -m pai_backend.storage.stage FILE``, with the environment and the rights of the task. FILE is JSON:
``{"inputs": [{"uri", "name", "max_bytes"}], "outputs": [uri], "work_dir": path, "user": name}``. (``-P`` keeps
the working directory, where the user's files will be, off the module path.)

Progress goes to standard error, a line each. The exit status is 0 when everything is in place, else 1, and the
last line of standard error then says the reason and the remedy and holds no secret. It may run again after it
was killed at any instant: what was completed stays, what was half done is done again.

Credentials come from the task's environment, as each library reads them (``AWS_ACCESS_KEY_ID``, fsspec's own
``FSSPEC_<SCHEME>_<OPTION>``): the backend's own never enter a task. HDFS without Kerberos takes ``user``.
"""

from __future__ import annotations

import json
import sys

from pai_backend.storage.faults import StorageFault
from pai_backend.storage.filesystems import act_as
from pai_backend.storage.outputs import make_directory
from pai_backend.storage.uris import parse


def main(arguments: list[str]) -> int:
    """Stage what the file says; the exit status."""
    if len(arguments) != 1:
        say("usage: python -P -m pai_backend.storage.stage FILE")
        return 1
    try:
        stage(arguments[0])
    except StorageFault as fault:
        say(fault.line())
        return 1
    return 0


def stage(file: str) -> None:
    """Read the file and do as it says. Raises StorageFault."""
    try:
        with open(file, "rb") as text:
            wanted = json.load(text)
        inputs, outputs = list(wanted["inputs"]), [parse(str(uri)) for uri in wanted["outputs"]]
        work_dir, user = str(wanted["work_dir"]), str(wanted["user"])
        wanted_inputs = [(str(item["uri"]), str(item["name"]), int(item["max_bytes"])) for item in inputs]
    except (OSError, ValueError, KeyError, TypeError) as error:
        # Only the kind of error: the text of others may quote the file.
        raise StorageFault(f"{file} is not a staging file ({type(error).__name__})") from None
    act_as(user)
    if wanted_inputs:
        from pai_backend.storage.staging import copy_all  # most tasks have an output and no input

        copy_all(wanted_inputs, work_dir, user, say)
    for place in outputs:
        make_directory(place, user)
        say(f"{place.shown} is there for output")


def say(line: str) -> None:
    """One line for a user who watches the task start."""
    print(f"pai: {line}", file=sys.stderr, flush=True)  # noqa: T201 - this program's way to speak


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
