"""What we use of asyncssh beyond its documentation: the list, and whether the installed release has all of it.

Only ``access.gateway.joined`` and this package use these parts, and are imported only where all of them exist.
Elsewhere everything goes by documented parts, slower and with fewer features (ADR 0032).
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from types import FunctionType
from typing import Any, Final

from pai_backend.engine.ssh_wire import MSG_KEXINIT

log = logging.getLogger(__name__)

_PROOF = "self username key_data msg signature"

METHODS: Final[Mapping[str, Mapping[str, str]]] = {
    "asyncssh.connection:SSHConnection": {
        "_cancel_login_timer": "self",
        "_finish_userauth": "self begin_auth method packet",
        "_make_global_request": "self request args",
        "_recv_data": "self",
        "_recv_pkthdr": "self",
        "_send": "self data",
        "_send_kexinit": "self",
        "disconnect": "self code reason lang",
        "log_received_packet": "self pkttype pktid packet note",
        "log_sent_packet": "self pkttype pktid packet note",
        "process_packet": "self pkttype pktid packet",
        "send_newkeys": "self k h",
        "send_packet": "self pkttype args handler",
        "send_userauth_failure": "self partial_success",
        "send_userauth_success": "self",
    },
    "asyncssh.connection:SSHServerConnection": {
        "__init__": "self loop options acceptor error_handler wait",
        "_process_kexinit": "self _pkttype _pktid packet",
        "_validate_openssh_certificate": "self username cert",
        "reload_config": "self",
        "validate_public_key": _PROOF,
    },
    "asyncssh.connection:SSHClientConnection": {"__init__": "self loop options acceptor error_handler wait"},
    "asyncssh.channel:SSHChannel": {
        "__init__": "self conn loop encoding errors window max_pktsize",
        "process_packet": "self pkttype pktid packet",
        "write": "self data datatype",
    },
    "asyncssh.packet:SSHPacket": {
        "__init__": "self packet",
        "get_byte": "self",
        "get_full_payload": "self",
        "get_uint32": "self",
    },
    "asyncssh.public_key:SSHOpenSSHCertificate": {"validate": "self cert_type principal"},
    "asyncssh.crypto.chacha:ChachaCipher": {"__init__": "self key"},
    "asyncssh.crypto.cipher:GCMCipher": {"__init__": "self cipher_name key iv", "_update_iv": "self"},
}
"""Methods that are called or overridden, by their class, with the names of their arguments."""

ATTRIBUTES: Final[Mapping[str, str]] = {
    "asyncssh.connection:SSHConnection": (
        "_auth_complete _auth_final _channels _client_kexinit _compressor _decompressor"
        " _extensions_to_send _extra _ignore_first_kex _inpbuf _kex_complete"
        " _local_listeners _logger _loop _max_recv_pktlen _peer_addr _recv_encryption _recv_seq _rekey_bytes"
        " _rekey_bytes_sent _rekey_seconds _rekey_time _send_encryption _send_seq _server_kexinit _server_sig_algs"
        " _session_id _protocol_factory _revoked_host_keys _transport _trusted_ca_keys _trusted_host_keys _wait"
        " _waiter _x509_revoked_certs"
    ),
    "asyncssh.connection:SSHClientConnection": "_agent _server_host_key",
    "asyncssh.channel:SSHChannel": "_conn _send_buf _send_chan _send_pktsize _send_state _send_window",
    "asyncssh.crypto.chacha:ChachaCipher": "_adkey _key",
    "asyncssh.crypto.cipher:GCMCipher": "_iv _key",
    "asyncssh.encryption:GCMEncryption": "_cipher",
    "asyncssh.encryption:ChachaEncryption": "_cipher",
    "asyncssh.public_key:SSHOpenSSHCertificate": "_serial",
}
"""Attributes that their class's constructor sets."""

NAMES: Final[Mapping[str, str]] = {
    "asyncssh.client": "SSHClient",
    "asyncssh.connection": "SSHClientConnectionOptions SSHConnection SSHServerConnection",
    "asyncssh.encryption": "Encryption",
    "asyncssh.logging": "logger",
    "asyncssh.misc": "ProtocolError",
    "asyncssh.packet": "PacketDecodeError SSHPacket SSHPacketLogger",
    "asyncssh.public_key": "CERT_TYPE_USER SSHKey SSHOpenSSHCertificate decode_ssh_certificate decode_ssh_public_key",
}
"""What modules have."""


def missing() -> str:
    """What the installed asyncssh lacks of all that, in words; empty when it is all there."""
    try:
        for place, methods in METHODS.items():
            for name, arguments in methods.items():
                found = " ".join(inspect.signature(getattr(_found(place), name)).parameters)
                if found != arguments:
                    return f"{place}.{name} takes ({found})"
        for place, attributes in ATTRIBUTES.items():
            if left := set(attributes.split()) - _set_by(_found(place)):
                return f"{place} has no {', '.join(sorted(left))}"
        for module, names in NAMES.items():
            for name in names.split():
                getattr(import_module(module), name)
        if MSG_KEXINIT not in _found("asyncssh.connection:SSHServerConnection")._packet_handlers:
            return "SSHServerConnection._packet_handlers has no KEXINIT"
    except (AttributeError, ImportError, TypeError, ValueError) as error:
        return str(error)
    return ""


def _found(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def _set_by(kind: type) -> set[str]:
    """Names in the constructors of a class and its bases."""
    made = [vars(base).get("__init__") for base in kind.__mro__]
    return {name for each in made if isinstance(each, FunctionType) for name in each.__code__.co_names}


@cache
def are_there() -> bool:
    """Whether the parts can be used. The log says once when they cannot."""
    why = missing()
    if why:
        log.warning("this release of asyncssh is used by its documented interface, slower and with less: %s", why)
    return not why
