"""Commands, notebooks and cells as jobs of a real backend: output, exit code, code, variables."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.support.backend_process import Backend, backend
from tests.support.warm_start import run_pai

TIMEOUT_S = 120


class Shell:
    """Runs ``pai`` as the user whose backend this is."""

    def __init__(self, running: Backend, work: Path) -> None:
        self.running, self.work = running, work
        own = {"PAI_URL": running.url, "PAI_TOKEN": running.token, "XDG_CACHE_HOME": str(work / "cache")}
        self.env = {**os.environ, **own}

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "jupyter_pai.cli", *words],
            cwd=self.work,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str) -> tuple[int, str, str]:
        done = run_pai(*words, env=self.env, cwd=self.work)
        assert "Traceback" not in done.stderr, done.stderr
        return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backend]:
    with backend(tmp_path_factory.mktemp("site") / "backend") as started:
        yield started


@pytest.fixture
def pai(running: Backend, tmp_path: Path) -> Shell:
    return Shell(running, tmp_path)


def test_a_command_runs_with_its_exit_code_and_what_it_was_given(pai: Shell) -> None:
    words = ("run", "--gpu", "1", "--memory", "100M", "--env", "LR=0.1 <% x %>", "--name", "mine", "--")
    code, out, said = pai.run(
        *words, sys.executable, "-c", "import os; print(os.environ['LR'], '中文'); raise SystemExit(7)"
    )
    assert (code, out) == (7, "0.1 <% x %> 中文\n"), said
    assert "`pai config mine` prints its document" in said
    document = json.loads(pai.run("config", "mine")[1])
    assert (document["taskRoles"][0]["gpuNumber"], document["taskRoles"][0]["memoryMB"]) == (1, 100)
    assert pai.run("run", "--", "echo one && exit 3")[:2] == (3, "one\n")
    assert pai.run("run", "true", "--json")[0] == 0


def test_a_mistake_is_told_before_anything_is_submitted(pai: Shell) -> None:
    for words, told in (
        (("run",), "There is no command."),
        (("run", "--memory", "much", "true"), "'much' is not a size"),
        (("run", "--gpu", "-1", "true"), "is not a number from 0"),
        (("run", "--env", "X", "true"), "'X' is not NAME=VALUE"),
        (("run", "--code", "none", "true"), "none is not a directory."),
    ):
        code, out, said = pai.run(*words)
        assert (code, out) == (2, "")
        assert told in said


def test_code_travels_once_and_stays_with_its_job(pai: Shell) -> None:
    tree = pai.work / "project"
    (tree / "pkg").mkdir(parents=True)
    (tree / "pkg" / "model.py").write_text("print('the first')")
    (tree / "big").write_bytes(b"x" * 9_000_000)  # more than one part
    (tree / "run.sh").write_text("#!/bin/sh\npython -m pkg.model && echo $(wc -c < big) && echo out > written\n")
    (tree / "run.sh").chmod(0o755)
    (tree / "empty").touch()
    words = ("run", "--code", str(tree), "--name")
    code, out, said = pai.run(*words, "first", "--", "./run.sh")
    assert (code, out.endswith("\nthe first\n9000000\n")) == (0, True), said + out
    assert "Uploading 4 of 4 files of project." in said
    assert "Uploading" not in pai.run(*words, "again", "--", "./run.sh")[2]
    (tree / "pkg" / "model.py").write_text("print('the second')")
    code, out, said = pai.run(*words, "second", "--", "./run.sh")
    assert "\nthe second\n" in out
    assert "Uploading 1 of 4 files of project." in said
    assert pai.run("restart", "first")[0] == 0
    assert pai.run("status", "first", "--watch")[0] == 0
    assert "\nthe first\n" in pai.run("logs", "first")[1], "a job keeps the code that it was submitted with"
    printed = json.loads(pai.run("run", "--print", "--code", str(tree), "--", "true")[1])
    assert printed["codeDir"] == json.loads(pai.run("config", "second")[1])["codeDir"]


def test_a_tree_that_was_tampered_with_does_not_start(pai: Shell, running: Backend) -> None:
    (pai.work / "p").mkdir()
    (pai.work / "p" / "a.py").write_text("print('mine')")
    printed = json.loads(pai.run("run", "--print", "--code", "p", "--", "python a.py")[1])
    assert pai.run("run", "--code", "p", "--", "python a.py")[1].endswith("\nmine\n")
    (pai.work / "evil.py").write_text("print('evil')")
    [blob] = json.loads(_list(running, printed["codeDir"]))["entries"]
    folder = printed["codeDir"].rpartition("/")[0]
    assert pai.run("fs", "cp", "evil.py", f"{folder}/blobs/{blob['sha256']}")[0] == 0
    code, out, said = pai.run("run", "--code", "p", "--name", "changed", "--", "python a.py")
    assert code != 0
    assert "mine" not in out
    assert "evil" not in out
    assert "a.py changed while it was copied" in said


def _list(running: Backend, code_dir: str) -> bytes:
    path = code_dir.removeprefix("$PAI_DEFAULT_FS_URI")
    with running.client() as client:
        return client.get(f"/api/v2/fs{path}").content


def test_ctrl_c_leaves_the_job_running_and_says_how_to_stop_it(pai: Shell) -> None:
    with pai.start("run", "--name", "long", "--", "echo started; sleep 600") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 130
    assert "the job keeps running. Stop it with `pai stop " in said
    assert pai.run("stop", "long")[0] == 0


def test_a_notebook_runs_as_a_job_and_comes_back(pai: Shell) -> None:
    source = ["lr = 1", "from IPython.display import HTML\nprint(lr)\nHTML(f'<b>{lr}</b>')", "!echo shell", "1/0"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(each) for each in source[:3]])
    notebook.cells[0].metadata["tags"] = ["parameters"]
    nbformat.write(notebook, pai.work / "nb.ipynb")
    words = ("run-notebook", "nb.ipynb", "-p", "lr=0.5", "--name")
    code, out, said = pai.run(*words, "fine")
    assert code == 0, out + said
    assert "pai: cell 3 of 4\n0.5\n" in out
    assert "makes no HTML" not in out
    assert "Wrote nb.out.ipynb and nb.out.html." in said
    ran = nbformat.read(pai.work / "nb.out.ipynb", as_version=4)
    nbformat.validate(ran)
    assert ran.cells[2].outputs[1].data["text/html"] == "<b>0.5</b>"
    assert ran.cells[3].outputs[0].text.split() == ["shell"]
    assert "<b>0.5</b>" in (pai.work / "nb.out.html").read_text()
    notebook.cells.append(nbformat.v4.new_code_cell(source[3]))
    nbformat.write(notebook, pai.work / "nb.ipynb")
    code, _, said = pai.run(*words, "failed", "-o", "failed.ipynb")
    assert code == 1
    assert "Cell 5 of 5: ZeroDivisionError: division by zero" in said
    assert nbformat.read(pai.work / "failed.ipynb", as_version=4).cells[4].outputs[0].ename == "ZeroDivisionError"


def test_a_cell_runs_in_a_job_with_variables_there_and_back(pai: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a kernel without a frontend of ours, by nbclient, which is papermill's engine."""
    for name in ("PAI_URL", "PAI_TOKEN", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, pai.env[name])
    cells = [
        "%load_ext jupyter_pai\nk = 3\ndef scaled(x):\n    return k * x",
        "%%pai run --gpu 1 --send scaled,data --fetch model, --name cell\n"
        "from IPython.display import HTML, display\nimport os\n"
        "print('GPUs', os.environ['PAI_TASK_GPU_NUM'])\ndisplay(HTML('<i>rich</i>'))\n"
        "model = [scaled(x) for x in data]",
        "print(model)",
        "%%pai run --fetch nothing\npass",
        "%%pai run --send nothing\npass",
        "%%pai run\nraise ValueError('here')",
    ]
    cells[0] += "\ndata = [1, 2]"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(each) for each in cells])
    client = NotebookClient(notebook, kernel_name="python3", timeout=TIMEOUT_S, allow_errors=True)
    client.execute(cwd=str(pai.work))
    texts = ["".join(_texts(cell)) for cell in notebook.cells]
    assert "GPUs 1\n" in texts[1]
    assert "<i>rich</i>" in texts[1]
    assert texts[2] == "[3, 6]\n"
    assert "There is no variable nothing to fetch." in texts[3]
    assert "There is no variable nothing." in texts[4]
    assert "ValueError: here" in _plain(texts[5])


