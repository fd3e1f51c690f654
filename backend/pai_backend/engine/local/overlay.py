"""A Python environment of each task's own, upon the packages of the one that the administrator names.

It is a virtual environment that is only written, in a few files, and reads the packages below it. ``pip install``
writes into it and finds what is below to be there, so it needs no network for that. A command of the environment below
would run, and install, with that one's Python: each such command has a copy that runs with the Python of the
task (``commands``, made once for all tasks). The reasons are in ADR 0023.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from pai_backend.engine.local import layout
from pai_backend.engine.local.interpreter import Interpreter

_COMMANDS = "commands"
_JUPYTER = "jupyter"
_HEAD_BYTES = 1024  # of a script, with the two lines that say what runs it
_LARGEST = 1_000_000  # bytes of a script; what pip makes are a few hundred

# A link to ``commands`` is in each task, and "$0" is the path by which the command was found, so it tells the task. The
# same text is the beginning of a Python program: a string that nothing uses. Source: distlib, for long paths.
_RUN_BY_OURS = "#!/bin/sh\n'''exec' \"${0%/" + _COMMANDS + '/*}/bin/python" "$0" "$@"\n\' \'\'\'\n'
_PYTHON_OF_TASK = f"python=${{0%/{_COMMANDS}/*}}/bin/python\n"
_PIP = f'#!/bin/sh\n{_PYTHON_OF_TASK}exec "$python" -m pip "$@"\n'
_PIP_MADE_FIRST = (
    f"#!/bin/sh\n{_PYTHON_OF_TASK}"
    '"$python" -c "import pip" 2>/dev/null || "$python" -m ensurepip >/dev/null || exit\n'
    'exec "$python" -m pip "$@"\n'
)
# Python allows --user only in an environment that reads what the machine has. This one says so, and --user leads into
# it (PYTHONUSERBASE); but it reads only what the Python below reads, which may be an environment that does not.
_NO_OTHERS = "import site; site.addsitepackages = lambda known_paths, prefixes=None: known_paths\n"
# Start files of a shell often put another Python first, as those do that conda and pyenv write.
_START = f"""\
pai_first=${{PATH%%/{_COMMANDS}:*}}/{_COMMANDS}
pai_env=$VIRTUAL_ENV pai_base=$PYTHONUSERBASE pai_conda=${{CONDA_PREFIX-}}
[ ! -r ~/.bashrc ] || . ~/.bashrc
PATH=$pai_first:$PATH VIRTUAL_ENV=$pai_env PYTHONUSERBASE=$pai_base
[ -z "$pai_conda" ] || CONDA_PREFIX=$pai_conda
unset pai_first pai_env pai_base pai_conda
hash -r
"""
_TERMINAL = 'case "${SHELL##*/}" in bash | "") exec bash --rcfile "$VIRTUAL_ENV/bashrc" -i;; *) exec "$SHELL" -l;; esac'
_SERVER = {"ServerApp": {"terminado_settings": {"shell_command": ["sh", "-c", _TERMINAL]}}}
"""Terminals of a Jupyter server in a task. Its own choice is a login shell, whose start files replace PATH."""
_KERNEL = {
    "argv": ["python", "-m", "ipykernel_launcher", "-f", "{connection_file}"],
    "display_name": "Python 3 (ipykernel)",
    "language": "python",
    "metadata": {"debugger": True},
}
"""The kernel of notebooks in a task. Jupyter puts its own Python for ``python``; the one below may name that one's."""


def build_overlay(directory: Path, below: Interpreter, root: Path) -> None:
    """Write the environment of the task in ``directory``, still without its final name; ``root`` is the engine's.

    Raises OSError.
    """
    place = directory / layout.PYTHON
    packages = place / "lib" / f"python{below.version}" / "site-packages"
    place.mkdir(mode=0o700)
    packages.mkdir(parents=True)
    (place / "bin").mkdir()
    for name in ("python", "python3", f"python{below.version}"):
        (place / "bin" / name).symlink_to(below.base)
    settings = f"home = {os.path.dirname(below.base)}\ninclude-system-site-packages = true\n"
    (place / "pyvenv.cfg").write_text(f"{settings}version = {below.full_version}\n", "utf-8")
    lines = [_NO_OTHERS, *(f"import site; site.addsitedir({folder!r})\n" for folder in below.packages)]
    (packages / "packages_below.pth").write_text("".join(lines), "utf-8")
    (directory / layout.SHELL_START).write_text(_START, "ascii")
    (place / _COMMANDS).symlink_to(shared_part(below, root) / _COMMANDS)
    with suppress(FileNotFoundError):  # a copy: pip may be told to change the one of its own environment
        shutil.copyfile(os.path.join(below.prefix, "pip.conf"), place / "pip.conf")


def overlay_path(directory: Path, below: Interpreter, path: str) -> list[str]:
    """The folders of PATH for the task in ``directory``: its own, those of the Python below, then ``path``.

    Without the commands of an environment that the backend alone runs in: they would install there.
    """
    place = directory / layout.PYTHON
    beside = os.path.dirname(below.executable)
    ours = os.path.dirname(sys.executable) if sys.prefix != sys.base_prefix else ""
    folders = [folder for folder in path.split(os.pathsep) if folder == beside or folder != ours]
    return [str(place / "bin"), str(place / _COMMANDS), *([] if beside in folders else [beside]), *folders]


