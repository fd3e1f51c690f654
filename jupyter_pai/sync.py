"""The plain face of the client: the same calls, run on a loop in a daemon thread.

One wrapper makes all methods, so there is no second body to keep in step.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import functools
import queue
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from jupyter_pai.client import AsyncClient
from jupyter_pai.endpoint import Endpoint

A = TypeVar("A")
P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

CLOSE_TIMEOUT_S = 5.0


class LoopThread:
    """An event loop in a daemon thread, started at once."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="jupyter-pai", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def start(self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        """Begin work on the loop from any thread."""
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do work on the loop and wait for it; KeyboardInterrupt cancels it, waits for that, and goes on."""
        tasks: list[asyncio.Task[T]] = []
        # Not an Event: an interrupt may leave its lock taken, and then the loop would stand still at setting it.
        ended: queue.SimpleQueue[None] = queue.SimpleQueue()

        def begin() -> None:
            tasks.append(self.loop.create_task(work))
            tasks[0].add_done_callback(lambda _: ended.put(None))

        def cancel() -> None:
            if tasks and not tasks[0].done():
                tasks[0].cancel()
            else:
                work.close()
                ended.put(None)

        try:
            self.loop.call_soon_threadsafe(begin)
            ended.get()
        except BaseException:
            # A stream must be released before it can be closed, so its end is waited for here too.
            self.loop.call_soon_threadsafe(cancel)
            with contextlib.suppress(queue.Empty):
                ended.get(timeout=CLOSE_TIMEOUT_S)
            raise
        return tasks[0].result()

    def close(self) -> None:
        """End all work and the thread. Safe to call twice."""
        if self.loop.is_closed():
            return
        self.run(self._cancel_all())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(CLOSE_TIMEOUT_S)
        if not self._thread.is_alive():
            self.loop.close()

    async def _cancel_all(self) -> None:
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self.loop.shutdown_asyncgens()


class Blocking(Generic[A]):
    """Plain calls of the asynchronous object ``api``, which belongs to the loop of ``thread``."""

    def __init__(self, thread: LoopThread, api: A) -> None:
        self.thread = thread
        self.api = api

    def iterate(self, source: AsyncIterator[T]) -> Iterator[T]:
        """An asynchronous stream as a plain iterator; leaving it early ends the stream."""
        end = object()

        async def following() -> T | object:
            return await anext(source, end)

        async def finish() -> None:
            close = getattr(source, "aclose", None)
            if close is not None:
                await close()

        try:
            while (item := self.thread.run(following())) is not end:
                yield item  # type: ignore[misc]  # not the end mark, therefore a T
        finally:
            if not self.thread.loop.is_closed():
                self.thread.run(finish())


def blocking(
    method: Callable[Concatenate[A, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[Blocking[A], P], R]:
    """A method of ``api`` as one that waits for its result."""

    def run(self: Blocking[A], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.thread.run(method(self.api, *args, **kwargs))

    functools.update_wrapper(run, method)
    return run


def iterating(
    method: Callable[Concatenate[A, P], AsyncIterator[T]],
) -> Callable[Concatenate[Blocking[A], P], Iterator[T]]:
    """A stream of ``api`` as a plain iterator."""

    def iterate(self: Blocking[A], /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        return self.iterate(method(self.api, *args, **kwargs))

    functools.update_wrapper(iterate, method)
    return iterate


class Client(Blocking[AsyncClient]):
    """Blocking calls of the backend; see :class:`~jupyter_pai.client.AsyncClient` for what each does.

    May be shared by threads. Close it, or use it as a context manager.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        thread = LoopThread()
        super().__init__(thread, thread.run(self._make(endpoint)))

    @staticmethod
    async def _make(endpoint: Endpoint) -> AsyncClient:
        return AsyncClient(endpoint)  # tornado binds it to the loop it is made on

    info = blocking(AsyncClient.info)
    submit = blocking(AsyncClient.submit)
    validate = blocking(AsyncClient.validate)
    jobs = blocking(AsyncClient.jobs)
    job = blocking(AsyncClient.job)
    stop = blocking(AsyncClient.stop)
    start = blocking(AsyncClient.start)
    delete = blocking(AsyncClient.delete)
    release = blocking(AsyncClient.release)
    move = blocking(AsyncClient.move)
    why = blocking(AsyncClient.why)
    metrics = blocking(AsyncClient.metrics)
    task_uses = blocking(AsyncClient.task_uses)
    announcement = blocking(AsyncClient.announcement)
    announce = blocking(AsyncClient.announce)
    end_announcement = blocking(AsyncClient.end_announcement)
    usage = blocking(AsyncClient.usage)
    prices = blocking(AsyncClient.prices)
    set_price = blocking(AsyncClient.set_price)
    reservations = blocking(AsyncClient.reservations)
    reserve = blocking(AsyncClient.reserve)
    remove_reservation = blocking(AsyncClient.remove_reservation)
    budgets = blocking(AsyncClient.budgets)
    set_budget = blocking(AsyncClient.set_budget)
    remove_budget = blocking(AsyncClient.remove_budget)
    cluster_use = blocking(AsyncClient.cluster_use)
    source = blocking(AsyncClient.source)
    events = blocking(AsyncClient.events)
    log = blocking(AsyncClient.log)
    ssh = blocking(AsyncClient.ssh)
    ticket = blocking(AsyncClient.ticket)
    keys = blocking(AsyncClient.keys)
    add_key = blocking(AsyncClient.add_key)
    delete_key = blocking(AsyncClient.delete_key)
    active_count = blocking(AsyncClient.active_count)
    follow_events = iterating(AsyncClient.follow_events)
    follow_log = iterating(AsyncClient.follow_log)

    def close(self) -> None:
        """End all calls and the thread."""
        if not self.thread.loop.is_closed():
            self.thread.run(self._close_api())
            self.thread.close()

    async def _close_api(self) -> None:
        self.api.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@functools.lru_cache(maxsize=8)
def shared(endpoint: Endpoint) -> Client:
    """A client of the whole process, for what has no moment to close one of its own."""
    return Client(endpoint)
