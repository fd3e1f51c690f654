"""One account of this machine, as tasks of a user run in it. The agent reads this, so it imports little."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SystemAccount:
    """An account of this machine."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str
    shell: str

    @property
    def told(self) -> str:
        """As ``shim.account`` takes it."""
        return f"{self.uid}:{self.gid}:{','.join(map(str, self.groups))}"

    @property
    def environment(self) -> dict[str, str]:
        """What a login to it would have."""
        return {"HOME": self.home, "USER": self.name, "LOGNAME": self.name, "SHELL": self.shell}


def by_record(record: object) -> SystemAccount | None:
    """The account that a task's plan names; None for a task of the backend's own. Raises KeyError, TypeError."""
    if not isinstance(record, dict):
        return None
    return SystemAccount(**{**record, "groups": tuple(record["groups"])})
