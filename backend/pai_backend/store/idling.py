"""What is kept of the use of jobs with an ``idleTimeout``, as the other rooms see it.

Processes that pass bytes to jobs write when they were last used; the controller reads that, and keeps their clocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from pai_backend.model.idle import UseSource
from pai_backend.model.ids import JobUid

Uses = Mapping[tuple[JobUid, UseSource], datetime]
"""When each source last used each job, by the clock of who saw it."""
