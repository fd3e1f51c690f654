"""The part of systemd-logind that a kubelet asks for, on a node without systemd: ``python logind.py BUS READY``.

A kubelet with ``shutdownGracePeriod`` reads how long a shutdown may be delayed, takes a lock that delays it, and waits
for the signal PrepareForShutdown, which ``Node.announce_shutdown`` sends. Source: ``org.freedesktop.login1(5)``, and
the kubelet's ``nodeshutdown`` package.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from jeepney import HeaderFields, Message, MessageType, message_bus, new_error, new_method_return
from jeepney.io.blocking import Proxy, open_dbus_connection

NAME = "org.freedesktop.login1"
DELAY_US = 300_000_000  # more than any kubelet asks for, so that none writes a configuration of logind


def bus_configuration(socket: Path) -> str:
    """A message bus on which everybody may do everything."""
    allowed = "".join(f'<allow {what}="*"/>' for what in ("own", "send_destination", "receive_sender"))
    return (
        '<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN" '
        '"http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">\n'
        f"<busconfig><type>system</type><listen>unix:path={socket}</listen><auth>EXTERNAL</auth>"
        f'<policy context="default">{allowed}<allow send_type="signal"/></policy></busconfig>\n'
    )


def main(bus: str, ready: str) -> None:
    """Answer until killed."""
    connection = open_dbus_connection(f"unix:path={bus}", enable_fds=True)
    Proxy(message_bus, connection).RequestName(NAME)
    Path(ready).touch()
    while True:
        message = connection.receive()
        if message.header.message_type is MessageType.method_call:
            connection.send(_answer(message))


def _answer(message: Message) -> Message:
    match message.header.fields.get(HeaderFields.member):
        case "Get":
            return new_method_return(message, "v", (("t", DELAY_US),))
        case "Inhibit":
            # Whoever has the other end of the pipe holds the lock; here nothing waits for that.
            reading, writing = os.pipe()
            os.close(reading)
            return new_method_return(message, "h", (writing,))
        case other:
            return new_error(message, "org.freedesktop.DBus.Error.UnknownMethod", "s", (str(other),))


if __name__ == "__main__":
    main(*sys.argv[1:])
