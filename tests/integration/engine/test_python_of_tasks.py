"""The Python of a task: it has the packages of the named one, and what it installs is its own.

pip and Jupyter are real.
"""

from __future__ import annotations

import asyncio
import json
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from pai_backend.engine.base import EngineError, LogStream, TaskState
from pai_backend.engine.local.engine import LocalEngine
from pai_backend.testing.engine_contract import read_log, watching
from tests.integration.engine.conftest import MakePlan
from tests.support.environments import Environment, make_environment
from tests.support.local_engine import NODE, LocalBehind
from tests.support.wheels import make_wheel

VERSIONS = ("1.0", "2.0", "3.0")
THING = """VERSION = {version!r}
def main():
    import sys
    print(VERSION, sys.prefix)
"""
INSTALLER = """import subprocess, sys
def main():
    sys.exit(subprocess.call([sys.executable, "-m", "pip", "--quiet", "install", *sys.argv[1:]]))
"""
SEEN = """python -c 'import thing; print(thing.VERSION, thing.__file__)'; thing; echo "$VIRTUAL_ENV" """


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """One with a package and a command that installs others, and wheels of newer versions."""
    made = make_environment(tmp_path_factory.mktemp("python"))
    for version in VERSIONS:
        make_wheel(made.wheels, "thing", version, {"thing.py": THING.format(version=version)}, "thing:main")
    made.install(made.wheels / "thing-1.0-py3-none-any.whl")
    made.install(make_wheel(made.wheels, "installer", "1.0", {"installer.py": INSTALLER}, "installer:main"))
    return made


@pytest.fixture
def engine(root: Path, behind: LocalBehind, environment: Environment) -> LocalEngine:
    """An engine whose tasks read that environment."""
    return LocalEngine(root, [NODE], python=environment.python)


@pytest.fixture
def unchanged(environment: Environment) -> Iterator[None]:
    """Holds at the end that nothing was written into the environment."""
    before = environment.state()
    yield
    assert environment.state() == before


async def said(engine: LocalEngine, make_plan: MakePlan, *commands: str) -> list[list[str]]:
    """The lines that these tasks write, which run side by side and must succeed."""
    plans = [make_plan(command, number) for number, command in enumerate(commands)]
    lines = []
    async with watching(engine) as watch:
        await asyncio.gather(*map(engine.start, plans))
        for plan in plans:
            ended = (await watch.state(plan.uid, TaskState.EXITED)).exit
            text = (await read_log(engine, plan.uid, LogStream.ALL)).decode()
            assert ended is not None
            assert ended.code == 0, text
            lines.append(text.splitlines())
    return lines


@pytest.mark.asyncio
@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize(
    "install",
    [
        "pip --quiet install",
        "pip3 --quiet install --user",
        "python -m pip --quiet install",
        "python3 -m pip --quiet install --user",
        f"python{sys.version_info[0]}.{sys.version_info[1]} -m pip --quiet install --force-reinstall",
        "installer",
        """bash -c 'installer "$@"' _""",
        "env -u VIRTUAL_ENV -u PYTHONUSERBASE pip --quiet install",
    ],
)
async def test_what_a_task_installs_goes_to_its_own_directory(
    engine: LocalEngine, root: Path, make_plan: MakePlan, install: str
) -> None:
    ((package, command, place),) = await said(engine, make_plan, f"{install} thing==2.0 && {SEEN}")
    assert place.startswith(str(root / "tasks"))
    assert (package.startswith(f"2.0 {place}/"), command) == (True, f"2.0 {place}")


@pytest.mark.asyncio
@pytest.mark.usefixtures("unchanged")
async def test_what_is_installed_below_is_there_and_is_not_installed_again(
    engine: LocalEngine, make_plan: MakePlan, environment: Environment
) -> None:
    """The command of the environment below runs with the task's Python, which reads the packages below."""
    ((*pip, package, command, place),) = await said(engine, make_plan, f"pip --quiet install thing && {SEEN}")
    assert pip == []
    assert (package.startswith(f"1.0 {environment.home}/"), command) == (True, f"1.0 {place}")


@pytest.mark.asyncio
@pytest.mark.usefixtures("unchanged")
async def test_tasks_that_install_at_once_have_each_what_they_installed(
    engine: LocalEngine, make_plan: MakePlan
) -> None:
    commands = [f"pip --quiet install thing=={VERSIONS[number % 3]} && {SEEN}" for number in range(6)]
    for number, (package, command, place) in enumerate(await said(engine, make_plan, *commands)):
        assert package.split()[0] == VERSIONS[number % 3]
        assert command == f"{VERSIONS[number % 3]} {place}"


