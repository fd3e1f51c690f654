"""Passwords that administrators set: the first session does nothing but to set another."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from pai_backend.api.operation import OPERATIONS
from pai_backend.api.routes import ROUTES
from tests.integration.api.test_key_commands import Pai
from tests.integration.api.test_users import PASSWORD, added, asked, pai, refusal, signed_in
from tests.support.api_site import ROOT, ApiSite

pytestmark = pytest.mark.asyncio
__all__ = ["pai"]

OWN = "my own long password"
ALLOWED = {(verb, f"/api/{path}/{{user}}") for verb in ("get", "delete") for path in ("v2/users", "v2/user", "v1/user")}
"""Verbs with another answer: a user's own profile, and that only administrators remove users."""


async def test_nothing_but_the_password_is_open(api: ApiSite) -> None:
    session = await added(api, mustChangePassword=True)
    open_: set[tuple[str, str]] = set()
    async with api.client(session) as client:
        for route in ROUTES:
            for verb in map(str.lower, route.handler.verbs()):
                if route.handler.public or getattr(route.handler, verb) not in OPERATIONS or verb == "head":
                    continue
                if route.template.endswith("/logout"):
                    continue
                path = re.sub(r"\{user\}", "me", route.template)
                answer = await client.request(verb, re.sub(r"\{.*?\}", "0", path), json={"data": {"email": "a@b"}})
                if "PasswordChangeRequiredError" not in answer.text:
                    open_.add((verb, route.template))
                    assert verb == "get" or answer.status_code == 403
        sockets = await client.get("/api/v2/events/stream")
    assert open_ == ALLOWED
    assert (sockets.status_code, sockets.json()["code"]) == (403, "PasswordChangeRequiredError")


async def test_a_password_of_ones_own_opens_the_same_session(api: ApiSite) -> None:
    session = await added(api, mustChangePassword=True, admin=True)
    code, me = await asked(api, "GET", "users/me", session)
    assert (code, me["mustChangePassword"]) == (200, True)

    async def change(**data: Any) -> tuple[int, Any]:
        return await asked(api, "PUT", "users/me", session, json={"data": data, "patch": True})

    assert (await change(oldPassword=PASSWORD, newPassword=OWN, email="eve@example.org"))[0] == 403, "and nothing else"
    assert (await change(oldPassword="not this one", newPassword=OWN))[1]["code"] == "IncorrectPasswordError"
    assert (await change(oldPassword=PASSWORD, newPassword=PASSWORD))[1]["code"] == "InvalidParametersError"
    assert (await change(newPassword=OWN, disabled=False))[0] == 403
    assert await refusal(api, "PUT", "users/bob", session, json={"data": {"newPassword": OWN}}) == (
        403, "ForbiddenUserError",
    )  # fmt: skip
    code, changed = await change(oldPassword=PASSWORD, newPassword=OWN)
    assert (code, changed["mustChangePassword"]) == (200, False)
    assert (await asked(api, "GET", "users", session))[0] == 200, "an administrator, from now on"
    assert (await asked(api, "GET", "jobs", await signed_in(api, "eve", OWN)))[0] == 200


async def test_a_password_that_an_administrator_sets_again_is_to_be_changed_again(api: ApiSite) -> None:
    session = await added(api)
    assert (await asked(api, "GET", "jobs", session))[0] == 200
    data = {"newPassword": "set by root again", "mustChangePassword": True}
    assert (await asked(api, "PUT", "users/eve", json={"data": data}))[0] == 200
    assert (await asked(api, "GET", "jobs", session))[0] == 401
    again = await signed_in(api, "eve", "set by root again")
    assert await refusal(api, "GET", "jobs", again) == (403, "PasswordChangeRequiredError")
    data = {"oldPassword": "set by root again", "newPassword": OWN, "mustChangePassword": True}
    assert await refusal(api, "PUT", "users/me", again, json={"data": data}) == (403, "PasswordChangeRequiredError")
    assert (await asked(api, "PUT", "users/eve", json={"data": {"newPassword": "kept by eve"}}))[0] == 200
    assert (await asked(api, "GET", "jobs", await signed_in(api, "eve", "kept by eve")))[0] == 200


async def test_the_command_line_asks_for_a_password_of_ones_own(
    pai: Pai, api: ApiSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    made = await pai.json("user", "add", "eve", token=ROOT)
    lines = iter([f"{made['password']}\n", f"{OWN}\n"])
    monkeypatch.setattr("sys.stdin.readline", lambda: next(lines), raising=False)
    code, out, err = await pai("login", api.url, "--user", "eve", "--password-stdin", "--yes")
    assert (code, err.count("An administrator has set your password")) == (0, 1), out + err
    assert OWN not in out + err
    code, me = await asked(api, "GET", "users/me", await signed_in(api, "eve", OWN))
    assert (code, me["mustChangePassword"]) == (200, False)
