"""What an application token may do at most, whatever its user may."""

from __future__ import annotations

from enum import StrEnum


class Scope(StrEnum):
    """A part of the API. A token with scopes does only what one of them allows.

    A token without scopes does all that its user may.
    """

    READ = "read"
    """Look at jobs, logs, events and the cluster."""
    JOBS = "jobs"
    """Submit, stop, move, tag and delete jobs; templates, secrets and workspace names."""
    FILES = "files"
    """Read and write files."""
    SSH = "ssh"
    """Ways into tasks: SSH, keys, certificates, shares, services."""
    ADMIN = "admin"
    """Use the rights of an administrator or manager, which no other scope brings."""
