"""Job events on the Jupyter event bus: one follower a server, for panels that subscribe there."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from jupyter_pai.backend_link import BackendLink
from jupyter_pai.errors import BackendAway, ClientError

if TYPE_CHECKING:
    from jupyter_events import EventLogger

SCHEMA_ID = "https://jupyter-pai.readthedocs.io/events/job/v1"
SCHEMA_FILE = Path(__file__).parent / "event_schemas" / "job" / "v1.yaml"


class EventFollower:
    """Emits every event of the backend; waits while there is no backend, and never starts one."""

    def __init__(
        self, link: BackendLink, logger: EventLogger, log: logging.Logger, noticed: Callable[[], None] = lambda: None
    ) -> None:
        self._link = link
        self._logger = logger
        self._log = log
        self._noticed = noticed
        self._position: str | None = None

    async def run(self) -> None:
        """Follow until cancelled."""
        while True:
            await self._link.established.wait()
            client = await self._link.client()
            try:
                async for item in client.follow_all_events(position=self._position):
                    self._position = item["position"]
                    self._logger.emit(schema_id=SCHEMA_ID, data={"position": item["position"], **item["event"]})
                    self._noticed()
            except BackendAway as error:
                self._log.info("Job events have stopped: %s", error.message)
                self._link.lost(client)
            except ClientError as error:
                self._log.warning("Job events cannot be followed: %s", error.message)
                return
