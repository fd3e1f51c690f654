"""The table of all paths, in the order of ``docs/rest.md``. What is not here does not exist."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pai_backend.api.base import BaseHandler
from pai_backend.api.handlers import (
    access,
    attempts,
    cluster,
    configuring,
    description,
    history,
    identity,
    inspect,
    jobs,
    keys,
    openpai_site,
    orphans,
    queue,
    release,
    storage,
    v1,
    why,
)

_VARIANTS = {
    "/v1/inspect/": "OfHived",
    "/api/v1/user/{user}/jobs": "OfUser",
    "/api/v1/": "V1",
    "/api/v2/user/": "Singular",
}
_PATHS = frozenset({"path"})  # parts that may hold slashes
_NUMBERS = frozenset({"attempt", "index", "run"})
_LONG_NUMBERS = frozenset({"serial"})
_PART = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Route:
    """A path template and its handler."""

    template: str
    handler: type[BaseHandler]

    @property
    def parts(self) -> list[str]:
        """Names of the path's variable parts."""
        return _PART.findall(self.template)

    @property
    def pattern(self) -> str:
        """The template as a regular expression with one group a part.

        OpenPAI is reached below ``/rest-server`` through its portal, and its clients put that in front by themselves.
        Its server takes every path with a slash behind it as well, and some of its clients write one.
        """
        pattern = _PART.sub(_group, self.template)
        if not self.template.startswith("/api/"):
            return pattern
        return f"(?:/rest-server)?{pattern}" + ("" if pattern.endswith("(.*)") else "/?")

    @property
    def variant(self) -> str:
        """What tells this path from others of the same handler; empty for its first."""
        for beginning, word in _VARIANTS.items():
            if self.template.startswith(beginning) and not self.handler.__name__.endswith(word):
                return word
        return ""


def _group(part: re.Match[str]) -> str:
    """The group of one variable part."""
    if part[1] in _PATHS:
        return "(.*)"
    if part[1] in _LONG_NUMBERS:
        return r"(\d{1,16})"
    return r"(\d{1,9})" if part[1] in _NUMBERS else "([^/]+)"


_JOB = "/api/v2/jobs/{job}"
_TASK_RUNS = f"{_JOB}/attempts/{{attempt}}/taskRoles/{{role}}/taskIndex/{{index}}/attempts"
_USER_JOBS = "/api/v1/user/{user}/jobs"

