"""What of a login's messages may pass: the limits of its credential, and a bound on its channels. No I/O.

A refusal must reach who asked as the protocol has it, in order, while the rest of the connection goes on:

- A channel that may not be opened is refused here: such answers name their channel, so no order is lost.
- A request that may not be made is passed on under a name that no server knows. The task then answers with a
  failure, after its answers to everything before (RFC 4254 §4 and §5.4: answers have no number, only an order).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection

from pai_backend.access.broker.rights import EVERYTHING, Limits, Sftp
from pai_backend.access.gateway.channels import Channels
from pai_backend.access.gateway.reading_only import ReadingOnly
from pai_backend.access.gateway.sessions import Message
from pai_backend.engine.ssh_wire import (
    MSG_CHANNEL_CLOSE,
    MSG_CHANNEL_DATA,
    MSG_CHANNEL_EXTENDED_DATA,
    MSG_CHANNEL_FAILURE,
    MSG_CHANNEL_OPEN,
    MSG_CHANNEL_OPEN_CONFIRMATION,
    MSG_CHANNEL_OPEN_FAILURE,
    MSG_CHANNEL_REQUEST,
    MSG_CHANNEL_SUCCESS,
    MSG_GLOBAL_REQUEST,
    MSG_REQUEST_FAILURE,
    MSG_REQUEST_SUCCESS,
    OPEN_ADMINISTRATIVELY_PROHIBITED,
    OPEN_RESOURCE_SHORTAGE,
    Packet,
    PacketDecodeError,
    boolean,
    string,
    uint32,
)

NOT_PASSED_ON = b"not-passed-on@jupyter-pai"  # unknown to every end, so a failure is the answer (RFC 4254 §4)

Ruling = tuple[bytes | None, Message | None]
"""(payload to pass on, None for nothing; a message for who sent it, if any)."""

_STARTS = (b"shell", b"exec", b"subsystem")
"""Requests of which one only can succeed on a channel (RFC 4254 §6.5)."""

_LISTENS = (
    *(b"tcpip-forward", b"cancel-tcpip-forward"),
    *(b"streamlocal-forward@openssh.com", b"cancel-streamlocal-forward@openssh.com"),
)
_ALWAYS_ASKED = (b"keepalive@openssh.com", b"no-more-sessions@openssh.com")
_LOCALE_NAME = re.compile(rb"LANG|LC_[A-Z_]{1,32}")
_LOCALE = re.compile(rb"[A-Za-z0-9_.@:+-]{0,64}")


class Guard:
    """The rules of one login. Raises PacketDecodeError on a message that is cut short or names channels wrongly."""

    __slots__ = ("_channels", "_is_limited", "_limits", "_ports", "_reads_only")

    def __init__(self, limits: Limits, ports: Collection[int], max_channels: int) -> None:
        self._limits, self._ports = limits, ports
        self._is_limited = limits != EVERYTHING
        self._reads_only = limits.sftp is Sftp.READ and not limits.commands  # which write files, too
        self._channels = Channels(max_channels)

    # ---- from the client -----------------------------------------------------------------------
    def from_client(self, kind: int, payload: bytes) -> Ruling:
        """Judge a message on its way to the task."""
        if kind in (MSG_CHANNEL_DATA, MSG_CHANNEL_EXTENDED_DATA):
            return (self._read_only(kind, payload) if self._reads_only else payload), None
        if kind == MSG_CHANNEL_OPEN:
            return self._opening(payload)
        if kind == MSG_CHANNEL_REQUEST:
            return self._request(payload), None
        if kind == MSG_GLOBAL_REQUEST:
            return self._global(payload), None
        if kind == MSG_CHANNEL_CLOSE:
            self._channels.closed_by_client(Packet(payload).get_uint32())
        elif kind == MSG_CHANNEL_OPEN_CONFIRMATION:
            packet = Packet(payload)
            self._channels.confirmed_by_client(packet.get_uint32(), packet.get_uint32())
        elif kind == MSG_CHANNEL_OPEN_FAILURE:
            self._channels.refused_by_client(Packet(payload).get_uint32())
        return payload, None

    def _opening(self, payload: bytes) -> Ruling:
        packet = Packet(payload)
        kind, number = packet.get_string(), packet.get_uint32()
        if self._channels.is_full:
            return None, full(number, self._channels.most)
        packet.get_bytes(8)  # window, largest packet
        refusal = self._why_not(kind, packet) if self._is_limited else ""
        if refusal:
            return None, _refused(number, refusal)
        self._channels.opened_by_client(number, is_session=kind == b"session")
        return payload, None

    def _why_not(self, kind: bytes, packet: Packet) -> str:
        limits = self._limits
        if kind == b"session":
            return "" if limits.commands or limits.sftp is not Sftp.NONE else "This login is for forwarded ports only."
        if kind == b"direct-tcpip":
            host, port = packet.get_string(), packet.get_uint32()
            if limits.ports is None or (port in self._ports and is_the_task(host)):
                return ""
            return not_that_port(limits)
        if kind == b"direct-streamlocal@openssh.com" and limits.listen:
            return ""
        return "This login does not allow that kind of channel."

    def _global(self, payload: bytes) -> bytes:
        packet = Packet(payload)
        name, wants_reply = packet.get_string(), packet.get_boolean()
        change = self._channels.listening.change(name)
        passes = not self._is_limited or name in _ALWAYS_ASKED or (name in _LISTENS and self._limits.listen)
        passes = passes and not (change > 0 and self._channels.is_full)
        self._channels.listening.asked(change if passes else 0, wants_reply=wants_reply)
        return payload if passes else string(NOT_PASSED_ON) + boolean(wants_reply)

    def _request(self, payload: bytes) -> bytes:
        packet = Packet(payload)
        number, name, wants_reply = packet.get_uint32(), packet.get_string(), packet.get_boolean()
        channel = self._channels.by_task(number)
        if channel is None:
            if not self._is_limited:
                return payload
            raise PacketDecodeError("a request on a channel that is not open")
        starts = name in _STARTS
        passes = not (starts and channel.is_started) and (not self._is_limited or self._allows(name, packet))
        channel.note_request(wants_reply=wants_reply, starts=starts and passes)
        if not passes:
            return uint32(number) + string(NOT_PASSED_ON) + boolean(wants_reply)
        if starts and self._reads_only:
            channel.files = ReadingOnly()
        return payload

    def _allows(self, name: bytes, packet: Packet) -> bool:
        """Whether a limited login may make a request; ``packet`` is at what follows the wish for a reply.

        Names are compared with those of a list: servers take other spellings of some (asyncssh ``pty_req``).
        """
        limits = self._limits
        if name == b"env":
            return is_locale(packet.get_string(), packet.get_string())
        if name == b"subsystem" and packet.get_string() == b"sftp":
            return limits.sftp is not Sftp.NONE
        return {
            b"pty-req": limits.pty,
            b"window-change": True,
            b"shell": limits.commands,
            b"exec": limits.commands,
            b"subsystem": limits.commands,
            b"signal": limits.commands,
            b"break": limits.commands,
            b"auth-agent-req@openssh.com": limits.agent,
            b"x11-req": limits.x11,
            b"eow@openssh.com": True,
            b"keepalive@openssh.com": True,
        }.get(name, False)

    def _read_only(self, kind: int, payload: bytes) -> bytes | None:
        """Data of a login that may only read files; None for data that no SFTP server may get.

        What comes before the request for SFTP is dropped: OpenSSH's server ignores it, asyncssh's keeps it for SFTP.
        """
        channel = self._channels.by_task(int.from_bytes(payload[:4], "big"))
        if channel is None or channel.closed_by_client:
            return None
        if not channel.is_session:
            return payload
        if kind != MSG_CHANNEL_DATA or channel.files is None:
            return None
        return payload[:8] + channel.files.filtered(payload[8:])

    # ---- from the task -------------------------------------------------------------------------
    def from_task(self, kind: int, payload: bytes) -> Ruling:
        """Judge a message on its way to the client."""
        channels = self._channels
        if kind in (MSG_CHANNEL_SUCCESS, MSG_CHANNEL_FAILURE):
            channel = channels.by_client(Packet(payload).get_uint32())
            if channel is not None:
                channel.note_reply(success=kind == MSG_CHANNEL_SUCCESS or self._reads_only)
        elif kind == MSG_CHANNEL_CLOSE:
            channels.closed_by_task(Packet(payload).get_uint32())
        elif kind == MSG_CHANNEL_OPEN_CONFIRMATION:
            packet = Packet(payload)
            channels.confirmed_by_task(packet.get_uint32(), packet.get_uint32())
        elif kind == MSG_CHANNEL_OPEN_FAILURE:
            channels.refused_by_task(Packet(payload).get_uint32())
        elif kind == MSG_CHANNEL_OPEN:
            return self._opening_by_task(payload)
        elif kind in (MSG_REQUEST_SUCCESS, MSG_REQUEST_FAILURE):
            channels.listening.answered(success=kind == MSG_REQUEST_SUCCESS)
        return payload, None

    def _opening_by_task(self, payload: bytes) -> Ruling:
        packet = Packet(payload)
        kind, number = packet.get_string(), packet.get_uint32()
        limits = self._limits
        allowed = {
            b"forwarded-tcpip": limits.listen,
            b"forwarded-streamlocal@openssh.com": limits.listen,
            b"auth-agent@openssh.com": limits.agent,
            b"x11": limits.x11,
        }
        if self._is_limited and not allowed.get(kind, False):
            return None, _refused(number, "The client's login does not allow it.")
        if self._channels.is_full:
            return None, full(number, self._channels.most)
        self._channels.opened_by_task(number)
        return payload, None


def full(number: int, most: int) -> Message:
    """The refusal of a channel that a connection which has ``most`` open wants beside them."""
    text = f"This connection has {most} channels open, the maximum. Close some, or open another connection."
    return _refused(number, text, OPEN_RESOURCE_SHORTAGE)


def not_that_port(limits: Limits) -> str:
    """Why a port may not be reached, and which may be."""
    labels = ", ".join(limits.ports or ()) or "none"
    return f"This login may not reach that port. Ports it may reach, by label: {labels}."


def is_locale(name: bytes, value: bytes) -> bool:
    """Whether a variable chooses a language and does nothing else: others tell a loader or a shell what to run."""
    return _LOCALE_NAME.fullmatch(name) is not None and _LOCALE.fullmatch(value) is not None


def is_the_task(host: bytes) -> bool:
    """Whether a host name means the task itself, as seen from inside it."""
    text = host.decode("utf-8", "replace")
    if text == "localhost":
        return True
    try:
        return ipaddress.ip_address(text).is_loopback
    except ValueError:
        return False


def _refused(number: int, text: str, code: int = OPEN_ADMINISTRATIVELY_PROHIBITED) -> Message:
    return MSG_CHANNEL_OPEN_FAILURE, uint32(number) + uint32(code) + string(text.encode()) + string(b"")
