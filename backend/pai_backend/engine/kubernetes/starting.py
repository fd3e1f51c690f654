"""Making the objects of a task, in an order in which a crash at any instant is harmless; see ``marks``."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pai_backend.engine.base import EngineError, StartRefused
from pai_backend.engine.kubernetes import naming
from pai_backend.engine.kubernetes.calls import Calls
from pai_backend.engine.kubernetes.ending import find, had_pod
from pai_backend.engine.kubernetes.failures import AlreadyExists, ApiForbidden, ApiNotFound, RequestRefused
from pai_backend.engine.kubernetes.marks import Marks, marks_of
from pai_backend.engine.kubernetes.namespaces import is_missing
from pai_backend.engine.kubernetes.objects import Object, metadata, name_of, uid_of
from pai_backend.engine.kubernetes.places import ApiPaths, ResourceKind, node
from pai_backend.engine.kubernetes.pods.job import attempt_map, network_policy, service
from pai_backend.engine.kubernetes.pods.owner import PodOwner, owned
from pai_backend.engine.kubernetes.pods.pod import build_pod
from pai_backend.engine.kubernetes.pods.secret import is_alone, login_secret, mark_secret, task_secret
from pai_backend.engine.kubernetes.policies import Policies
from pai_backend.engine.kubernetes.status.refusals import missing_choice, start_error
from pai_backend.engine.kubernetes.status.view import part
from pai_backend.model.ids import TaskUid
from pai_backend.model.plan import TaskPlan
from pai_backend.model.pod_settings import PodSettings

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Made:
    """A task's Secret as the API server has it."""

    secret: Object
    marks: Marks | None
    """What it says where it was there already; None: it was made now."""


class GateSupport:
    """Whether the cluster keeps the gates of pods; of one that does not the log tells once."""

    def __init__(self) -> None:
        self._told = False

    def check(self, asked: Object, made: Object) -> None:
        """Look at a pod as it was made. Source: Kubernetes documentation, "Pod Scheduling Readiness"."""
        had = part(asked, "spec").get("schedulingGates")
        if had and not part(made, "spec").get("schedulingGates") and not self._told:
            self._told = True
            _log.warning(
                "this cluster ignores scheduling gates, as Kubernetes before 1.27 does: tasks of a gang may hold GPUs "
                "for kubernetes.patience.gang_s seconds while others of it have no room"
            )


