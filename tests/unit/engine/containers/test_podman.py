"""The command lines of Podman, and the addresses of tasks."""

from __future__ import annotations

import itertools
import json
from ipaddress import IPv4Network
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr, ValidationError

from pai_backend.engine.base import EngineError, StartRefused, TaskPlan
from pai_backend.engine.bundle.registry_login import docker_config, full_reference
from pai_backend.engine.containers.networks import JobNetwork, free_address, free_subnet
from pai_backend.engine.containers.podman import (
    PythonPlaces,
    TaskAddress,
    TaskBounds,
    TaskPlaces,
    container_name,
    network_name,
    pull_words,
    run_words,
    stage_words,
)
from pai_backend.engine.containers.task_directory import hosts_text, python_places, write_job
from pai_backend.model.container_settings import ContainerMount, ContainerSettings
from pai_backend.model.ids import TaskUid
from pai_backend.model.node import Placement
from pai_backend.model.plan import RegistryLogin, TeamStorage

PLACES = TaskPlaces("/r/runtime", "/r/tasks/t/work", "/r/tasks/t/container")
ADDRESS = TaskAddress("net", "10.89.0.2")
NONE = TaskBounds(0, 0, 0, 1024, 4096)
SETTINGS = ContainerSettings(podman="/usr/bin/podman", runtime_image="runtime:1")


def plan(**more: object) -> TaskPlan:
    placement = Placement(node="carol", address="worker-0", machine="carol")
    fields = {"uid": "j1-0-0-0", "job_name": "job", "user": "alice", "role": "worker", "index": 0, "image": "python:3"}
    given = {"command": "echo the-secret", "env": {"TOKEN": "the-secret"}, "placement": placement}
    return TaskPlan.model_validate({**fields, **given, **more})


def words(made: TaskPlan, settings: ContainerSettings = SETTINGS, bounds: TaskBounds = NONE) -> list[str]:
    return run_words(made, settings, "/r", PLACES, ADDRESS, bounds)


def test_nothing_of_command_or_variables_is_among_the_words() -> None:
    assert "the-secret" not in " ".join(words(plan()))


def test_the_image_comes_last_and_what_an_administrator_adds_before_it() -> None:
    added = SETTINGS.model_copy(update={"arguments": ("--security-opt=no-new-privileges",)})
    assert words(plan(), added)[-3] == "--security-opt=no-new-privileges"
    assert words(plan(), added)[-2:] == ["--", "docker.io/library/python:3"]


def test_bounds_become_limits_and_none_becomes_no_limit() -> None:
    held = words(plan(shm_mb=64), bounds=TaskBounds(512, 2, 100, 1024, 4096))
    assert {"--memory=512m", "--memory-swap=512m", "--cpus=2", "--pids-limit=100", "--shm-size=64m"} <= set(held)
    free = " ".join(words(plan()))
    assert "--memory" not in free
    assert "--cpus" not in free
    assert "--pids-limit=-1" in free


def test_gpus_are_named_as_cdi_names_them_and_simulated_ones_are_not() -> None:
    real = Placement(node="carol", address="a", machine="carol", gpus=(0, 3), gpu_type="TITANX")
    assert [word for word in words(plan(placement=real)) if word.startswith("--device")] == [
        "--device=nvidia.com/gpu=0",
        "--device=nvidia.com/gpu=3",
    ]
    simulated = real.model_copy(update={"simulated_gpu": True})
    assert not [word for word in words(plan(placement=simulated)) if word.startswith("--device")]


def test_infiniband_is_refused_until_an_administrator_gives_its_devices() -> None:
    with pytest.raises(StartRefused, match=r"--device=/dev/infiniband to containers\.arguments"):
        words(plan(infiniband=True))
    given = SETTINGS.model_copy(update={"arguments": ("--device=/dev/infiniband",)})
    assert "--device=/dev/infiniband" in words(plan(infiniband=True), given)


def test_mounts_are_the_administrators_the_users_own_and_team_storages_of_the_machine() -> None:
    mounts = (
        ContainerMount(source="/srv/data", read_only=True),
        ContainerMount(source="/srv/home/{user}", path="/home/me"),
    )
    storages = (
        TeamStorage(name="team", uri="/srv/team", mount_path="/mnt/team"),
        TeamStorage(name="far", uri="s3://far", mount_path="/mnt/far"),
    )
    found = words(plan(storages=storages), SETTINGS.model_copy(update={"mounts": mounts}))
    assert [word.removeprefix("--volume=") for word in found if word.startswith("--volume=/srv")] == [
        "/srv/data:/srv/data:ro",
        "/srv/home/alice:/home/me",
        "/srv/team:/mnt/team",
    ]
    assert not [word for word in found if "s3://" in word]


def test_only_a_task_with_peers_has_a_hosts_file_of_the_launchers() -> None:
    assert not [word for word in words(plan()) if word.endswith(":/etc/hosts")]
    assert [word for word in words(plan(job_tasks=2)) if word.endswith(":/etc/hosts")]


def test_an_image_is_pulled_with_the_login_of_a_file() -> None:
    login = RegistryLogin(username="ann", password=SecretStr("the-secret"), registry_uri="registry.lab:5000")
    made = plan(image_login=login)
    assert pull_words(made, SETTINGS, PLACES) == [
        *("/usr/bin/podman", "pull", "--authfile=/r/tasks/t/container/auth.json", "--"),
        "docker://docker.io/library/python:3",
    ]
    assert list(json.loads(docker_config(login, made.image))["auths"]) == ["registry.lab:5000"]