def _texts(cell: nbformat.NotebookNode) -> Iterator[str]:
    for output in cell.outputs:
        yield output.get("text") or output.get("data", {}).get("text/html") or "\n".join(output.get("traceback", []))


def _plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


SWEPT = """\
protocolVersion: 2
name: swept
type: job
prerequisites: [{name: i, type: dockerimage, uri: ubuntu}]
parameters: {lr: 0, seed: 0}
taskRoles:
  main:
    dockerImage: i
    resourcePerInstance: {cpu: 1, memoryMB: 10, gpu: 0}
    commands:
      - until [ -e GO ]; do sleep 0.1; done
      - test "<% $parameters.lr %> <% $parameters.seed %>" != "0.1 2"
"""


def test_a_sweep_runs_so_many_at_once_without_its_client(pai: Shell) -> None:
    go = pai.work / "go"
    (pai.work / "job.yaml").write_text(SWEPT.replace("GO", str(go)))
    words = (
        "submit",
        "job.yaml",
        "--sweep",
        "lr=0.1,0.2",
        "--sweep",
        "seed=1..2",
        "--parallel",
        "1",
        "--name",
        "rates",
    )
    assert pai.run(*words, "--wait")[0] == 2
    assert "Sweep rates: 4 jobs are submitted." in pai.run(*words)[1]
    with pai.start("submit", "job.yaml", "--name", "beside", "--wait") as beside:
        assert json.loads(_until(pai, "beside", "RUNNING"))["state"] == "RUNNING", (
            "others of the user are not held back"
        )
        _until(pai, "rates-001", "RUNNING")
        told = pai.run("why", "rates-002")[1]
        assert "Sweep rates may run at most 1 task at once" in told
        go.touch()
        beside.communicate(timeout=TIMEOUT_S)
    for number in (1, 2, 3, 4):
        pai.run("status", f"rates-00{number}", "--watch")
    code, out, _ = pai.run("sweep", "rates")
    assert code == 1
    rows = [line.split()[:4] for line in out.splitlines()]
    assert rows[0] == ["NAME", "lr", "seed", "STATE"]
    assert rows[1:3] == [["rates-001", "0.1", "1", "SUCCEEDED"], ["rates-002", "0.1", "2", "FAILED"]]
    go.unlink()
    assert pai.run("sweep", "rates", "--retry")[0] == 0
    assert pai.run("sweep", "rates", "--clone", "again")[0] == 0
    assert {job["values"]["lr"] for job in json.loads(pai.run("sweep", "again", "--json")[1])} == {"0.1", "0.2"}
    for name in ("rates", "again"):
        pai.run("sweep", name, "--stop")
        states = {job["state"] for job in json.loads(pai.run("sweep", name, "--json")[1])}
        assert not states & {"WAITING", "RUNNING"}
    assert "There is no sweep rate." in pai.run("sweep", "rate")[2]


