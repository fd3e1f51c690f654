"""The v2 documents as the protocol's page and the lab print them read as their authors meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from pai_backend.model.spec import (
    Completion,
    Dialect,
    ImageAuth,
    JobSpec,
    PortSpec,
    PriorityClass,
    Resources,
    Scheduling,
    TaskRole,
)
from pai_backend.protocol import Document, read_document

DOCUMENTS = Path(__file__).parents[2] / "data" / "documents"
EXAMPLE = "openpai-v2-tensorflow-cifar10.yaml"
IMPLICIT = (PortSpec(label="http", implicit=True), PortSpec(label="ssh", implicit=True))
DECLARED = (PortSpec(label="ssh"), PortSpec(label="http"))

PREPARE = """\
wget https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz -P data_cifar10
git clone https://MaggieQi:<% $secrets.github_token %>@gh.neting.cc/MaggieQi/benchmarks \
script_tensorflow_cnnbenchmarks && cd script_tensorflow_cnnbenchmarks && \
git checkout 84820935288cab696c9c2ac409cbd46a1f24723d && cd ..
cd script_tensorflow_cnnbenchmarks/scripts/tf_cnn_benchmarks
"""
TRAIN = """\
python tf_cnn_benchmarks.py --job_name={role} --local_parameter_device=gpu --variable_update=parameter_server \
--ps_hosts=$PAI_TASK_ROLE_ps_server_HOST_LIST --worker_hosts=$PAI_TASK_ROLE_worker_HOST_LIST \
--task_index=$PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX {data} \
--train_dir=$PAI_WORK_DIR/output_tensorflow_cifar10_model --model=resnet20 --batch_size=32"""
AUTH = ImageAuth(username="user", password="<% $secrets.docker_password %>", registry_uri="openpai.azurecr.io")


def read(name: str) -> Document:
    return read_document((DOCUMENTS / name).read_bytes(), name)


def test_the_distributed_tensorflow_example() -> None:
    document = read(EXAMPLE)
    assert document.spec == JobSpec(
        name="tensorflow_cifar10",
        dialect=Dialect.OPENPAI_V2,
        image="openpai/pai.example.tensorflow",
        description="image classification, cifar10 dataset, tensorflow, distributed training",
        retry_count=1,
        secret_names=("docker_password", "github_token"),
        task_roles=(
            TaskRole(
                name="worker",
                resources=Resources(cpus=2, memory_mb=16384, gpus=4, shm_mb=64),
                ports=DECLARED,
                command=PREPARE
                + TRAIN.format(role="worker", data="--data_name=cifar10 --data_dir=$PAI_WORK_DIR/data_cifar10"),
                strict=True,
                completion=Completion(min_failed=1, min_succeeded=1),
                image_auth=AUTH,
            ),
            TaskRole(
                name="ps_server",
                resources=Resources(cpus=2, memory_mb=8192, gpus=0, shm_mb=64),
                ports=DECLARED,
                command=PREPARE
                + TRAIN.format(role="ps", data="--data_dir=$PAI_WORK_DIR/data_cifar10 --data_name=cifar10")
                + "\nhdfs dfs -cp output_tensorflow_cifar10_model hdfs://10.151.40.179:9000/core/cifar10_model",
                strict=True,
                completion=Completion(min_failed=1, min_succeeded=None),
                image_auth=AUTH,
            ),
        ),
    )
    assert document.warnings == ()
    assert document.dialect is Dialect.OPENPAI_V2
    assert document.secrets == {"docker_password": "password", "github_token": "cGFzc3dvcmQ="}


def test_the_protocol_page_is_two_documents_of_which_the_job_is_taken() -> None:
    document = read("openpai-v2-protocol-page.yaml")
    assert document.spec == read(EXAMPLE).spec
    assert [(warning.code, warning.path) for warning in document.warnings] == [("other-documents", "$")]


CLASSES = {0: "prod", 1: "test", 2: "prod", 3: "prod", 4: "oppo", 5: "prod", 6: "prod", 7: "prod"}


@pytest.mark.parametrize("number", range(8))
def test_the_jobs_of_the_lab(number: int) -> None:
    document = read(f"lab/job-config-{number}.yaml")
    (role,) = document.spec.task_roles
    assert document.spec.name == f"job-config-{number}"
    assert document.spec.virtual_cluster == ("vc1" if number < 5 else "default")
    assert document.spec.scheduling == Scheduling(
        priority_class=PriorityClass(CLASSES[number]), gang_allocation=number != 7
    )
    assert document.spec.extras == {}
    assert role.instances == (2 if number > 5 else 1)
    assert role.resources == Resources(cpus=2, memory_mb=4096, gpus=1, shm_mb=512)
    assert role.ports == IMPLICIT
    assert role.completion == Completion(min_failed=1, min_succeeded=1)
    assert role.command.startswith('echo "train on $PAI_CURRENT_TASK_ROLE_NAME-')
    trap = [warning for warning in document.warnings if warning.code == "first-task-ends-job"]
    assert len(trap) == len(document.warnings) == (1 if number > 5 else 0)
    assert all(warning.path == "$.taskRoles.train.completion.minSucceededInstances" for warning in trap)


@pytest.mark.parametrize("path", sorted(DOCUMENTS.rglob("*.yaml")), ids=lambda path: path.name)
def test_the_source_is_kept_byte_for_byte_and_shown_by_no_repr(path: Path) -> None:
    document = read_document(path.read_bytes(), path.name)
    assert document.source == path.read_bytes()
    assert "cGFzc3dvcmQ=" not in repr(document) + repr(document.spec) + repr(document.warnings)
