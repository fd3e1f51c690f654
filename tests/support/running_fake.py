"""The fake backend on a loop of its own, so that plain tests and other processes can talk to it."""

from __future__ import annotations

from typing import Any

from jupyter_pai.endpoint import Endpoint
from jupyter_pai.sync import LoopThread
from tests.support.fake_backend import FakeBackend


class RunningFake:
    """A started fake; use as a context manager."""

    def __enter__(self) -> RunningFake:
        self.thread = LoopThread()
        self.backend = self.thread.run(self._make())
        self.endpoint: Endpoint = self.thread.run(self.backend.start())
        return self

    @staticmethod
    async def _make() -> FakeBackend:
        return FakeBackend()

    def __exit__(self, *_: object) -> None:
        self.thread.run(self.backend.stop())
        self.thread.close()

    def add_job(self, name: str, **changes: Any) -> str:
        """A new job; returns its uid."""

        async def add() -> str:
            return str(self.backend.add_job(name, **changes)["uid"])

        return self.thread.run(add())

    def advance(self, uid: str, state: str, **changes: Any) -> None:
        """Move a job to a state."""
        self.thread.run(self.backend.advance(uid, state, **changes))

    def write_log(self, uid: str, data: bytes) -> None:
        """Let a job's task write."""
        self.thread.run(self.backend.write_log(uid, data))

    def stop(self) -> None:
        """Close the port."""
        self.thread.run(self.backend.stop())

    def start_again(self) -> None:
        """Serve on the same port again."""
        self.thread.run(self.backend.start(self.backend.port))
