"""The two legs of a login, joined so that the connection layer passes through untouched.

One client connection is joined to exactly one task connection. Each end numbers its own channels, and a
message always carries its receiver's number, so every message of RFC 4254 can be passed on byte for byte:
channels of every kind, requests and their replies, windows, EOF, exit status and CLOSE, in the order they
came. What is not passed on as it is:

- the task's announcement of its host keys and questions about them: the client knows the gateway's key only;
- the maximum packet size that an end offers, which is lowered to what this relay accepts;
- answers to the gateway's own keepalives;
- what the rules of the login (``guard``) do not allow;
- a little of each session's first window, in jobs with an idle timeout (``terminal_lines``).

Only the kernel and the transports buffer: when one end is full, reading from the other stops (TCP), and windows keep
channels apart (RFC 4254 §5.2) as they would without a gateway.

This module, ``packets``, ``lean`` and ``front`` use parts of asyncssh that it does not document; tests name each.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast

from asyncssh.channel import SSHChannel
from asyncssh.client import SSHClient
from asyncssh.connection import SSHClientConnection, SSHClientConnectionOptions
from asyncssh.packet import SSHPacket

from pai_backend.access.gateway.guard import NOT_PASSED_ON, Ruling
from pai_backend.access.gateway.joined.lean import fields_of
from pai_backend.access.gateway.joined.packets import Packets
from pai_backend.access.gateway.transport import FlushingTransport
from pai_backend.engine.ssh_wire import (
    DISC_PROTOCOL_ERROR,
    MSG_CHANNEL_FAILURE,
    MSG_CHANNEL_LAST,
    MSG_CHANNEL_OPEN,
    MSG_CHANNEL_OPEN_CONFIRMATION,
    MSG_GLOBAL_REQUEST,
    MSG_REQUEST_FAILURE,
    MSG_REQUEST_SUCCESS,
    Packet,
    PacketDecodeError,
    boolean,
    string,
    uint32,
)

MAX_PACKET_BYTES = 1 << 17  # half of what asyncssh receives at most; OpenSSH and asyncssh offer 32 KiB
MOST_UNANSWERED = 4096  # global requests of one end that the other has not answered; programs have one or two
UNSENT_BYTES = 1 << 22  # of answers to a client that reads none of them; the other leg leaves less here by far
REKEY_SOFT_BYTES = 1 << 20  # held back during a key exchange before the other leg is paused
REKEY_HARD_BYTES = 1 << 26  # and before the login is ended: only an end that breaks the protocol gets there
UNREAD_BYTES = 1 << 19  # received but not yet parsed, twice the largest packet: reading pauses until it is

HOST_KEY_REQUESTS = (b"hostkeys-00@openssh.com", b"hostkeys-prove-00@openssh.com")
_REPLIES = (MSG_REQUEST_SUCCESS, MSG_REQUEST_FAILURE)

# Reasons for not reading from a leg, of which several can hold; it is read again when the last one is gone.
_CONGESTED = 1  # the other leg's transport is full
_REKEYING = 2  # the other leg exchanges keys
_UNREAD = 4  # what was received is still being worked on
ENTERING = 8  # the task's leg is being opened
_UNSENT = 16  # what this leg itself has answered is not taken

Result = bool | Awaitable[None]
Rule = Callable[[int, bytes], Ruling]
"""Called with each message of the connection layer, its number and the payload after it: what is to become of it."""
Observer = Callable[[int, bytes], None]
"""Called with each message about a channel that is passed on: its number and the payload after it."""

_T = TypeVar("_T")


class _EveryNumber(dict[int, _T]):
    """The channel table of a joined leg: a message for any number goes to the leg itself."""

    __slots__ = ("_leg",)

    def __init__(self, leg: _T) -> None:
        super().__init__()
        self._leg = leg

    def __missing__(self, number: int) -> _T:
        return self._leg

    def __contains__(self, number: object) -> bool:
        return True


class Leg(Packets):
    """One leg: a plain asyncssh connection until ``join``, from then on one half of a relay."""

    __slots__ = ("_deferred_bytes", "_not_reading", "_observe", "_rule", "asked", "drained", "outlet", "peer")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.peer: Leg | None = None
        self._rule: Rule | None = None
        self._observe: Observer | None = None
        self.asked: list[bool] = []
        """One entry for each global request sent whose reply is due: whether the peer is waiting for it."""
        self._not_reading = 0
        self._deferred_bytes = 0
        self.drained: list[Callable[[], None]] = []
        """Called once, when what was written has left: by those who wait for that."""
        self.outlet: FlushingTransport | None = None
        """What it is written to by, also when it is closed already."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the transport when it stands."""
        self.outlet = cast("FlushingTransport", transport)
        super().connection_made(transport)

    @property
    def alive(self) -> bool:
        """Whether the connection still stands."""
        return self._transport is not None

    def relay_to(self, peer: Leg, rule: Rule, observe: Observer) -> None:
        """From now on pass what ``rule`` allows of the connection layer on to ``peer``, showing it to ``observe``."""
        self.peer, self._rule, self._observe = peer, rule, observe
        self._channels = cast("dict[int, SSHChannel[bytes]]", _EveryNumber(self))

    # ---- messages ------------------------------------------------------------------------------
    def process_packet(self, pkttype: int, pktid: int, packet: SSHPacket) -> Result:
        """Called by asyncssh for every message: pass it on, or let asyncssh handle it."""
        if pkttype in _REPLIES and not (self.asked and self.asked.pop(0)):
            return super().process_packet(pkttype, pktid, packet)
        if self.peer is None or not MSG_GLOBAL_REQUEST <= pkttype <= MSG_CHANNEL_LAST:
            return super().process_packet(pkttype, pktid, packet)
        if pkttype > MSG_CHANNEL_FAILURE:
            return False  # not a message of RFC 4254: asyncssh answers "unimplemented"
        self._pass_on(pkttype, packet.get_full_payload()[1:])
        return True

    def log_received_packet(self, *_: object) -> None:
        """Called by asyncssh for every message: what users send is never logged, at no level."""

    def log_sent_packet(self, *_: object) -> None:
        """As ``log_received_packet``."""

    def _pass_on(self, kind: int, payload: bytes) -> None:
        """Send one message of this leg to the other."""
        assert self.peer is not None
        assert self._rule is not None
        assert self._observe is not None
        allowed, answer = self._rule(kind, payload)
        if answer is not None:
            self.send_packet(*answer)
        if allowed is None:
            return
        payload = allowed
        if kind == MSG_GLOBAL_REQUEST:
            name, wants_reply, payload = global_request(payload)
            if wants_reply:
                if len(self.peer.asked) >= MOST_UNANSWERED:
                    raise PacketDecodeError("too many requests that are not answered yet")
                self.peer.asked.append(True)
            elif is_about_host_keys(name):
                return
        elif kind in (MSG_CHANNEL_OPEN, MSG_CHANNEL_OPEN_CONFIRMATION):
            payload = _with_bounded_packets(kind, payload)
        if kind >= MSG_CHANNEL_OPEN:
            self._observe(kind, payload)
        self.peer.deliver(kind, payload)

    def deliver(self, kind: int, payload: bytes) -> None:
        """Send a message that came from the other leg; asyncssh holds it back during a key exchange."""
        self.send_packet(kind, payload)
        if self._kex_complete or self.peer is None:
            return
        self._deferred_bytes += len(payload)
        if self._deferred_bytes > REKEY_HARD_BYTES:
            self.disconnect(DISC_PROTOCOL_ERROR, "The key exchange does not end")
        elif self._deferred_bytes > REKEY_SOFT_BYTES:
            self.peer.hold_input(_REKEYING)

    async def _make_global_request(self, request: bytes, *args: bytes) -> tuple[int, SSHPacket]:
        """Called by asyncssh for its keepalives: note that the reply is for this end, not for the peer."""
        if self._transport:
            self.asked.append(False)
        return await super()._make_global_request(request, *args)

    # ---- flow ----------------------------------------------------------------------------------
    def _recv_data(self) -> None:
        """Called by asyncssh when there is something to work on: hold a sender back who is faster than that.

        While a message waits for the store or the task, asyncssh would collect what follows without a bound.
        """
        super()._recv_data()
        if len(self._inpbuf) > UNREAD_BYTES:
            self.hold_input(_UNREAD)
        elif self._not_reading & _UNREAD:
            self.release_input(_UNREAD)
        if self.outlet is not None and self.outlet.get_write_buffer_size() > UNSENT_BYTES:
            self.hold_input(_UNSENT)

    def hold_input(self, reason: int) -> None:
        """Stop reading from this leg for ``reason``. Idempotent."""
        if reason == _REKEYING and not self._kex_complete:
            return  # both legs exchange keys: each must read on, or neither exchange would end
        self._not_reading |= reason
        if self._transport:
            self._transport.pause_reading()

    def release_input(self, reason: int) -> None:
        """``reason`` no longer holds; read again unless another does. Idempotent."""
        self._not_reading &= ~reason
        if self._transport and not self._not_reading:
            self._transport.resume_reading()

    def pause_writing(self) -> None:
        """Called by the transport when it holds enough: the other leg is not read until it has drained."""
        if self.peer:
            self.peer.hold_input(_CONGESTED)

    def resume_writing(self) -> None:
        """Called by the transport when it has drained."""
        self.release_input(_UNSENT)
        if self.peer:
            self.peer.release_input(_CONGESTED)
        waiting, self.drained = self.drained, []
        for go_on in waiting:
            go_on()

    def _send_kexinit(self) -> None:
        super()._send_kexinit()
        self.release_input(_REKEYING)

    def send_newkeys(self, k: bytes, h: bytes) -> None:
        """Called by asyncssh when an exchange is done and what was held back has left."""
        super().send_newkeys(k, h)
        if self._auth_complete:
            self.let_go()
        self._deferred_bytes = 0
        if self.peer:
            self.peer.release_input(_REKEYING)


