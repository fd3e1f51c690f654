"""What stands before a v1 command in a v2 document, and before a v2 command in a v1 document.

v2 runs its commands with errexit, nounset and pipefail, v1 does not; v2 has no jobEnvs. A few lines of shell before
the command make up for both, and leave the command as it was written.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pai_backend.protocol.mask import SECRET_NAME

V1_MODE: Final = "set +o errexit +o nounset +o pipefail"
V2_MODE: Final = "set -o errexit -o nounset -o pipefail"
MIN_SECRET: Final = 6
"""Characters of a value that is made a secret: a shorter one is no password, and would be scrubbed from every log."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NUMBER = re.compile(r"[-+.0-9eE]+")
_FILLED_IN = re.compile(r"\$PAI_(?:DEFAULT_FS_URI|JOB_NAME|USER_NAME|USERNAME)")
_DIRECTORIES = {"dataDir": "PAI_DATA_DIR", "outputDir": "PAI_OUTPUT_DIR", "codeDir": "PAI_CODE_DIR"}


@dataclass
class Exports:
    """The lines that set a job's variables, the secrets among them, and the names that no shell can set."""

    lines: list[str] = field(default_factory=list)
    secrets: dict[str, str] = field(default_factory=dict, repr=False)
    unsaid: list[str] = field(default_factory=list)
    in_the_open: list[str] = field(default_factory=list)
    """Names that say that their values are secret, with values that are too short, or numbers, to be made secrets."""


def exports(env: Mapping[str, Any], taken: Collection[str] = ()) -> Exports:
    """How a command sets jobEnvs itself. A value is given as v1 gives it: a text as it is, anything else as JSON.

    Where the platform has a variable of that name its own value stays, as it does in v1. A value whose name says
    that it is secret goes into the document's secrets, under another name where that one is ``taken``.
    """
    made = Exports()
    for name, value in env.items():
        if not _VARIABLE.fullmatch(name):
            made.unsaid.append(name)
            continue
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        if _is_secret(name, value):
            secret = _free(name, taken, env)
            made.secrets[secret] = text.replace("'", "'\\''")
            word = f"'<% $secrets.{secret} %>'"
        else:
            word = quoted(text)
            if text and value is not None and not isinstance(value, bool) and SECRET_NAME.search(name):
                made.in_the_open.append(name)
        guard = f'[ "${{{name}+set}}" ] || ' if name.startswith(("PAI_", "QIZHI_")) else ""
        made.lines.append(f"{guard}export {name}={word}")
    return made


def directories(given: Mapping[str, str]) -> list[str]:
    """How a command sets the variables of v1's directories where the platform does not (``given``: field -> value)."""
    return [
        f'[ "${{{name}:+set}}" ] || export {name}={_filled_in(given[field])}'
        for field, name in _DIRECTORIES.items()
        if given.get(field)
    ]


def quoted(text: str) -> str:
    """``text`` as one word of a shell, in which v2 finds none of its tags."""
    return shlex.quote(text).replace("<%", "<''%")


def _filled_in(text: str) -> str:
    """The directory as one word in which the shell fills in what v1 fills in there, and nothing else."""
    parts: list[str] = []
    done = 0
    for found in _FILLED_IN.finditer(text):
        parts += quoted(text[done : found.start()]) if found.start() > done else "", f'"{found[0]}"'
        done = found.end()
    if done < len(text):
        parts.append(quoted(text[done:]))
    return "".join(parts)


def _free(name: str, taken: Collection[str], env: Collection[str]) -> str:
    """A name for the secret of that variable, which is not the one of another variable."""
    secret = name
    while secret in taken or (secret != name and secret in env):
        secret += "_"
    return secret


def _is_secret(name: str, value: Any) -> bool:
    """Whether the value goes into the secrets: a text does, and an object or a list that holds one."""
    if SECRET_NAME.search(name) is None:
        return False
    pending = [value]
    while pending:
        one = pending.pop()
        if isinstance(one, dict | list):
            pending += one.values() if isinstance(one, dict) else one
        elif isinstance(one, str) and len(one) >= MIN_SECRET and not _NUMBER.fullmatch(one):
            return True
    return False
