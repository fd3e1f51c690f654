r"""Which Jupyter server a command starts, what it will be reached with, and whether strangers can reach it. Pure.

The command is read as it is after its one bash parse. How option texts become values is what the program does
with them (tried with jupyter_server 2.21, notebook 7.6 and jupyterlab 4.6; the tests run the real ones):
one pair of quotes around a value is stripped, double ones first, and a value of exactly two double quotes
stays as it is, because the stripping fails on it (traitlets 5, ``Unicode.from_string``). So the classic
``--NotebookApp.token=\"\"`` means a token of two quote characters, while ``base_url=\"/\"`` means ``/``.
An option outranks the variable ``JUPYTER_TOKEN``.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections import ChainMap
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import starmap
from typing import cast

from pai_backend.launch.shell_words import VariableBudget, known, simple_commands
from pai_backend.model.digits import whole_number
from pai_backend.model.spec import DocumentWarning, JobSpec
from pai_backend.model.text import Text
from pai_backend.model.urls import is_loopback

TOKEN_VARIABLE = "JUPYTER_TOKEN"

MAX_SCRIPTS = 4  # of ``bash -c`` within one another; a variable may hold one that holds itself
_SERVERS = frozenset({"notebook", "lab", "server", "nbclassic"})
_PROGRAMS = frozenset(f"jupyter-{name}" for name in _SERVERS)
_MODULES = frozenset({"jupyterlab", "notebook", "jupyter_server", "nbclassic"})
_PYTHON = re.compile(r"python(\d+(\.\d+)?)?", re.ASCII)
_SHELLS = frozenset({"bash", "sh", "dash"})
_PREFIXES = frozenset({"exec", "command", "nohup", "time", "env", "setsid"})
_NOT_SERVING = frozenset(
    {
        "list",
        "stop",
        "password",
        "build",
        "clean",
        "path",
        "paths",
        "workspaces",
        "extension",
        "labextension",
        "licenses",
    }
)
_NOT_SERVING_FLAGS = frozenset({"--help", "-h", "--help-all", "--version", "--generate-config", "--show-config"})
_CLASSES = frozenset(
    {
        "NotebookApp",
        "ServerApp",
        "LabApp",
        "JupyterNotebookApp",
        "ExtensionApp",
        "IdentityProvider",
        "PasswordIdentityProvider",
    }
)
_ALIASES = {"ip": "ip", "port": "port"}
_TRAITS = frozenset({"ip", "port", "token", "base_url", "password", "hashed_password"})
_LABEL = re.compile(r"jupyter|notebook|(^|[^a-z])lab([^a-z]|$)", re.ASCII | re.IGNORECASE)


class TokenSource(StrEnum):
    """Where a Jupyter's token comes from."""

    COMMAND = "command"
    ENVIRONMENT = "environment"
    NONE = "none"  # none is set: the server takes ours, or makes up its own
    UNKNOWN = "unknown"  # set to something that only running the command can tell


@dataclass(frozen=True)
class JupyterCommand:
    """A Jupyter server found in a command. ``None`` fields are not known statically."""

    ip: str | None
    port: int | None
    token: str | None
    token_source: TokenSource
    base_url: str | None
    password: bool

    def __repr__(self) -> str:
        """As usual, without the token."""
        return f"JupyterCommand(ip={self.ip!r}, port={self.port}, token from {self.token_source}, {self.base_url!r})"


def find_jupyter(command: str, env: Mapping[str, str]) -> JupyterCommand | None:
    """The first Jupyter server that this shell text starts, or None. ``env`` are the variables it will see."""
    return _find(command, env, VariableBudget(), MAX_SCRIPTS)


def _find(command: str, env: Mapping[str, str], budget: VariableBudget, deeper: int) -> JupyterCommand | None:
    for words, seen in starmap(_unwrapped, simple_commands(command, env, budget)):
        arguments = _server_arguments(words)
        if arguments is not None:
            return _read_options(arguments, seen)
        script = _inner_script(words) if deeper else None
        if script is not None and (found := _find(script, seen, budget, deeper - 1)):
            return found
    return None


def made_token(key: str, job_uid: str) -> str:
    """Our token for the Jupyter servers of a job, given to its tasks as ``JUPYTER_TOKEN``.

    A function of the server's signing key and the job alone, so that it survives retries and restarts.
    """
    return hmac.new(key.encode(), b"jupyter-token\0" + job_uid.encode(), hashlib.sha256).hexdigest()


def upstream_token(command: str, env: Mapping[str, str], *, label: str, port: int, made: str) -> str | None:
    """What to present to the service on this port of a task, or None when it is no Jupyter or not known.

    ``env`` is the task's environment as its document gives it; ``made`` the task's :func:`made_token`, which
    it has unless the document sets another one. A command that shows no Jupyter may still start one in
    a script of its own: then the port's label tells.
    """
    found = find_jupyter(command, env)
    if found is None:
        return (env.get(TOKEN_VARIABLE) or made) if _LABEL.search(label) else None
    if found.port not in (None, port):
        return None
    if found.token_source is TokenSource.NONE:
        return made
    return found.token or None


def serves_jupyter(command: str, env: Mapping[str, str], *, label: str, port: int) -> bool:
    """Whether the service on this port of a task is a Jupyter server, as far as its command or its label tells."""
    found = find_jupyter(command, env)
    return bool(_LABEL.search(label)) if found is None else found.port in (None, port)