class Starter:
    """Starts tasks in one namespace. ``has_node`` says whether a node is known, so that the API is not asked."""

    def __init__(
        self,
        calls: Calls,
        places: ApiPaths,
        instance: str,
        settings: PodSettings,
        policies: Policies,
        has_node: Callable[[str], bool] = lambda name: False,
        gates: GateSupport | None = None,
        made: Callable[[TaskPlan, Object], None] = lambda plan, pod: None,
    ) -> None:
        """``made`` is called with each pod that this makes."""
        self._calls = calls
        self._places = places
        self._instance = instance
        self._settings = settings
        self._policies = policies
        self._has_node = has_node
        self._gates = gates or GateSupport()
        self._made = made

    async def start(self, plan: TaskPlan) -> Marks | None:
        """Make the task's pod unless its uid was ever started or stopped.

        Returns the marks of a Secret that was there already. Raises StartRefused when that can never succeed: the task
        never runs, and is forgotten as any other; EngineError when a later try may.
        """
        try:
            await self._check_node(plan.placement.node)
            owner = await self._owner(plan)
            pod, secret = await self._built(plan, owner)
            # Side by side, and both awaited whatever comes of the other.
            made, trouble = await asyncio.gather(
                self._make_secret(secret), self._share(plan, owner), return_exceptions=True
            )
            if isinstance(made, BaseException):
                raise made
            if made.marks is None or not await self._is_done(plan.uid, made.marks):
                login = login_secret(plan, owner)
                if is_alone(plan):
                    pod, login = owned(pod, made.secret), login and owned(login, made.secret)
                await self._make_pod(plan, pod, login, trouble)
        except RequestRefused as refused:
            raise await self._explained(refused) from None
        return made.marks

    async def _built(self, plan: TaskPlan, owner: PodOwner) -> tuple[Object, Object]:
        """The task's pod and Secret, before either is made.

        Of a plan that cannot be built a Secret without it is made: what is shared goes by the marks of its tasks.
        """
        try:
            pod = build_pod(plan, owner, self._settings, plan.tolerations)
            secret = task_secret(plan, owner, self._settings)
            await self._check_pull_secrets(plan)
            return pod, secret
        except StartRefused:
            await self._make_secret(mark_secret(plan, owner))
            raise

    async def _check_pull_secrets(self, plan: TaskPlan) -> None:
        """Refuse a Secret that is not there: its kubelet would fetch the image without. Raises StartForbidden."""
        for name in plan.pods.image_pull_secrets:
            if await find(self._calls, self._places.one(ResourceKind.SECRET, name)) is None:
                raise missing_choice(f"there is no Secret {name} in the namespace {self._places.namespace}")

    async def _explained(self, refused: RequestRefused) -> EngineError:
        """What a refusal means. Of a namespace that is not there a server may say as well that it is forbidden."""
        namespace = self._places.namespace
        if isinstance(refused, ApiForbidden | ApiNotFound) and await is_missing(self._calls, namespace):
            return EngineError(
                f"the namespace {namespace} of its task is not there; it starts when an administrator has made it "
                f"(kubectl create namespace {namespace}) and let the backend work in it"
            )
        return start_error(refused)

    async def _check_node(self, name: str) -> None:
        if self._has_node(name):
            return
        try:
            await self._calls.get(node(name))
        except ApiNotFound:
            raise StartRefused(f"the cluster has no node {name!r}") from None

    async def _owner(self, plan: TaskPlan) -> PodOwner:
        """The attempt's ConfigMap, made by whichever of its tasks comes first; of a task alone its Secret, to come."""
        if is_alone(plan):
            return PodOwner(self._places.namespace, naming.task_name(plan.uid), "", self._instance)
        body = attempt_map(plan, self._places.namespace, self._instance)
        name = name_of(body)
        try:
            found = await self._calls.create(self._places.all(ResourceKind.CONFIG_MAP), body)
        except AlreadyExists:
            found = await self._calls.get(self._places.one(ResourceKind.CONFIG_MAP, name))
        _refuse_deleted(found, f"what the tasks of its job share ({name})")
        return PodOwner(self._places.namespace, name, uid_of(found), self._instance)

    async def _share(self, plan: TaskPlan, owner: PodOwner) -> None:
        """Make what the tasks of an attempt share, or all that have no peers, so that they may be reached."""
        policy = network_policy(plan, owner, self._settings)
        if not is_alone(plan):
            await self._make_all([service(plan, owner, self._settings), policy])
        elif policy is not None:
            await self._policies.ensure(policy, self._places)

    async def _make_secret(self, secret: Object) -> _Made:
        """Make the task's Secret, unless it is there."""
        try:
            return _Made(await self._calls.create(self._places.all(ResourceKind.SECRET), secret), None)
        except AlreadyExists:
            found = await self._calls.get(self._places.one(ResourceKind.SECRET, name_of(secret)))
        marks = marks_of(found)
        if marks is None:
            raise StartRefused(
                f"a Secret {name_of(secret)} exists and does not belong to jupyter-pai; delete or rename it"
            )
        if not marks.final:
            _refuse_deleted(found, f"the Secret {name_of(secret)} of its plan")
        return _Made(found, marks)

    async def _is_done(self, uid: TaskUid, marks: Marks) -> bool:
        """Whether a start that others have begun has nothing more to do: the task was stopped, or it had a pod."""
        if marks.final:
            return True
        name = naming.task_name(uid)
        there = await find(self._calls, self._places.one(ResourceKind.POD, name)) is not None
        return there or await had_pod(self._calls, self._places, name)

    async def _make_pod(self, plan: TaskPlan, pod: Object, login: Object | None, trouble: BaseException | None) -> None:
        """Make the pod once everything else is there; ``trouble`` is what came of making what its attempt shares.

        The Secret stays when that is refused for good: forgetting the task marks it, and an attempt is removed by its
        marks, with all that its tasks share.
        """
        try:
            if trouble is not None:
                raise trouble
            await self._make_all([login])
            with contextlib.suppress(AlreadyExists):  # another controller has started it meanwhile
                made = await self._calls.create(self._places.all(ResourceKind.POD), pod)
                self._gates.check(pod, made)
                self._made(plan, made)
        except RequestRefused as refused:
            raise start_error(refused, plan.pods.names) from None

    async def _make_all(self, bodies: Sequence[Object | None]) -> None:
        """Make objects that may be there already, by an earlier try or for another task of the attempt."""
        for body in bodies:
            if body is not None:
                with contextlib.suppress(AlreadyExists):
                    await self._calls.create(self._places.all(_KINDS[str(body["kind"])]), body)


def _refuse_deleted(found: Object, what: str) -> None:
    """Raises EngineError when it is being deleted, and with it what it would own."""
    if "deletionTimestamp" in metadata(found):
        raise EngineError(f"{what} is being deleted; it starts when that is done")


_KINDS = {
    "Secret": ResourceKind.SECRET,
    "Service": ResourceKind.SERVICE,
    "NetworkPolicy": ResourceKind.NETWORK_POLICY,
}
