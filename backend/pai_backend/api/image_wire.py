"""Images of the machine on the wire."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from pai_backend.api.wire import Camel
from pai_backend.engine.images import KeptBecause


class ImageShown(Camel):
    """An image of the machine that runs the tasks."""

    id: str = Field(description="Its identity, by which it can be removed where it has no name.")
    names: list[str] = Field(description="Its names, as far as the caller may know them.")
    size_bytes: int = Field(description="With layers that other images have, too.")
    created_at: datetime = Field(description="When it was made, as it says itself.")
    used_at: datetime | None = Field(description="When a task used it last; none of this backend did if absent.")
    tasks: int = Field(description="Tasks of all users that use it now.")
    kept: list[KeptBecause] = Field(description="Why it is not removed to make room; empty if it may be.")


class ImageList(Camel):
    """The images that the caller may see, the last used first."""

    data: list[ImageShown]
    total_bytes: int | None = Field(
        description="What all images of the machine take, a shared layer once; for administrators."
    )
    most_bytes: int | None = Field(description="What they may take: `containers.images.most_bytes`; absent: no limit.")
