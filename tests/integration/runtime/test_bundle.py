"""The bundle itself: the same from the same, complete, checked, and an image that tools take."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import shutil
import tarfile
from pathlib import Path

from backend.runtime.bundle import image, tree
from tests.integration.runtime.rooms import run


def test_two_builds_are_the_same_bytes(image_tree: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    again.mkdir()
    tree.build(again)
    assert image.layer(again, "runtime") == image.layer(image_tree, "runtime")


def test_its_checksums_are_of_all_files(image_tree: Path) -> None:
    done = run("sha256sum", "--check", "--strict", "--quiet", tree.SUMS, cwd=image_tree)
    assert (done.returncode, done.stdout) == (0, "")
    named = {line.split("  ")[1] for line in (image_tree / tree.SUMS).read_text().splitlines()}
    files = {str(path.relative_to(image_tree)) for path in image_tree.rglob("*") if not path.is_symlink()}
    assert named == {name for name in files if (image_tree / name).is_file()} - {tree.SUMS}


def test_its_programs_find_nothing_outside_of_it(image_tree: Path) -> None:
    """Every library that a program or library asks for is there."""
    there = {path.name for path in (image_tree / "lib").iterdir()} | {"ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
    dynamic = [*(image_tree / "lib").glob("*.so*"), image_tree / "bin/sshd", *(image_tree / "commands").glob("s*")]
    assert len(dynamic) > 20
    for file in dynamic:
        asked = set(run("patchelf", "--print-needed", file).stdout.split())
        assert asked <= there, file


def test_the_licence_of_every_package_in_it_is_there(image_tree: Path) -> None:
    rows = (image_tree / "PACKAGES").read_text().splitlines()
    named = {row.split()[0].partition(":")[0] for row in rows}
    assert {"openssh-server", "openssh-client", "openssh-sftp-server", "bash-static", "libc6", "go"} <= named
    licences = {path.name for path in (image_tree / "licences").iterdir() if path.stat().st_size > 100}
    assert licences == named | {"jupyter-pai"}


def test_the_image_is_one_layer_with_the_bundle_in_it(image_tree: Path) -> None:
    layout = image_tree.parent / "oci"
    told = json.loads((image_tree.parent / "image.json").read_text())
    index = json.loads((layout / "index.json").read_text())
    assert index["manifests"][0]["digest"] == told["digest"]
    for blob in (layout / "blobs/sha256").iterdir():
        assert hashlib.sha256(blob.read_bytes()).hexdigest() == blob.name
    with tarfile.open(image_tree.parent / "runtime.tar") as archive:

        def read(name: str) -> bytes:
            file = archive.extractfile(name)
            assert file is not None
            return file.read()

        saved = json.loads(read("manifest.json"))[0]
        assert saved["RepoTags"] == [told["reference"]]
        layer = gzip.decompress(read(saved["Layers"][0]))
        config = json.loads(read(saved["Config"]))
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(layer).hexdigest()}"]
    with tarfile.open(fileobj=io.BytesIO(layer)) as content:
        assert content.getmember("runtime/bin/install").linkname == "launch"
        assert {(each.uid, each.gid, each.mtime) for each in content.getmembers()} == {(0, 0, 0)}


def test_a_damaged_file_is_not_installed(image_tree: Path, tmp_path: Path) -> None:
    shutil.copytree(image_tree, tmp_path / "runtime", symlinks=True)
    with (tmp_path / "runtime/bin/sshd").open("r+b") as file:
        file.seek(1000)
        file.write(b"\0\1\2\3")
    (tmp_path / "to").mkdir()
    (tmp_path / "state").mkdir()
    done = run(tmp_path / "runtime/bin/install", tmp_path / "to", tmp_path / "state")
    assert done.returncode == 255
    assert done.stderr.splitlines()[-1].startswith("pai: ")
    assert "bin/sshd of the runtime image is damaged" in done.stderr
    assert not (tmp_path / "to/bin/sshd").exists()


def test_installing_twice_is_installing_once(image_tree: Path, tmp_path: Path) -> None:
    for name in ("to", "state"):
        (tmp_path / name).mkdir()
    before = os.umask(0o077)
    try:
        for _ in range(2):
            done = run(image_tree / "bin/install", tmp_path / "to", tmp_path / "state")
            assert (done.returncode, done.stderr) == (0, "")
    finally:
        os.umask(before)
    assert (tmp_path / "state/hosts").stat().st_mode & 0o777 == 0o666
    assert (tmp_path / "to/bin/session").readlink() == Path("launch")
    for path in (tmp_path / "to").rglob("*"):
        assert path.stat().st_mode & 0o005, path