ROUTES: tuple[Route, ...] = (
    Route("/api/v2/info", cluster.InfoHandler),
    Route("/api/v2/jobs", jobs.Jobs),
    Route("/api/v2/validate", jobs.Validate),
    Route(_JOB, jobs.OneJob),
    Route(f"{_JOB}/executionType", jobs.JobExecutionType),
    Route(f"{_JOB}/release", release.JobRelease),
    Route(f"{_JOB}/why", why.JobWhy),
    Route(f"{_JOB}/move", queue.JobMove),
    Route(f"{_JOB}/config", jobs.JobConfig),
    Route(f"{_JOB}/tag", jobs.JobTag),
    Route(f"{_JOB}/events", history.Events),
    Route(f"{_JOB}/events/stream", history.EventStream),
    Route(f"{_JOB}/logs", history.Logs),
    Route(f"{_JOB}/logs/stream", history.LogStream),
    Route(f"{_JOB}/attempts/{{attempt}}", attempts.OneAttempt),
    Route(_TASK_RUNS, attempts.TaskRuns),
    Route(f"{_TASK_RUNS}/{{run}}/logs", attempts.LogLocationList),
    Route(f"{_JOB}/job-attempts", attempts.AllAttempts),
    Route(f"{_JOB}/job-attempts/healthz", attempts.AllAttemptsHealth),
    Route(f"{_JOB}/job-attempts/{{attempt}}", attempts.OneOfAllAttempts),
    Route(f"{_JOB}/ssh", access.Ssh),
    Route(f"{_JOB}/key", access.JobKey),
    Route(f"{_JOB}/shares", keys.JobShares),
    Route(f"{_JOB}/shares/{{user}}", keys.OneJobShare),
    Route(f"{_JOB}/services/{{label}}/ticket", access.ServiceTicket),
    Route("/api/v2/events/stream", history.AllEvents),
    Route("/api/v2/cluster/nodes", cluster.Nodes),
    Route("/api/v2/cluster/sku-types", cluster.Skus),
    Route("/api/v2/cluster/use", queue.ClusterUse),
    Route("/api/v2/cluster/cells", inspect.Cells),
    Route("/api/v2/cluster/orphans", orphans.Orphans),
    Route("/api/v2/cluster/orphans/{task}", orphans.OneOrphan),
    Route("/api/v2/cluster/config", configuring.ClusterConfigHandler),
    Route("/api/v2/cluster/config/history", configuring.ClusterConfigHistory),
    Route("/api/v2/virtual-clusters", cluster.VirtualClusterMap),
    Route("/api/v2/virtual-clusters/{vc}", cluster.OneVirtualCluster),
    Route("/api/v2/virtual-clusters/{vc}/sku-types", cluster.SkusOfOne),
    Route("/api/v2/storages", openpai_site.Storages),
    Route("/api/v2/storages/{storage}", openpai_site.OneStorage),
    Route("/api/v2/groups", openpai_site.Groups),
    Route("/api/v2/groups/{group}", openpai_site.OneGroup),
    Route("/api/v2/groups/{group}/userlist", openpai_site.GroupMembers),
    Route("/api/v2/kubernetes/nodes", openpai_site.KubernetesNodes),
    Route("/api/v2/kubernetes/pods", openpai_site.KubernetesPods),
    Route("/api/v2/keys", keys.Keys),
    Route("/api/v2/keys/audit", keys.Audit),
    Route("/api/v2/keys/{fingerprint}", keys.OneKey),
    Route("/api/v2/certificates", keys.Certificates),
    Route("/api/v2/certificates/authority", keys.Authority),
    Route("/api/v2/certificates/{serial}", keys.OneCertificate),
    Route("/api/v2/shares", keys.Shares),
    Route("/api/v2/lockouts", keys.SshLockouts),
    Route("/api/v2/lockouts/{user}", keys.OneSshLockout),
    Route("/api/v2/gateway", access.Gateway),
    Route("/api/v2/fs/{path}", storage.FileHandler),
    Route("/api/v2/authn/info", identity.AuthnInfo),
    Route("/api/v2/authn/basic/login", identity.BasicLogin),
    Route("/api/v2/authn/basic/logout", identity.BasicLogout),
    Route("/api/v2/token", identity.TokenLogin),
    Route("/api/v2/tokens", identity.Tokens),
    Route("/api/v2/tokens/application", identity.ApplicationTokens),
    Route("/api/v2/tokens/check", identity.TokenCheck),
    Route("/api/v2/tokens/{token}", identity.OneToken),
    Route("/api/v2/users", identity.Users),
    Route("/api/v2/users/{user}", identity.OneUser),
    Route("/api/v2/user/{user}", identity.OneUser),
    Route("/api/v1/jobs", v1.JobsV1),
    Route("/api/v1/jobs/{job}", v1.OneJobV1),
    Route("/api/v1/jobs/{job}/executionType", v1.JobExecutionTypeV1),
    Route("/api/v1/jobs/{job}/config", v1.JobConfigV1),
    Route("/api/v1/jobs/{job}/ssh", v1.JobSshV1),
    Route(_USER_JOBS, v1.UserJobsV1),
    Route(f"{_USER_JOBS}/{{job}}", v1.OneJobV1),
    Route(f"{_USER_JOBS}/{{job}}/executionType", v1.JobExecutionTypeV1),
    Route(f"{_USER_JOBS}/{{job}}/config", v1.JobConfigV1),
    Route(f"{_USER_JOBS}/{{job}}/ssh", v1.JobSshV1),
    Route("/api/v1/ssh-keys/{name}", access.KeyFile),
    Route("/api/v1/kubernetes/nodes", openpai_site.KubernetesNodes),
    Route("/api/v1/kubernetes/pods", openpai_site.KubernetesPods),
    Route("/api/v1/virtual-clusters", cluster.VirtualClusterMap),
    Route("/api/v1/virtual-clusters/{vc}", cluster.OneVirtualCluster),
    Route("/api/v1/authn/info", identity.AuthnInfo),
    Route("/api/v1/authn/basic/login", identity.BasicLogin),
    Route("/api/v1/authn/basic/logout", identity.BasicLogout),
    Route("/api/v1/token", identity.TokenLogin),
    Route("/api/v1/user/{user}", identity.OneUser),
    Route("/v1/inspect/clusterstatus", inspect.Cells),
    Route("/v1/inspect/clusterstatus/physicalcluster", inspect.PhysicalCells),
    Route("/v1/inspect/clusterstatus/virtualclusters/", inspect.VirtualCells),
    Route("/v1/inspect/clusterstatus/virtualclusters/{vc}", inspect.CellsOfOne),
    Route("/v1/inspect/affinitygroups/", inspect.Groups),
    Route("/v1/inspect/affinitygroups/{path}", inspect.OneGroup),
    Route("/healthz", cluster.Healthz),
    Route("/readyz", cluster.Readyz),
    Route("/metrics", cluster.MetricsHandler),
    Route("/openapi.json", description.OpenApi),
)