def overlay_variables(directory: Path, below: Interpreter, root: Path, source: Mapping[str, str]) -> dict[str, str]:
    """Variables that lead installers and Jupyter to the environment; ``source`` is what a task inherits."""
    place = directory / layout.PYTHON
    share = os.path.join(below.prefix, "share", "jupyter")
    told = {
        "VIRTUAL_ENV": str(place),
        "PYTHONUSERBASE": str(place),
        "PYTHONDONTWRITEBYTECODE": "1",  # else what is imported leaves its compiled form beside the packages below
        "PIP_CACHE_DIR": str(place / "cache" / "pip"),
        "UV_CACHE_DIR": str(place / "cache" / "uv"),
        # What these install as programs of their own would be in the user's home, and shared by all tasks.
        **dict.fromkeys(("UV_TOOL_BIN_DIR", "PIPX_BIN_DIR"), str(place / "bin")),
        **{name: str(place / "tools" / name.lower()) for name in ("UV_TOOL_DIR", "UV_PYTHON_INSTALL_DIR", "PIPX_HOME")},
        "JUPYTER_PATH": os.pathsep.join([str(shared_part(below, root) / _JUPYTER), share]),
        "JUPYTER_CONFIG_PATH": os.pathsep.join(
            [str(shared_part(below, root) / _JUPYTER / "config"), os.path.join(below.prefix, "etc", "jupyter")]
        ),
    }
    if os.path.isdir(lab := os.path.join(share, "lab")):
        told["JUPYTERLAB_DIR"] = lab
    if "CONDA_PREFIX" in source:
        told["CONDA_PREFIX"] = str(place)  # "conda install" says that this is none of its own, and changes no other
    return told


def shared_part(below: Interpreter, root: Path) -> Path:
    """What all tasks with this Python share, made when it is not there: a directory that is whole or absent.

    Its name tells its content, so it is never changed. Raises OSError.
    """
    seen = tuple((folder, _changed(folder)) for folder in below.scripts)
    digest, files = _shared_files(below, seen)
    place = root / layout.INTERPRETERS / digest
    if not place.is_dir():
        fresh = place.with_name(f".new-{secrets.token_hex(4)}")
        fresh.mkdir(parents=True)
        try:
            for name, content in files.items():
                file = fresh / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(content, "utf-8", "surrogateescape")
            for path in (place.parent, fresh, *fresh.rglob("*")):  # for tasks of all accounts, whatever the umask is
                path.chmod(0o755)
            os.rename(fresh, place)
        except OSError:
            shutil.rmtree(fresh, ignore_errors=True)
            if not place.is_dir():  # else another process was faster
                raise
    return place


@lru_cache(maxsize=4)
def _shared_files(below: Interpreter, _seen: tuple[tuple[str, int], ...]) -> tuple[str, dict[str, str]]:
    """A digest of the shared files, and these by name; computed again when a directory of commands has changed."""
    files: dict[str, str] = {}
    for folder in below.scripts:
        for name, content in _scripts(folder, below):
            files.setdefault(f"{_COMMANDS}/{name}", content)
    for name in ("pip", "pip3", f"pip{below.version}"):
        files[f"{_COMMANDS}/{name}"] = _PIP if below.has_pip else _PIP_MADE_FIRST
    files[f"{_JUPYTER}/kernels/python3/kernel.json"] = json.dumps(_KERNEL)
    files[f"{_JUPYTER}/config/jupyter_server_config.json"] = json.dumps(_SERVER)
    return hashlib.sha256(json.dumps(sorted(files.items())).encode()).hexdigest()[:16], files


def _scripts(folder: str, below: Interpreter) -> list[tuple[str, str]]:
    """The commands in ``folder`` that the Python below runs, as the task's runs them."""
    pythons = {os.path.join(where, f"python{end}") for where in below.scripts for end in ("", "3", below.version)}
    pythons.add(below.executable)
    found = []
    try:
        names = sorted(os.listdir(folder))
    except OSError:  # not there, or not for this user: then a task cannot call them either
        return []
    for name in names:
        path = os.path.join(folder, name)
        try:
            if not os.path.isfile(path) or not os.access(path, os.X_OK) or os.stat(path).st_size > _LARGEST:
                continue
            with open(path, "rb") as file:
                head = file.read(_HEAD_BYTES)
                lines = _lines_before_program(head.decode("utf-8", "surrogateescape"), pythons)
                if lines:
                    text = (head + file.read()).decode("utf-8", "surrogateescape")
                    found.append((name, _RUN_BY_OURS + text.split("\n", lines)[lines]))
        except OSError:
            continue
    return found


def _lines_before_program(head: str, pythons: set[str]) -> int:
    """How many lines of a script say that one of ``pythons`` runs it; 0 when none does.

    pip writes one line, or three where a path is long or has spaces in it.
    """
    first, _, rest = head.partition("\n")
    if first.removeprefix("#!").strip() in pythons and first.startswith("#!"):
        return 1
    if first == "#!/bin/sh" and rest.startswith("'''exec' "):
        program = rest.removeprefix("'''exec' ").partition('"$0"')[0].strip().strip('"').replace("\\ ", " ")
        return 3 if program in pythons else 0
    return 0


def _changed(folder: str) -> int:
    try:
        return os.stat(folder).st_mtime_ns
    except OSError:
        return 0
