"""The HTTP face: listens at once, answers in full as soon as the database does."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

import tornado.httpserver

from pai_backend.access.proxy import Entrance, ServiceProxy, leftover_rule
from pai_backend.access.proxy.entrance import IDLE_S
from pai_backend.access.secrecy import SIGNING_SECRET
from pai_backend.access.uses import Uses
from pai_backend.api.acceptor import Acceptor, WaitingConnections, most_connections
from pai_backend.api.application import make_application
from pai_backend.api.changes import Changes
from pai_backend.api.context import ApiContext, CellRules, PublicAddress, Site
from pai_backend.api.metrics import Metrics
from pai_backend.api.services.login_starts import follow_login_starts
from pai_backend.api.starting import StartingDelegate, starting_application
from pai_backend.api.tls import CertificateError, ServerCertificate
from pai_backend.api.wire import Check
from pai_backend.auth.accounts import Accounts
from pai_backend.auth.identity import Identity
from pai_backend.auth.jupyterhub import HubApi
from pai_backend.auth.limits import RateLimits, limits
from pai_backend.auth.tokens import TokenFileError, TokenTable, read_or_make
from pai_backend.auth.users import User
from pai_backend.config.api import ApiSettings
from pai_backend.config.queue_policy import policy_of
from pai_backend.config.settings import ProcessRole, Settings
from pai_backend.engine.base import EngineError
from pai_backend.engine.images import ImageRule
from pai_backend.model.account import Account
from pai_backend.model.errors import Unavailable
from pai_backend.model.node import Node
from pai_backend.platform.descriptors import raise_limit
from pai_backend.platform.listening import bind_kept
from pai_backend.platform.runtime_files import runtime_file
from pai_backend.processes.components import Components, ReadyLine, RoleError
from pai_backend.scheduling.terms import NodeRules
from pai_backend.storage.room import FileRoom
from pai_backend.store.base import Lease

if TYPE_CHECKING:
    from pai_backend.auth.provider_sign_ins import ProviderSignIns
    from pai_backend.config.oidc import OidcSettings
    from pai_backend.store.sql import Store

log = logging.getLogger(__name__)

AGAIN_S = 5.0  # before nodes are followed again that could not be
OTHERS_S = 2.0  # between two looks at what pods of others hold
PATIENCE_S = 3.0  # the address is told at the latest after this long, with or without a database
DRAIN_S = 5.0  # answers under way may take this long at the end


async def run(components: Components, ready: ReadyLine) -> None:
    """Serve until the process is told to end. Raises RoleError when the configuration cannot be followed."""
    tokens, cells = _tokens(components.settings), _cells(components)
    certificate = _certificate(components.settings)
    listener = _listen(components.settings)
    url = _url(listener, "http" if certificate is None else "https")
    front = StartingDelegate(starting_application(lambda: components.database_trouble))
    waiting = WaitingConnections(front, components.settings.api.proxies)
    scheme = None if certificate is None else "https"
    server = tornado.httpserver.HTTPServer(waiting, idle_connection_timeout=IDLE_S, protocol=scheme)
    acceptor = Acceptor(listener, server, waiting, most_connections(raise_limit()), certificate)
    facts = {"pid": os.getpid(), "url": url, "started": datetime.now(UTC).isoformat(), "version": components.version}
    metrics = Metrics()
    metrics.gauge("pai_api_connections", "Connections that are open.", lambda: acceptor.open)
    opening = asyncio.create_task(components.store_or_stop())
    await asyncio.wait({opening}, timeout=PATIENCE_S)
    with runtime_file(components.runtime("api.json"), facts):
        store = await opening
        if store is not None:
            changes, uses = Changes(store), Uses(lambda: store.idling)
            site = _site(components, components.settings.api.public_url or url)
            files = components.files()
            ctx, proxy = await _context(components, store, site, cells, tokens, changes, metrics, files, uses)
            front.target = make_application(ctx, [leftover_rule(proxy.domain)])
            acceptor.entrance = Entrance(proxy, acceptor)
            ready.role_is_ready(ProcessRole.API, url=url)
            async with asyncio.TaskGroup() as group:
                going = [
                    group.create_task(_follow_nodes(components)),
                    group.create_task(_follow_other_holders(components, store)),
                    group.create_task(uses.run()),
                    group.create_task(follow_login_starts(ctx)),
                ]
                await components.stop.wait()
                for task in going:
                    task.cancel()
            await uses.finish()
            await changes.aclose()
            files.close()
    acceptor.close()
    await _drain(server, metrics)
    if acceptor.entrance is not None:
        acceptor.entrance.close()
    acceptor.end()


async def _context(
    components: Components,
    store: Store,
    site: Site,
    cells: CellRules,
    tokens: TokenTable,
    changes: Changes,
    metrics: Metrics,
    files: FileRoom,
    uses: Uses,
) -> tuple[ApiContext, ServiceProxy]:
    """What the API works with, and the service proxy in front of it."""
    engine = components.engine()
    signing_key = await store.secrets.get(SIGNING_SECRET, secrets.token_hex(32))
    hub = components.settings.api.jupyterhub
    identity = Identity(
        store,
        tokens,
        _accounts(components.settings, tokens, store),
        hub=HubApi(hub.api_url, hub.service, take_names=hub.take_names) if hub.api_url else None,
        provider=_provider(components.settings.api.oidc, store),
    )
    for result in identity.sign_ins:
        meaning = f"Sign-ins by password that were {result}."
        metrics.gauge(f"pai_api_sign_ins_{result}", meaning, partial(identity.sign_ins.__getitem__, result))
    await store.grants.keep_accounts({account.name: account.admin for account in identity.accounts.configured})
    shared = _users_share_rights(components)
    if shared and (added := (await store.groups.directory()).users):
        raise RoleError(
            f"engine.trust_all_users: {len(added)} users were added ({added[0].name}…), and tasks would run as one "
            "account, so that each could read all. Set engine.accounts, or set it to true if they may do so"
        )
    if shared and (hub.api_url or identity.provider):
        raise RoleError(
            f"api.{'jupyterhub' if hub.api_url else 'oidc'}: users come by themselves, and tasks would run as one "
            "account, so that each could read all. Set engine.accounts, or engine.trust_all_users if they may do so"
        )
    proxy = ServiceProxy(
        store.jobs,
        store.secrets,
        engine,
        domain=site.service_domain,
        signing_key=signing_key,
        entrants=identity,
        shares=store.grants,
        uses=uses,
        public_url=components.settings.api.public_url or "",
    )
    metrics.gauge(
        "pai_disk_reserve", "1 while room is kept for stop, delete and sign-in.", lambda: components.reserve.is_held
    )
    metrics.gauge("pai_api_followers", "Streams that wait for news.", lambda: changes.followers)
    if _hears_of_nodes(components):
        metrics.gauge("pai_nodes", "Nodes of the engine.", lambda: len(engine.nodes))
    if engine.insight is not None:
        metrics.registry.register(engine.insight.figures())
    ctx = ApiContext(
        site=site,
        cells=cells,
        store=store,
        engine=engine,
        identity=identity,
        limits=_limits(components.settings.api),
        proxy=proxy,
        changes=changes,
        metrics=metrics,
        gateway=lambda: _gateway(components),
        nodes=lambda: _nodes(components),
        checks=lambda: _checks(components, store),
        files=files,
        can_stage=components.provider.can_stage(components.settings),
        pods=components.provider.pods(components.settings),
        default_fs_uri=components.settings.default_fs_uri,
        troubles=lambda: components.engine().troubles() if _hears_of_nodes(components) else (),
        silences=lambda nodes: components.engine().silences(nodes),
        log_place=components.log_place,
        sample_s=components.settings.metrics.sample_s,
        file_place=components.log_place if components.settings.storage.default_uri is None else None,
        task_reach=components.task_reach(),
        accounts=components.accounts,
        image_rule=ImageRule(*components.settings.containers.images.rule),
        kept_images=components.settings.containers.images.keep,
        users_share_rights=shared,
    )
    return ctx, proxy


def _cells(components: Components) -> CellRules:
    cluster = components.settings.cluster
    return CellRules(
        config=components.cluster_config(),
        grants=cluster.grants,
        cells_for_all=cluster.cells_for_cpu_tasks,
        fixed=cluster.fixed,
        node_rules=NodeRules(cluster.sku_scheduling, cluster.cpu_scheduling),
        policy=policy_of(components.settings.queue),
    )


def _site(components: Components, base_url: str) -> Site:
    settings = components.settings
    return Site(
        name=settings.cluster_name,
        version=components.version,
        engine=settings.engine.kind,
        sends_mail=bool(settings.notifications.smtp_host),
        mail_domains=tuple(each.lower() for each in settings.notifications.mail_domains),
        base_url=base_url.rstrip("/"),
        service_domain=settings.api.service_domain,
        virtual_clusters=settings.virtual_clusters,
        allowed_origins=settings.api.allowed_origins,
        max_document_bytes=settings.api.max_document_bytes,
        anonymous_v1_list=settings.api.anonymous_v1_list,
        templates=settings.jobs.templates,
        images=settings.jobs.images,
    )


def _tokens(settings: Settings) -> TokenTable:
    entries = [(entry.token.get_secret_value(), User(entry.user, entry.admin)) for entry in settings.api.tokens]
    try:
        # A user who can read this file can read everything else of this backend, so the token's user is an admin.
        entries.append((read_or_make(settings.token_path), User(settings.user, admin=True)))
    except TokenFileError as error:
        raise RoleError(f"api.token_file: {error}") from None
    return TokenTable(entries)


def _accounts(settings: Settings, tokens: TokenTable, store: Store) -> Accounts:
    known = [
        Account(user.name, user.admin, user.email, user.password_hash.get_secret_value() if user.password_hash else "")
        for user in settings.api.users
    ]
    return Accounts(known, tokens.users(), store.groups.directory)


def _users_share_rights(components: Components) -> bool:
    """Whether any task can read what all users have, which the configuration does not allow."""
    settings = components.settings
    return components.provider.tasks_run_as_backend(settings) and not settings.engine.trust_all_users


def _provider(settings: OidcSettings, store: Store) -> ProviderSignIns | None:
    """What signs users of a provider in; None without one."""
    if not settings.issuer:
        return None
    from pai_backend.auth.oidc import OidcProvider
    from pai_backend.auth.provider_sign_ins import ProviderSignIns, ProviderTerms

    provider = OidcProvider(settings.issuer, settings.client_id, settings.name_claim, settings.groups_claim)
    terms = ProviderTerms(
        settings.scopes,
        bool(settings.groups_claim),
        settings.admin_group,
        settings.take_names,
        timedelta(seconds=settings.session_s),
    )
    return ProviderSignIns(provider, terms, store)


def _limits(settings: ApiSettings) -> RateLimits:
    return limits(settings.requests_per_minute, settings.lists_per_minute, settings.submissions_per_hour)


def _listen(settings: Settings) -> socket.socket:
    host, port = settings.api.host, settings.api.port
    try:
        return bind_kept(host, port, settings.data_dir / "api.port")
    except OSError as error:
        raise RoleError(f"api.port: cannot listen on {host}:{port}: {error.strerror}") from None


def _certificate(settings: Settings) -> ServerCertificate | None:
    tls = settings.api.tls
    if tls.certificate is None or tls.key is None:
        return None
    try:
        return ServerCertificate(tls.certificate, tls.key)
    except CertificateError as error:
        raise RoleError(str(error)) from None


def _url(listener: socket.socket, scheme: str) -> str:
    """Where the listener is reached from this machine."""
    host, port = listener.getsockname()[:2]
    reachable = _reachable(host)
    return f"{scheme}://{f'[{reachable}]' if ':' in reachable else reachable}:{port}"


def _reachable(host: str) -> str:
    """An address for what listens there: all addresses means this machine's own too, and is not an address itself."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)


