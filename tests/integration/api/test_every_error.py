"""Every error that the description of the API promises can be had: one request for each operation and code."""

from __future__ import annotations

import itertools
import json
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest

from pai_backend.access.keys import make_ed25519
from pai_backend.api.base import BODY_BYTES, BaseHandler
from pai_backend.api.errors import STATUS
from pai_backend.api.openapi import describe
from pai_backend.api.routes import ROUTES
from pai_backend.auth.accounts import hash_password
from pai_backend.auth.guessing import FREE, Guesses
from pai_backend.auth.identity import digest
from pai_backend.auth.limits import limits
from pai_backend.auth.oidc import OidcProvider, SignedInThere
from pai_backend.auth.provider_sign_ins import ProviderTerms
from pai_backend.model.account import Account
from pai_backend.model.errors import Unauthorized, Unavailable
from pai_backend.model.job import State
from pai_backend.model.user_secret import LONGEST
from pai_backend.scheduling.config.document import MAX_BYTES
from pai_backend.storage.local_files import LocalFiles
from pai_backend.storage.room import FileRoom
from pai_backend.store.base import AccessToken
from pai_backend.store.grants import Act
from tests.integration.api.test_openpai_jobs import saved
from tests.support.api_site import ALICE, ROOT, ApiSite, running_api
from tests.support.documents import scm_document
from tests.support.played_images import PlayedImages, played_image

PARTS = {
    "job": "hello",
    "attempt": "0",
    "role": "worker",
    "index": "0",
    "run": "0",
    "label": "web",
    "vc": "default",
    "user": "alice",
    "token": "abcdefabcdef",
    "fingerprint": "SHA256:none",
    "notification": "00000000",
    "secret": "token",
    "name": "hello",
    "path": "alice/file",
    "serial": "1",
    "group": "default",
    "storage": "nowhere",
    "task": "j00000000000000ff-0-0-0",
    "address": "workspace",
    "template": "mine",
    "draft": "mine",
    "budget": "00000000",
    "reservation": "00000000",
}
"""Parts of paths that lead to something of alice's."""
RESERVATION = {"virtualCluster": "default", "name": "course", "gpus": 1, "ends": "2999-01-01T00:00:00Z"}
BODIES: dict[str, object] = {
    "executionType": {"value": "STOP"},
    "tag": {"value": "vision"},
    "move": {"to": "first"},
    "keys": {"publicKey": make_ed25519("")[1]},
    "certificates": {"publicKey": make_ed25519("")[1]},
    "shares": {"user": "bob"},
    "links": {"label": "http"},
    "login": {"username": "carol", "password": "correct horse"},
    "oidc/login": {"idToken": "carol"},
    "token": {"username": "carol", "password": "correct horse"},
    "{user}": {"data": {}},
    "{group}": {"data": {}},
    "groups": {"groupname": "vision"},
    "put groups": {"data": {"groupname": "default"}},
    "put users": {"data": {}},
    "users": {"username": "eve", "password": "correct horse"},
    "{path}": {},
    "{secret}": {"value": "for-no-other-user"},
    "budgets": {"hours": 10, "user": "alice"},
    "prices": {"type": "V100", "hourly": "2.50"},
    "reservations": RESERVATION,
    "rules": {},
}
"""Last part of a path -> a body that is taken there."""
CAROL = Account("carol", password_hash=hash_password("correct horse"))
TERMS = ProviderTerms(take_names=True)
QUOTA, MOST, DOCUMENT = 1000, 2000, 65_536  # bytes


@dataclass(frozen=True)
class Pair:
    """An operation, and a code that it may answer with."""

    verb: str
    template: str
    code: str
    entry: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.verb.upper()} {self.template} {self.code}"

    @property
    def takes_query(self) -> bool:
        return any(each["in"] == "query" for each in self.entry["parameters"])

    @property
    def takes_document(self) -> bool:
        return "A job document" in self.entry.get("requestBody", {}).get("description", "")

    def path(self, **parts: str) -> str:
        return self.template.format(**{**PARTS, **parts})

    def body(self) -> bytes | None:
        """A body that is taken."""
        if self.takes_document:
            return scm_document("new")
        kind = self.template.rpartition("/")[2]
        longer = (f"{self.verb} {kind}", "/".join(self.template.split("/")[-2:]), kind)
        body = next((BODIES[each] for each in longer if each in BODIES), None)
        if "requestBody" not in self.entry or body is None:
            return b"x" if self.verb == "put" else None
        return json.dumps(body).encode()


