"""Team storages in a task's plan: found, granted, named."""

from __future__ import annotations

import pytest

from pai_backend.controller.plans import with_storages
from pai_backend.engine.base import StartRefused, TaskPlan
from pai_backend.model.ids import JobUid, TaskUid
from pai_backend.model.job import Job
from pai_backend.model.node import Placement
from pai_backend.model.plan import StagedInput
from pai_backend.model.spec import StorageMount
from pai_backend.storage.reach import StorageReach, TeamMount
from pai_backend.testing.builders import make_job

REACH = StorageReach(
    mounts=(TeamMount("data-sets", "/srv/data"), TeamMount("models", "hdfs://nn/models", users=("alice",))),
)


def job(*names: str, user: str = "alice") -> Job:
    made = make_job()
    storages = tuple(StorageMount(name=name, mount_path=f"/mnt/{name}") for name in names)
    return made.model_copy(update={"user": user, "spec": made.spec.model_copy(update={"storages": storages})})


def plan(inputs: tuple[StagedInput, ...] = ()) -> TaskPlan:
    placement = Placement(node="n", address="127.0.0.1", machine="m")
    return TaskPlan(
        uid=TaskUid(f"{JobUid('j0')}-0-0-0"),
        job_name="j",
        user="alice",
        role="r",
        index=0,
        image="i",
        command="true",
        env={},
        placement=placement,
        inputs=inputs,
    )


def test_a_named_storage_is_in_the_plan_and_in_a_variable_that_shells_can_read() -> None:
    made = with_storages(plan(), job("data-sets", "models"), REACH)
    assert made.env == {"PAI_STORAGE_data_sets": "/srv/data", "PAI_STORAGE_models": "hdfs://nn/models"}
    assert [(storage.name, storage.mount_path) for storage in made.storages] == [
        ("data-sets", "/mnt/data-sets"),
        ("models", "/mnt/models"),
    ]


def test_a_job_without_storages_gets_none() -> None:
    assert with_storages(plan(), job(), REACH) == plan()


@pytest.mark.parametrize(("name", "user"), [("nothing", "alice"), ("models", "bob")])
def test_a_storage_that_is_not_there_or_not_granted_cannot_be_told_apart(name: str, user: str) -> None:
    with pytest.raises(StartRefused, match=f"there is no storage '{name}' for {user}; ask the administrator"):
        with_storages(plan(), job(name, user=user), REACH)


def test_an_input_may_not_take_the_place_of_the_links() -> None:
    with pytest.raises(StartRefused, match="codeDir is called 'mnt'"):
        with_storages(plan((StagedInput(uri="/a/mnt", name="mnt", max_bytes=1),)), job("data-sets"), REACH)
