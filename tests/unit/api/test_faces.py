"""What the Python and TypeScript fronts expect of the wire is what the api's models send: no field is unknown to it.

A front may leave out what it does not use; a field that it names and the api does not send is a mistake.
"""

from __future__ import annotations

import re
import typing
from pathlib import Path

import pytest
from pydantic import BaseModel

from jupyter_pai import wire as front
from jupyter_pai.connect.guide import Guide
from jupyter_pai.doctor.examining import FindingWire, Report
from pai_backend.api import key_wire, orphan_wire, use_wire
from pai_backend.api import wire as api
from pai_backend.model import waiting
from pai_backend.model.errors import ErrorBody, Fault
from pai_backend.model.job import Event, JobExit
from pai_backend.model.spec import DocumentWarning

TYPES = Path(__file__).parents[3] / "labextension" / "src" / "types.ts"
PYTHON: dict[str, type[BaseModel]] = {
    "JobWarning": DocumentWarning,
    "TaskExit": api.TaskExitWire,
    "Task": api.TaskWire,
    "TaskRole": api.RoleWire,
    "Service": api.ServiceWire,
    "JobExit": JobExit,
    "JobSummary": api.Summary,
    "Idle": api.IdleWire,
    "JobDetail": api.Detail,
    "Deleted": api.Said,
    "Released": api.Released,
    "MovedJob": use_wire.MovedJob,
    "Moved": use_wire.MovedJobs,
    "JobEvent": Event,
    "PositionedEvent": api.PlacedEvent,
    "SshEntry": api.SshEntry,
    "SshAnswer": api.SshAnswer,
    "Ticket": api.Ticket,
    "Key": key_wire.KeyWire,
    "FileEntry": api.FileEntry,
    "FileListing": api.FileListing,
    "UploadState": api.UploadState,
    "FaultBody": Fault,
    "ValidationAnswer": api.Validation,
    "Info": api.Info,
    "Told": waiting.Told,
    "Holder": waiting.Holder,
    "Change": waiting.Change,
    "Waiting": waiting.Waiting,
    "Why": api.Why,
}
TYPESCRIPT: dict[str, type[BaseModel]] = {
    "IJobSummary": api.Summary,
    "IDocumentWarning": DocumentWarning,
    "ITaskExit": api.TaskExitWire,
    "ITask": api.TaskWire,
    "ITaskRole": api.RoleWire,
    "IService": api.ServiceWire,
    "IJobExit": JobExit,
    "IJobDetail": api.Detail,
    "IIdle": api.IdleWire,
    "IFault": Fault,
    "IErrorBody": ErrorBody,
    "IVerdict": api.Validation,
    "IJobPage": api.JobPage,
    "IOrphan": orphan_wire.OrphanShown,
    "IOrphanList": orphan_wire.OrphanList,
    "ITicket": api.Ticket,
    "IReleased": api.Released,
    "IShare": key_wire.ShareWire,
    "IShareList": key_wire.ShareList,
    "IMoved": use_wire.MovedJobs,
    "ICellsUse": use_wire.CellsUseWire,
    "IRunningJob": use_wire.RunningJob,
    "IWaitingJob": use_wire.WaitingJob,
    "IVirtualClusterUse": use_wire.VirtualClusterUse,
    "INodeUse": use_wire.NodeUseWire,
    "IClusterUse": use_wire.ClusterUseWire,
    "IJobEvent": Event,
    "IPositionedEvent": api.PlacedEvent,
    "ITold": waiting.Told,
    "IHolder": waiting.Holder,
    "ICap": waiting.CapReached,
    "IWaiting": waiting.Waiting,
    "IWhy": api.Why,
}


def sent(model: type[BaseModel]) -> set[str]:
    """The names a model's fields have on the wire."""
    return {field.serialization_alias or field.alias or name for name, field in model.model_fields.items()}


REACHING: dict[str, type] = {"IGuide": Guide, "IFinding": FindingWire, "IDoctorReport": Report}
"""What the Jupyter server itself answers: how a task is reached, and by which programs."""


def interfaces() -> dict[str, set[str]]:
    """Interface -> its fields, inherited ones too, as types.ts writes them."""
    text = re.sub(r"/\*.*?\*/", "", TYPES.read_text(encoding="utf-8"), flags=re.DOTALL)
    found: dict[str, set[str]] = {}
    for name, base, body in re.findall(r"interface (\w+)(?: extends (\w+))? \{(.*?)\n\}", text, re.DOTALL):
        fields = set(re.findall(r"^  readonly (\w+)\??:", body, re.MULTILINE))
        found[name] = fields | found.get(base, set())
    return found


@pytest.mark.parametrize("name", PYTHON)
def test_the_python_front_expects_nothing_that_is_not_sent(name: str) -> None:
    expected = set(typing.get_type_hints(getattr(front, name)))
    assert expected
    assert expected <= sent(PYTHON[name])


@pytest.mark.parametrize("name", TYPESCRIPT)
def test_the_panel_expects_nothing_that_is_not_sent(name: str) -> None:
    expected = interfaces()[name]
    assert expected
    assert expected <= sent(TYPESCRIPT[name])


@pytest.mark.parametrize("name", REACHING)
def test_the_panel_expects_nothing_that_the_jupyter_server_does_not_send(name: str) -> None:
    assert set(interfaces()[name]) <= set(typing.get_type_hints(REACHING[name]))


def test_every_interface_of_the_panel_and_type_of_the_front_is_held_to_a_model() -> None:
    shared = {"IJobFacts"}
    assert set(interfaces()) - shared == {*TYPESCRIPT, *REACHING}
    types = {name for name, value in vars(front).items() if typing.is_typeddict(value) and not name.startswith("_")}
    assert types == set(PYTHON)
