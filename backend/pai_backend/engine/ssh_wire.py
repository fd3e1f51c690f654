"""Messages of SSH as bytes: their numbers (RFC 4250 §4.1), and fields of RFC 4251 §5 written and read. No I/O."""

from __future__ import annotations

from typing import Final

import asyncssh

MSG_IGNORE: Final = 2
MSG_KEXINIT: Final = 20
MSG_GLOBAL_REQUEST: Final = 80
MSG_REQUEST_SUCCESS: Final = 81
MSG_REQUEST_FAILURE: Final = 82
MSG_CHANNEL_OPEN: Final = 90
MSG_CHANNEL_OPEN_CONFIRMATION: Final = 91
MSG_CHANNEL_OPEN_FAILURE: Final = 92
MSG_CHANNEL_WINDOW_ADJUST: Final = 93
MSG_CHANNEL_DATA: Final = 94
MSG_CHANNEL_EXTENDED_DATA: Final = 95
MSG_CHANNEL_EOF: Final = 96
MSG_CHANNEL_CLOSE: Final = 97
MSG_CHANNEL_REQUEST: Final = 98
MSG_CHANNEL_SUCCESS: Final = 99
MSG_CHANNEL_FAILURE: Final = 100
MSG_CHANNEL_LAST: Final = 127

DISC_PROTOCOL_ERROR: Final = 2
DISC_BY_APPLICATION: Final = 11
DISC_NO_MORE_AUTH_METHODS_AVAILABLE: Final = 14

OPEN_ADMINISTRATIVELY_PROHIBITED: Final = 1
OPEN_CONNECT_FAILED: Final = 2
OPEN_RESOURCE_SHORTAGE: Final = 4

EXTENDED_DATA_STDERR: Final = 1


class PacketDecodeError(asyncssh.ProtocolError):
    """A message is cut short, or says what it may not. Where asyncssh meets it, the connection ends."""


def boolean(value: bool) -> bytes:
    """One byte."""
    return b"\x01" if value else b"\x00"


def uint32(value: int) -> bytes:
    """Four bytes."""
    return value.to_bytes(4, "big")


def string(value: bytes | str) -> bytes:
    """Length and bytes; of text those of UTF-8."""
    data = value.encode() if isinstance(value, str) else value
    return len(data).to_bytes(4, "big") + data


class Packet:
    """Reads the fields of a message one after another. Raises PacketDecodeError at its end."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def get_bytes(self, size: int) -> bytes:
        """So many bytes."""
        end = self._at + size
        if end > len(self._data):
            raise PacketDecodeError("Incomplete packet")
        found, self._at = self._data[self._at : end], end
        return found

    def get_byte(self) -> int:
        """One byte."""
        return self.get_bytes(1)[0]

    def get_boolean(self) -> bool:
        """True for every byte but zero."""
        return self.get_bytes(1) != b"\x00"

    def get_uint32(self) -> int:
        """A number of four bytes."""
        return int.from_bytes(self.get_bytes(4), "big")

    def get_string(self) -> bytes:
        """A length and that many bytes."""
        return self.get_bytes(self.get_uint32())

    def get_namelist(self) -> list[bytes]:
        """Names separated by commas."""
        names = self.get_string()
        return names.split(b",") if names else []

    def get_consumed_payload(self) -> bytes:
        """What was read."""
        return self._data[: self._at]

    def get_remaining_payload(self) -> bytes:
        """What was not read yet."""
        return self._data[self._at :]