def every_pair() -> list[Pair]:
    return [
        Pair(verb, template, code, entry)
        for template, verbs in describe(ROUTES, "0")["paths"].items()
        for verb, entry in verbs.items()
        for status, answer in entry["responses"].items()
        if status[0] in "45"
        for code in answer["description"].split(", ")
        if code in STATUS
    ]


class Asker:
    """Asks for the error of a pair."""

    def __init__(self, api: ApiSite, client: httpx.AsyncClient, patch: pytest.MonkeyPatch) -> None:
        self.api, self.client, self.patch = api, client, patch

    async def ask(
        self,
        pair: Pair,
        *,
        body: bytes | None = None,
        query: dict[str, str] | None = None,
        headers: dict[str, str] | None = None,
        **parts: str,
    ) -> httpx.Response:
        """The pair's request, as valid as it is not said to be otherwise."""
        address = pair.path(**parts) + (f"?{urlencode(query)}" if query else "")
        content = body if body is not None else pair.body()
        return await self.client.request(pair.verb, address, content=content, headers=headers)

    async def document(self, pair: Pair, **changes: object) -> httpx.Response:
        return await self.ask(pair, body=scm_document("new", **changes))

    async def data(self, pair: Pair, token: str = ROOT, **values: object) -> httpx.Response:
        """The pair's request with these new values of a user or group."""
        body = json.dumps({"data": values}).encode()
        return await self.ask(pair, body=body, headers={"Authorization": f"Bearer {token}"})

    async def budget(self, pair: Pair, **of: str) -> httpx.Response:
        """The pair's request with a budget of these."""
        body = json.dumps({"hours": 10, **of}).encode()
        return await self.ask(pair, body=body, headers={"Authorization": f"Bearer {ROOT}"})

    async def reservation(self, pair: Pair, **of: object) -> httpx.Response:
        """The pair's request with a reservation of these."""
        body = json.dumps({**RESERVATION, **of}).encode()
        return await self.ask(pair, body=body, headers={"Authorization": f"Bearer {ROOT}"})

    async def application_token(self, scope: str = "") -> dict[str, str]:
        token = (await self.client.post("/api/v2/tokens/application", params={"scopes": scope})).json()["token"]
        return {"Authorization": f"Bearer {token}"}

    async def eve(self) -> dict[str, str]:
        """A session of a user who was added."""
        body = {"username": "eve", "password": "correct horse"}
        root = {"Authorization": f"Bearer {ROOT}"}
        (await self.client.post("/api/v2/users", json=body, headers=root)).raise_for_status()
        answer = (await self.client.post("/api/v2/token", json=body)).raise_for_status()
        return {"Authorization": f"Bearer {answer.json()['token']}"}


class PlainProvider(OidcProvider):
    """One whose ID tokens are the names of its users."""

    async def who(self, id_token: str) -> SignedInThere:
        """The user of that name, who is not ``nobody``."""
        if id_token == "nobody":
            raise Unauthorized("There is no such user.", hint="Sign in again.")
        return SignedInThere(id_token, id_token, frozenset())


async def unauthorized(asker: Asker, pair: Pair) -> httpx.Response:
    if "oidc" in pair.template:
        return await asker.ask(pair, body=b'{"idToken": "nobody"}')
    return await asker.ask(pair, headers={"Authorization": "Bearer nobody"})


async def locked_out(asker: Asker, pair: Pair) -> httpx.Response:
    is_login = pair.template.endswith(("/login", "/token"))
    user, root = "carol" if is_login else "alice", {"Authorization": f"Bearer {ROOT}"}
    (await asker.client.put(f"/api/v2/lockouts/{user}", headers=root)).raise_for_status()
    answer = await asker.ask(pair)
    (await asker.client.delete(f"/api/v2/lockouts/{user}", headers=root)).raise_for_status()
    return answer


