"""SFTP that only reads, by changing bytes of requests in place. Pure.

A request that would change something is turned into one that every server refuses: an extended request whose
name is made unknown (draft-ietf-secsh-filexfer-02 §8: answered with ``SSH_FX_OP_UNSUPPORTED`` under the same
number). No byte is added, removed or held back, so lengths, windows and the order of answers stay what they were.
An ``OPEN`` loses all flags but reading, so that nothing is created or cut short by it.

Version 3 alone, to which the client's ``INIT`` is lowered: later ones open files by other fields.
"""

from __future__ import annotations

from pai_backend.engine.ssh_wire import PacketDecodeError

_INIT, _OPEN, _EXTENDED = 1, 3, 200  # draft-ietf-secsh-filexfer-02 §3
_CHANGE_NOTHING = frozenset({4, 5, 7, 8, 11, 12, 16, 17, 19})
"""CLOSE READ LSTAT FSTAT OPENDIR READDIR REALPATH STAT READLINK."""
_HARMLESS = (b"statvfs@openssh.com", b"fstatvfs@openssh.com", b"limits@openssh.com", b"expand-path@openssh.com")

_TYPE_AT, _NUMBER_AT, _STRING_AT = 4, 5, 13  # length, type, number of the request, length of its first string
_INIT_END = 9
_FLAGS = (0, 0, 0, 1)  # SSH_FXF_READ
_VERSION = (0, 0, 0, 3)
_FILLER = b"x"  # a name that ends in it is that of no extension


class ReadingOnly:
    """The client's half of one SFTP session; its bytes may come in pieces of any size.

    Raises PacketDecodeError for a request whose fields do not fit into its length: a server might read on
    into what this takes for the next request.
    """

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._at = 0
        """Position within the request, from its length field on."""
        self._head = bytearray()
        """The first bytes, as they came from the client."""
        self._end, self._string_end = _STRING_AT, _STRING_AT
        self._name: bytes | None = None
        """An extended request's name as far as it may pass; None while every string may."""

    def filtered(self, data: bytes) -> bytes:
        """The same number of bytes, with every request that would change something made harmless."""
        out = bytearray(data)
        place = 0
        while place < len(out):
            if self._at < min(_STRING_AT, self._end):
                out[place] = self._head_byte(out[place])
                count = 1
            elif self._at < self._string_end:
                count = min(self._string_end - self._at, len(out) - place)
                if self._name is not None:
                    out[place : place + count] = self._name_part(bytes(out[place : place + count]))
            elif self._head[_TYPE_AT] == _OPEN and self._at < self._string_end + len(_FLAGS):
                out[place] = _FLAGS[self._at - self._string_end]
                count = 1
            else:
                count = min(self._end - self._at, len(out) - place)
            self._at += count
            place += count
            if self._at == self._end:
                self._begin()
        return bytes(out)

    def _head_byte(self, byte: int) -> int:
        at = self._at
        self._head.append(byte)
        if at == _TYPE_AT - 1:
            self._end = _TYPE_AT + int.from_bytes(self._head, "big")
            if self._end < _INIT_END:
                raise PacketDecodeError("an SFTP request that is too short")
        elif at == _TYPE_AT:
            return self._kind(byte)
        elif at > _TYPE_AT and self._head[_TYPE_AT] == _INIT:
            return _VERSION[at - _NUMBER_AT] if at < _INIT_END else byte
        elif at == _STRING_AT - 1:
            self._string_begins(int.from_bytes(self._head[-4:], "big"))
        return byte

    def _kind(self, kind: int) -> int:
        if kind == _INIT:
            return kind
        if self._end < _STRING_AT:
            raise PacketDecodeError("an SFTP request that is too short")
        if kind in _CHANGE_NOTHING or kind == _OPEN:
            return kind
        self._name = b""
        return _EXTENDED

    def _string_begins(self, length: int) -> None:
        self._string_end = _STRING_AT + length
        if self._string_end + (len(_FLAGS) if self._head[_TYPE_AT] == _OPEN else 0) > self._end:
            raise PacketDecodeError("an SFTP request that ends within a field")

    def _name_part(self, part: bytes) -> bytes:
        """A piece of an extended request's name: as far as it can become a harmless one it is kept."""
        assert self._name is not None
        kept = 0
        if self._head[_TYPE_AT] == _EXTENDED:
            length, whole = self._string_end - _STRING_AT, self._name + part
            for name in _HARMLESS:
                if len(name) == length:
                    kept = max(kept, _alike(name, whole) - len(self._name))
        self._name = self._name + part if kept == len(part) else b"\0"  # begins no name
        return part[:kept] + _FILLER * (len(part) - kept)


def _alike(one: bytes, other: bytes) -> int:
    """How many bytes both begin with."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
