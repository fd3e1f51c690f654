"""How the gateway lets a client's own SSH ride to a task: a socket behind the task's SSH server, and its first line.

A task's SSH server knows the gateway and the peers of its job, and no user. For a jump the gateway, once logged in to
the task, opens a channel to the socket ``RIDES`` (direct-streamlocal, OpenSSH PROTOCOL §2.4) and writes one line: the
public key that it has just let in. What follows is the client's own SSH, served by a server that accepts this key
alone. So the gateway decides at that moment whether anybody gets in, and ends the ride by closing the channel.
"""

from __future__ import annotations

from typing import Final

RIDES: Final = "/pai/state/rides"
"""In a pod a real socket, of which only processes of the task's user can know; a name for the local engine's agent."""
MOST_LINE_BYTES: Final = 16_384
"""Of the first line: longer than any public key."""
