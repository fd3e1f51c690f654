"""``python -m pai_backend cluster init``: a cluster configuration to start from, made of the engine's nodes.

The nodes are those of the local engine's configuration, those that a Kubernetes cluster has now, or those that an
OpenPAI ``layout.yaml`` lists. Nothing is changed anywhere but the file that is asked for.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NoReturn

from pai_backend.commands.cluster_draft import commented, divide, notes
from pai_backend.commands.openpai_layout import read_layout
from pai_backend.config.files import ConfigError
from pai_backend.config.load import load
from pai_backend.config.settings import Settings
from pai_backend.engine.base import EngineError
from pai_backend.model.errors import DocumentError
from pai_backend.model.node import Node
from pai_backend.processes.components import RoleError, local_nodes
from pai_backend.scheduling.config.derive import derive
from pai_backend.scheduling.config.read import read_config

EXIT_INVALID = 2
USAGE = """\
python -m pai_backend cluster init [--output FILE [--force]] [--vc NAME=PERCENT ...] [--layout FILE]
                                          [--config FILE] [--KEY VALUE ...]   (serve --help lists every key)"""
_TITLE = (
    "Made from the nodes of {name}. Name this file in `cluster.config`. Divide the nodes among virtual clusters as you "
    "like; `pai cluster plan OLD NEW` shows the effect of a change."
)
_NO_TASKS = ("--kubernetes-pods-runtime-image", "none")
"""What tasks need is not asked for here: nothing is started, and a cluster may be looked at before it has any image."""
_SHARE = re.compile(r"([A-Za-z0-9][A-Za-z0-9_-]*)=([0-9]{1,3})%?", re.ASCII)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"command line: {message}")


def main(arguments: Sequence[str]) -> int:
    """Print the configuration, or write it; exit code 2, and one line a fault, when that cannot be."""
    try:
        own, others = _parser().parse_known_args(list(arguments))
        if own.force and own.output is None:
            raise ConfigError("--force: there is no --output to replace")
        shares = _shares(own.vc)
        text = _text(load([*_NO_TASKS, *others]).settings, shares, own.layout)
        if own.output is None:
            sys.stdout.write(text)
        else:
            _write(own.output, text, force=own.force)
    except ConfigError as error:
        return _refuse(error.lines)
    except DocumentError as error:
        return _refuse(f"{fault.path}: {fault.message}. {fault.hint}" for fault in error.errors)
    except (RoleError, EngineError) as error:
        return _refuse([str(error)])
    return 0


def _refuse(lines: Iterable[str]) -> int:
    for line in lines:
        sys.stderr.write(f"pai_backend: {line}\n")
    return EXIT_INVALID


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m pai_backend cluster init",
        usage=USAGE,
        description="Make a cluster configuration to start from.",
        allow_abbrev=False,
        epilog="Every key of the backend can be given as well, such as --engine-kind kubernetes.",
    )
    parser.add_argument("--output", metavar="FILE", type=Path, help="Write this file instead of printing.")
    parser.add_argument("--force", action="store_true", help="Replace the file when there is one.")
    parser.add_argument(
        "--vc",
        metavar="NAME=PERCENT",
        action="append",
        default=[],
        help="A virtual cluster with this share of the nodes of each shape, in whole nodes; the rest is default's.",
    )
    parser.add_argument("--layout", metavar="FILE", type=Path, help="OpenPAI's layout.yaml, to take the nodes from.")
    return parser


def _shares(given: Sequence[str]) -> dict[str, int]:
    shares: dict[str, int] = {}
    for text in given:
        found = _SHARE.fullmatch(text)
        if found is None:
            raise ConfigError(f"--vc: {text[:80]!r} is not a share; write NAME=PERCENT, such as vision=60")
        if found[1] in shares:
            raise ConfigError(f"--vc: {found[1]} has two shares; give it one")
        shares[found[1]] = int(found[2])
    return shares


def _text(settings: Settings, shares: dict[str, int], layout: Path | None) -> str:
    """The file. Raises ConfigError, DocumentError, RoleError and EngineError."""
    name = settings.cluster_name
    nodes: Sequence[Node]
    remarks: Sequence[str] = ()
    if layout is not None:
        nodes, remarks = _of_layout(layout)
        name = f"{layout.name} for {name}"
    elif settings.engine.kind == "kubernetes":
        nodes, remarks = _of_kubernetes(settings)
    else:
        nodes = local_nodes(settings.engine.nodes)
    try:
        config = divide(derive(nodes), shares)
    except ValueError as error:
        raise ConfigError(f"--vc: {error}") from None
    empty = [each.name for each in config.virtual_clusters.values() if not each.quotas and each.name in shares]
    small = (f"{each} owns nothing: its share of every shape is less than half a node." for each in empty)
    text = commented(config, _TITLE.format(name=name), [*remarks, *notes(nodes), *small])
    read_config(text)  # what a backend would refuse is told now, with its place
    return text


def _of_kubernetes(settings: Settings) -> tuple[Sequence[Node], Sequence[str]]:
    try:
        from pai_backend.engine.kubernetes.access import Access
        from pai_backend.engine.kubernetes.survey import ask
    except ModuleNotFoundError as error:
        raise RoleError(f"engine.kind: kubernetes needs {error.name}; pip install kubernetes_asyncio aiohttp") from None
    keys = settings.kubernetes
    found = asyncio.run(ask(Access(keys.kubeconfig, keys.context, keys.namespace), keys.pods, keys.nodes))
    return found.nodes, found.remarks


def _of_layout(path: Path) -> tuple[Sequence[Node], Sequence[str]]:
    try:
        return read_layout(path.read_text(encoding="utf-8-sig"))
    except DocumentError as error:
        faults = (f"{path}:{fault.line}:{fault.column}: {fault.message}. {fault.hint}" for fault in error.errors)
        raise ConfigError(*faults) from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"--layout: {path} is not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise ConfigError(f"--layout: {path} cannot be read: {error.strerror}") from None


def _write(path: Path, text: str, *, force: bool) -> None:
    """Write a file whole or not at all. Raises ConfigError, also for one that is there and is not to be replaced."""
    try:
        descriptor, draft = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise ConfigError(f"--output: {path} cannot be written: {error.strerror}") from None
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(draft, 0o644)  # there is nothing secret in it, and the backend may be another user
        if force:
            os.replace(draft, path)
        else:
            os.link(draft, path)  # unlike a rename, this does not replace what is there
    except FileExistsError:
        raise ConfigError(f"--output: {path} is there already; --force replaces it") from None
    except OSError as error:
        raise ConfigError(f"--output: {path} cannot be written: {error.strerror}") from None
    finally:
        Path(draft).unlink(missing_ok=True)
