"""Which database this is, and what its engine runs that it does not know, as the other rooms see it (ADR 0025)."""

from __future__ import annotations