async def must_change_password(asker: Asker, pair: Pair) -> httpx.Response:
    """A session by a password that an administrator has set; it is made here, for a password takes time to check."""
    store, now, token = asker.api.store, asker.api.ctx.clock(), "newcomers-session"
    if await asker.api.ctx.identity.accounts.get("newcomer") is None:
        new = Account("newcomer", password_hash="of a password", must_change_password=True)
        await store.grants.add_user(new, Act("root", now), again=True)
        asker.api.ctx.identity.forget()
    await store.tokens.put(AccessToken(digest(token), "newcomer", False, now, None))
    headers = {"Authorization": f"Bearer {token}"}
    if pair.template.endswith("/{user}") and "/user" in pair.template and pair.verb == "put":
        return await asker.ask(pair, body=b'{"data": {"email": "new@example.org"}}', headers=headers, user="me")
    return await asker.ask(pair, headers=headers)


async def unknown(asker: Asker, pair: Pair) -> httpx.Response:
    def broken(_: BaseHandler) -> None:
        raise RuntimeError("a mistake of ours")

    asker.patch.setattr("pai_backend.api.base.ApiHandler.begin_verb", broken)
    asker.patch.setattr("pai_backend.api.base.BaseHandler.begin_verb", broken)
    return await asker.ask(pair)


async def unavailable(asker: Asker, pair: Pair) -> httpx.Response:
    """The database is away just when it is asked who calls, or for what the operation needs first."""

    async def away(*_: object, **__: object) -> None:
        raise Unavailable("The database does not answer.", hint="Try again.")

    store = asker.api.store
    for repository, method in (
        (asker.api.ctx.identity._tokens, "get"),  # which remembers what the store said
        (store.tokens, "get"),
        (store.tokens, "add"),
        (store.secrets, "get"),
        (store.secrets, "claim"),
        (store.leadership, "latest"),
        (store.jobs, "counts"),
    ):
        asker.patch.setattr(repository, method, away)
    query = {"ticket": "x"} if "ssh-keys" in pair.template else None
    return await asker.ask(pair, query=query, headers={"Authorization": "Bearer of-an-application"})


async def too_many(asker: Asker, pair: Pair) -> httpx.Response:
    if pair.template.endswith(("/login", "/token")):
        asker.api.ctx.identity.guesses = guesses = Guesses(lambda: 1.0)
        for _ in range(FREE):
            guesses.failed(("carol", "127.0.0.1"))
        answer = await asker.ask(pair, body=b'{"username": "carol", "password": "wrong"}')
        asker.api.ctx.identity.guesses = Guesses()
        return answer
    allowed = asker.api.ctx.limits
    object.__setattr__(asker.api.ctx, "limits", limits(requests_per_minute=1, clock=lambda: 0.0))
    await asker.client.get("/api/v2/tokens/check")
    answer = await asker.ask(pair)
    object.__setattr__(asker.api.ctx, "limits", allowed)
    return answer


async def too_large(asker: Asker, pair: Pair) -> httpx.Response:
    if "/cluster/config" in pair.template:
        return await asker.ask(pair, body=b"#" * (MAX_BYTES + BODY_BYTES))
    if pair.verb == "put" and "/fs/" in pair.template:
        admin = {"Authorization": f"Bearer {ROOT}"}
        return await asker.ask(pair, body=b"x" * (MOST + 1), headers=admin, path="team/file")
    if "/secrets/" in pair.template:
        return await asker.ask(pair, body=b"x" * (6 * LONGEST + BODY_BYTES))
    return await asker.ask(pair, body=b"x" * (DOCUMENT + BODY_BYTES + 1))


