"""The documents as the guides print them read without a warning and mean what they say."""

from __future__ import annotations

from pathlib import Path

import pytest

from pai_backend.model.spec import Completion, Dialect, JobSpec, PortSpec, Resources, TaskRole
from pai_backend.protocol import Document, read_document

DOCUMENTS = Path(__file__).parents[2] / "data" / "documents"
HTTP_AND_SSH = (PortSpec(label="http", implicit=True), PortSpec(label="ssh", implicit=True))


def read(name: str) -> Document:
    return read_document((DOCUMENTS / name).read_bytes(), name)


def test_the_scm_helloworld_document() -> None:
    document = read("scm-helloworld.json")
    assert document.spec == JobSpec(
        name="helloworld_16be675e",
        dialect=Dialect.SCM,
        image="sitonholy/tensorflow:16.04-9.0-3.5-1.8.0",
        gpu_type="TITANX",
        task_roles=(
            TaskRole(
                name="task_1",
                resources=Resources(cpus=1, memory_mb=8192, gpus=1, shm_mb=64, storage_gb=5),
                command="nvidia-smi",
                completion=Completion(min_failed=None, min_succeeded=None),
                ports=HTTP_AND_SSH,
            ),
        ),
    )
    assert document.warnings == ()
    assert document.dialect is Dialect.SCM


def test_the_scm_jupyter_document_keeps_its_backslashes() -> None:
    document = read("scm-jupyter.json")
    (role,) = document.spec.task_roles
    assert role.command == (
        "jupyter notebook --allow-root --no-browser --ip 0.0.0.0 --port=$PAI_CONTAINER_HOST_jupyter_PORT_LIST "
        r"--NotebookApp.token=\"\" --NotebookApp.allow_origin=\"*\" --NotebookApp.base_url=\"/\""
    )
    assert role.ports == (PortSpec(label="jupyter"), *HTTP_AND_SSH)
    assert document.warnings == ()
    assert document.dialect is Dialect.SCM


def test_the_qizhi_document_with_its_comments() -> None:
    document = read("qizhi-tensorflow-distributed.json")
    spec = document.spec
    assert document.dialect is Dialect.QIZHI
    assert spec.kill_all_on_completed == 2
    assert spec.virtual_cluster == "your_virtual_cluster"
    assert spec.code_dir == "$QIZHI_DEFAULT_FS_URI/path/tensorflow-distributed-jobguid/code"
    assert [(role.name, role.instances, role.resources.gpus) for role in spec.task_roles] == [
        ("ps_server", 2, 0),
        ("worker", 2, 4),
    ]
    assert all(role.ports == (PortSpec(label="http"), PortSpec(label="ssh")) for role in spec.task_roles)
    assert all(role.completion == Completion(min_failed=1, min_succeeded=None) for role in spec.task_roles)
    assert document.warnings == ()


@pytest.mark.parametrize("name", sorted(path.name for path in DOCUMENTS.glob("*.json")))
def test_the_source_is_kept_byte_for_byte(name: str) -> None:
    assert read(name).source == (DOCUMENTS / name).read_bytes()


def test_repr_shows_no_part_of_the_document() -> None:
    assert "nvidia-smi" not in repr(read("scm-helloworld.json"))
