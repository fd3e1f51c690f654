"""What a job would lose where its tasks do not reach the default file system."""

from __future__ import annotations

import asyncio
import json

import pytest
import yaml

from pai_backend.config.settings import ProcessRole, Settings
from pai_backend.launch.directories import TaskReach
from pai_backend.processes.components import Components
from pai_backend.protocol import read_document
from tests.docs.pages import fences
from tests.support.documents import scm_document

LOCAL = TaskReach("/data/fs", ())
VOLUME = TaskReach("/mnt/jobs", ("/mnt/jobs",))
REMOTE = TaskReach("s3://bucket", ())


def _lost(reach: TaskReach, command: str = "true", **changes: object) -> tuple[str, str] | None:
    document = json.loads(scm_document("job", **changes))
    document["taskRoles"][0]["command"] = command
    return reach.lost(read_document(json.dumps(document).encode(), "job.json").spec)


@pytest.mark.parametrize("name", ["PAI_OUTPUT_DIR", "QIZHI_OUTPUT_DIR", "PAI_DEFAULT_FS_URI", "QIZHI_DEFAULT_FS_URI"])
@pytest.mark.parametrize("words", ["cp x ${}", "cp x ${{{}}}/y", "python -c 'import os; os.environ[\"{}\"]'"])
def test_a_command_that_counts_on_the_default_file_system(name: str, words: str) -> None:
    assert _lost(LOCAL, words.format(name)) == ("", f"${name}")
    for reach in (VOLUME, REMOTE, TaskReach("/data/fs")):
        assert _lost(reach, words.format(name)) is None


@pytest.mark.parametrize("field", ["codeDir", "dataDir", "outputDir"])
def test_a_directory_in_the_default_file_system(field: str) -> None:
    assert _lost(LOCAL, **{field: "$PAI_DEFAULT_FS_URI/x"}) == (field, "$PAI_DEFAULT_FS_URI")
    assert _lost(VOLUME, **{field: "$PAI_DEFAULT_FS_URI/x"}) is None


@pytest.mark.parametrize("reach", [LOCAL, VOLUME, REMOTE])
@pytest.mark.parametrize("place", ["/out", "file:///out", "/mnt/jobs/../out", "/mnt/jobs2"])
def test_an_output_directory_that_goes_with_its_container(reach: TaskReach, place: str) -> None:
    assert _lost(reach, outputDir=place) == ("outputDir", place)


@pytest.mark.parametrize("place", ["/mnt/jobs/out", "file:///mnt/jobs", "s3://bucket/out", "hdfs://nn:8020/out", ""])
def test_an_output_directory_that_stays(place: str) -> None:
    assert _lost(VOLUME, outputDir=place) is None


def test_what_leaves_nothing_there_and_what_the_backend_reads_itself_is_no_loss() -> None:
    assert _lost(LOCAL) is None
    assert _lost(LOCAL, authFile="$PAI_DEFAULT_FS_URI/auth") is None
    assert _lost(LOCAL, "echo $MY_PAI_OUTPUT_DIRS") is None


def test_tasks_are_told_the_default_file_system_only_where_they_reach_it() -> None:
    assert (LOCAL.task_fs_uri, VOLUME.task_fs_uri, REMOTE.task_fs_uri) == ("", "/mnt/jobs", "s3://bucket")
    assert TaskReach("/data/fs").task_fs_uri == "/data/fs"


def test_on_kubernetes_volumes_of_all_tasks_that_may_be_written_are_reached() -> None:
    volumes = [
        {"name": "jobs", "claim": "jobs", "path": "/mnt/jobs"},
        {"name": "data", "claim": "data", "path": "/mnt/data", "read_only": True},
        {"name": "team", "claim": "team", "storage": "team"},
    ]
    pods = {"runtime_image": "example/runtime:1", "volumes": volumes}
    settings = Settings.model_validate({"engine": {"kind": "kubernetes"}, "kubernetes": {"pods": pods}})
    assert _parts(settings).task_reach().directories == ("/mnt/jobs",)
    assert _parts(Settings()).task_reach().directories is None


def test_the_quick_start_configures_a_storage_that_tasks_reach() -> None:
    page = "docs/quick-start-kubernetes.md"
    (said,) = [yaml.safe_load(each.text) for each in fences(page) if each.first.startswith("# backend.yaml")]
    (manifest,) = [each.text for each in fences(page) if each.first.startswith("kubectl -n jupyter-pai apply")]
    pods = said["kubernetes"]["pods"]
    (volume,) = pods["volumes"]
    pods["runtime_image"] = "registry.example.com/jupyter-pai-runtime:0.1.0"
    assert f"kind: PersistentVolumeClaim\nmetadata: {{name: {volume['claim']}}}" in manifest
    reach = _parts(Settings.model_validate(said)).task_reach()
    assert reach.task_fs_uri == said["storage"]["default_uri"]


def _parts(settings: Settings) -> Components:
    return Components(settings, (ProcessRole.API,), "1", asyncio.Event())