async def invalid_parameters(asker: Asker, pair: Pair) -> httpx.Response:
    if "lockouts" in pair.template or (pair.verb, pair.template[-6:]) == ("delete", "{user}"):
        return await asker.ask(pair, user="root", headers={"Authorization": f"Bearer {ROOT}"})
    if pair.takes_query:
        return await asker.ask(pair, query={"bogus": "1"})
    if pair.verb == "head":
        return await asker.ask(pair, path="alice/%2E%2E/file")
    if pair.takes_document:  # more GPUs than any database can count
        role = {"name": "a", "taskNumber": 100, "cpuNumber": 1, "memoryMB": 100, "gpuNumber": 2**30, "command": "true"}
        return await asker.document(pair, taskRoles=[role])
    return await asker.ask(pair, body=b'{"bogus": 1}')


async def no_api(asker: Asker, pair: Pair) -> httpx.Response:
    name = next(each["name"] for each in pair.entry["parameters"] if each["in"] == "path")
    part: dict[str, Any] = {name: "%01"}
    return await asker.ask(pair, **part)


async def no_job(asker: Asker, pair: Pair) -> httpx.Response:
    if pair.template == "/api/v2/jobs":
        return await asker.ask(pair, query={"secretsOf": "nothing"})
    if "{job}" not in pair.template:
        return await asker.ask(pair, body=json.dumps({"publicKey": make_ed25519("")[1], "job": "nothing"}).encode())
    return await asker.ask(pair, job="nothing")


async def no_task(asker: Asker, pair: Pair) -> httpx.Response:
    if "/orphans/" in pair.template:
        return await as_admin(asker, pair, {})
    if pair.template.endswith("/release"):
        return await asker.ask(pair, query={"task": "none-9"})
    if pair.template.endswith("/links"):
        return await asker.ask(pair, body=b'{"label": "http", "index": 9}')
    if not pair.takes_query or pair.template.endswith("/{run}/logs"):
        return await asker.ask(pair, attempt="9")
    return await asker.ask(pair, query={"index": "9"})


async def no_service(asker: Asker, pair: Pair) -> httpx.Response:
    if pair.template.endswith("/shares"):
        return await asker.ask(pair, body=b'{"user": "bob", "only": ["port:none"]}')
    if pair.template.endswith("/links"):
        return await asker.ask(pair, body=b'{"label": "none"}')
    return await asker.ask(pair, label="none")


async def no_virtual_cluster(asker: Asker, pair: Pair) -> httpx.Response:
    if pair.takes_document:
        return await asker.document(pair, virtualCluster="none")
    if pair.template.endswith("/budgets"):
        return await asker.budget(pair, virtualCluster="none")
    if pair.template.endswith("/reservations"):
        return await asker.reservation(pair, virtualCluster="none")
    named = [each["name"] for each in pair.entry["parameters"] if each["name"] in ("vc", "virtualCluster")]
    query = {name: "none" for name in named if f"{{{name}}}" not in pair.template}
    return await asker.ask(pair, query=query or None, vc="none")


def v2_document(name: str, **extras: object) -> bytes:
    value = {
        "protocolVersion": 2,
        "name": name,
        "type": "job",
        "prerequisites": [{"name": "image", "type": "dockerimage", "uri": "example/one"}],
        "taskRoles": {
            "main": {
                "dockerImage": "image",
                "resourcePerInstance": {"cpu": 1, "memoryMB": 100, "gpu": 0},
                "commands": ["true"],
            }
        },
        "extras": extras,
    }
    return json.dumps(value).encode()


async def no_storage(asker: Asker, pair: Pair) -> httpx.Response:
    if "{storage}" in pair.template:
        return await asker.ask(pair, storage="nowhere")
    return await asker.ask(pair, body=v2_document("new", storages=[{"name": "none"}]))


async def plain(asker: Asker, pair: Pair) -> httpx.Response:
    """What the valid request meets here: nothing of the name is there, or the job does not run."""
    return await asker.ask(pair, headers={"Accept": "*/*"})


async def conflict(asker: Asker, pair: Pair) -> httpx.Response:
    await asker.client.post("/api/v1/jobs", content=scm_document("new"))
    return await asker.ask(pair, job="new")


async def address_held(asker: Asker, pair: Pair) -> httpx.Response:
    await asker.client.post("/api/v1/jobs", content=scm_document("holder", address="workspace"))
    return await asker.ask(pair, body=scm_document("new", address="workspace"), job="new")


