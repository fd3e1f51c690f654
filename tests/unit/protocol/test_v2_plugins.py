"""Runtime plugins: what each becomes in a role's command, ports and options, and in which order."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from pai_backend.model.spec import PortSpec, SshOptions, StorageMount, TaskRole
from pai_backend.protocol import Document, read_document
from pai_backend.protocol.plugin_shell import git_clone, tensorboard, tolerant

KEY = "com.microsoft.pai.runtimeplugin"
RESOURCES = "{cpu: 1, memoryMB: 1, gpu: 0}"
PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIs8n6YyZ1T9Jj alice@laptop"


def read(plugins: str, *, prerequisites: str = "", more: str = "", roles: tuple[str, ...] = ("worker",)) -> Document:
    text = "protocolVersion: 2\nname: demo\ntype: job\nparameters: {word: w}\nsecrets: {pw: x}\nprerequisites:\n"
    text += "  - {name: img, type: dockerimage, uri: a}\n  - {name: set, type: data, uri: [d0, d1]}\n" + prerequisites
    text += "taskRoles:\n"
    for name in roles:
        text += f"  {name}:\n    dockerImage: img\n    resourcePerInstance: {RESOURCES}\n    commands: [run]\n"
        text += "    completion: {minSucceededInstances: -1}\n" + more
    return read_document(text + (f"extras:\n  {KEY}:\n{plugins}" if plugins else ""))


def first(document: Document) -> TaskRole:
    return document.spec.task_roles[0]


def bash(script: str, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a role's command as an engine does: one bash parse, strictly."""
    strict = "set -o errexit -o nounset -o pipefail\n" + script
    return subprocess.run(
        ["bash", "-c", strict], cwd=cwd, env={**os.environ, **environ}, capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize(
    "parameters",
    [
        "{preCommands: [' a ', b], postCommands: [c]}",
        "{callbacks: [{event: taskStarts, commands: [a, b]}, {event: taskSucceeds, commands: [c]}]}",
        "{callbacks: [{event: containerStarts, commands: [a]}, {event: containerStarts, commands: [b]}, "
        "{event: containerEnds, commands: [c]}]}",
    ],
)
def test_cmd_in_all_its_forms(parameters: str) -> None:
    assert first(read(f"    - {{plugin: cmd, parameters: {parameters}}}\n")).command == "a\nb\nrun\nc"


def test_plugins_come_in_order_and_end_in_reverse() -> None:
    prerequisites = f"""\
  - name: mine
    type: script
    plugin: {KEY}.cmd
    require: [needed]
    callbacks:
      - {{event: taskStarts, commands: ['mine <% $data.uri[1] %>']}}
      - {{event: taskSucceeds, commands: [mine-post]}}
  - {{name: needed, type: output, plugin: {KEY}.cmd, callbacks: [{{event: taskStarts, commands: [needed]}}]}}
"""
    plugins = """\
    - {plugin: cmd, parameters: {preCommands: [one <% $parameters.word %> <% $secrets.pw %>], postCommands: [one-post]}}
    - {plugin: cmd, parameters: {preCommands: [two], postCommands: [two-post]}}
"""
    more = "    prerequisites: [mine]\n    data: set\n"
    assert first(read(plugins, prerequisites=prerequisites, more=more)).command.splitlines() == [
        "needed",
        "mine d1",
        "one w <% $secrets.pw %>",
        "two",
        "run",
        "two-post",
        "one-post",
        "mine-post",
    ]


def test_a_prerequisite_that_is_chosen_and_a_plugin_is_used() -> None:
    prerequisites = f"""\
  - {{name: s, type: script, uri: u, plugin: {KEY}.git, repo_uri: https://h/r, options: [--depth=1]}}
"""
    command = first(read("", prerequisites=prerequisites, more="    script: s\n")).command
    assert command == "git clone --depth=1 -- https://h/r\nrun"


def test_what_is_required_is_used_once() -> None:
    prerequisites = f"""\
  - {{name: a, type: script, uri: u, require: [c]}}
  - {{name: b, type: output, uri: u, require: [c]}}
  - {{name: c, type: script, plugin: {KEY}.cmd, callbacks: [{{event: taskStarts, commands: [once]}}]}}
"""
    more = "    script: a\n    output: b\n    prerequisites: [c]\n"
    assert first(read("", prerequisites=prerequisites, more=more)).command == "once\nrun"


def test_taskroles_filter() -> None:
    document = read("    - {plugin: cmd, taskroles: [ps], parameters: {preCommands: [a]}}\n", roles=("worker", "ps"))
    assert [role.command for role in document.spec.task_roles] == ["run", "a\nrun"]


def test_ssh() -> None:
    plugins = f"""\
    - plugin: ssh
      parameters:
        jobssh: "true"
        sshbarrier: true
        sshbarrierTimeout: 5
        userssh: {{type: custom, value: "{PUBLIC_KEY}\\n\\n{PUBLIC_KEY}\\n"}}
    - {{plugin: ssh, parameters: {{userssh: "ssh-rsa AAAA old form"}}}}
"""
    assert first(read(plugins)).ssh == SshOptions(
        job_ssh=True,
        barrier=True,
        barrier_timeout_s=1800,
        authorized_keys=(PUBLIC_KEY, "ssh-rsa AAAA old form"),
    )
    assert first(read("    - {plugin: ssh, parameters: {sshbarrierTimeout: 5}}\n")).ssh.barrier_timeout_s == 300
    assert first(read("    - {plugin: ssh}\n")).ssh == SshOptions()


def test_a_barrier_without_gang_allocation_is_warned_of() -> None:
    plugins = "    - {plugin: ssh, parameters: {jobssh: true, sshbarrier: true}}\n  gangAllocation: false\n"
    assert [warning.code for warning in read(plugins).warnings] == ["barrier-without-gang"]


def test_storages_of_the_old_form() -> None:
    plugins = "    - {plugin: teamwise_storage, parameters: {storageConfigNames: [nfs, blob]}}\n"
    assert read(plugins).spec.storages == (
        StorageMount(name="nfs", mount_path="/mnt/nfs"),
        StorageMount(name="blob", mount_path="/mnt/blob"),
    )


def test_an_unknown_plugin_may_be_left_out_when_it_may_fail() -> None:
    document = read("    - {plugin: ours, failurePolicy: ignore}\n")
    assert [warning.code for warning in document.warnings] == ["unknown-plugin"]
    assert first(document).command == "run"


def test_git_quotes_what_it_is_given() -> None:
    plugins = "    - {plugin: git, parameters: {repo: 'https://h/a b;rm', options: [-b, x y], clone_dir: '$HOME'}}\n"
    assert first(read(plugins)).command == "git clone -b 'x y' -- 'https://h/a b;rm' '$HOME'\nrun"
    assert git_clone("r", [], "") == "git clone -- r"


def test_a_tolerated_failure_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "out").touch()
    script = tolerant("cd /nowhere\necho $UNSET_VARIABLE\nfalse", "cmd") + "\necho on"
    done = bash(script, tmp_path)
    assert (done.returncode, done.stdout) == (0, "on\n")
    assert "the plugin cmd failed; going on, as its failurePolicy says" in done.stderr
    plugins = (
        "    - {plugin: cmd, failurePolicy: ignore, parameters: {preCommands: [exit 3], postCommands: [exit 4]}}\n"
    )
    document = read(plugins, more="")
    assert bash(first(document).command.replace("run", "echo ran"), tmp_path).stdout == "ran\n"


