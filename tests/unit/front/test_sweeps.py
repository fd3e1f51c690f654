"""Documents of a sweep: every combination once, nothing else of the document changed."""

from __future__ import annotations

import json

import pytest
import yaml

from jupyter_pai import sweeps
from jupyter_pai.errors import ClientError
from pai_backend.protocol import read_document

V2 = """\
protocolVersion: 2  # a comment
name: train
type: job
prerequisites: [{name: i, type: dockerimage, uri: ubuntu}]
parameters: {lr: 1e-3, seed: 0, mode: on, file: '007'}
taskRoles:
  main:
    dockerImage: i
    resourcePerInstance: {cpu: 1, memoryMB: 100, gpu: 0}
    commands: ["echo <% $parameters.lr %> <% $parameters.seed %> <% $parameters.mode %> <% $parameters.file %>"]
extras: {idleTimeout: 2h}
"""


def made(document: str, *texts: str, name: str = "s", parallel: int | None = 2) -> list[sweeps.SweepMember]:
    return sweeps.members(document.encode(), dict(map(sweeps.axis, texts)), name, parallel)


def test_each_combination_is_a_whole_document() -> None:
    found = made(V2, "lr=0.1,1e-2", "seed=1..3")
    assert [each.name for each in found] == [f"s-{number:03d}" for number in range(1, 7)]
    assert found[4].values == {"lr": "1e-2", "seed": "2"}
    read = read_document(found[4].document, "x.yaml").spec
    assert read.task_roles[0].command.endswith("echo 1e-2 2 on 007")
    assert (read.sweep, read.sweep_parallel, read.idle_timeout_s) == ("s", 2, 7200)


def test_values_of_a_v1_document_are_variables() -> None:
    role = {"name": "r", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 100, "gpuNumber": 0, "command": "true"}
    document = json.dumps({"jobName": "v1", "image": "x", "jobEnvs": {"A": 1}, "taskRoles": [role]})
    [one, other] = made(document, "LR=0.5,big", name="", parallel=None)
    assert one.name.startswith("v1-")
    assert one.name.removesuffix("001") == other.name.removesuffix("002")
    spec = read_document(other.document, "x.json").spec
    assert (dict(spec.env), spec.sweep_parallel) == ({"A": 1, "LR": "big"}, None)


@pytest.mark.parametrize(
    "value", ["a: b", "{x", "# no comment", "'", "- a", "&a", "*a", "!!python/object/apply:os.system [id]", "中"]
)
def test_a_value_stays_a_text_whatever_it_looks_like(value: str) -> None:
    [one, _] = made(V2, f"lr={value},0")
    assert yaml.safe_load(one.document)["parameters"]["lr"] == value


@pytest.mark.parametrize(
    "text", ["lr", "lr=", "lr=1,,2", "lr=1,1", "=1", "a b=1", "n=1..999999999", "n=-999999999..999999999"]
)
def test_what_is_no_axis(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not NAME|empty value|more than"):
        sweeps.axis(text)


@pytest.mark.parametrize(
    ("document", "texts", "reason"),
    [
        (V2, ("nothing=1,2",), "has no parameter nothing"),
        (V2, ("lr=1..20", "seed=1..20"), "would have 400 jobs"),
        ("- a", ("lr=1,2",), "is not an object"),
        ("{a", ("lr=1,2",), "cannot be read"),
        ("protocolVersion: 2\nparameters: {lr: 1}\nextras: [1]", ("lr=1,2",), "something else than an object"),
    ],
)
def test_a_sweep_that_cannot_be_is_refused(document: str, texts: tuple[str, ...], reason: str) -> None:
    with pytest.raises(ClientError, match=reason):
        made(document, *texts)


def test_a_range_goes_down_as_well() -> None:
    assert sweeps.axis("n=2..-1") == ("n", ("2", "1", "0", "-1"))