async def bad_document(asker: Asker, pair: Pair) -> httpx.Response:
    if "/cluster/config" in pair.template:
        return await as_admin(asker, pair, {"expectedVersion": "0"})
    return await asker.ask(pair, body=b"{")


async def as_admin(asker: Asker, pair: Pair, query: dict[str, str]) -> httpx.Response:
    body = b"{" if pair.verb == "post" else None
    return await asker.ask(pair, body=body, query=query, headers={"Authorization": f"Bearer {ROOT}"})


async def stale_config(asker: Asker, pair: Pair) -> httpx.Response:
    return await as_admin(asker, pair, {"expectedVersion": "7"})


async def no_config(asker: Asker, pair: Pair) -> httpx.Response:
    return await as_admin(asker, pair, {"version": "7"})


async def read_only(asker: Asker, pair: Pair) -> httpx.Response:
    if pair.template.endswith("/{address}"):
        await asker.client.post("/api/v1/jobs", content=scm_document("holder", address="workspace"))
        return await asker.ask(pair)
    if pair.template.endswith(("/shares", "/links", "/key")):
        await saved(asker.api, await asker.api.store.jobs.find("hello", "alice"), {"state": State.STOPPED})
        return await asker.ask(pair)
    await asker.ask(pair)
    return await asker.ask(pair, body=b'{"value": "START"}')


async def forbidden(asker: Asker, pair: Pair) -> httpx.Response:
    """A token that is limited to another part of the API. Whom else an operation refuses other tests show."""
    if "ssh-keys" in pair.template:
        return await asker.ask(pair, query={"ticket": "used"})
    if "oidc" in pair.template:
        return await asker.ask(pair, body=b'{"idToken": "me"}')
    answer = await asker.ask(pair, headers=await asker.application_token("admin"))
    if answer.status_code == STATUS[pair.code] and (pair.verb == "head" or "scope" in answer.text):
        return answer
    return await asker.ask(pair, headers=await asker.application_token("files"))


async def no_user(asker: Asker, pair: Pair) -> httpx.Response:
    if pair.template.endswith("/budgets"):
        return await asker.budget(pair, user="nobody")
    if pair.template.endswith("/reservations"):
        return await asker.reservation(pair, users=["nobody"])
    if pair.template.endswith("/shares"):
        return await asker.ask(pair, body=b'{"user": "nobody"}')
    if (pair.body() is not None and "authn" in pair.template) or pair.template.endswith("/token"):
        return await asker.ask(pair, body=b'{"username": "nobody", "password": "correct horse"}')
    if pair.template.endswith("/groups") and pair.verb == "post":
        body = b'{"groupname": "vision", "members": ["nobody"]}'
        return await asker.ask(pair, body=body, headers={"Authorization": f"Bearer {ROOT}"})
    if "/groups" in pair.template:
        return await asker.data(pair, members=["nobody"], groupname="default")
    if (pair.verb, pair.template) == ("put", "/api/v2/users"):
        return await asker.data(pair, username="nobody")
    return await asker.ask(pair, headers={"Authorization": f"Bearer {ROOT}"}, user="nobody")


async def no_group(asker: Asker, pair: Pair) -> httpx.Response:
    if pair.template.endswith("/budgets"):
        return await asker.budget(pair, group="nobody")
    if pair.template.endswith("/reservations"):
        soon = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
        return await asker.reservation(pair, groups=["nobody"], ends=soon)
    if pair.template.endswith("/shares"):
        return await asker.ask(pair, body=b'{"user": "group:nobody"}')
    if pair.template.endswith("/groups"):
        return await asker.data(pair, groupname="nobody")
    if pair.template.endswith("/users") and pair.verb == "post":
        body = b'{"username": "eve", "password": "correct horse", "grouplist": ["nobody"]}'
        return await asker.ask(pair, body=body, headers={"Authorization": f"Bearer {ROOT}"})
    if "/user" in pair.template and pair.verb == "put":
        return await asker.data(pair, username="alice", grouplist=["nobody"])
    if pair.verb == "delete":
        return await asker.ask(pair, group="nobody", headers={"Authorization": f"Bearer {ROOT}"})
    return await asker.ask(pair, group="nobody")


