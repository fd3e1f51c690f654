"""What of a login's messages may pass: the limits of its credential, and a bound on its channels. No I/O.

A refusal must reach who asked as the protocol has it, in order, while the rest of the connection goes on:

- A channel that may not be opened is refused here: such answers name their channel, so no order is lost.
- A request that may not be made is passed on under a name that no server knows. The task then answers with a
  failure, after its answers to everything before (RFC 4254 §4 and §5.4: answers have no number, only an order).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection

from asyncssh.constants import (
    MSG_CHANNEL_CLOSE,
    MSG_CHANNEL_DATA,
    MSG_CHANNEL_OPEN,
    MSG_CHANNEL_OPEN_FAILURE,
    MSG_CHANNEL_REQUEST,
    MSG_GLOBAL_REQUEST,
    OPEN_ADMINISTRATIVELY_PROHIBITED,
    OPEN_RESOURCE_SHORTAGE,
)
from asyncssh.packet import Boolean, SSHPacket, String, UInt32

from pai_backend.access.broker.rights import EVERYTHING, Limits, Sftp
from pai_backend.access.gateway.reading_only import ReadingOnly
from pai_backend.access.gateway.sessions import Message

NOT_PASSED_ON = b"not-passed-on@jupyter-pai"  # unknown to every end, so a failure is the answer (RFC 4254 §4)

Ruling = tuple[bytes | None, Message | None]
"""(payload to pass on, None for nothing; a message for who sent it, if any)."""

_LISTENS = (b"tcpip-forward", b"streamlocal-forward@openssh.com")


class Guard:
    """The rules of one login. Raises PacketDecodeError on a message that is cut short."""

    __slots__ = ("_files", "_limits", "_most", "_open", "_ports")

    def __init__(self, limits: Limits, ports: Collection[int], max_channels: int) -> None:
        self._limits, self._ports, self._most = limits, ports, max_channels
        self._open: set[int] = set()
        """Numbers that the client gave to channels it opened."""
        self._files: dict[int, ReadingOnly] = {}
        """By the task's number of the channel: SFTP sessions that may only read."""

    def from_client(self, kind: int, payload: bytes) -> Ruling:
        """Judge a message on its way to the task."""
        if kind == MSG_CHANNEL_DATA:
            return (self._read_only(payload) if self._files else payload), None
        if kind == MSG_CHANNEL_OPEN:
            return self._opening(payload)
        if self._limits == EVERYTHING:
            return payload, None
        if kind == MSG_GLOBAL_REQUEST:
            return self._global(payload), None
        if kind == MSG_CHANNEL_REQUEST:
            return self._request(payload)
        if kind == MSG_CHANNEL_CLOSE:
            self._files.pop(SSHPacket(payload).get_uint32(), None)
        return payload, None

    def from_task(self, kind: int, payload: bytes) -> Ruling:
        """Judge a message on its way to the client."""
        if kind in (MSG_CHANNEL_CLOSE, MSG_CHANNEL_OPEN_FAILURE):
            self._open.discard(SSHPacket(payload).get_uint32())
        elif kind == MSG_CHANNEL_OPEN and self._limits != EVERYTHING:
            packet = SSHPacket(payload)
            allowed = {
                b"forwarded-tcpip": self._limits.listen,
                b"forwarded-streamlocal@openssh.com": self._limits.listen,
                b"auth-agent@openssh.com": self._limits.agent,
                b"x11": self._limits.x11,
            }
            if not allowed.get(packet.get_string(), False):
                return None, _refused(packet.get_uint32(), "The client's login does not allow it.")
        return payload, None

    def _opening(self, payload: bytes) -> Ruling:
        packet = SSHPacket(payload)
        kind, number = packet.get_string(), packet.get_uint32()
        if len(self._open) >= self._most:
            text = f"This connection has {self._most} channels open, which is the most."
            return None, _refused(number, text, OPEN_RESOURCE_SHORTAGE)
        packet.get_bytes(8)  # window, largest packet
        refusal = "" if self._limits == EVERYTHING else self._why_not(kind, packet)
        if refusal:
            return None, _refused(number, refusal)
        self._open.add(number)
        return payload, None

    def _why_not(self, kind: bytes, packet: SSHPacket) -> str:
        limits = self._limits
        if kind == b"session":
            return "" if limits.commands or limits.sftp is not Sftp.NONE else "This login is for forwarded ports only."
        if kind == b"direct-tcpip":
            host, port = packet.get_string(), packet.get_uint32()
            if limits.ports is None or (port in self._ports and _is_the_task(host)):
                return ""
            labels = ", ".join(limits.ports) or "none"
            return f"This login may not reach that port. Ports it may reach, by label: {labels}."
        if kind == b"direct-streamlocal@openssh.com" and limits.listen:
            return ""
        return "This login does not allow that kind of channel."

    def _global(self, payload: bytes) -> bytes:
        packet = SSHPacket(payload)
        if packet.get_string() in _LISTENS and not self._limits.listen:
            return String(NOT_PASSED_ON) + Boolean(packet.get_boolean())
        return payload

    def _request(self, payload: bytes) -> Ruling:
        packet = SSHPacket(payload)
        number, name, wants_reply = packet.get_uint32(), packet.get_string(), packet.get_boolean()
        is_sftp = name == b"subsystem" and packet.get_string() == b"sftp"
        if self._allows(name, is_sftp=is_sftp):
            if is_sftp and self._limits.sftp is Sftp.READ:
                self._files[number] = ReadingOnly()
            return payload, None
        return UInt32(number) + String(NOT_PASSED_ON) + Boolean(wants_reply), None

    def _allows(self, name: bytes, *, is_sftp: bool) -> bool:
        limits = self._limits
        if is_sftp:
            return limits.sftp is not Sftp.NONE
        return {
            b"pty-req": limits.pty,
            b"shell": limits.commands,
            b"exec": limits.commands,
            b"subsystem": limits.commands,
            b"auth-agent-req@openssh.com": limits.agent,
            b"x11-req": limits.x11,
        }.get(name, True)

    def _read_only(self, payload: bytes) -> bytes:
        files = self._files.get(int.from_bytes(payload[:4], "big"))
        return payload if files is None else payload[:8] + files.filtered(payload[8:])


def _is_the_task(host: bytes) -> bool:
    """Whether a host name means the task itself, as seen from inside it."""
    text = host.decode("utf-8", "replace")
    if text == "localhost":
        return True
    try:
        return ipaddress.ip_address(text).is_loopback
    except ValueError:
        return False


def _refused(number: int, text: str, code: int = OPEN_ADMINISTRATIVELY_PROHIBITED) -> Message:
    return MSG_CHANNEL_OPEN_FAILURE, UInt32(number) + UInt32(code) + String(text.encode()) + String(b"")
