"""Images of a machine that tests make up; the real ones are in ``tests/integration/containers/test_images.py``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from pai_backend.engine.images import Image, ImageBusy, Layer

MADE = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def played_image(number: int, *names: str, **more: object) -> Image:
    """An image of 10 MB that the engine fetched and alice ran, by each name."""
    made = Image(f"{number:064x}", names, (), (Layer(str(number), 10_000_000),), MADE, MADE, is_fetched=True)
    made = replace(made, users={name: frozenset({"alice"}) for name in names})
    return replace(made, **more)  # type: ignore[arg-type]


@dataclass
class PlayedImages:
    """``engine.images.ImageStore``. ``busy`` are identities that are found to be in use at the last moment."""

    images: list[Image] = field(default_factory=list)
    busy: set[str] = field(default_factory=set)

    async def list(self) -> Sequence[Image]:
        """As they are."""
        return list(self.images)

    async def remove(self, image: Image) -> None:
        """Raises ImageBusy."""
        if image.identity in self.busy:
            raise ImageBusy("it is in use")
        self.images.remove(image)
