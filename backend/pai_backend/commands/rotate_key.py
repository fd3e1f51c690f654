"""``python -m pai_backend rotate-key``: seal everything in the database with a new key, while the backend runs.

With a key file a new key is made, unless an earlier rotation is unfinished: then that is finished first. With keys in
the configuration the first of them is the new one. Older keys stay where they are until they are not needed.
May be ended at any time and run again.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import nullcontext
from pathlib import Path

from pai_backend.commands.auditing import by_command
from pai_backend.config.files import ConfigError
from pai_backend.config.load import load
from pai_backend.config.settings import Settings
from pai_backend.model.errors import InvalidParameters, Unavailable
from pai_backend.processes.components import key_source
from pai_backend.processes.supervisor import EXIT_CONFIG, EXIT_FAULT
from pai_backend.store.cipher import key_id
from pai_backend.store.keyring import KeyFile, KeySource, SecretKeyError
from pai_backend.store.sql import Store


def main(arguments: list[str]) -> int:
    """Run the command with the arguments of ``serve``; returns the exit code."""
    try:
        settings = load(arguments).settings
        _require_database(settings)
        source = key_source(settings)
        with source.alone() if isinstance(source, KeyFile) else nullcontext():
            return asyncio.run(rotate(settings, source))
    except ConfigError as error:
        lines = list(error.lines)
    except SecretKeyError as error:
        lines = [str(error)]
    except (InvalidParameters, Unavailable) as error:
        sys.stderr.write(f"pai_backend: {error.message} {error.hint}\n")
        return EXIT_FAULT
    sys.stderr.writelines(f"pai_backend: {line}\n" for line in lines)
    return EXIT_CONFIG


async def rotate(settings: Settings, source: KeySource) -> int:
    """Seal everything with the newest key; returns the exit code.

    Raises SecretKeyError, Unavailable and InvalidParameters.
    """
    store = Store(settings.database_url, source)
    await store.open()
    try:
        keys = await asyncio.to_thread(source.read)
        if await store.sealed_with() == {key_id(keys[0])}:
            if not isinstance(source, KeyFile):
                _say("Everything is sealed with the newest key. To rotate, put a new one first in `secret_key`,")
                _say("restart the backend, and run this again.")
                return 0
            keys = await asyncio.to_thread(source.add)
            _say(f"{source.place} has a new key, {key_id(keys[0])}.")
        await store.audit.add(by_command("secret-key.rotated", key_id(keys[0])))
        return await _reseal(store, source, key_id(keys[0]))
    finally:
        await store.aclose()


async def _reseal(store: Store, source: KeySource, newest: str) -> int:
    count = 0

    def report(done: int) -> None:
        nonlocal count
        count += done
        _say(f"{count} rows are sealed with the key {newest}.")

    for what in await store.reseal(report):
        sys.stderr.write(f"pai_backend: {what} cannot be opened with any key of {source.place}; it was left as it is\n")
    left = await store.sealed_with() - {newest}
    if left:
        sys.stderr.write(f"pai_backend: something is still sealed with {', '.join(sorted(left))}: keep these keys, ")
        sys.stderr.write("restart the backend, and run this again\n")
        return EXIT_FAULT
    _say(f"Nothing is sealed with an older key. Restart the backend before you take older keys out of {source.place}.")
    return 0


def _require_database(settings: Settings) -> None:
    """A mistyped directory must not become a new backend."""
    url = settings.database_url
    path = Path(url.removeprefix("sqlite:///"))
    if url.startswith("sqlite:///") and not path.exists():
        raise ConfigError(f"database: there is no {path}; name the data directory or database of the backend")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