def open_listener_warnings(spec: JobSpec) -> tuple[DocumentWarning, ...]:
    r"""A warning for each role whose Jupyter listens beyond loopback while anyone knows its token.

    Source: the classic command of the SCM documents, ``--ip 0.0.0.0 --NotebookApp.token=\"\"``, was meant
    for a private network; on a laptop it lets the neighbours in.
    """
    env = {name: value for name, value in spec.env.items() if isinstance(value, str)}
    return tuple(
        _open_warning(f".{role.name}.commands" if spec.dialect.is_v2 else f"[{index}].command", role.name, found)
        for index, role in enumerate(spec.task_roles)
        if (found := find_jupyter(role.command, env)) and _open_to_strangers(found)
    )


def _open_warning(place: str, role: str, found: JupyterCommand) -> DocumentWarning:
    token = "has no token" if not found.token else "has only quote characters as its token, which anyone can type"
    return DocumentWarning(
        code="open-jupyter",
        path=f"$.taskRoles{place}",
        message=(
            Text(
                "The Jupyter server of role {role} listens on the network (--ip {ip}) and {token}: "
                "anyone who reaches the machine can run programs as you.",
                role=role,
                ip=found.ip or "*",
                token=token,
            )
        ),
        hint=(
            Text(
                "Remove the --ip option and the token option from the command. The service address of "
                "the job works without them and signs you in."
            )
        ),
    )


def _open_to_strangers(found: JupyterCommand) -> bool:
    if found.token is None or found.password or found.token.strip("\"'"):
        return False
    return found.ip is not None and not is_loopback(found.ip)


def _unwrapped(words: tuple[str, ...], env: Mapping[str, str]) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """A command and its environment without what only wraps it, such as ``exec``, ``nohup`` or ``env NAME=value``."""
    given, begin = dict[str, str](), 0
    while begin < len(words) and (words[begin] in _PREFIXES or (begin and "=" in words[begin])):
        name, equals, value = words[begin].partition("=")
        if equals:
            given[name] = value
        begin += 1
    return (words[begin:], ChainMap(given, cast(MutableMapping[str, str], env))) if begin else (words, env)


def _server_arguments(words: Sequence[str]) -> Sequence[str] | None:
    """The arguments of the Jupyter server that these words start, or None."""
    if not words:
        return None
    program, arguments = words[0].rsplit("/", 1)[-1], words[1:]
    if _PYTHON.fullmatch(program):
        if "-m" not in arguments[:-1]:
            return None
        at = arguments.index("-m")
        if any(not option.startswith("-") for option in arguments[:at]):
            return None
        program, arguments = arguments[at + 1], arguments[at + 2 :]
        if program in _MODULES:
            return _serving(arguments)
    if program in _PROGRAMS:
        return _serving(arguments)
    if program == "jupyter" and arguments and arguments[0] in _SERVERS:
        return _serving(arguments[1:])
    return None


def _serving(arguments: Sequence[str]) -> Sequence[str] | None:
    """The arguments unless they make the program do something else than serve."""
    if arguments and arguments[0] in _NOT_SERVING:
        return None
    return None if _NOT_SERVING_FLAGS.intersection(arguments) else arguments


def _inner_script(words: Sequence[str]) -> str | None:
    """The text behind ``bash -c``."""
    if not words or words[0].rsplit("/", 1)[-1] not in _SHELLS:
        return None
    for at, word in enumerate(words[1:-1], 1):
        if not word.startswith("-"):
            return None
        if word[1:2] != "-" and word.endswith("c"):
            return words[at + 1] if known(words[at + 1]) else None
    return None


def _read_options(arguments: Sequence[str], env: Mapping[str, str]) -> JupyterCommand:
    given = _traits(arguments)
    token, source = _token(given, env)
    port = _text(given["port"]) if "port" in given else env.get("JUPYTER_PORT")
    base_url = _text(given["base_url"]) if "base_url" in given else "/"
    return JupyterCommand(
        ip=_text(given["ip"]) if "ip" in given else "localhost",
        port=whole_number(port or "") or None,
        token=token,
        token_source=source,
        base_url=base_url and f"/{base_url.strip('/')}/".replace("//", "/"),
        password=bool(given.get("password") or given.get("hashed_password")),
    )


def _token(given: Mapping[str, str], env: Mapping[str, str]) -> tuple[str | None, TokenSource]:
    if "token" in given:
        text = _text(given["token"])
        return text, TokenSource.UNKNOWN if text is None else TokenSource.COMMAND
    text = env.get(TOKEN_VARIABLE, "")
    if not known(text) or env.get("JUPYTER_TOKEN_FILE"):
        return None, TokenSource.UNKNOWN
    return (text, TokenSource.ENVIRONMENT) if text else (None, TokenSource.NONE)


def _traits(arguments: Sequence[str]) -> dict[str, str]:
    """Raw text by trait, of ``--Class.trait=text``, ``--Class.trait text`` and the aliases; the last one counts."""
    given: dict[str, str] = {}
    for at, word in enumerate(arguments):
        if not word.startswith("--"):
            continue
        option, equals, text = word[2:].partition("=")
        owner, dot, trait = option.partition(".")
        name = trait if dot and owner in _CLASSES else _ALIASES.get(option, "")
        if name not in _TRAITS:
            continue
        if not equals:
            if at + 1 == len(arguments) or arguments[at + 1].startswith("-"):
                continue
            text = arguments[at + 1]
        given[name] = text
    return given


def _text(raw: str) -> str | None:
    """The value that the program makes of an option's text; None when it cannot be known."""
    if not known(raw) or raw.startswith("~"):
        return None
    value = raw
    for quote in ('"', "'"):
        if len(raw) >= 2 and not value:
            return raw  # stripping double quotes left nothing to look at: the program keeps the raw text
        if len(raw) >= 2 and value[0] == value[-1] == quote:
            value = value[1:-1]
    return value
