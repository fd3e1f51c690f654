"""``python -m pai_backend adopt``: let this database take over the place where another one's tasks run (ADR 0025).

Its tasks go on. What their own record tells is taken back by the controller; the others are orphans, which
``pai cluster orphans`` lists.
"""

from __future__ import annotations

import asyncio
import sys
from datetime import UTC, datetime

from pai_backend.commands.auditing import by_command
from pai_backend.config.files import ConfigError
from pai_backend.config.load import load
from pai_backend.config.settings import Settings
from pai_backend.engine.base import EngineError
from pai_backend.engine.holding import ALIVE_S, EngineHolder, HeldByAnother
from pai_backend.model.errors import InvalidParameters, Unavailable
from pai_backend.processes.components import Components, RoleError, key_source
from pai_backend.processes.node_cache import NodeCachingEngine
from pai_backend.processes.supervisor import EXIT_CONFIG, EXIT_FAULT
from pai_backend.store.keyring import SecretKeyError
from pai_backend.store.sql import Store

FORCE = "--force"


def main(arguments: list[str]) -> int:
    """Run the command with the arguments of ``serve`` and perhaps ``--force``; returns the exit code."""
    force = FORCE in arguments
    try:
        settings = load([word for word in arguments if word != FORCE]).settings
        return asyncio.run(_adopt(settings, force=force))
    except ConfigError as error:
        lines, code = list(error.lines), EXIT_CONFIG
    except (SecretKeyError, RoleError) as error:
        lines, code = [str(error)], EXIT_CONFIG
    except (InvalidParameters, Unavailable) as error:
        lines, code = [f"{error.message} {error.hint}"], EXIT_FAULT
    except EngineError as error:
        lines, code = [str(error)], EXIT_FAULT
    sys.stderr.writelines(f"pai_backend: {line}\n" for line in lines)
    return code


async def _adopt(settings: Settings, *, force: bool) -> int:
    store = Store(settings.database_url, key_source(settings))
    await store.open()
    components = Components(settings, (), "", asyncio.Event())
    try:
        return await adopt(store, components.engine(), force=force)
    finally:
        await components.aclose()
        await store.aclose()


async def adopt(store: Store, engine: NodeCachingEngine, *, force: bool) -> int:
    """Write the holder record; returns the exit code.

    Without ``force`` a holder that was heard lately is left alone: two controllers would act side by side until the
    other one notices. Raises EngineError, Unavailable.
    """
    identity = await store.recovery.identity()
    found = await _found(engine)
    if found is not None and found.identity == identity:
        sys.stdout.write(f"Nothing to do: its tasks belong to this database already (identity {identity}).\n")
        return 0
    now = datetime.now(UTC)
    if found is not None and found.age_s(now) <= ALIVE_S and not force:
        sys.stderr.write(
            f"pai_backend: the backend with identity {found.identity} is at work: its controller {found.holder} was "
            f"heard {found.age_s(now):.0f} s ago. Stop it and run this again after {ALIVE_S:.0f} s, or add {FORCE} if "
            "it cannot be stopped\n"
        )
        return EXIT_FAULT
    await store.audit.add(by_command("tasks.adopted", identity, found.identity if found is not None else ""))
    await engine.hand_over(identity)
    before = f" They belonged to {found.identity}." if found is not None else ""
    sys.stdout.write(f"The tasks there belong to this database now (identity {identity}).{before}\n")
    sys.stdout.write("Start the backend: it takes back what it can, and `pai cluster orphans` lists the rest.\n")
    return 0


async def _found(engine: NodeCachingEngine) -> EngineHolder | None:
    """The record; one that cannot be read counts as none, since this is how it is replaced."""
    try:
        return await engine.holder()
    except HeldByAnother:
        return None