@pytest.mark.parametrize(
    ("image", "whole"),
    [
        ("python", "docker.io/library/python"),
        ("team/python:3", "docker.io/team/python:3"),
        ("registry.lab/python", "registry.lab/python"),
        ("localhost/python", "localhost/python"),
        ("lab:5000/python@sha256:00", "lab:5000/python@sha256:00"),
    ],
)
def test_an_image_without_a_registry_is_docker_hubs_as_for_kubelets(image: str, whole: str) -> None:
    assert full_reference(image) == whole


@pytest.mark.parametrize("image", ["docker-archive:/srv/others.tar", "dir:/etc", "--volume=/:/host", "-h", "oci:/x:y"])
def test_an_image_is_neither_a_file_of_the_machine_nor_an_option(image: str) -> None:
    pulled = pull_words(plan(image=image), SETTINGS, PLACES)
    assert pulled[-2] == "--"
    assert pulled[-1].startswith("docker://")
    assert words(plan(image=image))[-2] == "--"


@pytest.mark.parametrize("user", ["..", ".", "", "a/b", "a:ro", "a,b", "a\nb"])
def test_a_user_whose_name_is_no_directory_gets_no_directory_of_others(user: str) -> None:
    mount = ContainerMount(source="/srv/home/{user}", path="/home/me")
    with pytest.raises(StartRefused, match="a directory cannot have that name"):
        words(plan(user=user), SETTINGS.model_copy(update={"mounts": (mount,)}))


def test_what_fetches_inputs_sees_programs_and_nothing_beside_them() -> None:
    """A token or a key may lie in the directory that an environment of Python was made in."""
    parts = ("bin", "lib", "lib64", "pyvenv.cfg", "pai_backend", "share", "certs")
    assert all(Path(each).name in parts for each in python_places().directories)
    made = stage_words(plan(), SETTINGS, "/r", PLACES, ADDRESS, [], PythonPlaces("/v/bin/python", ("/v/bin", "/v/lib")))
    volumes = [word.removeprefix("--volume=") for word in made if word.startswith("--volume=")]
    assert volumes[-2:] == ["/v/bin:/v/bin:ro", "/v/lib:/v/lib:ro"]
    own = ["/r/tasks/t/container/plan:/pai/plan:ro", "/r/tasks/t/work:/pai/work", "/r/compiled:/pai/compiled"]
    assert volumes[:3] == own
    assert made[made.index("--rootfs") + 2] == "/r/tasks/t/container/stage-root"


def test_names_of_two_engines_on_one_machine_differ() -> None:
    assert container_name("/a", TaskUid("j1-0-0-0")) != container_name("/b", TaskUid("j1-0-0-0"))
    assert network_name("/a", 0) != network_name("/b", 0)


def test_addresses_are_given_in_order_until_the_network_is_full() -> None:
    network = JobNetwork(0, "10.89.0.0/29", "j1")
    for number in range(2, 7):
        network.hosts[f"worker-{number}"] = free_address(network)
    assert list(network.hosts.values()) == [f"10.89.0.{number}" for number in range(2, 7)]
    assert network.room == len(network.hosts)
    with pytest.raises(EngineError, match="no address left"):
        free_address(network)


@given(st.lists(st.integers(1, 500), max_size=30))
def test_networks_have_room_for_their_tasks_and_do_not_overlap(sizes: list[int]) -> None:
    pool, made = IPv4Network("10.201.0.0/16"), list[str]()
    for tasks in sizes:
        try:
            made.append(free_subnet(pool, made, tasks))
        except EngineError:
            assert sum(IPv4Network(each).num_addresses for each in made) > 2**16 // 4
            continue
        assert JobNetwork(0, made[-1]).room >= tasks
    networks = [IPv4Network(each) for each in made]
    assert all(each.subnet_of(pool) for each in networks)
    assert not any(one.overlaps(other) for one, other in itertools.combinations(networks, 2))


def test_more_tasks_than_addresses_are_refused() -> None:
    with pytest.raises(EngineError, match=r"no room for a network of 400 tasks; see containers\.addresses"):
        free_subnet(IPv4Network("10.0.0.0/24"), [], 400)


def test_hosts_are_complete_when_every_placed_task_has_an_address() -> None:
    one = hosts_text({"worker-0": "10.0.0.2"}, 2)
    assert one == "10.0.0.2\tworker-0\n"
    assert hosts_text({"worker-0": "10.0.0.2", "worker-1": "10.0.0.3"}, 2).endswith("# complete\n")


def test_a_job_is_replaced_as_a_whole_and_the_version_before_stays_for_its_readers(tmp_path: Path) -> None:
    for number in range(4):
        opened = (tmp_path / "..data").resolve() if number else None
        write_job(tmp_path, f'{{"n": {number}}}', f"hosts {number}\n")
        assert (tmp_path / "hosts").read_text() == f"hosts {number}\n"
        assert opened is None or (opened / "hosts").read_text() == f"hosts {number - 1}\n"
    assert len([path for path in tmp_path.iterdir() if path.is_dir() and not path.is_symlink()]) == 2


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"source": "srv"}, "source"),
        ({"source": "/a:b"}, "source"),
        ({"source": "/home/{user}"}, "path is required with {user}"),
        ({"source": "/srv", "path": "/pai/work"}, "path"),
    ],
)
def test_a_mount_that_cannot_be_is_refused(given: dict[str, str], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        ContainerMount.model_validate(given)


@pytest.mark.parametrize("addresses", ["10.201.0.0/30", "10.201.0.1/16", "everything", "fd00::/64"])
def test_addresses_that_cannot_be_are_refused(addresses: str) -> None:
    with pytest.raises(ValidationError, match="addresses"):
        ContainerSettings(addresses=addresses)
