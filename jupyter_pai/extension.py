"""The Jupyter server extension: configuration, routes, and the follower of job events."""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import ClassVar

from jupyter_server.extension.application import ExtensionApp
from traitlets import Bool, Unicode

from jupyter_pai.backend_link import BackendLink
from jupyter_pai.connect_handlers import ConnectHandler, DoctorHandler
from jupyter_pai.endpoint import Endpoint, resolve
from jupyter_pai.events import SCHEMA_FILE, EventFollower
from jupyter_pai.handlers import RelayedJobsHandler, RelayedKeysHandler, StreamHandler, TicketHandler
from jupyter_pai.output_handler import OutputHandler
from jupyter_pai.service_handler import ServiceHandler


class PaiExtension(ExtensionApp):
    """Relays the panel and the browser to a backend, and starts the private one when it is needed.

    What is configured here goes into the environment too, so that ``%pai`` in this server's kernels
    and ``pai`` in its terminals talk to the same backend.
    """

    name = "jupyter_pai"
    extension_url = "/pai"
    load_other_extensions = True

    backend_url = Unicode("", help="Address of a backend; empty: the private one of this user.").tag(config=True)
    token_file = Unicode("", help="File with the token for backend_url.").tag(config=True)
    data_dir = Unicode("", help="Directory of the private backend; empty: the user's data directory.").tag(config=True)
    config_file = Unicode("", help="Configuration file of the private backend.").tag(config=True)
    start_embedded = Bool(True, help="Start the private backend when it is needed and not running.").tag(config=True)

    _VARIABLES: ClassVar[dict[str, str]] = {
        "backend_url": "PAI_URL",
        "token_file": "PAI_TOKEN_FILE",
        "data_dir": "PAI_DATA_DIR",
        "config_file": "PAI_BACKEND_CONFIG",
    }

    _following: asyncio.Task[None] | None = None

    def initialize_settings(self) -> None:
        """Called by the server before the routes are made."""
        for trait, variable in self._VARIABLES.items():
            value = getattr(self, trait)
            if value:
                os.environ[variable] = value
        self.link = BackendLink(self._find)
        assert self.serverapp is not None
        assert self.serverapp.event_logger is not None
        self.serverapp.event_logger.register_event_schema(SCHEMA_FILE)

    def _find(self) -> Endpoint:
        return resolve(start=self.start_embedded)

    def initialize_handlers(self) -> None:
        """Called by the server; it puts its base URL in front."""
        route = {"link": self.link}
        self.handlers.extend(
            [
                (r"/pai/api/(v2/(?:.*/)?(?:events|logs)/stream)", StreamHandler, route),
                (r"/pai/api/(v2/jobs/[^/]+/services/[^/]+/ticket)", TicketHandler, route),
                (r"/pai/api/(v2/(?:keys|certificates|shares)(?:/.*)?)", RelayedKeysHandler, route),
                (r"/pai/api/(v2/jobs/[^/]+/(?:key|shares)(?:/.*)?)", RelayedKeysHandler, route),
                (r"/pai/api/(.*)", RelayedJobsHandler, route),
                (r"/pai/connect/([^/]+)", ConnectHandler, route),
                (r"/pai/doctor/([^/]+)", DoctorHandler, route),
                (r"/pai/output/([^/]+)", OutputHandler, route),
                (r"/pai/s/(.*)", ServiceHandler, route),
            ]
        )

    async def _start_jupyter_server_extension(self, serverapp: object) -> None:
        """Called when the server's loop runs."""
        assert self.serverapp is not None
        assert self.serverapp.event_logger is not None
        follower = EventFollower(self.link, self.serverapp.event_logger, self.log)
        self._following = asyncio.create_task(follower.run())

    async def stop_extension(self) -> None:
        """Called when the server ends, also when it never came to run. The backend goes on."""
        if self._following is not None:
            self._following.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._following
            self._following = None
        self.link.close()
