"""The bundle, built once for all workers and installed as an init container does it; roots of several images."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from backend.runtime.bundle.__main__ import built
from tests.integration.runtime.rooms import Client, copy_programs, run, skeleton

BUILD = Path(__file__).resolve().parents[3] / "build/runtime"
BUILD_S = 300
HERE = f"{Path(__file__).parent}{os.sep}"


@pytest.hookimpl(tryfirst=True)  # before xdist looks at the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the first test of each worker time to build the bundle."""
    for item in items:
        if str(item.path).startswith(HERE):
            item.add_marker(pytest.mark.timeout(BUILD_S))


@pytest.fixture(scope="session")
def image_tree() -> Path:
    """The bundle as it is in the runtime image."""
    if sys.platform != "linux" or os.geteuid() != 0:
        why = "containers can be made only by root on Linux"
        if os.environ.get("CI"):
            pytest.fail(why)
        pytest.skip(why)
    built(BUILD)
    return BUILD / "tree"


@pytest.fixture(scope="session")
def bundle(image_tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle as a task has it: copied by ``install``, in an image that has nothing else."""
    root = tmp_path_factory.mktemp("runtime-image")
    shutil.copytree(image_tree, root / "runtime", symlinks=True)
    for name in ("pai/runtime", "pai/state"):
        (root / name).mkdir(parents=True)
    done = run("chroot", root, "/runtime/bin/install", "/pai/runtime", "/pai/state")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return root / "pai/runtime"


@pytest.fixture
def directory() -> Iterator[Path]:
    """A directory with a short name: sockets of SSH are in it."""
    with tempfile.TemporaryDirectory(prefix="pai-") as place:
        Path(place).chmod(0o755)
        yield Path(place)


@pytest.fixture
def client(directory: Path) -> Client:
    (directory / "client").mkdir()
    return Client(directory / "client")


@pytest.fixture
def scratch(directory: Path) -> Path:
    """An image with nothing at all."""
    return skeleton(directory / "root")


@pytest.fixture
def busybox(scratch: Path) -> Path:
    """An image with a static busybox, and no user but root and nobody."""
    (scratch / "bin").mkdir()
    shutil.copy(str(shutil.which("busybox")), scratch / "bin/busybox")
    for name in ("sh", "ls", "cat", "id", "sleep", "env", "kill", "test", "head", "tty", "nc", "stty"):
        (scratch / "bin" / name).symlink_to("busybox")
    (scratch / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/home:/bin/false\n")
    return scratch


@pytest.fixture
def musl(scratch: Path) -> Path:
    """An image whose one program is linked against musl."""
    source = scratch.parent / "hello.c"
    source.write_text('#include <stdio.h>\nint main(void) { puts("hello from musl"); return 0; }\n')
    (scratch / "bin").mkdir()
    subprocess.run(["musl-gcc", "-o", scratch / "bin/hello", source], check=True)
    said = run("patchelf", "--print-interpreter", scratch / "bin/hello").stdout.strip()
    assert "musl" in said
    (scratch / "lib").mkdir()
    shutil.copy(Path(said).resolve(), scratch / said.lstrip("/"))
    return scratch


@pytest.fixture
def debian(scratch: Path) -> Path:
    """An image with a libc, a bash and an SSH server of its own, all of whose settings are against us."""
    copy_programs(scratch, "/bin/bash", "/bin/cat", "/bin/sleep", "/usr/bin/id", "/usr/bin/env", "/usr/sbin/sshd")
    etc = scratch / "etc"
    (etc / "passwd").write_text(
        "root:!:0:0:root:/root:/usr/sbin/nologin\nsshd:x:101:65534::/run/sshd:/usr/sbin/nologin\n"
    )
    (etc / "shadow").write_text("root:!:1:1:1:1:1:1:\n")
    (etc / "nsswitch.conf").write_text("passwd: sss systemd\ngroup: sss\nhosts: mdns4_minimal\n")
    (etc / "hosts.deny").write_text("ALL: ALL\n")
    for name in ("run/sshd", "root", "etc/ssh"):
        (scratch / name).mkdir(parents=True)
    return scratch
