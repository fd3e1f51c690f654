"""The client's leg: who it is, what it asks for first, and how it is ended.

asyncssh calls the login (``SSHServer``) for what it documents; what it decides by itself and a gateway must
decide otherwise is overridden here: certificates name aliases and not user names, tries are counted, a proof
of the right person at the wrong door is refused with a word.
"""

from __future__ import annotations

import asyncio
import inspect
import ipaddress
from collections.abc import Awaitable, Callable, Iterable
from typing import cast

from asyncssh.connection import SSHServerConnection
from asyncssh.packet import SSHPacket
from asyncssh.public_key import (
    CERT_TYPE_USER,
    SSHKey,
    SSHOpenSSHCertificate,
)

from pai_backend.access.broker.lookup import CertificateFacts
from pai_backend.access.gateway.entering import SSH_PORT
from pai_backend.access.gateway.guard import full
from pai_backend.access.gateway.joined.lean import fields_of
from pai_backend.access.gateway.joined.packets import Packets
from pai_backend.access.gateway.joined.relay import (
    ENTERING,
    Back,
    Leg,
    Observer,
    Result,
    Rule,
    global_request,
    is_about_host_keys,
)
from pai_backend.access.gateway.proof import line_of
from pai_backend.access.gateway.sessions import Message, Sessions
from pai_backend.access.gateway.transport import FlushingTransport
from pai_backend.engine.asyncssh_private.guesses import Guessing, key_in
from pai_backend.engine.ssh_wire import (
    DISC_BY_APPLICATION,
    DISC_NO_MORE_AUTH_METHODS_AVAILABLE,
    MSG_CHANNEL_OPEN,
    MSG_GLOBAL_REQUEST,
    Packet,
    string,
)

GOODBYE_S = 0.5  # with the look at the store every 0.5 s this stays within the promised 2 s