async def wrong_password(asker: Asker, pair: Pair) -> httpx.Response:
    if pair.template.endswith(("{user}", "/users")):
        change = {"data": {"username": "eve", "oldPassword": "wrong", "newPassword": "another one"}}
        return await asker.ask(pair, body=json.dumps(change).encode(), headers=await asker.eve(), user="me")
    return await asker.ask(pair, body=b'{"username": "carol", "password": "wrong"}')


async def user_exists(asker: Asker, pair: Pair) -> httpx.Response:
    await asker.eve()
    return await asker.ask(pair, headers={"Authorization": f"Bearer {ROOT}"})


async def group_exists(asker: Asker, pair: Pair) -> httpx.Response:
    return await asker.ask(pair, body=b'{"groupname": "default"}', headers={"Authorization": f"Bearer {ROOT}"})


async def user_has_jobs(asker: Asker, pair: Pair) -> httpx.Response:
    (await asker.client.post("/api/v1/jobs", content=scm_document(), headers=await asker.eve())).raise_for_status()
    return await asker.ask(pair, headers={"Authorization": f"Bearer {ROOT}"}, user="eve")


async def not_supported(asker: Asker, pair: Pair) -> httpx.Response:
    if "/images" in pair.template:
        return await as_admin(asker, pair, {})
    if pair.verb == "delete":
        return await asker.ask(pair, headers={"Authorization": f"Bearer {ROOT}"}, user="alice")
    if "oidc" in pair.template:
        asker.patch.setattr(asker.api.ctx.identity, "provider", None)
        return await asker.ask(pair)
    if "/groups" in pair.template:
        return await asker.data(pair, groupname="admingroup")
    return await asker.data(pair, ALICE, username="alice", newPassword="another one")


async def no_quota(asker: Asker, pair: Pair) -> httpx.Response:
    large = b"x" * (QUOTA - 100)
    await asker.client.put("/api/v2/fs/alice/there", content=large)
    body = large if pair.verb == "put" else b'{"source": "alice/there"}'
    return await asker.ask(pair, body=body, path="alice/second")


async def no_file(asker: Asker, pair: Pair) -> httpx.Response:
    body = b'{"source": "alice/none"}' if pair.verb == "post" else None
    return await asker.ask(pair, body=body, path="alice/other/none")


async def file_conflict(asker: Asker, pair: Pair) -> httpx.Response:
    """A directory where a file is meant, or the other way round."""
    await asker.client.put("/api/v2/fs/alice/directory/file", content=b"x")
    if pair.verb == "post":
        return await asker.ask(pair, path="alice/directory/file")
    below_a_file = pair.verb == "get"
    return await asker.ask(pair, path="alice/directory/file/below" if below_a_file else "alice/directory")


async def not_finished(asker: Asker, pair: Pair) -> httpx.Response:
    return await asker.ask(pair)


async def not_waiting(asker: Asker, pair: Pair) -> httpx.Response:
    await asker.client.put("/api/v2/jobs/hello/executionType", content=b'{"value": "STOP"}')
    return await asker.ask(pair)


async def other_queue(asker: Asker, pair: Pair) -> httpx.Response:
    await asker.client.post("/api/v2/jobs", content=v2_document("guest", hivedScheduler={"jobPriorityClass": "oppo"}))
    return await asker.ask(pair, body=b'{"before": "guest"}')


async def no_image(asker: Asker, pair: Pair) -> httpx.Response:
    asker.api.engine.images = PlayedImages()
    return await as_admin(asker, pair, {})


async def image_in_use(asker: Asker, pair: Pair) -> httpx.Response:
    asker.api.engine.images = PlayedImages([played_image(1, "docker.io/alice/file:latest", tasks=1)])
    return await as_admin(asker, pair, {})


