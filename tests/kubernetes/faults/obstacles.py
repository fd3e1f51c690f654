"""What stands in the way of tasks: pods of other people, and rules of the cluster."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.kubernetes.cluster.commands import until
from tests.kubernetes.cluster.images import BUSYBOX
from tests.kubernetes.cluster.kubectl import Json, Kubectl
from tests.kubernetes.faults.product import LIMIT_S

SAID = "nobody wants this role here"


@asynccontextmanager
async def a_rule_against(kubectl: Kubectl, role: str) -> AsyncIterator[None]:
    """A rule of the cluster that forbids pods of a role, in force until the block ends."""
    name = f"never-{kubectl.namespace}"
    here = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": kubectl.namespace}}}
    about = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": name}}
    pods = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    forbids = f"!has(object.metadata.labels) || object.metadata.labels['jupyter-pai/role'] != '{role}'"
    rule = {
        "matchConstraints": {"resourceRules": [pods], **here},
        "validations": [{"expression": forbids, "reason": "Forbidden", "message": SAID}],
    }
    binding = {"policyName": name, "validationActions": ["Deny"]}
    await kubectl.create(
        {**about, "kind": "ValidatingAdmissionPolicy", "spec": rule},
        {**about, "kind": "ValidatingAdmissionPolicyBinding", "spec": binding},
    )
    tried = hog("tried", "carol", 0)
    tried["metadata"]["labels"] = {"jupyter-pai/role": role}

    async def in_force() -> bool:
        done = await kubectl.attempt("create", "--dry-run=server", "-f", "-", given=json.dumps(tried))
        return SAID in done.err

    try:
        await until(in_force, "the rule to be in force", LIMIT_S)
        yield
    finally:
        for kind in ("validatingadmissionpolicybinding", "validatingadmissionpolicy"):
            await kubectl("delete", kind, name)


def hog(name: str, node: str, cpus: float) -> Json:
    """A pod of somebody else that asks for CPUs of a node."""
    container = {
        "name": "main",
        "image": BUSYBOX,
        "command": ["sleep", "1000"],
        "resources": {"requests": {"cpu": str(cpus)}},
    }
    spec = {"nodeName": node, "terminationGracePeriodSeconds": 1, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


async def take_room(kubectl: Kubectl, node: str, cpus: float) -> None:
    """Let somebody else's pod have them. Its kubelet counts pods that have just ended, and may refuse it at first."""
    name = f"hog-{node}"

    async def taken() -> bool:
        await kubectl.create(hog(name, node, cpus))
        found = await kubectl.until_phase(name, "Running", "Failed", limit_s=LIMIT_S)
        if found["status"]["phase"] == "Failed":
            await kubectl("delete", "pod", name)
            return False
        return True

    await until(taken, f"{name} to run", LIMIT_S)
