"""Images of the machine that runs the tasks."""

from __future__ import annotations

from pai_backend.api.base import ApiHandler
from pai_backend.api.image_wire import ImageList
from pai_backend.api.operation import Operation, operation
from pai_backend.api.services.images import ImageService
from pai_backend.model.errors import Forbidden, ImageInUse, NoSuchImage, NotSupported
from pai_backend.model.scope import Scope


class ImagesHandler(ApiHandler):
    """``/api/v2/images``."""

    users_own = frozenset({"get"})

    @operation(Operation("Images of the machine that the caller may see.", answer=ImageList, raises=(NotSupported,)))
    async def get(self) -> ImageList:
        """The last used first."""
        return await ImageService(self.ctx, self.user).seen()


class OneImageHandler(ApiHandler):
    """``/api/v2/images/{path}``; the name of an image may hold slashes."""

    scope = Scope.ADMIN
    users_own = frozenset({"delete"})

    @operation(
        Operation(
            "Remove an image from the machine; for administrators.",
            audit="image.removed",
            status=204,
            raises=(Forbidden, NotSupported, NoSuchImage, ImageInUse),
        )
    )
    async def delete(self, path: str) -> None:
        """With all its names. A task that needs it later fetches it again."""
        self.say(f"identity {(await ImageService(self.ctx, self.user).remove(path))[:12]}")
