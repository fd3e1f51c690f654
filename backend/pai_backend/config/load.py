"""From file, environment and flags to one ``Settings``: a flag beats a variable beats the file.

Every mistake is reported with the place it was made in, one line each, and all of them at once.
"""

from __future__ import annotations

import argparse
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import yaml
from pydantic import ValidationError

from pai_backend.config.files import ConfigError, ConfigFile, check_mode, read_file
from pai_backend.config.keys import ENV_NESTED, ENV_PREFIX, Key, keys
from pai_backend.config.settings import ProcessRole, Settings
from pai_backend.model.validation import Loc, dotted, faults, nearest

CONFIG_VARIABLE = ENV_PREFIX + "CONFIG"


@dataclass(frozen=True)
class Invocation:
    """What a command line asks for."""

    settings: Settings
    roles: tuple[ProcessRole, ...] = ()
    ready_fd: int | None = None
    warnings: tuple[str, ...] = ()


class _Parser(argparse.ArgumentParser):
    """argparse whose complaints become ConfigError instead of a usage text and an exit."""

    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"command line: {message}")


_PATHS = (
    ("data_dir",),
    ("log_dir",),
    ("secret_key_file",),
    ("api", "token_file"),
    ("cluster", "config"),
    ("engine", "python"),
    ("kubernetes", "kubeconfig"),
)
"""Keys that hold a path."""


def build_parser() -> argparse.ArgumentParser:
    """The flags of ``serve``: its own few, then one for every key that is no secret."""
    parser = _Parser(
        prog="python -m pai_backend serve",
        usage="python -m pai_backend serve [--config FILE] [--role ROLE[,ROLE]] [--KEY VALUE ...]",
        description="Run the backend. A flag beats an environment variable beats the file.",
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=_secret_keys_help(),
    )
    parser.add_argument("--config", metavar="FILE", help=f"YAML or TOML file. [{CONFIG_VARIABLE}]")
    parser.add_argument(
        "--role", metavar="ROLE[,ROLE]", help="Run these roles alone in this process: api, controller, gateway, agent."
    )
    parser.add_argument(
        "--ready-fd", metavar="N", type=int, help="Write one line of JSON to this descriptor when everything answers."
    )
    group = parser.add_argument_group("keys")
    for key in keys():
        if key.flag is not None:
            group.add_argument(key.flag, dest=key.name, metavar="VALUE", help=_help(key).replace("%", "%%"))
    return parser


def _help(key: Key) -> str:
    default = f" Default: {key.default}." if key.default else ""
    return f"{key.meaning} ({key.kind}){default} [{key.name}, {key.variable}]"


def _secret_keys_help() -> str:
    lines = [f"  {key.name} [{key.variable}]\n      {_help(key)}" for key in keys() if key.flag is None]
    return "keys that hold secrets (file and environment only):\n" + "\n".join(lines)


def load(arguments: Sequence[str]) -> Invocation:
    """Read all sources, and close the data directory to writers. Raises ConfigError; ``--help`` prints and exits."""
    parser = build_parser()
    parsed, unknown = parser.parse_known_args(list(arguments))
    if unknown:
        raise ConfigError(*_unknown_arguments(unknown))
    given: dict[str, Any] = vars(parsed)
    own = {name: given.pop(name) for name in ("config", "role", "ready_fd")}
    config = own["config"] or os.environ.get(CONFIG_VARIABLE)
    file = _beside(read_file(Path(config)), Path(config).parent) if config else ConfigFile("", {})
    sources = [
        _Source(file.values, file.place),
        _Source(_environment(), _variable),
        _Source(_flags(given), lambda loc: _flag(given, loc)),
    ]
    settings = _validate(sources)
    if config:
        check_mode(Path(config), file, (key.path for key in keys() if key.secret))
    settings = _absolute(settings)
    warnings = (*_stray_variables(os.environ), *_guarded(settings.data_dir))
    return Invocation(settings, _roles(own["role"]), own["ready_fd"], warnings)


@dataclass(frozen=True)
class _Source:
    values: dict[str, Any]
    place: Callable[[Loc], str]

    def has(self, loc: Loc) -> bool:
        """Whether this source says something at ``loc``."""
        here: Any = self.values
        for part in loc:
            try:
                here = here[part]
            except (KeyError, IndexError, TypeError):
                return False
        return True


def _validate(sources: Sequence[_Source]) -> Settings:
    merged: dict[str, Any] = {}
    for source in sources:
        merged = _merge(merged, source.values)
    try:
        return Settings.model_validate(merged)
    except ValidationError as error:
        lines = []
        for loc, complaint, hint in faults(error, Settings):
            place = _place(sources, loc)
            subject = f"{dotted(loc)} " if loc else ""
            lines.append(f"{place}: {subject}{complaint}." + (f" {hint}" if hint else ""))
        raise ConfigError(*lines) from None


def _place(sources: Sequence[_Source], loc: Loc) -> str:
    """The strongest source that says something at ``loc``, or the nearest thing above it."""
    for length in range(len(loc), 0, -1):
        for source in reversed(sources):
            if source.has(loc[:length]):
                return source.place(loc[:length])
    return "configuration"


def _merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """``above`` over ``below``, objects key by key, everything else whole."""
    merged = dict(below)
    for key, value in above.items():
        beneath = merged.get(key)
        merged[key] = _merge(beneath, value) if isinstance(beneath, dict) and isinstance(value, dict) else value
    return merged


def _environment() -> dict[str, Any]:
    """What variables say. Their reader is imported only when there are any: it doubles the time to a start."""
    if not any(name.upper().startswith(ENV_PREFIX) for name in os.environ):
        return {}
    from pai_backend.config.variables import read_variables

    return read_variables()


