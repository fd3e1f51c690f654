"""The table of all paths, in the order of ``docs/rest.md``. What is not here does not exist."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pai_backend.api.base import BaseHandler
from pai_backend.api.handlers import (
    access,
    addresses,
    announcements,
    attempts,
    audit,
    bookings,
    budgets,
    cluster,
    configuring,
    description,
    history,
    identity,
    images,
    inspect,
    jobs,
    keys,
    notifications,
    openpai_site,
    orphans,
    prices,
    queue,
    release,
    schema,
    secrets,
    storage,
    task_use,
    templates,
    usage,
    users,
    v1,
    vc_rules,
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
            if self.template.startswith(beginning) and not self.handler.__name__.removesuffix("Handler").endswith(word):
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
    Route("/api/v2/jobs", jobs.JobsHandler),
    Route("/api/v2/validate", jobs.ValidateHandler),
    Route("/api/v2/trial", jobs.TrialHandler),
    Route("/api/v2/schema/job", schema.JobSchemaHandler),
    Route("/api/v2/templates", templates.TemplatesHandler),
    Route("/api/v2/templates/{template}", templates.OneTemplateHandler),
    Route("/api/v2/drafts", templates.DraftsHandler),
    Route("/api/v2/drafts/{draft}", templates.OneDraftHandler),
    Route(_JOB, jobs.OneJobHandler),
    Route(f"{_JOB}/executionType", jobs.JobExecutionTypeHandler),
    Route(f"{_JOB}/release", release.JobReleaseHandler),
    Route(f"{_JOB}/why", why.JobWhyHandler),
    Route(f"{_JOB}/move", queue.JobMoveHandler),
    Route(f"{_JOB}/config", jobs.JobConfigHandler),
    Route(f"{_JOB}/tag", jobs.JobTagHandler),
    Route(f"{_JOB}/events", history.EventsHandler),
    Route(f"{_JOB}/events/stream", history.EventStreamHandler),
    Route(f"{_JOB}/metrics", task_use.JobMetricsHandler),
    Route(f"{_JOB}/logs", history.LogsHandler),
    Route(f"{_JOB}/logs/search", history.LogSearchHandler),
    Route(f"{_JOB}/logs/times", history.LogTimesHandler),
    Route(f"{_JOB}/logs/stream", history.LogStreamHandler),
    Route(f"{_JOB}/attempts/{{attempt}}", attempts.OneAttemptHandler),
    Route(_TASK_RUNS, attempts.TaskRunsHandler),
    Route(f"{_TASK_RUNS}/{{run}}/logs", attempts.LogLocationListHandler),
    Route(f"{_JOB}/job-attempts", attempts.AllAttemptsHandler),
    Route(f"{_JOB}/job-attempts/healthz", attempts.AllAttemptsHealthHandler),
    Route(f"{_JOB}/job-attempts/{{attempt}}", attempts.OneOfAllAttemptsHandler),
    Route(f"{_JOB}/ssh", access.SshHandler),
    Route(f"{_JOB}/key", access.JobKeyHandler),
    Route(f"{_JOB}/shares", keys.JobSharesHandler),
    Route(f"{_JOB}/shares/{{user}}", keys.OneJobShareHandler),
    Route(f"{_JOB}/links", keys.JobLinksHandler),
    Route(f"{_JOB}/services/{{label}}/ticket", access.ServiceTicketHandler),
    Route("/api/v2/events/stream", history.AllEventsHandler),
    Route("/api/v2/cluster/nodes", cluster.NodesHandler),
    Route("/api/v2/cluster/sku-types", cluster.SkusHandler),
    Route("/api/v2/cluster/use", queue.ClusterUseHandler),
    Route("/api/v2/cluster/tasks", task_use.TaskUsesHandler),
    Route("/api/v2/usage", usage.UsageHandler),
    Route("/api/v2/prices", prices.PricesHandler),
    Route("/api/v2/reservations", bookings.BookingsHandler),
    Route("/api/v2/reservations/{reservation}", bookings.OneBookingHandler),
    Route("/api/v2/budgets", budgets.BudgetsHandler),
    Route("/api/v2/budgets/{budget}", budgets.OneBudgetHandler),
    Route("/api/v2/announcement", announcements.AnnouncementHandler),
    Route("/api/v2/notifications", notifications.NotificationsHandler),
    Route("/api/v2/notifications/{notification}", notifications.OneNotificationHandler),
    Route("/api/v2/notifications/{notification}/test", notifications.NotificationTestHandler),
    Route("/api/v2/secrets", secrets.SecretsHandler),
    Route("/api/v2/secrets/{secret}", secrets.OneSecretHandler),
    Route("/api/v2/audit", audit.AuditHandler),
    Route("/api/v2/audit/chain", audit.AuditChainHandler),
    Route("/api/v2/cluster/cells", inspect.CellsHandler),
    Route("/api/v2/images", images.ImagesHandler),
    Route("/api/v2/images/{path}", images.OneImageHandler),
    Route("/api/v2/cluster/orphans", orphans.OrphansHandler),
    Route("/api/v2/cluster/orphans/{task}", orphans.OneOrphanHandler),
    Route("/api/v2/cluster/config", configuring.ClusterConfigHandler),
    Route("/api/v2/cluster/config/history", configuring.ClusterConfigHistoryHandler),
    Route("/api/v2/virtual-clusters", cluster.VirtualClusterMapHandler),
    Route("/api/v2/virtual-clusters/{vc}", cluster.OneVirtualClusterHandler),
    Route("/api/v2/virtual-clusters/{vc}/sku-types", cluster.SkusOfOneHandler),
    Route("/api/v2/virtual-clusters/{vc}/rules", vc_rules.VcRulesHandler),
    Route("/api/v2/storages", openpai_site.StoragesHandler),
    Route("/api/v2/storages/{storage}", openpai_site.OneStorageHandler),
    Route("/api/v2/groups", users.GroupsHandler),
    Route("/api/v2/groups/{group}", users.OneGroupHandler),
    Route("/api/v2/groups/{group}/userlist", users.GroupMembersHandler),
    Route("/api/v2/kubernetes/nodes", openpai_site.KubernetesNodesHandler),
    Route("/api/v2/kubernetes/pods", openpai_site.KubernetesPodsHandler),
    Route("/api/v2/keys", keys.KeysHandler),
    Route("/api/v2/keys/{fingerprint}", keys.OneKeyHandler),
    Route("/api/v2/certificates", keys.CertificatesHandler),
    Route("/api/v2/certificates/authority", keys.AuthorityHandler),
    Route("/api/v2/certificates/{serial}", keys.OneCertificateHandler),
    Route("/api/v2/shares", keys.SharesHandler),
    Route("/api/v2/addresses", addresses.AddressesHandler),
    Route("/api/v2/addresses/{address}", addresses.OneAddressHandler),
    Route("/api/v2/lockouts", keys.SshLockoutsHandler),
    Route("/api/v2/lockouts/{user}", keys.OneSshLockoutHandler),
    Route("/api/v2/gateway", access.GatewayHandler),
    Route("/api/v2/fs/{path}", storage.FileHandler),
    Route("/api/v2/authn/info", identity.AuthnInfoHandler),
    Route("/api/v2/authn/basic/login", identity.BasicLoginHandler),
    Route("/api/v2/authn/basic/logout", identity.BasicLogoutHandler),
    Route("/api/v2/authn/oidc/login", identity.ProviderLoginHandler),
    Route("/api/v2/token", identity.TokenLoginHandler),
    Route("/api/v2/tokens", identity.TokensHandler),
    Route("/api/v2/tokens/application", identity.ApplicationTokensHandler),
    Route("/api/v2/tokens/check", identity.TokenCheckHandler),
    Route("/api/v2/tokens/{token}", identity.OneTokenHandler),
    Route("/api/v2/users", users.UsersHandler),
    Route("/api/v2/users/{user}", users.OneUserHandler),
    Route("/api/v2/users/{user}/holdings", users.UserHoldingsHandler),
    Route("/api/v2/user/{user}", users.OneUserHandler),
    Route("/api/v1/jobs", v1.JobsV1Handler),
    Route("/api/v1/jobs/{job}", v1.OneJobV1Handler),
    Route("/api/v1/jobs/{job}/executionType", v1.JobExecutionTypeV1Handler),
    Route("/api/v1/jobs/{job}/config", v1.JobConfigV1Handler),
    Route("/api/v1/jobs/{job}/ssh", v1.JobSshV1Handler),
    Route(_USER_JOBS, v1.UserJobsV1Handler),
    Route(f"{_USER_JOBS}/{{job}}", v1.OneJobV1Handler),
    Route(f"{_USER_JOBS}/{{job}}/executionType", v1.JobExecutionTypeV1Handler),
    Route(f"{_USER_JOBS}/{{job}}/config", v1.JobConfigV1Handler),
    Route(f"{_USER_JOBS}/{{job}}/ssh", v1.JobSshV1Handler),
    Route("/api/v1/ssh-keys/{name}", access.KeyFileHandler),
    Route("/api/v1/kubernetes/nodes", openpai_site.KubernetesNodesHandler),
    Route("/api/v1/kubernetes/pods", openpai_site.KubernetesPodsHandler),
    Route("/api/v1/virtual-clusters", cluster.VirtualClusterMapHandler),
    Route("/api/v1/virtual-clusters/{vc}", cluster.OneVirtualClusterHandler),
    Route("/api/v1/authn/info", identity.AuthnInfoHandler),
    Route("/api/v1/authn/basic/login", identity.BasicLoginHandler),
    Route("/api/v1/authn/basic/logout", identity.BasicLogoutHandler),
    Route("/api/v1/token", identity.TokenLoginHandler),
    Route("/api/v1/user/{user}", users.OneUserHandler),
    Route("/v1/inspect/clusterstatus", inspect.CellsHandler),
    Route("/v1/inspect/clusterstatus/physicalcluster", inspect.PhysicalCellsHandler),
    Route("/v1/inspect/clusterstatus/virtualclusters/", inspect.VirtualCellsHandler),
    Route("/v1/inspect/clusterstatus/virtualclusters/{vc}", inspect.CellsOfOneHandler),
    Route("/v1/inspect/affinitygroups/", inspect.AffinityGroupsHandler),
    Route("/v1/inspect/affinitygroups/{path}", inspect.OneAffinityGroupHandler),
    Route("/healthz", cluster.HealthzHandler),
    Route("/readyz", cluster.ReadyzHandler),
    Route("/metrics", cluster.MetricsHandler),
    Route("/openapi.json", description.OpenApiHandler),
)
