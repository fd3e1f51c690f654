"""The description of the API itself."""

from __future__ import annotations

from pai_backend.api.base import ApiHandler


class OpenApiHandler(ApiHandler):
    """``/openapi.json``."""

    public = True

    def get(self) -> None:
        """The description, made once for the application."""
        self.begin_verb()
        self.set_header("Content-Type", "application/json")
        self.write(self.settings["openapi"]())
