"""What a start of ``pai`` may load: the command line must answer at once."""

from __future__ import annotations

import subprocess
import sys

HEAVY = {"pydantic", "IPython", "ipywidgets", "jupyter_server", "sqlalchemy", "asyncssh", "yaml"}
LIGHT = {"pai_backend", "pai_backend.model", "pai_backend.model.text"}
"""What of the backend a client may load: how texts keep their arguments."""
PROGRAM = "import sys; {}; print(sorted(set(sys.modules)))"


def loaded_by(statement: str) -> set[str]:
    """Names of packages that a fresh interpreter has after a statement; of the backend those of all modules."""
    command = [sys.executable, "-c", PROGRAM.format(statement)]
    out = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    return {name if name.startswith("pai_backend") else name.partition(".")[0] for name in eval(out)}


def of_the_backend(loaded: set[str]) -> set[str]:
    """The modules of the backend among these that are not light."""
    return {name for name in loaded if name.startswith("pai_backend")} - LIGHT


def test_the_package_alone_loads_nothing_at_all() -> None:
    assert not loaded_by("import jupyter_pai") & (HEAVY | LIGHT | {"tornado", "asyncio", "platformdirs"})


def test_every_verb_but_validate_does_without_heavy_libraries() -> None:
    statement = (
        "import jupyter_pai.cli, jupyter_pai.sync, jupyter_pai.following, jupyter_pai.submitting, jupyter_pai.embedded"
    )
    loaded = loaded_by(statement)
    assert not loaded & HEAVY
    assert not of_the_backend(loaded)


def test_asking_for_help_does_not_even_load_the_client() -> None:
    loaded = loaded_by("from jupyter_pai.cli import parser; parser().format_help()")
    assert not loaded & (HEAVY | {"tornado", "asyncio"})
    assert not of_the_backend(loaded)


def test_clients_need_no_posix() -> None:
    hidden = "sys.modules.update(dict.fromkeys(['fcntl', 'pwd', 'termios', 'pty', 'resource']))"
    modules = ("cli", "sync", "access", "connect.keys", "embedded")
    statement = f"{hidden}; import {', '.join(f'jupyter_pai.{module}' for module in modules)}"
    assert "jupyter_pai" in loaded_by(statement)