def _gateway(components: Components) -> PublicAddress | None:
    """Where users find the SSH gateway: as configured, else as it said itself when it began to listen."""
    settings = components.settings.gateway
    if settings.public_host is not None and (settings.public_port or settings.port):
        return PublicAddress(settings.public_host, settings.public_port or settings.port)
    said = components.runtime_json("gateway.json")
    if said is None or not isinstance(said.get("port"), int):
        return None
    host = settings.public_host or _reachable(str(said.get("host", settings.host)))
    return PublicAddress(host, settings.public_port or int(str(said["port"])))


def _nodes(components: Components) -> Sequence[Node]:
    """The nodes as the engine tells them in this process; where it does not, as configured."""
    engine = components.engine()
    if not _hears_of_nodes(components):
        return components.configured_nodes
    held = components.held_by_others
    if not held:
        return list(engine.nodes.values())
    return [
        node.model_copy(update={"others": held[name]}) if name in held else node for name, node in engine.nodes.items()
    ]


def _hears_of_nodes(components: Components) -> bool:
    """Whether this process has news of nodes: by the controller's watch, or from the cluster itself."""
    return ProcessRole.CONTROLLER in components.roles or components.engine().insight is not None


async def _follow_nodes(components: Components) -> None:
    """Follow the nodes of a cluster where no controller of this process does; trouble is told by ``/readyz``."""
    if ProcessRole.CONTROLLER in components.roles:
        return
    ending = asyncio.create_task(components.stop.wait())
    try:
        while not components.stop.is_set():
            try:
                return await components.engine().follow_nodes()
            except EngineError as error:
                log.warning("the nodes of the cluster cannot be followed: %s", error)
                await asyncio.wait({ending}, timeout=AGAIN_S)
    finally:
        ending.cancel()


