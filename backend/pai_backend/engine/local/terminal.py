"""Pseudo-terminals of SSH sessions: modes and sizes as the client asks for them.

Executed as a program, ``python -I -S terminal.py GATE PROGRAM [ARGUMENTS]``, it makes its standard input
the controlling terminal of its new session and becomes PROGRAM when the descriptor GATE has a byte.
A program does this because there is no safe moment for it between fork and exec in a process that
has threads.
"""

from __future__ import annotations

import fcntl
import os
import signal
import sys
import termios
from collections.abc import Mapping

_IFLAG, _OFLAG, _CFLAG, _LFLAG = range(4)
_CC = 6

_CHARACTERS = {
    1: "VINTR", 2: "VQUIT", 3: "VERASE", 4: "VKILL", 5: "VEOF", 6: "VEOL", 7: "VEOL2", 8: "VSTART", 9: "VSTOP",
    10: "VSUSP", 12: "VREPRINT", 13: "VWERASE", 14: "VLNEXT", 18: "VDISCARD",
}  # fmt: skip
_FLAGS = {
    30: (_IFLAG, "IGNPAR"), 31: (_IFLAG, "PARMRK"), 32: (_IFLAG, "INPCK"), 33: (_IFLAG, "ISTRIP"),
    34: (_IFLAG, "INLCR"), 35: (_IFLAG, "IGNCR"), 36: (_IFLAG, "ICRNL"), 37: (_IFLAG, "IUCLC"), 38: (_IFLAG, "IXON"),
    39: (_IFLAG, "IXANY"), 40: (_IFLAG, "IXOFF"), 41: (_IFLAG, "IMAXBEL"), 42: (_IFLAG, "IUTF8"),
    50: (_LFLAG, "ISIG"), 51: (_LFLAG, "ICANON"), 52: (_LFLAG, "XCASE"), 53: (_LFLAG, "ECHO"), 54: (_LFLAG, "ECHOE"),
    55: (_LFLAG, "ECHOK"), 56: (_LFLAG, "ECHONL"), 57: (_LFLAG, "NOFLSH"), 58: (_LFLAG, "TOSTOP"),
    59: (_LFLAG, "IEXTEN"), 60: (_LFLAG, "ECHOCTL"), 61: (_LFLAG, "ECHOKE"), 62: (_LFLAG, "PENDIN"),
    70: (_OFLAG, "OPOST"), 71: (_OFLAG, "OLCUC"), 72: (_OFLAG, "ONLCR"), 73: (_OFLAG, "OCRNL"), 74: (_OFLAG, "ONOCR"),
    75: (_OFLAG, "ONLRET"), 90: (_CFLAG, "CS7"), 91: (_CFLAG, "CS8"), 92: (_CFLAG, "PARENB"), 93: (_CFLAG, "PARODD"),
}  # fmt: skip
"""Terminal mode opcodes of RFC 4254 §8, by the names termios(3) has for them."""
_NO_CHARACTER = 255  # RFC 4254 §8: the client has no such character
_IUTF8 = 0x4000  # asm-generic/termbits.h and macOS sys/termios.h; the termios module has it from 3.13 only


def apply_modes(fd: int, modes: Mapping[int, int]) -> None:
    """Set what the client sent of its terminal's modes; what this system does not know is skipped."""
    attributes = termios.tcgetattr(fd)
    for opcode, value in modes.items():
        if opcode in _CHARACTERS and (index := getattr(termios, _CHARACTERS[opcode], None)) is not None:
            attributes[_CC][index] = bytes([value if value != _NO_CHARACTER else 0])
        elif opcode in _FLAGS:
            word, name = _FLAGS[opcode]
            flag = getattr(termios, name, _IUTF8 if name == "IUTF8" else 0)
            attributes[word] = attributes[word] | flag if value else attributes[word] & ~flag
    termios.tcsetattr(fd, termios.TCSANOW, attributes)


def apply_size(fd: int, columns: int, rows: int) -> None:
    """Set the window's size in characters; the kernel tells the foreground processes."""
    termios.tcsetwinsize(fd, (min(rows, 0xFFFF), min(columns, 0xFFFF)))


def end_of_input(fd: int) -> bytes:
    """What a terminal's user would type to end the input; nothing when the program reads it raw."""
    attributes = termios.tcgetattr(fd)
    character: bytes = attributes[_CC][termios.VEOF]
    return character if attributes[_LFLAG] & termios.ICANON else b""


if __name__ == "__main__":
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    for ignored_by_python in (signal.SIGPIPE, signal.SIGXFSZ):  # a shell would pass that on, and `yes | head` fail
        signal.signal(ignored_by_python, signal.SIG_DFL)
    if os.read(int(sys.argv[1]), 1):
        os.close(int(sys.argv[1]))
        os.execv(sys.argv[2], sys.argv[2:])