@pytest.mark.asyncio
@pytest.mark.usefixtures("unchanged")
async def test_what_a_task_imports_leaves_nothing_beside_the_packages_below(
    engine: LocalEngine, make_plan: MakePlan, environment: Environment
) -> None:
    packages = next(environment.home.glob("lib/python*/site-packages"))
    (packages / "never_compiled.py").write_text("VALUE = 7\n")
    before = environment.state()
    assert await said(engine, make_plan, "python -c 'import never_compiled as m; print(m.VALUE)'") == [["7"]]
    assert environment.state() == before
    (packages / "never_compiled.py").unlink()


@pytest.mark.asyncio
async def test_a_notebook_of_a_task_installs_into_the_tasks_directory(
    root: Path, behind: LocalBehind, make_plan: MakePlan
) -> None:
    """A kernel runs, and finds pip, where the task does, though the Jupyter below has a kernel of its own."""
    cells = ["import sys; print(sys.prefix)", "!command -v pip", "!python -c 'import sys; print(sys.prefix)'"]
    notebook = {
        "cells": [
            {"cell_type": "code", "id": f"c{n}", "execution_count": None, "metadata": {}, "outputs": [], "source": text}
            for n, text in enumerate(cells)
        ],
        "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    (root.parent / "in.ipynb").write_text(json.dumps(notebook))
    command = f"jupyter execute {root.parent / 'in.ipynb'} --output=out && echo $VIRTUAL_ENV"
    (lines,) = await said(LocalEngine(root, [NODE], python=sys.executable), make_plan, command)
    done = json.loads((root.parent / "out.ipynb").read_text())["cells"]
    told = ["".join(part["text"]).strip() for cell in done for part in cell["outputs"]]
    assert told == [lines[-1], f"{lines[-1]}/commands/pip", lines[-1]]


@pytest.mark.asyncio
async def test_a_terminal_of_a_tasks_jupyter_has_the_tasks_python(
    root: Path, behind: LocalBehind, make_plan: MakePlan, tmp_path: Path
) -> None:
    """Though start files put another one first, and Jupyter's own choice is a login shell."""
    (tmp_path / ".bashrc").write_text("PATH=/usr/bin:/bin:$PATH\n")
    (tmp_path / ".profile").write_text("PATH=/usr/bin:/bin\n")
    asked = (
        "import subprocess\n"
        "from jupyter_server.serverapp import ServerApp\n"
        "app = ServerApp(log_level='ERROR')\n"
        "app.initialize(argv=['--allow-root'], find_extensions=False, new_httpserver=False)\n"
        "shell = app.terminado_settings['shell_command']\n"
        "text = 'command -v pip; echo $VIRTUAL_ENV; exit\\n'\n"
        "print(subprocess.run(shell, input=text, text=True, stdout=-1, stderr=-3).stdout)\n"
    )
    command = f"python - <<'END'\n{asked}END"
    plan = make_plan(command, HOME=str(tmp_path), SHELL="/bin/bash")
    engine = LocalEngine(root, [NODE], python=sys.executable)
    async with watching(engine) as watch:
        await engine.start(plan)
        ended = (await watch.state(plan.uid, TaskState.EXITED)).exit
    lines = (await read_log(engine, plan.uid, LogStream.STDOUT)).decode().split()
    assert ended is not None
    assert ended.code == 0, (await read_log(engine, plan.uid, LogStream.STDERR)).decode()
    place = f"{root / 'tasks' / plan.uid}/python"
    assert lines[-2:] == [f"{place}/commands/pip", place]


@pytest.mark.asyncio
async def test_a_python_without_pip_has_the_one_that_comes_along(
    root: Path, behind: LocalBehind, make_plan: MakePlan, tmp_path: Path, environment: Environment
) -> None:
    venv.create(tmp_path / "bare", symlinks=True)
    engine = LocalEngine(root, [NODE], python=str(tmp_path / "bare" / "bin" / "python"))
    command = f"pip --quiet install --no-index --find-links {environment.wheels} thing==3.0 && {SEEN}"
    (lines,) = await said(engine, make_plan, command)
    assert lines[-2].split()[0] == "3.0"


@pytest.mark.asyncio
async def test_a_forgotten_task_leaves_no_packages(engine: LocalEngine, root: Path, make_plan: MakePlan) -> None:
    await said(engine, make_plan, "pip --quiet install thing==2.0")
    uid = make_plan("", 0).uid
    assert (root / "tasks" / uid / "python" / "bin" / "thing").exists()
    await engine.forget(uid)
    assert not (root / "done" / uid / "python").exists()
    assert (root / "done" / uid / "work").is_dir()


@pytest.mark.asyncio
@pytest.mark.parametrize(("program", "why"), [("/no/such/python", "No such file"), ("/bin/true", "as Python does")])
async def test_a_python_that_is_none_is_named_with_its_remedy(
    root: Path, make_plan: MakePlan, program: str, why: str
) -> None:
    with pytest.raises(EngineError, match=rf"{program}.*{why}.*set engine\.python"):
        await LocalEngine(root, [NODE], python=program).start(make_plan("true"))
    assert not (root / "tasks").exists() or not list((root / "tasks").iterdir())
