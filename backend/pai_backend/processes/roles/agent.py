"""The node agent: SSH into local tasks. Needs neither the database nor HTTP, and imports neither."""

from __future__ import annotations

import os
from contextlib import ExitStack

from pai_backend.config.settings import ProcessRole
from pai_backend.engine.local.agent import serve_agent
from pai_backend.platform.runtime_files import runtime_file
from pai_backend.processes.components import Components, ReadyLine

AFTER_GATEWAY_S = 8  # its logins go through us to their end, and it ends them in good order


async def run(components: Components, ready: ReadyLine) -> None:
    """Serve until the process is told to end, and the logins there are until the gateway's have ended.

    Raises RoleError where it cannot be what tasks' accounts need it to be.
    """
    components.accounts  # noqa: B018 - refused here, as in the other roles
    with ExitStack() as files:
        files.enter_context(runtime_file(components.runtime("agent.json"), {"pid": os.getpid()}))
        ready.role_is_ready(ProcessRole.AGENT)

        def leaving() -> None:
            files.close()
            components.let_go(ProcessRole.AGENT, ready)

        await serve_agent(
            components.engine_root,
            components.stop,
            drain_s=components.settings.gateway.drain_s + AFTER_GATEWAY_S,
            leaving=leaving,
            hurry=components.hurry,
        )
