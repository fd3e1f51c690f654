"""What commands of an administrator tell the audit."""

from __future__ import annotations

import getpass
from datetime import UTC, datetime

from pai_backend.model.audit import AuditEvent


def by_command(type_: str, subject: str, detail: str = "") -> AuditEvent:
    """An event of a command that runs now, by the account of the machine that runs it."""
    who = getpass.getuser()
    return AuditEvent(type_, datetime.now(UTC), who, who, subject=subject, detail=detail)
