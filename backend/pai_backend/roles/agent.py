"""The node agent: SSH into local tasks. Needs neither the database nor HTTP, and imports neither."""

from __future__ import annotations

import os

from pai_backend.config.settings import Role
from pai_backend.engine.local.agent import serve_agent
from pai_backend.parts import Parts, ReadyLine
from pai_backend.runtime_files import runtime_file


async def run(parts: Parts, ready: ReadyLine) -> None:
    """Serve until the process is told to end."""
    with runtime_file(parts.runtime("agent.json"), {"pid": os.getpid()}):
        ready.role_is_ready(Role.AGENT)
        await serve_agent(parts.engine_root, parts.stop)
