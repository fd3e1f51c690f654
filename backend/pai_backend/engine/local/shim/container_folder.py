"""Names of what lies in the folder ``layout.CONTAINER`` of a task that runs in a container. (The shim imports little.)

``stage``, ``run``, ``pull`` and ``remove`` hold the words of command lines, each ended by NUL; with an empty one
nothing is done. ``engine.containers.podman`` makes them.
"""

STAGE = "stage"  # fetches the inputs; absent where there are none
STAGE_ROOT = "stage-root"  # the root that this sees
RUN = "run"  # starts the container, and returns once it runs
PULL = "pull"  # fetches the image; empty where it is here
REMOVE = "remove"  # removes the container, whatever it does

ID = "id"  # the container's identity, in Podman's words
CONMON = "conmon.pid"  # of the process that keeps the container
INIT = "init.pid"  # of its first process, as this machine numbers it
BEGAN = "init.start"  # when that one started, see ``processes.start_time``
PULLING = "pulling"  # exists once the image was being fetched
RECORD = "record"  # how the command ended, by the launcher; empty until then
LOGIN = "auth.json"  # credentials of a registry

PLAN, JOB, STATE = "plan", "job", "state"  # directories that the container has, see ``engine.bundle.layout``
BEGUN = "state/begun"  # exists when the command runs
EXIT = "state/exit.json"  # exists when the command has ended, though a kept task goes on


def words(path: str) -> list[str]:
    """A command line; none where there is none. Raises OSError."""
    try:
        with open(path, "rb") as file:
            return file.read().decode("utf-8", "surrogateescape").split("\0")[:-1]
    except FileNotFoundError:
        return []


def text_of(line: list[str]) -> bytes:
    """The reverse of :func:`words`."""
    return "".join(f"{word}\0" for word in line).encode("utf-8", "surrogateescape")