def _variable(loc: Loc) -> str:
    """The longest variable that is set for the key or for something above it."""
    names = [str(part) for part in loc if isinstance(part, str)]
    given = {name.upper() for name in os.environ}
    found = [ENV_PREFIX + ENV_NESTED.join(names[:length]).upper() for length in range(len(names), 0, -1)]
    return next((name for name in found if name in given), found[0])


def _flag(given: Mapping[str, Any], loc: Loc) -> str:
    """The flag that was given for the key, or for the group that it is in."""
    found = [key for key in keys() if given.get(key.name) is not None and key.path == loc[: len(key.path)]]
    return str(max(found, key=lambda key: len(key.path)).flag) if found else "command line"


def _flags(given: Mapping[str, Any]) -> dict[str, Any]:
    """The flags that were given, nested as the settings are; groups come before what is in them."""
    values: dict[str, Any] = {}
    for key in keys():
        text = given.get(key.name)
        if text is not None:
            value = _structured(str(key.flag), text) if key.structured else text
            for name in reversed(key.path):
                value = {name: value}
            values = _merge(values, value)
    return values


def _structured(place: str, text: str) -> Any:
    """A list or object written in a flag. Raises ConfigError that names the flag, not the value."""
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        raise ConfigError(f"{place}: the value is not valid JSON or YAML.") from None


def _unknown_arguments(unknown: Sequence[str]) -> list[str]:
    known = [key.flag for key in keys() if key.flag is not None] + ["--config", "--role", "--ready-fd", "--help"]
    lines = []
    for argument in unknown:
        if argument.startswith("-"):
            flag = argument.split("=", 1)[0]
            like = nearest(flag, known)
            lines.append(f"{flag}: is not known." + (f" Did you mean {like}?" if like else " See --help."))
    return lines or [f"command line: {len(unknown)} argument(s) too many. See --help."]


def _roles(text: str | None) -> tuple[ProcessRole, ...]:
    if text is None:
        return ()
    known = [role.value for role in ProcessRole]
    roles: list[ProcessRole] = []
    for word in text.split(","):
        if word not in known:
            like = nearest(word, known)
            hint = f" Did you mean {like}?" if like else ""
            raise ConfigError(f"--role: {word!r} is not a role; roles are {', '.join(known)}.{hint}")
        roles.append(ProcessRole(word))
    return tuple(dict.fromkeys(roles))


def _beside(file: ConfigFile, directory: Path) -> ConfigFile:
    """With the file's relative paths taken from where the file lies: who reads it may be started anywhere."""
    values = file.values
    for *above, last in _PATHS:
        inner: Any = values
        for name in above:
            inner = inner.get(name) if isinstance(inner, dict) else None
        path = inner.get(last) if isinstance(inner, dict) else None
        if isinstance(path, str) and path and not path.startswith("~"):
            placed: dict[str, Any] = {last: str(directory / path)}
            for name in reversed(above):
                placed = {name: placed}
            values = _merge(values, placed)
    return ConfigFile(file.name, values, file.lines)


def _absolute(settings: Settings) -> Settings:
    """With paths that no later change of directory can move."""
    api = settings.api
    if api.token_file is not None:
        api = api.model_copy(update={"token_file": _real(api.token_file)})
    others = {
        name: _real(path)
        for name, path in (("log_dir", settings.log_dir), ("secret_key_file", settings.secret_key_file))
        if path is not None
    }
    cluster = settings.cluster
    if isinstance(cluster.config, Path):
        cluster = cluster.model_copy(update={"config": _real(cluster.config)})
    kubernetes = settings.kubernetes
    if kubernetes.kubeconfig is not None:
        kubernetes = kubernetes.model_copy(update={"kubeconfig": _real(kubernetes.kubeconfig)})
    engine = settings.engine
    if engine.python is not None:
        engine = engine.model_copy(update={"python": _real(engine.python)})
    moved = {"data_dir": _real(settings.data_dir), "api": api, "cluster": cluster, "kubernetes": kubernetes, **others}
    moved["engine"] = engine
    return settings.model_copy(update=moved)


def _real(path: Path) -> Path:
    return Path(os.path.abspath(path.expanduser()))


def _guarded(data_dir: Path) -> Iterator[str]:
    """Take from other users the right to replace files in a directory of ours; a warning for each that had it.

    Raises ConfigError when that is not possible.
    """
    try:
        about = data_dir.stat()
        if about.st_uid == os.geteuid() and about.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            data_dir.chmod(stat.S_IMODE(about.st_mode) & ~(stat.S_IWGRP | stat.S_IWOTH))
            yield f"data_dir: other users could replace files in {data_dir} (mode {stat.S_IMODE(about.st_mode):o})."
    except FileNotFoundError:
        return  # it is made later, for its owner alone
    except OSError as error:
        raise ConfigError(f"data_dir: {data_dir} cannot be used: {error.strerror}") from None


def _stray_variables(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Warnings for variables that look like ours and mean nothing.

    No error, because Kubernetes puts ``PAI_BACKEND_PORT`` and its like into every pod beside a service
    of the name ``pai-backend``.
    """
    known = {key.variable for key in keys()} | {CONFIG_VARIABLE}
    groups = {key.variable.rsplit(ENV_NESTED, 1)[0] for key in keys() if len(key.path) > 1}
    ours = {name.upper(): name for name in environ if name.upper().startswith(ENV_PREFIX)}
    stray = sorted(name for upper, name in ours.items() if upper not in known | groups)
    lines = []
    for name in stray:
        like = nearest(name, known)
        lines.append(f"{name}: no key has this variable." + (f" Did you mean {like}?" if like else ""))
    return tuple(lines)
