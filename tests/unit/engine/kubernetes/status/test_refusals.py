"""Objects that the API server refuses: later perhaps, or never as they are."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from pai_backend.engine.base import EngineError, StartForbidden, StartRefused
from pai_backend.engine.kubernetes.failures import FailedRequest, refusal
from pai_backend.engine.kubernetes.retrying import open_outcome, passing
from pai_backend.engine.kubernetes.status.refusals import start_error

NOW = datetime(2026, 11, 21, tzinfo=UTC)
QUOTA = 'pods "x" is forbidden: exceeded quota: team, requested: cpu=4, used: cpu=98, limited: cpu=100'
STATED = 'pods "x" is forbidden: failed quota: team: must specify limits.cpu for: task; limits.memory for: task'
SILENT = (
    'Internal error occurred: failed calling webhook "rules.example.org": failed to call webhook: Post '
    '"https://rules.team.svc:443/?timeout=10s": context deadline exceeded'
)
SECURITY = 'pods "x" is forbidden: violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)'
MAXIMUM = 'pods "x" is forbidden: maximum memory usage per Container is 1Gi, but limit is 8Gi'
RATIO = 'pods "x" is forbidden: cpu max limit to request ratio per Container is 2, but provided ratio is 4'
WEBHOOK = 'admission webhook "rules.example.org" denied the request: no privileged images'
POLICY = "pods \"x\" is forbidden: ValidatingAdmissionPolicy 'rules' with binding 'rules' denied request: not today"
RIGHTS = 'pods is forbidden: User "pai" cannot create resource "pods" in API group "" in the namespace "team"'
CLASS = 'pods "x" is forbidden: no PriorityClass with name batch was found'
ACCOUNT = 'pods "x" is forbidden: error looking up service account team/tasks: serviceaccount "tasks" not found'
RUNTIME = 'pods "x" is forbidden: pod rejected: RuntimeClass "nvidia" not found'
GOING = 'pods "x" is forbidden: unable to create new content in namespace team because it is being terminated'


@pytest.mark.parametrize(
    ("status", "message", "never", "expected"),
    [
        (403, QUOTA, False, "quota of its namespace is used up"),
        (403, STATED, False, "counts something that pods do not state"),
        (403, SECURITY, False, "Pod Security Standard"),
        (403, MAXIMUM, True, "more or less than its namespace allows"),
        (403, RATIO, True, "more or less than its namespace allows"),
        (403, WEBHOOK, True, "a rule of the cluster forbids"),
        (403, POLICY, True, "a rule of the cluster forbids"),
        (403, RIGHTS, False, "the backend may not make pods"),
        (403, GOING, False, "being removed"),
        (403, CLASS, False, "does not have what the administrator has set for pods"),
        (403, ACCOUNT, False, "does not have what the administrator has set for pods"),
        (403, RUNTIME, False, "does not have what the administrator has set for pods"),
        (404, 'namespaces "team" not found', False, "administrator must make it"),
        (409, 'pods "x" already exists', False, "exists or is being deleted"),
        (422, 'Pod "x" is invalid: spec.hostname', True, "rejects its pod"),
        (429, "too many requests", False, "cannot start it now"),
        (500, SILENT, False, "a webhook that the cluster asks about pods does not answer"),
        (500, "etcdserver: request timed out", False, "cannot start it now"),
    ],
)
def test_a_refusal_says_whether_to_try_again(status: int, message: str, never: bool, expected: str) -> None:
    """And has the server's own words in it."""
    body = json.dumps({"kind": "Status", "reason": "Reason", "message": message}).encode()
    refused = refusal(FailedRequest("create", "/api/v1/namespaces/team/pods"), status, body, None, NOW)
    error = start_error(refused)
    assert isinstance(error, StartForbidden) is isinstance(error, StartRefused) is never
    assert message != SILENT or not (passing(refused) or open_outcome(refused))
    assert isinstance(error, EngineError)
    assert expected in str(error)
    assert message[:40] in str(error)


@pytest.mark.parametrize(("said", "name"), [(CLASS, "batch"), (ACCOUNT, "tasks"), (RUNTIME, "nvidia")])
def test_what_a_document_asks_for_and_is_not_there_is_waited_for_by_no_one(said: str, name: str) -> None:
    """A name of the settings is, also beside one that the document has chosen and that is there."""
    body = json.dumps({"kind": "Status", "reason": "Forbidden", "message": said}).encode()
    refused = refusal(FailedRequest("create", "/api/v1/namespaces/team/pods"), 403, body, None, NOW)
    error = start_error(refused, ["other", name])
    assert isinstance(error, StartForbidden)
    assert "does not have what its document asks for" in str(error)
    for others in (["other"], [f"{name}-2", name[:3]], []):
        assert not isinstance(start_error(refused, others), StartRefused)