class JoinedClient(Leg, Guessing):
    """The leg from the client to the gateway. ``enter`` is called when it first asks for something.

    ``enter`` joins the legs, or leaves this one alone, which then answers by its ``SSHServer`` as usual.
    It must not raise. It is called again for the next request as long as no task leg is there.
    """

    __slots__ = fields_of(SSHServerConnection, Packets)

    enter: Callable[[], Awaitable[None]] | None = None
    jumps: Callable[[str], Awaitable[bool]] | None = None
    """Called for a forwarding to port 22 of a host: whether the host is a task of ours, reached by this leg's
    ``SSHServer``. Must not raise."""
    is_certified: Callable[[CertificateFacts], Awaitable[bool]] | None = None
    """Called with what a certificate says that is whole, in time and of a user: whether it is good here."""
    is_welcome: Callable[[], Awaitable[bool]] | None = None
    """Called when a key or certificate has signed: False to refuse it all the same."""
    max_auth_tries = 0
    max_channels = 0
    """Of those that end here and not in a joined task: jumps, and sessions that are refused."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio with the accepted socket."""
        known = isinstance(transport, FlushingTransport)  # the client of a proxy, by what it announced
        super().connection_made(transport if known else FlushingTransport(cast("asyncio.Transport", transport)))

    # ---- who it is -----------------------------------------------------------------------------
    async def reload_config(self) -> None:
        """Called by asyncssh for each user name that is tried: no setting here depends on it, so all logins share one.

        asyncssh would make options of its own for every login, in a thread, and keep them as long as the connection.
        """

    async def validate_public_key(self, username: str, key_data: bytes, msg: bytes, signature: bytes) -> bool:
        """Called by asyncssh when a key or certificate is offered (no ``msg``) and when it has signed.

        Every offer is answered alike, and nothing is looked up before a signature has proved itself: a stranger cannot
        learn whether a public key is registered, nor for which names (ADR 0019).
        """
        key = key_in(key_data)
        if key is None or not msg:
            return key is not None
        if not key.verify(string(self._session_id) + msg, signature):
            return False
        valid = await super().validate_public_key(username, key_data, msg, signature)
        return valid and (self.is_welcome is None or await self.is_welcome())

    async def _validate_openssh_certificate(self, username: str, cert: SSHOpenSSHCertificate) -> SSHKey | None:
        """Called by asyncssh for a certificate whose signature is right: the certified key, if it is valid here.

        Its principals are aliases, which the broker compares; a login name may be another spelling of one. A command
        that it forces is for servers that do not know us: only the broker signs, and it forces a command on logins
        that may not run any. The store has the exact rights under the serial, and the guard enforces them.
        """
        if self.is_certified is None:
            return None
        try:
            cert.validate(CERT_TYPE_USER, None)
        except ValueError:
            return None
        allowed = cast("list[ipaddress.IPv4Network | ipaddress.IPv6Network]", cert.options.get("source-address"))
        if allowed and not any(ipaddress.ip_address(self._peer_addr) in network for network in allowed):
            return None
        key, signer = cert.key, cert.signing_key
        facts = CertificateFacts(cert._serial, key.get_fingerprint(), signer.get_fingerprint(), line_of(key))
        if not await self.is_certified(facts):
            return None
        cert.key.set_touch_required(not cert.options.get("no-touch-required", False))
        return cert.key

    def keep_waiting(self) -> None:
        """As :class:`ClientLeg` has it."""
        self._cancel_login_timer()

    def say(self, messages: Iterable[Message]) -> None:
        """As :class:`ClientLeg` has it."""
        for kind, payload in messages:
            self.send_packet(kind, payload)

    def end(self, sessions: Sessions | None, text: str) -> None:
        """As :class:`ClientLeg` has it.

        Where there is a terminal, its sessions end first and the client gets ``GOODBYE_S`` to leave by itself:
        OpenSSH drops a last line of stderr when the disconnect is already behind it. Elsewhere the
        disconnect itself carries the text, which OpenSSH prints.
        """
        if self.peer is not None:
            self.peer.close()
        if sessions is None or not sessions.terminals:
            self.disconnect(DISC_BY_APPLICATION, text)
            return
        self.say(sessions.farewell(text))
        asyncio.get_running_loop().call_later(GOODBYE_S, self.disconnect, DISC_BY_APPLICATION, text)

    def send_userauth_failure(self, partial_success: bool) -> None:
        """Called by asyncssh for each refused try; the last of ``max_auth_tries`` ends the connection."""
        self.max_auth_tries -= 1
        if self.max_auth_tries > 0:
            super().send_userauth_failure(partial_success)
        else:
            self.disconnect(DISC_NO_MORE_AUTH_METHODS_AVAILABLE, "Too many authentication failures")

    async def send_userauth_success(self) -> None:
        """Called by asyncssh when a user has logged in."""
        await super().send_userauth_success()
        self.let_go()

    # ---- what it asks for ----------------------------------------------------------------------
    def process_packet(self, pkttype: int, pktid: int, packet: SSHPacket) -> Result:
        """Called by asyncssh for every message; the first that needs the task waits for its leg."""
        if self.peer is None and self.enter is not None:
            if pkttype == MSG_CHANNEL_OPEN and len(self._channels) >= self.max_channels:
                self.send_packet(*full(_sender_of(packet), self.max_channels))
                return True
            if pkttype == MSG_CHANNEL_OPEN and (host := _jump_host(packet)):
                return self._enter_first(lambda: self._jump_or_enter(host), pkttype, pktid, packet)
            if self._needs_task(pkttype, packet):
                return self._enter_first(self.enter, pkttype, pktid, packet)
        return super().process_packet(pkttype, pktid, packet)

    def _needs_task(self, kind: int, packet: SSHPacket) -> bool:
        if self._channels:
            return False  # a refused session is still ending; its number must not meet the task's numbers
        if kind == MSG_GLOBAL_REQUEST:
            name = global_request(packet.get_full_payload()[1:])[0]
            return name != b"keepalive@openssh.com" and not is_about_host_keys(name)
        return kind == MSG_CHANNEL_OPEN

    async def _jump_or_enter(self, host: str) -> None:
        """Another task is reached beside those of this leg; anything else is the named task's business."""
        assert self.jumps is not None
        assert self.enter is not None
        if not await self.jumps(host) and not self._channels:
            await self.enter()

    async def _enter_first(
        self, enter: Callable[[], Awaitable[None]], kind: int, number: int, packet: SSHPacket
    ) -> None:
        self.hold_input(ENTERING)
        try:
            await enter()
        finally:
            self.release_input(ENTERING)
        if self.alive:
            result = super().process_packet(kind, number, packet)
            if inspect.isawaitable(result):
                await result


def join(front: JoinedClient, back: Back, rules: tuple[Rule, Rule], observers: tuple[Observer, Observer]) -> None:
    """Make a relay of two authenticated legs. Of ``rules`` and ``observers`` the first is for the client's messages."""
    front.relay_to(back, rules[0], observers[0])
    back.relay_to(front, rules[1], observers[1])


def _sender_of(packet: SSHPacket) -> int:
    """The number of the channel that an opening opens. Reads nothing off."""
    seen = Packet(packet.get_full_payload()[1:])
    seen.get_string()
    return seen.get_uint32()


def _jump_host(packet: SSHPacket) -> str:
    """The host that an opening wants to reach by SSH; empty when it wants something else. Reads nothing off."""
    seen = Packet(packet.get_full_payload()[1:])
    if seen.get_string() != b"direct-tcpip":
        return ""
    seen.get_bytes(12)  # channel, window, largest packet
    host, port = seen.get_string(), seen.get_uint32()
    return host.decode("utf-8", "replace") if port == SSH_PORT else ""
