"""Who may reach what of the default file system over the API; looks at names only.

``/<user>/`` belongs to the user, and the directories that an administrator shares belong to everyone. Jobs leave their
output in ``/Output/<user>/<job uid>/`` unless they say otherwise, so that jobs of one name never meet there. Each user
sees the output of their job at the seeds' path, ``/Output/<job name>/``. Administrators may reach everything.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum

from pai_backend.model.ids import is_job_uid
from pai_backend.storage.faults import NotAllowed, StorageFault

OUTPUT = "Output"
"""Where outputs go by default. Source: the seeds' ``$PAI_DEFAULT_FS_URI/Output/$jobName``, which has no owner in it."""

MAX_DEPTH = 64
MAX_NAME_BYTES = 240  # of a file system's usual 255, with room for ``copy_name``
PARTIAL_PREFIX, PARTIAL_SUFFIX = ".", ".part"


def parts_of(path: str) -> tuple[str, ...]:
    """The names in a path, from the top; ``/`` has none. Raises StorageFault for one that is no plain path.

    ``.`` and ``..`` are refused rather than resolved, so what is checked is what is used.
    """
    parts = tuple(part for part in path.split("/") if part)
    if len(parts) > MAX_DEPTH:
        raise StorageFault(f"the path has more than {MAX_DEPTH} names", "use a shorter one")
    for part in parts:
        if part in (".", ".."):
            raise StorageFault("the path holds . or ..", "write it out")
        if not part.isprintable() or "\\" in part:
            raise StorageFault("the path holds a control character or a backslash", "rename the file")
        try:
            size = len(part.encode())
        except UnicodeEncodeError:
            raise StorageFault("the path is not valid UTF-8", "encode it as UTF-8") from None
        if size > MAX_NAME_BYTES:
            raise StorageFault(f"a name is longer than {MAX_NAME_BYTES} bytes", "use a shorter one")
        if is_partial(part):
            raise StorageFault(f"names like {part!r} are kept for uploads under way", "use another name")
    return parts


def partial_name(name: str) -> str:
    """What a file is called while it is being uploaded."""
    return f"{PARTIAL_PREFIX}{name}{PARTIAL_SUFFIX}"


def copy_name(name: str) -> str:
    """What a copy is called until it is complete; another one each time, so that two do not meet."""
    return f"{PARTIAL_PREFIX}{name}.{secrets.token_hex(4)}{PARTIAL_SUFFIX}"


def is_partial(name: str) -> bool:
    """Whether the name is one of an upload under way."""
    return name.startswith(PARTIAL_PREFIX) and name.endswith(PARTIAL_SUFFIX) and len(name) > len(".part")


class Area(Enum):
    """What a path belongs to."""

    TOP = "top"  # what is at the top: it can be listed, and everyone sees what is theirs
    HOME = "home"
    SHARED = "shared"
    OUTPUT = "output"  # the caller must have the job, see ``Claim.job``
    OTHER = "other"  # for administrators


@dataclass(frozen=True)
class OwnedPath:
    """Where a path lies; ``job`` is the name of the job whose output it is, empty where the path has its owner and uid.

    ``top`` is true of what can only be a directory: the root, all that is right below it, and each job's output. A file
    there would leave a user, those who share the directory, or a job without a place.
    """

    area: Area
    job: str = ""
    top: bool = False


def claim(user: str, admin: bool, parts: tuple[str, ...], shared: Collection[str]) -> OwnedPath:
    """Where a path lies for this user. Raises NotAllowed when that is no place of theirs.

    Directories of the platform and shared ones come first: a user of the same name does not own them.
    """
    if not parts:
        return OwnedPath(Area.TOP, top=True)
    first, top = parts[0], len(parts) <= (2 if parts[0] == OUTPUT else 1)
    if first in shared:
        return OwnedPath(Area.SHARED, top=top)
    if first == OUTPUT and len(parts) > 1:
        if parts[1] == user and len(parts) > 2 and is_job_uid(parts[2]):
            return OwnedPath(Area.OUTPUT, "", len(parts) <= 3)
        return OwnedPath(Area.OUTPUT, parts[1], top)
    if first == user and first != OUTPUT:
        return OwnedPath(Area.HOME, top=top)
    if admin:
        return OwnedPath(Area.OTHER, top=top)
    places = ", ".join([f"/{user}", *(f"/{name}" for name in sorted(shared)), f"/{OUTPUT}/JOB"])
    raise NotAllowed("this is not a directory of yours", f"you may use what is below {places}")
