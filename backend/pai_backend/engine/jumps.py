"""Jumps: a client's own SSH reaches a task by a socket behind the task's SSH server. The socket and its first line.

A task's SSH server knows the gateway and the peers of its job, but no user. For a jump the gateway, once logged in to
the task, opens a channel to the socket ``JUMP_SOCKET`` (direct-streamlocal, OpenSSH PROTOCOL §2.4) and writes one line:
the public key that it has just accepted. The client's own SSH follows, to a server that accepts this key alone. So the
gateway decides at that moment whether the client may enter, and ends the jump by closing the channel.
"""

from __future__ import annotations

from typing import Final

JUMP_SOCKET: Final = "/pai/state/rides"
"""The path is older than the word jump, and running tasks listen there. In a pod a real socket, of which only processes
of the task's user can know; a name for the local engine's agent."""
MOST_LINE_BYTES: Final = 16_384
"""Of the first line: longer than any public key."""
