"""What a login may ask for, where requests come one by one and not as messages (``guard`` is for those). Pure."""

from __future__ import annotations

from collections.abc import Collection

from pai_backend.access.broker.rights import EVERYTHING, Limits, Sftp
from pai_backend.access.gateway.guard import is_locale, is_the_task, not_that_port


class Permits:
    """The rules of one login in one task."""

    def __init__(self, limits: Limits, ports: Collection[int]) -> None:
        """``ports`` are those of the task that its labels name."""
        self._limits, self._ports = limits, ports
        self._is_limited = limits != EVERYTHING
        self.reads_only = limits.sftp is Sftp.READ and not limits.commands
        """Whether files may be read and nothing else be done."""

    def session(self) -> str:
        """Why no session may be opened; empty when one may be."""
        allowed = not self._is_limited or self._limits.commands or self._limits.sftp is not Sftp.NONE
        return "" if allowed else "This login is for forwarded ports only."

    def request(self, name: str, subject: str) -> str:
        """Why a session may not ask for that; empty when it may."""
        limits = self._limits
        if name == "pty-req":
            allowed = limits.pty
        elif (name, subject) == ("subsystem", "sftp"):
            allowed = limits.sftp is not Sftp.NONE
        else:
            allowed = limits.commands
        return "" if allowed or not self._is_limited else "This login does not allow it."

    def connection(self, host: str, port: int) -> str:
        """Why a port may not be reached; empty when it may be."""
        if not self._is_limited or self._limits.ports is None:
            return ""
        if port in self._ports and is_the_task(host.encode()):
            return ""
        return not_that_port(self._limits)

    def sockets(self) -> str:
        """Why sockets in the file system, and listeners, may not be used; empty when they may be."""
        return "" if not self._is_limited or self._limits.listen else "This login does not allow that kind of channel."

    def environment(self, given: dict[str, str]) -> dict[str, str]:
        """The variables that may pass."""
        if not self._is_limited:
            return given
        return {name: value for name, value in given.items() if is_locale(name.encode(), value.encode())}
