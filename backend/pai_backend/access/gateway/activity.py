"""What a login is used for: bytes of its channels, when the last ones passed, and its first requests. No I/O.

Bytes of every kind of channel count, and nothing else: keepalives and window changes keep no job from being idle.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from pai_backend.engine.ssh_wire import (
    MSG_CHANNEL_DATA,
    MSG_CHANNEL_EXTENDED_DATA,
    MSG_CHANNEL_OPEN,
    MSG_CHANNEL_REQUEST,
    Packet,
)

MOST_REQUESTS = 16  # what a client is shows in its first requests
_COMMAND_BYTES = 400  # of a command, enough to know its program by

_BEFORE_DATA = {MSG_CHANNEL_DATA: 8, MSG_CHANNEL_EXTENDED_DATA: 12}  # bytes of numbers and lengths (RFC 4254 §5.2)


class LoginUse(StrEnum):
    """What a login is for."""

    SHELL = "shell"
    EXEC = "exec"
    SFTP = "sftp"
    FORWARD = "forward"
    VSCODE = "vscode"
    JETBRAINS = "jetbrains"
    JUMP = "jump"
    NONE = "none"
    """Nothing was asked for."""


@dataclass(frozen=True, slots=True)
class ChannelRequest:
    """A request or opening of a channel: its name, and the command or subsystem that it names."""

    name: str
    subject: str = ""


@dataclass(slots=True)
class LoginActivity:
    """The use of one login. Raises PacketDecodeError on a message that is cut short."""

    client_version: str = ""
    bytes_in: int = 0
    """From the client to the task."""
    bytes_out: int = 0
    requests: list[ChannelRequest] = field(default_factory=list)
    uses: int = 0
    """Grows with every message that carries data."""

    def from_client(self, kind: int, payload: bytes) -> None:
        """Note a message on its way to the task."""
        if kind in _BEFORE_DATA:
            self.bytes_in += max(0, len(payload) - _BEFORE_DATA[kind])
            self.uses += 1
        elif kind in (MSG_CHANNEL_OPEN, MSG_CHANNEL_REQUEST) and len(self.requests) < MOST_REQUESTS:
            self.note(_read(kind, Packet(payload)))

    def note(self, request: ChannelRequest) -> None:
        """Note what it asks for; the first requests count."""
        if len(self.requests) < MOST_REQUESTS:
            self.requests.append(request)

    def add(self, size: int, *, to_task: bool) -> None:
        """Note so many bytes of a channel."""
        self.bytes_in, self.bytes_out = self.bytes_in + size * to_task, self.bytes_out + size * (not to_task)
        self.uses += 1

    def from_task(self, kind: int, payload: bytes) -> None:
        """Note a message on its way to the client."""
        if kind in _BEFORE_DATA:
            self.bytes_out += max(0, len(payload) - _BEFORE_DATA[kind])
            self.uses += 1

    @property
    def kind(self) -> LoginUse:
        """What the login is for, as far as it has shown."""
        return kind_of(self.client_version, self.requests)


def _read(kind: int, packet: Packet) -> ChannelRequest:
    """What a request or an opening of a channel says."""
    if kind == MSG_CHANNEL_REQUEST:
        packet.get_uint32()
    name = packet.get_string().decode("ascii", "replace")
    subject = b""
    if kind == MSG_CHANNEL_REQUEST and name in ("exec", "subsystem"):
        packet.get_boolean()
        subject = packet.get_string()
    return ChannelRequest(name, subject[:_COMMAND_BYTES].decode("utf-8", "replace"))


_VSCODE_MARKS = (".vscode-server", "vscode-server", ".cursor-server", ".windsurf-server", "VSCODE_AGENT_FOLDER")
_JETBRAINS_MARKS = (".cache/JetBrains", "remote-dev-server", ".pycharm_helpers", "JetBrains/RemoteDev")
_SSHJ = "SSHJ"  # the library of JetBrains' products names itself in its version (peers: "SSH-2.0-…SSHJ_0.32.0")


def kind_of(client_version: str, requests: list[ChannelRequest]) -> LoginUse:
    """What a client wants, by its version and its first requests.

    VS Code and its kin run ``bash`` without a terminal, give it a script on its input and forward ports; their
    scripts are data and not looked at, so what tells them is that forwarding beside a bare shell. JetBrains'
    products tell by their library.
    """
    names = [request.name for request in requests]
    commands = [request.subject for request in requests if request.name == "exec"]
    if _SSHJ in client_version or any(mark in command for command in commands for mark in _JETBRAINS_MARKS):
        return LoginUse.JETBRAINS
    if any(mark in command for command in commands for mark in _VSCODE_MARKS):
        return LoginUse.VSCODE
    bare = any(command.strip() in ("bash", "sh", "bash -l") for command in commands)
    if bare and "direct-tcpip" in names and "pty-req" not in names:
        return LoginUse.VSCODE
    if "jump" in names:
        return LoginUse.JUMP
    if any(request.name == "subsystem" and request.subject == "sftp" for request in requests):
        return LoginUse.SFTP
    if commands or "subsystem" in names:
        return LoginUse.EXEC
    if "shell" in names:
        return LoginUse.SHELL
    return LoginUse.FORWARD if names and set(names) - {"session"} else LoginUse.NONE
