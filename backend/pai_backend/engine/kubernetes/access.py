"""How a backend finds its cluster and keeps its credentials good.

The order: the configured kubeconfig; the files of ``KUBECONFIG``; the service account of the pod it runs in;
``~/.kube/config``. Tokens, certificates, proxies and credential programs are the library's work; this decides when it
does it again: shortly before a known expiry, once a minute for a token that the kubelet rotates, and after a 401.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pai_backend.engine.kubernetes.credential_program import COMMAND_S, run_program
from pai_backend.engine.kubernetes.failures import AccessError
from pai_backend.engine.kubernetes.kubeconfig import Kubeconfig, read_kubeconfig
from pai_backend.engine.kubernetes.library import library

if TYPE_CHECKING:
    from kubernetes_asyncio.client import Configuration

_log = logging.getLogger(__name__)

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
ROTATED_S = 60.0  # how often a token file is read again; the kubelet renews one at 80 % of its hour
EARLY_S = 60.0  # how long before its expiry a credential is renewed
REFUSED_S = 10.0  # not more often than this because of a 401: the reason may not be the credential


@dataclass(frozen=True)
class Access:
    """What the settings say about the cluster; every part may be left to be found."""

    kubeconfig: Path | None = None
    context: str | None = None
    namespace: str | None = None


@dataclass(frozen=True)
class ServiceAccount:
    """What a pod is given to reach the API server: files in a folder, and variables."""

    folder: Path
    environ: Mapping[str, str] = field(repr=False)

    @property
    def place(self) -> str:
        """For messages."""
        return f"the service account in {self.folder}"


class Credentials:
    """A library configuration that is kept good. Make it with :func:`find_cluster`."""

    def __init__(self, source: Kubeconfig | ServiceAccount, namespace: str, configuration: Configuration) -> None:
        self.namespace = namespace
        self.configuration = configuration
        self._source = source
        self._loaded_at = time.monotonic()
        self._fresh_until: float | None = None  # on the monotonic clock; None: until a 401
        self._lock = asyncio.Lock()

    def __repr__(self) -> str:
        return f"Credentials({self.place})"

    @property
    def place(self) -> str:
        """Where they come from, for messages."""
        return self._source.place

    async def current(self) -> None:
        """Renew what is about to expire. Raises AccessError when that fails."""
        if self._fresh_until is not None and time.monotonic() >= self._fresh_until:
            await self._reload(self._loaded_at)

    async def refused(self) -> bool:
        """Told after a 401: renew, unless that was tried just now. Returns whether another try makes sense."""
        if time.monotonic() - self._loaded_at < REFUSED_S:
            return False
        await self._reload(self._loaded_at)
        return True

    async def load(self) -> None:
        """Fill the configuration. Raises AccessError."""
        self._loaded_at = time.monotonic()
        self._fresh_until = self._loaded_at + REFUSED_S  # should this fail: others go on with the old ones meanwhile
        if isinstance(self._source, Kubeconfig):
            self._source = await asyncio.to_thread(read_kubeconfig, self._source.paths, self._source.context)
            self._fresh_until = await _load_kubeconfig(self._source, self.configuration)
        else:
            await asyncio.to_thread(_load_service_account, self._source, self.configuration)
            self._fresh_until = time.monotonic() + ROTATED_S

    async def _reload(self, seen: float) -> None:
        async with self._lock:
            if self._loaded_at == seen:  # else another call did it while we waited
                await self.load()


async def find_cluster(
    access: Access, environ: Mapping[str, str] = os.environ, service_account: Path = SERVICE_ACCOUNT
) -> Credentials:
    """Find the cluster and load its credentials. Raises AccessError naming place, reason and remedy."""
    configuration = (await asyncio.to_thread(library)).configuration()
    # A certificate authority made before RFC 5280 was enforced (Python 3.13) is what many clusters have, and kubectl
    # takes it; chain, name and validity are still checked.
    configuration.disable_strict_ssl_verification = True
    configuration.connection_pool_maxsize = 0  # no bound there: watches would use it up; requests are bounded by us
    source: Kubeconfig | ServiceAccount
    if (paths := _paths(access, environ, service_account)) is None:
        source = ServiceAccount(service_account, environ)
        inherent = await asyncio.to_thread(_namespace_of, service_account)
    else:
        source = await asyncio.to_thread(read_kubeconfig, paths, access.context)
        inherent = source.namespace
        if source.insecure:
            _log.warning("%s: the certificate of %s is not checked: the file says so", source.place, source.server)
    credentials = Credentials(source, access.namespace or inherent or "default", configuration)
    await credentials.load()
    return credentials


def _paths(access: Access, environ: Mapping[str, str], service_account: Path) -> list[Path] | None:
    """The kubeconfig files to read; None for the pod's service account. Raises AccessError when there is nothing."""
    if access.kubeconfig is not None:
        return [access.kubeconfig.expanduser()]
    if named := environ.get("KUBECONFIG"):
        paths = [Path(part).expanduser() for part in named.split(os.pathsep) if part]
        there = [path for path in paths if path.exists()]
        return there or paths  # one that is missing is passed over, as by kubectl; all missing is an error below
    if "KUBERNETES_SERVICE_HOST" in environ and (service_account / "token").exists():
        return None
    default = Path(environ.get("HOME", "~")).expanduser() / ".kube" / "config"
    if not default.exists():
        raise AccessError(
            f"no Kubernetes cluster is known: there is no {default}, KUBECONFIG is not set, and this is not a pod; "
            "set kubernetes.kubeconfig to a kubeconfig file"
        )
    return [default]


def _namespace_of(service_account: Path) -> str | None:
    try:
        return (service_account / "namespace").read_text(encoding="utf-8").strip() or None
    except OSError:
        return None  # "default" then, as in kubectl


async def _load_kubeconfig(found: Kubeconfig, configuration: Configuration) -> float | None:
    """Fill the configuration; returns until when it is good, on the monotonic clock. Raises AccessError."""
    user, expires = found.user, None
    if isinstance(user.get("exec"), dict):
        given = await run_program(user["exec"], found.cluster, found.folder, found.place)
        user, expires = given.user, given.expires
    document = {
        "contexts": [{"name": "this", "context": {"cluster": "this", "user": "this"}}],
        "clusters": [{"name": "this", "cluster": found.cluster}],
        "users": [{"name": "this", "user": user}],
    }
    try:
        async with asyncio.timeout(COMMAND_S):  # a refresh at an identity provider is a request, too
            await library().kubeconfig_loader(document, active_context="this").load_and_set(configuration)
    except Exception as error:  # noqa: BLE001 - whatever it is, its text may quote a token, so only its kind is told
        raise AccessError(
            f"{found.place}: the user of the context {found.context} gives no usable credentials ({_kind(error)}); "
            f"check it with: kubectl --context {found.context} auth whoami"
        ) from None
    if expires is None:
        return None
    left_s = (expires - datetime.now(UTC)).total_seconds()
    return time.monotonic() + max(left_s - EARLY_S, left_s / 2, 1.0)


def _load_service_account(account: ServiceAccount, configuration: Configuration) -> None:
    """Fill the configuration from a pod's service account. Raises AccessError."""
    folder, environ = account.folder, dict(account.environ)
    loader = library().service_account_loader(str(folder / "token"), str(folder / "ca.crt"), False, environ)
    try:
        loader.load_and_set(configuration)
    except (library().config_exception, OSError) as error:
        raise AccessError(f"{folder}: the pod's service account cannot be used: {error}") from None


def _kind(error: Exception) -> str:
    """What kind of failure it is; of an operating system's own errors also its words, which quote no file's content."""
    return error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
