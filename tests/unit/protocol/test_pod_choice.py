"""What documents choose of their pods: read in v1 and v2, carried by conversions, and allowed or not."""

from __future__ import annotations

import json

import pytest

from pai_backend.api.services.documents import check_pods
from pai_backend.model.errors import DocumentError
from pai_backend.model.pod_choice import PodChoice
from pai_backend.model.pod_settings import PodSettings
from pai_backend.protocol import Document, read_document
from pai_backend.protocol.convert import to_v1, to_v2
from tests.support.documents import scm_document

CHOICE = {"priorityClass": "batch", "runtimeClass": "nvidia", "imagePullSecrets": ["team-registry", "site.registry"]}
READ = PodChoice(priority_class="batch", runtime_class="nvidia", image_pull_secrets=("team-registry", "site.registry"))
V2 = """\
protocolVersion: 2
name: chooses
type: job
prerequisites: [{name: i, type: dockerimage, uri: u}]
taskRoles:
  w: {dockerImage: i, resourcePerInstance: {cpu: 1, memoryMB: 128, gpu: 0}, commands: [echo]}
defaults: {virtualCluster: vision}
extras:
  jupyterPai:
    kubernetes:
      priorityClass: batch
      imagePullSecrets:
        - team-registry
        - other
"""


def in_v1(choice: object) -> Document:
    return read_document(scm_document("chooses", extras={"jupyterPai": {"kubernetes": choice}}))


def pods(**settings: object) -> PodSettings:
    return PodSettings.model_validate({"runtime_image": "r", **settings})


def test_v1_and_v2_say_the_same_and_a_conversion_keeps_it() -> None:
    document = in_v1(CHOICE)
    assert document.spec.kubernetes == READ
    in_v2 = to_v2(document)
    assert read_document(in_v2.text).spec.kubernetes == READ
    assert json.loads(to_v1(read_document(in_v2.text)).text)["extras"]["jupyterPai"]["kubernetes"] == CHOICE


@pytest.mark.parametrize(
    ("choice", "path", "message"),
    [
        ("batch", "", "kubernetes must be an object, not text"),
        ({"priorityclass": "batch"}, ".priorityclass", 'unknown field "priorityclass" in kubernetes'),
        ({"priorityClass": 7}, ".priorityClass", "priorityClass must be text, not a number"),
        ({"runtimeClass": "Not A Name"}, ".runtimeClass", '"Not A Name" is not the name of an object of Kubernetes'),
        ({"imagePullSecrets": "a"}, ".imagePullSecrets", "imagePullSecrets must be a list, not text"),
        (
            {"imagePullSecrets": ["a", "../b"]},
            ".imagePullSecrets[1]",
            '"../b" is not the name of an object of Kubernetes',
        ),
        ({"imagePullSecrets": ["a"] * 17}, ".imagePullSecrets", "imagePullSecrets has 17 names"),
    ],
)
def test_what_cannot_be_a_choice_is_a_fault_with_its_place(choice: object, path: str, message: str) -> None:
    with pytest.raises(DocumentError) as caught:
        in_v1(choice)
    fault = caught.value.errors[0]
    assert (fault.path, fault.message) == (f"$.extras.jupyterPai.kubernetes{path}", message)
    assert fault.hint
    assert fault.line


def test_what_is_not_listed_is_refused_with_its_place_and_what_is_listed() -> None:
    allowed = {"priority_classes": ["low", "lower"], "image_pull_secrets": ["team-registry"]}
    with pytest.raises(DocumentError) as caught:
        check_pods(read_document(V2), pods(allowed=allowed))
    found = [(each.path, each.line, each.column, each.message, each.hint) for each in caught.value.errors]
    assert found == [
        (
            "$.extras.jupyterPai.kubernetes.priorityClass",
            11,
            22,
            "priorityClass batch is not allowed here",
            "Allowed are: low, lower.",
        ),
        (
            "$.extras.jupyterPai.kubernetes.imagePullSecrets[1]",
            14,
            11,
            "imagePullSecrets other is not allowed here",
            "Allowed are: team-registry.",
        ),
    ]


def test_nothing_is_allowed_by_default_and_a_virtual_cluster_may_allow_more() -> None:
    with pytest.raises(DocumentError) as caught:
        check_pods(read_document(V2), pods())
    assert "kubernetes.pods.allowed" in caught.value.hint
    of_vc = {"allowed": {"priority_classes": ["batch"], "image_pull_secrets": ["other"]}}
    both = pods(allowed={"image_pull_secrets": ["team-registry"]}, by_vc={"vision": of_vc})
    assert check_pods(read_document(V2), both) == ()
    with pytest.raises(DocumentError):
        check_pods(read_document(V2.replace("vision", "default")), both)


def test_where_tasks_are_no_pods_a_warning_says_that_it_has_no_effect() -> None:
    (warning,) = check_pods(read_document(V2), None)
    assert (warning.code, warning.path) == ("kubernetes-unused", "$.extras.jupyterPai.kubernetes")
    plain = V2.partition("extras:")[0]
    assert check_pods(read_document(plain), None) == check_pods(read_document(plain), pods()) == ()
