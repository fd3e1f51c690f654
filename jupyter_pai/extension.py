"""The Jupyter server extension: configuration, routes, and the follower of job events."""

from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path
from typing import ClassVar

from jupyter_server.extension.application import ExtensionApp
from traitlets import Bool, Unicode

from jupyter_pai.backend_link import BackendLink
from jupyter_pai.connect_handlers import CodeHandler, ConnectHandler, DoctorHandler
from jupyter_pai.context_handlers import ContextsHandler
from jupyter_pai.endpoint import Endpoint, resolve
from jupyter_pai.errors import ClientError
from jupyter_pai.events import SCHEMA_FILE, EventFollower
from jupyter_pai.handlers import RelayedJobsHandler, RelayedKeysHandler, StreamHandler, TicketHandler
from jupyter_pai.kernels.handlers import KernelsHandler
from jupyter_pai.kernels.records import KernelRecords
from jupyter_pai.kernels.server_kernels import ServerKernels, is_supported
from jupyter_pai.kernels.server_specs import JobKernelSpecManager, SpecsRefresher, extend
from jupyter_pai.local_handlers import LocalHandler, LocalServices
from jupyter_pai.notebook_handlers import NotebookRunHandler, NotebooksHandler
from jupyter_pai.output_handler import OutputHandler
from jupyter_pai.program_handlers import FoldersHandler, ProgramsHandler
from jupyter_pai.service_handler import ServiceHandler
from jupyter_pai.sweep_handlers import SweepHandler, SweepsHandler
from jupyter_pai.terminal_handlers import TerminalsHandler, TerminalSocket


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

    _tasks: tuple[asyncio.Task[None], ...] = ()
    _specs: JobKernelSpecManager | None = None
    _refresher: SpecsRefresher | None = None
    _kernels: ServerKernels | None = None
    _locals: LocalServices | None = None

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

        self._specs = extend(self.serverapp)
        if self._specs is not None:  # the base class copied the server's settings, and copies them back
            self.settings["kernel_spec_manager"] = self._specs
        self._refresher = None if self._specs is None else SpecsRefresher(self.link, self._specs, self.log)
        self._kernels = self._lasting_kernels()
        if self._kernels is not None and not _loop_runs():
            # Before the server listens: a tab that finds no session for its notebook would start another kernel.
            self.serverapp.io_loop.run_sync(self._kernels.adopt)

    def _lasting_kernels(self) -> ServerKernels | None:
        """What lets kernels in jobs outlive this server; None where that cannot be."""
        assert self.serverapp is not None
        if self._specs is None or not is_supported(self.serverapp.kernel_manager):
            return None
        try:
            records = KernelRecords.of_server(Path(self.serverapp.runtime_dir), self.serverapp.root_dir)
        except OSError as error:
            self.log.warning("Kernels in jobs will end with this server: %s", error)
            return None
        return ServerKernels(self.serverapp, records, self.log)

    def _find(self) -> Endpoint:
        return resolve(start=self.start_embedded)

    def initialize_handlers(self) -> None:
        """Called by the server; it puts its base URL in front."""
        route = {"link": self.link}
        self._locals = LocalServices(self.link)
        self.handlers.extend(
            [
                (r"/pai/api/(v2/(?:.*/)?(?:events|logs)/stream)", StreamHandler, route),
                (r"/pai/api/(v2/jobs/[^/]+/services/[^/]+/ticket)", TicketHandler, route),
                (r"/pai/api/(v2/(?:keys|certificates|shares)(?:/.*)?)", RelayedKeysHandler, route),
                (r"/pai/api/(v2/jobs/[^/]+/(?:key|shares)(?:/.*)?)", RelayedKeysHandler, route),
                (r"/pai/api/(.*)", RelayedJobsHandler, route),
                (r"/pai/connect/([^/]+)", ConnectHandler, route),
                (r"/pai/doctor/([^/]+)", DoctorHandler, route),
                (r"/pai/code/([^/]+)", CodeHandler, route),
                (r"/pai/output/([^/]+)", OutputHandler, route),
                (r"/pai/notebooks", NotebooksHandler, route),
                (r"/pai/notebooks/([^/]+)", NotebookRunHandler, route),
                (r"/pai/programs", ProgramsHandler, route),
                (r"/pai/folders", FoldersHandler, route),
                (r"/pai/sweeps", SweepsHandler, route),
                (r"/pai/sweeps/([^/]+)", SweepHandler, route),
                (r"/pai/contexts", ContextsHandler, route),
                (r"/pai/kernels", KernelsHandler, {"refresher": self._refresher, "kernels": self._kernels}),
                (r"/pai/terminals/([^/]+)/([^/]+)/(\d{1,6})", TerminalsHandler, route),
                (r"/pai/terminals/([^/]+)/([^/]+)/(\d{1,6})/([^/]+)", TerminalsHandler, route),
                (r"/pai/terminals/([^/]+)/([^/]+)/(\d{1,6})/([^/]+)/websocket", TerminalSocket, route),
                (r"/pai/local/([A-Za-z0-9-]+)", LocalHandler, {**route, "services": self._locals}),
                (r"/pai/s/(.*)", ServiceHandler, route),
            ]
        )

    async def _start_jupyter_server_extension(self, serverapp: object) -> None:
        """Called when the server's loop runs."""
        assert self.serverapp is not None
        assert self.serverapp.event_logger is not None
        noticed = self._refresher.changed.set if self._refresher is not None else lambda: None
        follower = EventFollower(self.link, self.serverapp.event_logger, self.log, noticed)
        works = [follower.run()]
        if self._refresher is not None:
            works += [self._refresher.run(), self._find_running()]
        if self._kernels is not None:
            works.append(self._kernels.watch())
        self._tasks = tuple(asyncio.create_task(work) for work in works)

    async def _find_running(self) -> None:
        """Use a backend that is configured or runs already, so that the launcher lists kernels in its jobs."""
        with contextlib.suppress(ClientError):
            await asyncio.to_thread(resolve, start=False)
            await self.link.client()

    async def stop_extension(self) -> None:
        """Called when the server ends, also when it never came to run. The backend goes on."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = ()
        if self._kernels is not None:
            await self._kernels.leave()
            self._kernels = None
        if self._locals is not None:
            await self._locals.close()
        self.link.close()


def _loop_runs() -> bool:
    """Whether this is called from a loop that runs: some programs start a server within one."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
