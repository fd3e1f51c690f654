"""Programs that give credentials (``exec`` in a kubeconfig), as clouds and single sign-on have them.

Our own runner, since the library's logs what such a program writes to standard error, has no time limit, and leaves a
program behind that hangs. Source: the client-go credential plugin protocol, client.authentication.k8s.io/v1.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from pai_backend.engine.kubernetes.failures import AccessError

COMMAND_S = 30.0  # what a program may take: some talk to a cloud, none should ask a person
_CLUSTER_KEYS = ("server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority-data", "proxy-url")


@dataclass(frozen=True)
class ProgramCredential:
    """What a program gave: the ``user`` of a kubeconfig that needs no program, and until when it is good."""

    user: dict[str, Any] = field(repr=False)
    expires: datetime | None


async def run_program(config: dict[str, Any], cluster: dict[str, Any], folder: Path, place: str) -> ProgramCredential:
    """Run the program that ``config`` (the value of ``exec``) names; a relative one is below ``folder``.

    Raises AccessError with the place, which never holds what the program wrote.
    """
    command = str(config.get("command") or "")
    who = f"{place}: the command {command or '(none)'}"
    api = str(config.get("apiVersion") or "")
    spec: dict[str, Any] = {"interactive": False}
    if config.get("provideClusterInfo"):
        spec["cluster"] = {key: cluster[key] for key in _CLUSTER_KEYS if key in cluster}
    environ = {**os.environ, **_variables(config)}
    environ["KUBERNETES_EXEC_INFO"] = json.dumps({"apiVersion": api, "kind": "ExecCredential", "spec": spec})
    program = str(folder / command) if os.sep in command else command
    output = await _output([program, *map(str, config.get("args") or ())], environ, who)
    try:
        said = json.loads(output)
        status = said["status"]
        if said["kind"] != "ExecCredential" or said["apiVersion"] != api:
            raise ValueError
        return ProgramCredential(_user(status), _expiry(status))
    except (ValueError, LookupError, TypeError):
        raise AccessError(f"{who} did not return an ExecCredential of {api or 'a named apiVersion'}") from None


async def _output(words: list[str], environ: dict[str, str], who: str) -> bytes:
    """Standard output of a program that ends well in time; nothing of it is left running otherwise."""
    null = asyncio.subprocess.DEVNULL
    try:
        process = await asyncio.create_subprocess_exec(
            *words, env=environ, stdin=null, stdout=asyncio.subprocess.PIPE, stderr=null
        )
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not a command"
        raise AccessError(f"{who} cannot be run: {reason}; install it, or use another context") from None
    try:
        async with asyncio.timeout(COMMAND_S):
            output, _ = await process.communicate()
    except TimeoutError:
        raise AccessError(f"{who} gave no credentials within {COMMAND_S:g} s; run it by hand to see why") from None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    if process.returncode != 0:
        raise AccessError(f"{who} ended with exit code {process.returncode}; run it by hand to see why")
    return output


def _variables(config: dict[str, Any]) -> dict[str, str]:
    entries = config.get("env")
    if not isinstance(entries, list):
        return {}
    return {
        str(entry["name"]): str(entry.get("value", ""))
        for entry in entries
        if isinstance(entry, dict) and "name" in entry
    }


def _user(status: dict[str, Any]) -> dict[str, Any]:
    """The credentials as a kubeconfig has them. Raises LookupError when there are none."""
    user: dict[str, Any] = {}
    if status.get("token"):
        user["token"] = str(status["token"])
    if status.get("clientCertificateData"):
        for key, source in (("client-certificate-data", "clientCertificateData"), ("client-key-data", "clientKeyData")):
            user[key] = base64.b64encode(str(status[source]).encode()).decode()
    if not user:
        raise LookupError
    return user


def _expiry(status: dict[str, Any]) -> datetime | None:
    text = status.get("expirationTimestamp")
    if not text:
        return None
    expires = datetime.fromisoformat(str(text))
    if expires.tzinfo is None:
        raise ValueError
    return expires
