"""OpenPAI v2 documents before the real backend: from a shell, from a cell, and over HTTP."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from jupyter_pai.sync import Client
from jupyter_pai.widgets.job_view import JobView
from tests.support.warm_start import run_pai

WAIT_S = 60


DOCUMENT = """\
protocolVersion: 2
name: {name}
type: job
prerequisites:
  - {{name: image, type: dockerimage, uri: "python:3.11"}}
  - {{name: shapes, type: data, uri: [circle, square]}}
parameters: {{epochs: 1e1, shuffle: true}}
secrets: {{word: "Pass&<word>"}}
taskRoles:
  on:
    dockerImage: image
    data: shapes
    resourcePerInstance: {{cpu: 1, memoryMB: 100, gpu: 0, ports: {{jupyter: 1}}}}
    commands:
      - KIND=<% $data.uri[1] %>
      - echo "$KIND <% $parameters.epochs %> <% $parameters.shuffle %> $PAI_CURRENT_TASK_ROLE_NAME"
      - {command}
deployments:
  - name: here
    taskRoles:
      on: {{preCommands: [echo before], postCommands: [echo after]}}
defaults: {{deployment: here, virtualCluster: default}}
"""


@pytest.fixture
def environ(backend: Client, tmp_path: Path) -> dict[str, str]:
    endpoint = backend.api.endpoint
    return {"PAI_URL": endpoint.url, "PAI_TOKEN": endpoint.token, "PAI_SSH_DIR": str(tmp_path / "ssh")}


def pai(environ: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return run_pai(*words, env={**os.environ, **environ})


def test_a_yaml_file_runs_to_its_end_from_the_shell(environ: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(DOCUMENT.format(name="from_shell", command="test '<% $secrets.word %>' = 'Pass&<word>'"))
    checked = pai(environ, "validate", str(file))
    assert (checked.returncode, checked.stdout) == (0, f"{file}: a valid openpai-v2 document, job from_shell\n")
    done = pai(environ, "submit", str(file), "--wait")
    assert done.returncode == 0, done.stderr
    assert "before\nsquare 1e1 true on\nafter\n" in done.stdout + done.stderr


def test_a_line_that_fails_ends_the_job_and_what_follows_does_not_run(
    environ: dict[str, str], backend: Client, tmp_path: Path
) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(DOCUMENT.format(name="failing", command="grep nothing /dev/null | cat"))
    done = pai(environ, "submit", str(file), "--wait")
    assert done.returncode == 1
    assert "before\n" in done.stdout + done.stderr
    assert "after\n" not in done.stdout + done.stderr


def test_a_fault_is_marked_in_the_yaml_text(environ: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(DOCUMENT.format(name="bad", command="echo <% $parameters.epoch %>"))
    for verb in ("validate", "submit"):
        refused = pai(environ, verb, str(file))
        assert refused.returncode == 2
        assert "bad.yaml, line 17, column 14: the tag" in refused.stderr
        assert "echo <% $parameters.epoch %>\n                 ^\n" in refused.stderr
        assert "Pass&<word>" not in refused.stdout + refused.stderr


def test_a_cell_of_yaml_is_a_document(environ: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    shell = InteractiveShell.instance()
    try:
        shell.run_line_magic("load_ext", "jupyter_pai")
        with capture_output() as captured:
            result = shell.run_cell("%%pai submit\n" + DOCUMENT.format(name="from_cell", command="echo done"))
        view = result.result
        assert isinstance(view, JobView), captured.stdout + captured.stderr
        assert view.wait(WAIT_S)["state"] == "SUCCEEDED"
        view._thread.join(WAIT_S)
    finally:
        InteractiveShell.clear_instance()


def test_the_source_comes_back_byte_for_byte_as_yaml(backend: Client) -> None:
    text = ("# kept\n" + DOCUMENT.format(name="kept", command="echo done")).encode()
    job = backend.submit(text)
    source = backend.source(job["uid"])
    assert (source.data, source.media_type) == (text, "application/yaml")
    assert "Pass&<word>" not in repr(backend.job(job["uid"])) + repr(backend.events(job["uid"]))


def test_an_unknown_virtual_cluster_is_placed_in_defaults(backend: Client) -> None:
    text = DOCUMENT.format(name="elsewhere", command="echo done").replace(
        "virtualCluster: default", "virtualCluster: defalt"
    )
    (fault,) = backend.validate(text.encode(), filename="job.yaml")["errors"]
    assert (fault["path"], fault["line"], fault["column"]) == ("$.defaults.virtualCluster", 22, 46)
