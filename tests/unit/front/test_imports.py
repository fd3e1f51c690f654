"""What a start of ``pai`` may load: the command line must answer at once."""

from __future__ import annotations

import subprocess
import sys

HEAVY = {"pydantic", "IPython", "ipywidgets", "jupyter_server", "sqlalchemy", "asyncssh", "pai_backend", "yaml"}
PROGRAM = "import sys; {}; print(sorted(set(sys.modules)))"


def loaded_by(statement: str) -> set[str]:
    """Names of modules that a fresh interpreter has after a statement."""
    command = [sys.executable, "-c", PROGRAM.format(statement)]
    out = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    return {name.partition(".")[0] for name in eval(out)}


def test_the_package_alone_loads_nothing_at_all() -> None:
    assert not loaded_by("import jupyter_pai") & (HEAVY | {"tornado", "asyncio", "platformdirs"})


def test_every_verb_but_validate_does_without_heavy_libraries() -> None:
    statement = (
        "import jupyter_pai.cli, jupyter_pai.sync, jupyter_pai.following, jupyter_pai.submitting, jupyter_pai.embedded"
    )
    assert not loaded_by(statement) & HEAVY


def test_asking_for_help_does_not_even_load_the_client() -> None:
    assert not loaded_by("from jupyter_pai.cli import parser; parser().format_help()") & (
        HEAVY | {"tornado", "asyncio"}
    )


def test_clients_need_no_posix() -> None:
    hidden = "sys.modules.update(dict.fromkeys(['fcntl', 'pwd', 'termios', 'pty', 'resource']))"
    modules = ("cli", "sync", "access", "connect.keys", "embedded")
    statement = f"{hidden}; import {', '.join(f'jupyter_pai.{module}' for module in modules)}"
    assert "jupyter_pai" in loaded_by(statement)