Recipe = Callable[[Asker, Pair], Awaitable[httpx.Response]]
RECIPES: dict[str, Recipe] = {
    "UnauthorizedUserError": unauthorized,
    "ForbiddenUserError": forbidden,
    "LockedOutUserError": locked_out,
    "PasswordChangeRequiredError": must_change_password,
    "UnknownError": unknown,
    "UnavailableError": unavailable,
    "TooManyRequestsError": too_many,
    "TooLargeError": too_large,
    "InvalidParametersError": invalid_parameters,
    "NoApiError": no_api,
    "NoJobError": no_job,
    "NoTaskError": no_task,
    "NoServiceError": no_service,
    "NoVirtualClusterError": no_virtual_cluster,
    "NoStorageError": no_storage,
    "NoKeyError": plain,
    "NoNotificationError": plain,
    "NoSecretError": plain,
    "NoCertificateError": plain,
    "NoImageError": no_image,
    "NoShareError": plain,
    "NoTagError": plain,
    "NoTokenError": plain,
    "NoJobSshInfoError": plain,
    "ConflictJobError": conflict,
    "ConflictAddressError": address_held,
    "NoAddressError": plain,
    "InvalidProtocolError": bad_document,
    "ReadOnlyJobError": read_only,
    "NotFinishedJobError": not_finished,
    "NotWaitingJobError": not_waiting,
    "OtherQueueError": other_queue,
    "ImageInUseError": image_in_use,
    "NoUserError": no_user,
    "NoGroupError": no_group,
    "IncorrectPasswordError": wrong_password,
    "NotImplementedError": not_supported,
    "NoEnoughQuotaError": no_quota,
    "NoFileError": no_file,
    "ConflictFileError": file_conflict,
    "ConflictUserError": user_exists,
    "ConflictGroupError": group_exists,
    "UserHasJobsError": user_has_jobs,
    "ConflictClusterConfigError": stale_config,
    "NoClusterConfigError": no_config,
}
OF_EVERY_OPERATION = frozenset(list(RECIPES)[:11])
"""Codes whose requests leave everything as it was: those of one operation share a site."""
BY_ROUTE_ALONE = {"MethodNotAllowedError"}
"""Codes of requests that reach no operation."""


def test_every_code_has_a_recipe_and_every_recipe_is_used() -> None:
    described = {pair.code for pair in every_pair()}
    assert described == set(RECIPES)
    assert set(STATUS) == described | BY_ROUTE_ALONE


def groups() -> list[list[Pair]]:
    """The pairs as they are tried: those that change nothing together, the others alone."""
    found: list[list[Pair]] = []
    for _, pairs in itertools.groupby(every_pair(), key=lambda pair: (pair.verb, pair.template)):
        both: dict[bool, list[Pair]] = {True: [], False: []}
        for pair in pairs:
            both[pair.code in OF_EVERY_OPERATION].append(pair)
        found += [both[True], *([pair] for pair in both[False])]
    return [group for group in found if group]


@pytest.mark.asyncio
@pytest.mark.parametrize("pairs", groups(), ids=lambda pairs: " ".join([str(pairs[0]), *(p.code for p in pairs[1:])]))
async def test_a_documented_error_can_be_had(
    pairs: list[Pair], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = FileRoom(LocalFiles(tmp_path / "fs"), shared=("team",), max_file_bytes=MOST, quota_bytes=QUOTA)
    provider = PlainProvider("https://provider.example", "pai", "name")
    async with AsyncExitStack() as stack:
        api = await stack.enter_async_context(
            running_api(tmp_path, max_document_bytes=DOCUMENT, accounts=[CAROL], files=room, provider=(provider, TERMS))
        )
        client = await stack.enter_async_context(api.client())
        (await client.post("/api/v1/jobs", content=scm_document())).raise_for_status()
        for pair in pairs:
            with monkeypatch.context() as patch:
                answer = await RECIPES[pair.code](Asker(api, client, patch), pair)
            assert answer.status_code == STATUS[pair.code], f"{pair}: {answer.text}"
            if pair.verb != "head":
                assert answer.json()["code"] == pair.code
                assert answer.json()["message"]
                assert ALICE not in answer.text
