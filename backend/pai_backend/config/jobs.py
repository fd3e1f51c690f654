"""Keys about jobs: what they begin with, and how long they are kept."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from pai_backend.model.base import Model


class JobSettings(Model):
    """What jobs begin with, and how long finished ones are kept."""

    templates: Path | None = Field(
        default=None,
        description="Directory of job documents that users may begin with: NAME.yaml or NAME.json, such as a clone of "
        "a git repository. A comment at the top introduces each, or `words.json`. It is read at each look.",
    )
    images: tuple[str, ...] = Field(
        default=(), description="Images that forms offer, the usual one first; any other is taken as well."
    )
    keep_days: float = Field(
        default=365,
        ge=0,
        description="Days after which a finished job is deleted, with its document, history, logs and files, but "
        "without what it left in a storage; 0: no limit by age.",
    )
    keep_number: int = Field(
        default=0, ge=0, description="Finished jobs that are kept, the newest; 0: no limit by number."
    )
    keep_bytes: int = Field(
        default=1_073_741_824,
        ge=0,
        description="Bytes of the SQLite database above which the oldest finished jobs are deleted, except those of "
        "the last hour; 0: no limit by bytes. It does not apply to PostgreSQL.",
    )