@pytest.mark.parametrize("programs", ["rsync", "sftp"])
def test_a_folder_and_a_task_are_kept_in_step(pai: Shell, programs: str) -> None:
    if programs == "sftp":
        (pai.work / "bin").mkdir()
        for name in ("ssh", "sftp"):
            (pai.work / "bin" / name).symlink_to(str(shutil.which(name)))
        pai.env["PATH"] = str(pai.work / "bin")
    pai.env["PAI_SSH_DIR"] = str(pai.work / "ssh")
    here, there = pai.work / "folder", pai.work / "there"
    (here / "sub").mkdir(parents=True)
    (here / "sub" / "a b.py").write_text("first")
    (here / "data.bin").write_text("data")
    (here / ".paiignore").write_text("*.bin\n")
    job = f"sync-{programs}"
    assert pai.run("run", "--name", job, "--detach", "--", "sleep 600")[0] == 0
    _until(pai, job, "RUNNING")
    words = ("sync", job, str(here), "--both", "--to", str(there), "--once")
    code, _, said = pai.run(*words)
    assert code == 0, said
    assert ("no rsync" in said) == (programs == "sftp")
    assert (there / "sub" / "a b.py").read_text() == "first"
    assert not (there / "data.bin").exists()
    (there / "result.txt").write_text("result")
    (here / "sub" / "a b.py").write_text("second!")
    assert pai.run(*words)[0] == 0
    assert (here / "result.txt").read_text() == "result"
    assert (there / "sub" / "a b.py").read_text() == "second!"
    (here / "result.txt").write_text("changed here")
    (there / "result.txt").write_text("and there, too")
    (here / "sub" / "a b.py").unlink()
    code, _, said = pai.run(*words)
    assert code == 1
    assert "!! result.txt changed on both sides" in said
    assert [(each / "result.txt").read_text() for each in (here, there)] == ["changed here", "and there, too"]
    assert not (there / "sub" / "a b.py").exists()
    if programs == "rsync":
        (here / "result.txt").rename(here / "mine.txt")
        with pai.start(*words[:-1]) as live:
            (there / "later.txt").write_text("later")
            _wait(lambda: (here / "later.txt").exists() and (there / "mine.txt").exists())
            live.send_signal(signal.SIGINT)
            live.communicate(timeout=TIMEOUT_S)
        assert live.returncode == 130
    pai.run("stop", job)


def _wait(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _until(pai: Shell, job: str, state: str) -> str:
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        code, out, _ = pai.run("show", job, "--json")
        if code == 0 and json.loads(out)["state"] == state:
            return out
    raise AssertionError(f"{job} is never {state}")


def test_hours_that_jobs_held_are_added_up(pai: Shell) -> None:
    code, _, said = pai.run("run", "--gpu", "1", "--name", "hours", "--", "sleep", "1")
    assert code == 0, said
    _, out, _ = pai.run("usage", "--by", "job,quota", "--since", "1d", "--json")
    uid = json.loads(pai.run("show", "hours", "--json")[1])["uid"]
    (row,) = [each for each in json.loads(out)["data"] if each["job"] == uid]
    assert 1 / 3600 <= row["gpuHours"] < 1
    _, out, _ = pai.run("usage", "--by", "quota", "--csv")
    assert out.splitlines()[0] == "quota,gpuHours,cpuHours,runs"
    code, _, said = pai.run("usage", "--by", "colour")
    assert code == 2
    assert "'colour' is not of day, user, group, vc, type, job, quota" in said
