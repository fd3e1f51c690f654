"""One process of a backend: its roles, each started with the modules it needs and no others.

A role that fails takes its process down, and the supervisor starts it again: nothing is repaired in place
whose state is not known. Every role is built to be killed at any instant.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import importlib
import json
import logging
import math
import os
import signal
import socket
import sys
from collections.abc import Callable, Coroutine
from typing import Any

from pydantic import ValidationError

from pai_backend.config.settings import ProcessRole, Settings
from pai_backend.model.base import SHARES_NAMES
from pai_backend.platform import logs
from pai_backend.platform.descriptors import raise_limit
from pai_backend.processes.components import Components, ProcessLife, ReadyLine, RoleError
from pai_backend.processes.supervisor import EXIT_CONFIG, EXIT_FAULT, process_name

log = logging.getLogger(__name__)

DEADLINE_S = 18  # from being told to end to being killed by our own alarm; shorter than the supervisor's patience
RunRole = Callable[[Components, ReadyLine], Coroutine[Any, Any, None]]


def run_inherited(arguments: list[str], version: str) -> int:
    """Run roles as a child of the supervisor, with settings, lifeline and ready line on inherited descriptors."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--role", required=True)
    parser.add_argument("--inherited", required=True)
    parser.add_argument("--copy", type=int, default=1)
    given = parser.parse_args(arguments)
    descriptors = [int(word) for word in given.inherited.split(",")]
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    settings_fd, lifeline_fd, ready_fd, generation, *port = descriptors
    listener = socket.socket(fileno=port[0]) if port else None
    roles = tuple(ProcessRole(word) for word in given.role.split(","))
    life = ProcessLife(given.copy, generation, listener)
    return _run(_inherited_settings(settings_fd), roles, version, lifeline_fd, ready_fd, life)


def check_inherited(settings_fd: int, version: str) -> int:
    """Whether this program, which may be newer than the supervisor's, takes the settings; prints its version.

    A line on stderr names the keys that it does not take, and never their values.
    """
    try:
        _inherited_settings(settings_fd)
    except ValidationError as error:
        places = ", ".join(".".join(map(str, each["loc"])) or each["type"] for each in error.errors())
        sys.stderr.write(f"{places}\n")
        return EXIT_CONFIG
    sys.stdout.write(f"{version}\n")
    return 0


def _inherited_settings(descriptor: int) -> Settings:
    values = json.loads(os.pread(descriptor, os.fstat(descriptor).st_size, 0))
    del values["version"]  # of the program that read the configuration; ours may be newer
    return Settings.model_validate(values)


def run_alone(settings: Settings, roles: tuple[ProcessRole, ...], version: str, ready_fd: int | None) -> int:
    """Run roles in this process without a supervisor, as a container would."""
    if settings.log_dir is not None:
        logs.redirect(settings.log_dir / f"{process_name(roles)}.log")
    return _run(settings, roles, version, None, ready_fd, ProcessLife())


def _run(
    settings: Settings,
    roles: tuple[ProcessRole, ...],
    version: str,
    lifeline_fd: int | None,
    ready_fd: int | None,
    life: ProcessLife,
) -> int:
    log_file = settings.log_dir / f"{process_name(roles, life.copy)}.log" if settings.log_dir is not None else None
    logs.configure(settings.log_level, log_file, settings.log_file_bytes, as_json=settings.log_format == "json")
    if not SHARES_NAMES:
        log.warning("this pydantic keeps in another way which fields a value has: jobs take more memory (ADR 0032)")
    if roles != (ProcessRole.AGENT,):  # programs of users inherit the agent's, and some use select(2)
        raise_limit()
    settings.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    ready = ReadyLine(roles, ready_fd, supervised=lifeline_fd is not None)
    try:
        asyncio.run(run_roles(settings, roles, version, ready, lifeline_fd, life))
    except Exception as error:
        cause = _first(error)
        if isinstance(cause, RoleError):
            ready.failed(str(cause))
            log.error("%s", cause)
            return EXIT_CONFIG
        log.critical("the process ends by a fault", exc_info=cause)
        return EXIT_FAULT
    return 0


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