async def _follow_other_holders(components: Components, store: Store) -> None:
    """Read again and again what the controller of another process says that pods of others hold of nodes."""
    if ProcessRole.CONTROLLER in components.roles:
        return
    while True:
        with suppress(Unavailable):  # `/readyz` tells of that
            components.held_by_others = await store.other_holders.get()
        await asyncio.sleep(OTHERS_S)


def _controller_check(lease: Lease | None) -> Check:
    """Whether some controller decides, in whichever process it is."""
    left = (lease.expires_at - datetime.now(UTC)).total_seconds() if lease is not None else 0.0
    words = f"the lease holds for {left:.0f} s more" if left > 0 else "no controller holds the lease"
    return Check(name="controller", ok=left > 0, message=words)


async def _checks(components: Components, store: Store) -> Sequence[Check]:
    """The database and the controller's lease always; the engine when this process hears of its nodes."""
    try:
        lease = await store.leadership.latest()
    except Unavailable as error:
        return [Check(name="database", ok=False, message=error.message), _disk_check(components)]
    checks = [Check(name="database", ok=True, message="answers"), _controller_check(lease)]
    if _hears_of_nodes(components):
        troubles = components.engine().troubles()
        checks.append(Check(name="engine", ok=not troubles, message="; ".join(troubles) or "is listed"))
    return [*checks, _disk_check(components)]


def _disk_check(components: Components) -> Check:
    """Whether there is room for what frees a full disk. It is never a reason to send users elsewhere."""
    trouble = components.reserve.trouble()
    return Check(name="disk", ok=True, message=trouble or "has its reserve", degraded=bool(trouble))


async def _drain(server: tornado.httpserver.HTTPServer, metrics: Metrics) -> None:
    """Let requests under way be answered, for a little time, then close all connections."""
    try:
        async with asyncio.timeout(DRAIN_S):
            await metrics.idle()
    except TimeoutError:
        log.info("requests were cut off at shutdown")
    await server.close_all_connections()
