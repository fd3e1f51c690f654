"""What the rules of a virtual cluster allow."""

from __future__ import annotations

import pytest

from pai_backend.model.spec import JobSpec, PriorityClass, Scheduling
from pai_backend.model.vc_rules import VcRules, breaches, full_reference, matches
from pai_backend.testing.builders import make_role, make_spec

DIGEST = "sha256:" + "0" * 64


@pytest.mark.parametrize(
    ("image", "full"),
    [
        ("python", "docker.io/library/python:latest"),
        ("python:3.11", "docker.io/library/python:3.11"),
        ("docker.io/python", "docker.io/library/python:latest"),
        ("index.docker.io/library/python", "docker.io/library/python:latest"),
        ("nvidia/cuda:12", "docker.io/nvidia/cuda:12"),
        ("Registry.Lab/Team/Image:V1", "registry.lab/team/image:V1"),
        ("registry.lab:5000/image", "registry.lab:5000/image:latest"),
        ("localhost/image", "localhost/image:latest"),
        (f"registry.lab/image:1@{DIGEST}", f"registry.lab/image@{DIGEST}"),
    ],
)
def test_an_image_is_completed_as_docker_does(image: str, full: str) -> None:
    assert full_reference(image) == full
    assert full_reference(full) == full


@pytest.mark.parametrize(
    ("pattern", "image", "is_one"),
    [
        ("registry.lab/*", "registry.lab/a/b/c:1", True),
        ("registry.lab/*", "registry.lab.evil.org/a", False),
        ("registry.lab/*", "evil.org/registry.lab/a", False),
        ("registry.lab/*", "registry.lab:5000/a", False),
        ("registry.lab/*", "a", False),
        ("REGISTRY.LAB/*", "registry.lab/a", True),
        ("python", "python:3.11", True),
        ("python", "docker.io/library/python", True),
        ("python", "someone/python", False),
        ("python", f"python@{DIGEST}", True),
        ("python:3.*", "python:3.11", True),
        ("python:3.*", "python:2.7", False),
        ("python:3.*", "python", False),
        ("python:3.*", f"python:3.11@{DIGEST}", False),
        (f"python@{DIGEST}", f"python:3.11@{DIGEST}", True),
        (f"python@{DIGEST}", "python:3.11", False),
        ("python:latest", "python", True),
        ("python:V1", "python:v1", False),
        ("nvidia/*", "nvidia/cuda:12", True),
        ("nvidia/*", "nvidia.org/cuda:12", False),
        ("docker.io/*", "python", True),
        ("docker.io/*", "nvidia/cuda", True),
        ("registry.lab:5000/team-?/x", "registry.lab:5000/team-a/x:9", True),
        ("*.lab/*", "deep.registry.lab/a", True),
        ("*", "anything.example.org/x@" + DIGEST, True),
    ],
)
def test_a_pattern_is_completed_as_an_image_is(pattern: str, image: str, is_one: bool) -> None:
    assert matches(image, pattern) is is_one


def spec(image: str = "python", sku: str | None = None, gpus: int = 1, **changes: object) -> JobSpec:
    made = make_spec(roles=[make_role("worker", gpus=gpus)])
    role = made.task_roles[0].model_copy(update={"sku_type": sku})
    return made.model_copy(update={"image": image, "task_roles": (role,), "gpu_type": None, **changes})


def test_without_rules_everything_is_allowed() -> None:
    assert breaches(spec(), VcRules()) == []


@pytest.mark.parametrize(
    ("job", "rules", "broken"),
    [
        (spec(sku="V100"), VcRules(gpu_types=("V100",)), []),
        (spec(gpu_type="V100"), VcRules(gpu_types=("V100",)), []),
        (spec(sku="K80"), VcRules(gpu_types=("V100", "A100")), ["gpu_types"]),
        (spec(), VcRules(gpu_types=("V100",)), ["gpu_types"]),
        (spec(gpus=0), VcRules(gpu_types=("V100",)), []),
        (spec(gpus=0), VcRules(gpu_types=()), []),
        (spec("evil"), VcRules(images=("registry.lab/*", "python")), ["images"]),
        (spec("python:3"), VcRules(images=("registry.lab/*", "python")), []),
        (spec(), VcRules(images=()), ["images"]),
        (spec(), VcRules(priorities=(PriorityClass.OPPO,)), ["priorities"]),
        (spec(), VcRules(priorities=(PriorityClass.TEST,)), []),
        (
            spec(scheduling=Scheduling(priority_class=PriorityClass.CRIT)),
            VcRules(priorities=(PriorityClass.TEST,), images=("x",)),
            ["priorities", "images"],
        ),
    ],
)
def test_what_is_not_allowed_is_said_with_what_is(job: JobSpec, rules: VcRules, broken: list[str]) -> None:
    found = breaches(job, rules)
    assert [each.rule for each in found] == broken
    for each in found:
        assert each.hint.endswith("or use another virtual cluster.") or "allows none" in each.hint
        assert all(word in each.hint for word in getattr(rules, each.rule))
