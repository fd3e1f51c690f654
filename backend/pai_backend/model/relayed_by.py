"""Headers by which a Jupyter server that relays to the backend says where the browser finds it.

They count only beside a user's token. Reverse proxies on the way replace what they know as ``X-Forwarded-…`` (Traefik
does, unless it is told whom to trust), so these have names of their own.
"""

from __future__ import annotations

PREFIX = "Pai-Relay-Prefix"
"""The path below which the browser finds the backend's root, such as ``/user/ann/pai``."""
SCHEME = "Pai-Relay-Scheme"
HOST = "Pai-Relay-Host"
NAMES = "pai-relay-"
"""What all of them begin with, in lower case: no browser may say it, and no task is told."""
