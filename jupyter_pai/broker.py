"""Calls about keys, certificates and shares, on a client: each is one request, and raises what its answer says."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TypedDict, cast
from urllib.parse import quote

from jupyter_pai.client import AsyncClient, job_path
from jupyter_pai.errors import NotFound
from jupyter_pai.streams import decoded
from jupyter_pai.wire_types import (
    AuthorityWire,
    CertificateWire,
    IssuedCertificate,
    KeyWire,
    MadeLink,
    ShareWire,
)

_KEYS, _CERTIFICATES, _LOCKOUTS = "/api/v2/keys", "/api/v2/certificates", "/api/v2/lockouts"


class Shares(TypedDict):
    """Shares of others' jobs with the caller, and of the caller's jobs with others."""

    received: list[ShareWire]
    given: list[ShareWire]


async def _ask(api: AsyncClient, method: str, path: str, value: object = None, **query: str | int | None) -> object:
    body = None if value is None else json.dumps(value).encode()
    answer = await api.request(
        method, path, query=query, body=body, media_type="" if value is None else "application/json"
    )
    return decoded(answer.body)


async def caller(api: AsyncClient) -> str:
    """The name of the caller."""
    return cast(dict[str, str], await _ask(api, "GET", "/api/v2/users/me"))["username"]


async def keys(api: AsyncClient) -> list[KeyWire]:
    """The caller's keys."""
    return cast(dict[str, list[KeyWire]], await _ask(api, "GET", _KEYS))["data"]


async def add_key(
    api: AsyncClient,
    public_key: str,
    *,
    name: str = "",
    lifetime_s: int | None = None,
    job: str | None = None,
    replaces: str = "",
) -> KeyWire:
    """Register a key, or give one that is registered these terms."""
    value = {"publicKey": public_key, "name": name, "lifetimeS": lifetime_s, "job": job, "replaces": replaces}
    return cast(KeyWire, await _ask(api, "POST", _KEYS, value))


async def job_key(api: AsyncClient, job: str, form: str, kind: str | None = None) -> str:
    """The text of a private key of the job's own. Raises NotFound, Denied."""
    answer = await api.request("GET", job_path(job, "/key"), query={"format": form, "type": kind})
    return answer.body.decode("ascii")


async def certify(
    api: AsyncClient,
    public_key: str,
    *,
    job: str | None = None,
    lifetime_s: int | None = None,
    only: Sequence[str] = (),
    pty: bool = True,
    as_admin: bool = False,
    reason: str = "",
) -> IssuedCertificate:
    """Have a public key certified; without ``lifetime_s`` for an hour.

    ``as_admin``: for a job of another user, who is told the ``reason``.
    """
    value: dict[str, object] = {"publicKey": public_key, "job": job, "only": list(only), "pty": pty}
    if as_admin:
        value |= {"asAdmin": True, "reason": reason}
    if lifetime_s is not None:
        value["lifetimeS"] = lifetime_s
    return cast(IssuedCertificate, await _ask(api, "POST", _CERTIFICATES, value))


async def certificates(api: AsyncClient) -> list[CertificateWire]:
    """Certificates that are accepted now: the caller's, or everybody's for an administrator."""
    return cast(dict[str, list[CertificateWire]], await _ask(api, "GET", _CERTIFICATES))["data"]


async def revoke(api: AsyncClient, serial: int) -> None:
    """Have a certificate refused from now on. Raises NotFound."""
    await _ask(api, "DELETE", f"{_CERTIFICATES}/{serial}")


async def authority(api: AsyncClient) -> AuthorityWire:
    """Who certifies users."""
    return cast(AuthorityWire, await _ask(api, "GET", f"{_CERTIFICATES}/authority"))


async def rotate_authority(api: AsyncClient) -> AuthorityWire:
    """Certify with a new key from now on. Raises Denied."""
    return cast(AuthorityWire, await _ask(api, "POST", f"{_CERTIFICATES}/authority", {}))


async def share(
    api: AsyncClient, job: str, user: str, *, lifetime_s: int | None = None, only: Sequence[str] = ()
) -> ShareWire:
    """Let a user enter a job. Raises NotFound, Denied."""
    value = {"user": user, "lifetimeS": lifetime_s, "only": list(only)}
    return cast(ShareWire, await _ask(api, "POST", job_path(job, "/shares"), value))


async def link(
    api: AsyncClient, job: str, label: str, *, role: str | None = None, index: int = 0, lifetime_s: int | None = None
) -> MadeLink:
    """Make a link for reading one service of a job; without ``lifetime_s`` for a day. Raises NotFound, Denied."""
    value: dict[str, object] = {"label": label, "role": role, "index": index}
    if lifetime_s is not None:
        value["lifetimeS"] = lifetime_s
    return cast(MadeLink, await _ask(api, "POST", job_path(job, "/links"), value))


async def unshare(api: AsyncClient, job: str, user: str) -> None:
    """End a user's share, or the link of that name. Raises NotFound."""
    await _ask(api, "DELETE", job_path(job, f"/shares/{quote(user, safe='')}"))


async def shares(api: AsyncClient, job: str | None = None) -> list[ShareWire]:
    """With whom a job is shared; without a job, what others share with the caller."""
    path = "/api/v2/shares" if job is None else job_path(job, "/shares")
    return cast(dict[str, list[ShareWire]], await _ask(api, "GET", path))["data"]


async def all_shares(api: AsyncClient) -> Shares:
    """What others share with the caller, and the caller with others; nothing at a backend that knows no shares."""
    try:
        received = await shares(api)
        given = cast(dict[str, list[ShareWire]], await _ask(api, "GET", "/api/v2/shares", given="true"))["data"]
    except NotFound:
        return Shares(received=[], given=[])
    return Shares(received=received, given=given)


async def lock_out(api: AsyncClient, user: str) -> None:
    """Refuse a user's SSH logins. Raises Denied, NotFound."""
    await _ask(api, "PUT", f"{_LOCKOUTS}/{quote(user, safe='')}", {})


async def let_in(api: AsyncClient, user: str) -> None:
    """Accept a user's SSH logins again. Raises Denied."""
    await _ask(api, "DELETE", f"{_LOCKOUTS}/{quote(user, safe='')}")
