"""Missing programs are named with the exact command, in a real shell, without root."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "tools" / "system-packages"

# What the script itself is made of; all else is missing unless a test puts it there.
TOOLS = ("sh", "tr", "sort", "sed", "id", "uname", "ls")
NOBODY = pwd.getpwnam("nobody")


class Machine:
    """A PATH on which only chosen programs are, and a user who is not root."""

    def __init__(self, place: Path) -> None:
        self.programs = place / "bin"
        self.programs.mkdir()
        self.script = place / "system-packages"
        shutil.copy(SCRIPT, self.script)
        for tool in TOOLS:
            real = shutil.which(tool)
            assert real is not None
            (self.programs / tool).symlink_to(real)

    def add(self, name: str, does: str = "exit 0") -> None:
        (self.programs / name).unlink(missing_ok=True)
        (self.programs / name).write_text(f"#!/bin/sh\n{does}\n")
        (self.programs / name).chmod(0o755)

    def run(self, purpose: str) -> tuple[int, str, str]:
        user = {"user": NOBODY.pw_uid, "group": NOBODY.pw_gid, "extra_groups": []} if os.geteuid() == 0 else {}
        done = subprocess.run(
            ["/bin/sh", str(self.script), purpose],
            env={"PATH": str(self.programs)},
            cwd="/",
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            **user,  # type: ignore[call-overload]
        )
        return done.returncode, done.stdout, done.stderr


@pytest.fixture
def machine() -> Iterator[Machine]:
    """Not in tmp_path, which nobody but its owner may look into."""
    with tempfile.TemporaryDirectory(prefix="pai-packages-") as place:
        Path(place).chmod(0o755)
        yield Machine(Path(place))


def test_without_root_the_exact_apt_command_is_printed(machine: Machine) -> None:
    machine.add("apt-get", "exit 99")
    machine.add("bash")
    assert machine.run("demo") == (
        1,
        "",
        "These packages are missing. Run:  sudo apt-get install -y --no-install-recommends openssh-client\n",
    )


def test_a_python_without_venv_needs_its_package(machine: Machine) -> None:
    machine.add("apt-get", "exit 99")
    for program in ("bash", "ssh", "ssh-keygen"):
        machine.add(program)
    machine.add("python3", "exit 1")
    machine.add("uname", "echo Linux")
    code, _, said = machine.run("demo")
    assert (code, said.split()[-1]) == (1, "python3-venv")


def test_the_tests_need_more_and_each_package_is_named_once(machine: Machine) -> None:
    machine.add("apt-get", "exit 99")
    machine.add("dpkg", "exit 1")
    code, out, said = machine.run("test")
    named = said.split("--no-install-recommends ")[1].split()
    assert (code, out) == (1, "")
    needed = "bash chromium curl default-jdk-headless dropbear-bin fonts-noto-cjk git libatomic1 maven openssh-client"
    needed += " putty-tools rsync wget"
    assert set(needed.split()) <= set(named)
    assert named == sorted(set(named))


def test_the_fast_tests_need_little_more_than_the_demo(machine: Machine) -> None:
    machine.add("apt-get", "exit 99")
    for program in ("bash", "ssh", "ssh-keygen"):
        machine.add(program)
    code, _, said = machine.run("unit")
    named = said.split("--no-install-recommends ")[1].split()
    assert code == 1
    assert "putty-tools" in named
    assert set(named) <= {"postgresql", "putty-tools"}  # a PostgreSQL that this machine has is found wherever it is


def test_with_everything_there_nothing_is_said(machine: Machine) -> None:
    programs = "bash ssh ssh-keygen python3 chromium nginx apache2 sshd git curl wget javac mvn pg_config dpkg apt-get"
    programs += " rsync plink puttygen dbclient dropbearconvert sshfs zsh fish"  # what people log in with
    programs += " go containerd runc iptables conntrack ip nsenter busybox debootstrap"  # Kubernetes' nodes
    programs += " caddy zstd faketime dbus-daemon dbus-send"
    programs += " buildah podman"  # the image of the backend, and tasks in containers
    programs += " bash-static patchelf gcc musl-gcc"  # the runtime bundle
    for program in programs.split():
        machine.add(program)
    assert machine.run("demo") == (0, "", "")
    assert machine.run("unit") == (0, "", "")
    assert machine.run("runtime") == (0, "", "")
    assert machine.run("test") == (0, "", "")
    assert machine.run("containers") == (0, "", "")
    assert machine.run("kubernetes") == (0, "", "")


def test_homebrew_is_named_where_it_is(machine: Machine) -> None:
    machine.add("brew", "exit 99")
    machine.add("bash")
    code, _, said = machine.run("demo")
    assert code == 1
    assert "Homebrew" in said
    assert said.rstrip().endswith("openssh-client")


def test_elsewhere_the_packages_are_still_named(machine: Machine) -> None:
    machine.add("bash")
    code, _, said = machine.run("demo")
    assert code == 1
    assert said == "These programs are missing; install what your system calls: openssh-client\n"


def test_root_on_debian_installs_what_is_missing(machine: Machine) -> None:
    machine.add("id", "echo 0")
    machine.add("apt-get", "echo calls: $DEBIAN_FRONTEND apt-get $* >&2")
    machine.add("bash")
    code, out, said = machine.run("demo")
    assert (code, out) == (0, "installing: openssh-client\n")
    assert said == (
        "calls: noninteractive apt-get update -qq\n"
        "calls: noninteractive apt-get install -y -qq --no-install-recommends openssh-client\n"
    )
