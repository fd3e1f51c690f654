"""The service proxy: HTTP and WebSocket to a port of a task, at an address that outlives the task.

``https://<service alias>.<domain>/…`` is the address of a service; ``/s/<service alias>/…`` is the same below
the api's own host name, for sites with one host name only. Start reading at ``service`` (who gets in, and where
to), ``entrance`` (how a connection comes here) and ``exchange`` (one request from its first byte to its last). Reads
HTTP with httptools; must not know SQL, an engine's kind, or the api's handlers.
"""

from pai_backend.access.proxy.branching import BranchingStream, leftover_rule
from pai_backend.access.proxy.entrance import Entrance
from pai_backend.access.proxy.service import Grant, KnownUser, ServiceProxy

__all__ = ["BranchingStream", "Entrance", "Grant", "KnownUser", "ServiceProxy", "leftover_rule"]