class Back(Leg, SSHClientConnection):
    """The leg from the gateway to the task. ``settings`` are shared by many; ``client`` is called for this one."""

    __slots__ = fields_of(SSHClientConnection, Packets)

    def __init__(
        self, loop: asyncio.AbstractEventLoop, settings: SSHClientConnectionOptions, client: SSHClient
    ) -> None:
        super().__init__(loop, settings, wait="auth")
        self._protocol_factory = lambda: client
        self._waiter = loop.create_future()

    @property
    def connection(self) -> SSHClientConnection:
        """As :class:`TaskLeg` has it."""
        return self

    async def ready(self) -> None:
        """Return when the gateway is logged in. Raises what has ended the connection before that."""
        assert self._waiter is not None
        await self._waiter
        self._waiter = self._agent = None
        self.let_go()

    def let_go(self) -> None:
        """As :class:`Lean` has it: which key the task has shown matters at the next exchange only, for the next one."""
        super().let_go()
        self._server_host_key = None


def is_about_host_keys(name: bytes) -> bool:
    """Whether a global request is one of ``HOST_KEY_REQUESTS``, in any spelling that asyncssh takes for it."""
    return name.replace(b"_", b"-").replace(b"-at-", b"@").replace(b"-dot-", b".") in HOST_KEY_REQUESTS


def global_request(payload: bytes) -> tuple[bytes, bool, bytes]:
    """(name, whether a reply is wanted, the payload to pass on) of a global request."""
    packet = Packet(payload)
    name, wants_reply = packet.get_string(), packet.get_boolean()
    if is_about_host_keys(name):
        payload = string(NOT_PASSED_ON) + boolean(wants_reply)
    return name, wants_reply, payload


def _with_bounded_packets(kind: int, payload: bytes) -> bytes:
    """A channel open or its confirmation with the offered packet size at most ``MAX_PACKET_BYTES``."""
    packet = Packet(payload)
    if kind == MSG_CHANNEL_OPEN:
        packet.get_string()
        packet.get_bytes(8)  # sender's channel, window
    else:
        packet.get_bytes(12)  # receiver's channel, sender's channel, window
    head = packet.get_consumed_payload()
    size = min(packet.get_uint32(), MAX_PACKET_BYTES)
    return head + uint32(size) + packet.get_remaining_payload()
