"""The table of all paths, in the order of ``docs/rest.md``. What is not here does not exist."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pai_backend.api.base import BaseHandler
from pai_backend.api.handlers import access, attempts, cluster, description, history, jobs

_NUMBERS = frozenset({"attempt", "index", "run"})
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
        """The template as a regular expression with one group a part."""
        return _PART.sub(lambda part: r"(\d{1,9})" if part[1] in _NUMBERS else "([^/]+)", self.template)


_JOB = "/api/v2/jobs/{job}"
_TASK_RUNS = f"{_JOB}/attempts/{{attempt}}/taskRoles/{{role}}/taskIndex/{{index}}/attempts"

ROUTES: tuple[Route, ...] = (
    Route("/api/v2/info", cluster.InfoHandler),
    Route("/api/v2/jobs", jobs.Jobs),
    Route("/api/v2/validate", jobs.Validate),
    Route(_JOB, jobs.OneJob),
    Route(f"{_JOB}/executionType", jobs.JobExecutionType),
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
    Route(f"{_JOB}/services/{{label}}/ticket", access.ServiceTicket),
    Route("/api/v2/events/stream", history.AllEvents),
    Route("/api/v2/cluster/nodes", cluster.Nodes),
    Route("/api/v2/virtual-clusters", cluster.VirtualClusterMap),
    Route("/api/v2/keys", access.Keys),
    Route("/api/v2/keys/{fingerprint}", access.OneKey),
    Route("/api/v2/gateway", access.Gateway),
    Route("/healthz", cluster.Healthz),
    Route("/readyz", cluster.Readyz),
    Route("/metrics", cluster.MetricsHandler),
    Route("/openapi.json", description.OpenApi),
)