async def run_roles(
    settings: Settings,
    roles: tuple[ProcessRole, ...],
    version: str,
    ready: ReadyLine,
    lifeline_fd: int | None = None,
    life: ProcessLife | None = None,
) -> None:
    """Run these roles until SIGTERM, SIGINT or the end of the lifeline.

    Raises RoleError (in a group) when a role cannot run with this configuration, and whatever a role died of.
    """
    stop = asyncio.Event()
    components = Components(settings, roles, version, stop, life)
    components.reserve.release_if_full()
    _end_on_request(components, lifeline_fd, deadline_s(settings, roles))
    runs = [(role, _role(role)) for role in roles]
    _favour_latency()
    try:
        async with asyncio.TaskGroup() as group:
            running = [group.create_task(run(components, ready), name=role.value) for role, run in runs]
            decides = bool({ProcessRole.API, ProcessRole.CONTROLLER} & set(roles))
            keeping = group.create_task(components.reserve.keep()) if decides else None
            ending = group.create_task(stop.wait())
            await asyncio.wait([*running, ending], return_when=asyncio.FIRST_COMPLETED)
            ending.cancel()
            if keeping is not None:
                keeping.cancel()
            stop.set()
    finally:
        await components.aclose()


def deadline_s(settings: Settings, roles: tuple[ProcessRole, ...]) -> int:
    """Seconds that this process has to end in: those that logins go through have a gateway's drain besides."""
    drains = {ProcessRole.GATEWAY, ProcessRole.AGENT} & set(roles)
    return DEADLINE_S + (math.ceil(settings.gateway.drain_s) if drains else 0)


def _role(role: ProcessRole) -> RunRole:
    """The function that runs a role; its module is imported here and not before."""
    module = importlib.import_module(f"pai_backend.processes.roles.{role.value}")
    run: RunRole = module.run
    return run


def _favour_latency() -> None:
    """Let database threads take turns with the event loop sooner, and collect garbage less often.

    Submissions by 16 clients, as fast as they can, on 2 cores shared with other work: p95 76 to 126 ms in three
    runs without, 52 to 73 ms in five runs with both (2026-11-21). Either alone does little.
    """
    sys.setswitchinterval(0.0005)  # seconds
    gc.freeze()  # what was imported is never garbage, and to look for what is takes longer than what it would bring
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


def _end_on_request(components: Components, lifeline_fd: int | None, deadline: int) -> None:
    """Set ``stop`` when we are told to end or our supervisor is gone; a process that then hangs is killed.

    Alone, it is to hurry once it has been told twice. With a supervisor that alone decides: an interrupt of the
    terminal reaches all processes, and not in their order. Without one that it had, it ends as if that had told it to:
    its successors need not wait for that.
    """
    loop, supervised = asyncio.get_running_loop(), lifeline_fd is not None

    def begin_to_end() -> None:
        if not components.stop.is_set():
            signal.alarm(deadline)  # its default action ends the process
            components.stop.set()

    def end() -> None:
        if not components.stop.is_set():
            begin_to_end()
        elif not supervised:
            signal.alarm(DEADLINE_S)
            components.hurry.set()

    def lifeline_moved() -> None:
        assert lifeline_fd is not None
        if os.read(lifeline_fd, 1) == b"":
            loop.remove_reader(lifeline_fd)
            log.warning("the supervisor is gone; ending")
            begin_to_end()

    loop.add_signal_handler(signal.SIGTERM, end)
    loop.add_signal_handler(signal.SIGINT, (lambda: None) if supervised else end)
    if lifeline_fd is not None:
        loop.add_reader(lifeline_fd, lifeline_moved)