TENSORBOARD = "    - {plugin: tensorboard, parameters: {port: 10042, logdir: {train: /mnt/a, 'eval': '/mnt/b c'}}}\n"


def test_tensorboard_gets_a_port_of_its_own_in_the_first_role() -> None:
    document = read(TENSORBOARD, roles=("worker", "ps"))
    worker, ps = document.spec.task_roles
    assert PortSpec(label="tensorboard") in worker.ports
    assert all(port.label != "tensorboard" for port in ps.ports)
    assert "tensorboard" not in ps.command
    assert document.warnings == ()
    declared = read(TENSORBOARD).spec.task_roles[0].ports
    assert [port.label for port in declared] == ["tensorboard", "http", "ssh"]


@pytest.mark.parametrize(("address", "listens"), [("127.0.0.1", "--host=127.0.0.1"), ("10.1.2.3", "--bind_all")])
def test_tensorboard_runs_beside_the_command_of_task_0_alone(tmp_path: Path, address: str, listens: str) -> None:
    told = tmp_path / "told"
    os.mkfifo(told)
    program = tmp_path / "tensorboard"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >{told}\n')
    program.chmod(0o755)
    script = tensorboard({"train": "/mnt/a", "eval": "/mnt/b c"}) + f"\ncat {told}\necho after"
    environ = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "PAI_CONTAINER_HOST_tensorboard_PORT_LIST": "4711,4712"}
    environ["PAI_CURRENT_CONTAINER_IP"] = address
    done = bash(script, tmp_path, PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX="0", **environ)
    assert done.stdout.splitlines() == [
        "--logdir_spec=train:/mnt/a,eval:/mnt/b c",
        listens,
        "--port=4711",
        "after",
    ]
    other = bash(tensorboard({"a": "b"}) + "\necho after", tmp_path, PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX="1")
    assert (other.returncode, other.stdout, other.stderr) == (0, "after\n", "")


def test_an_image_without_tensorboard_says_so_and_goes_on(tmp_path: Path) -> None:
    done = bash(tensorboard({"a": "b"}) + "\necho after", tmp_path, PATH="/usr/bin:/bin")
    assert (done.returncode, done.stdout) == (0, "after\n")
    assert "tensorboard is not in this image" in done.stderr
