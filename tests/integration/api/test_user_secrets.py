"""Secrets that users keep: ``pai secret``, what submissions take of them, and that no answer has a value."""

from __future__ import annotations

import argparse
import asyncio
import io
import json
from typing import Any

import httpx
import pytest

from jupyter_pai.cell import MagicCell
from jupyter_pai.commands import secrets as verbs
from pai_backend.access.keys import make_ed25519
from pai_backend.model.user_secret import LONGEST, MOST
from pai_backend.store.auditing import AuditFilter
from pai_backend.store.grants import Act
from tests.integration.api.test_key_commands import Pai
from tests.integration.api.test_scopes import token_of
from tests.integration.api.test_users import asked
from tests.support.api_site import ALICE, BOB, ROOT, ApiSite
from tests.support.documents import scm_document

pytestmark = pytest.mark.asyncio

VALUE = "planted-Token-0123456789"
V2 = """\
protocolVersion: 2
name: NAME
type: job
secrets: {own: "the document's own"}
prerequisites:
  - {name: i, type: dockerimage, uri: u, auth: {username: a, password: <% $secrets.registry %>}}
taskRoles:
  w:
    dockerImage: i
    resourcePerInstance: {cpu: 1, memoryMB: 128, gpu: 0}
    commands: ["login <% $secrets.hf-token %> <% $secrets.own %>"]
extras:
  jupyterPai:
    secretEnv: {WANDB_API_KEY: wandb.key}
"""


@pytest.fixture
def pai(api: ApiSite, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Pai:
    return Pai(api, monkeypatch, capsys)


def stdin(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))


async def put(client: httpx.AsyncClient, name: str, value: object = VALUE) -> httpx.Response:
    return await client.put(f"/api/v2/secrets/{name}", content=json.dumps({"value": value}))


async def submit(client: httpx.AsyncClient, called: str, text: str = V2, **params: str) -> httpx.Response:
    return await client.post("/api/v2/jobs", content=text.replace("NAME", called), params=params)


async def kept(api: ApiSite, name: str, user: str = "alice") -> dict[str, Any]:
    return dict(await api.store.jobs.secrets((await api.store.jobs.find(name, user)).uid))


async def test_the_command_line_sets_lists_and_removes_them_and_shows_no_value(
    pai: Pai, api: ApiSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    stdin(monkeypatch, f"{VALUE}\n".encode())
    assert await pai.json("secret", "set", "hf-token") == {"set": "hf-token"}
    stdin(monkeypatch, b"first\nlast\n")
    assert (await pai("secret", "set", "pem"))[0] == 0
    code, shown, _ = await pai("secret", "list")
    assert code == 0
    assert [line.split()[0] for line in shown.splitlines()] == ["NAME", "hf-token", "pem"]
    assert "never" in shown
    assert await api.store.user_secrets.values("alice", ["hf-token", "pem"]) == {
        "hf-token": VALUE,
        "pem": "first\nlast\n",
    }
    assert await pai.json("secret", "list", token=BOB) == []
    assert (await pai("secret", "remove", "pem", token=BOB))[0] == 2
    assert await pai.json("secret", "remove", "pem") == {"removed": "pem"}
    assert [each["name"] for each in await pai.json("secret", "list")] == ["hf-token"]
    found = await api.store.audit.page(AuditFilter(types=("secret.*",), result="done"))
    assert [(each.type, each.user, each.subject, each.detail) for each in reversed(found)] == [
        ("secret.set", "alice", "hf-token", ""),
        ("secret.set", "alice", "pem", ""),
        ("secret.removed", "alice", "pem", ""),
    ]
    assert VALUE not in f"{shown} {found} {await api.store.user_secrets.list('alice')}"


async def test_a_terminal_asks_for_the_value_and_does_not_show_it(
    pai: Pai, api: ApiSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Terminal())
    monkeypatch.setattr("getpass.getpass", lambda prompt: VALUE)
    code, out, err = await pai("secret", "set", "typed")
    assert (code, VALUE in out + err) == (0, False)
    assert await api.store.user_secrets.values("alice", ["typed"]) == {"typed": VALUE}


@pytest.mark.parametrize(("data", "why"), [(b"", "There is no value"), (b"\n", "no value"), (b"\xff", "not UTF-8")])
async def test_what_is_no_value_is_refused(
    pai: Pai, api: ApiSite, monkeypatch: pytest.MonkeyPatch, data: bytes, why: str
) -> None:
    stdin(monkeypatch, data)
    code, _, err = await pai("secret", "set", "x")
    assert (code, why in err) == (2, True), err
    assert await api.store.user_secrets.list("alice") == []


BAD = {
    "a name that begins with -": ("-a", VALUE, "letter or digit"),
    "a long name": ("a" * 64, VALUE, "1 to 63"),
    "a letter beyond ASCII": ("ü", VALUE, "letters"),
    "an empty value": ("a", "", "at least 1"),
    "too many bytes of few characters": ("a", "é" * (LONGEST // 2 + 1), "at most 65536"),
    "a NUL": ("a", "planted\0b", "NUL"),
    "half of a surrogate pair": ("a", "planted\ud800", "valid JSON"),
    "a number": ("a", 71_077_345, "must be text"),
}


@pytest.mark.parametrize("what", BAD)
async def test_bad_names_and_values_are_refused_and_not_repeated(api: ApiSite, what: str) -> None:
    name, value, why = BAD[what]
    async with api.client() as client:
        answer = await put(client, name, value)
    assert answer.status_code == 400, answer.text
    assert why in answer.text
    assert not value or str(value) not in answer.text
    assert await api.store.user_secrets.list("alice") == []


async def test_a_user_keeps_a_bounded_number_and_may_change_each(api: ApiSite) -> None:
    async with api.client() as client:
        for number in range(MOST):
            assert (await put(client, f"s{number}", "x" * LONGEST if not number else "x")).status_code == 204
        refused = await put(client, "more")
        assert (refused.status_code, "limit" in refused.text) == (400, True)
        assert (await put(client, "s0")).status_code == 204
        assert (await client.delete("/api/v2/secrets/s1")).status_code == 204
        assert (await client.delete("/api/v2/secrets/s1")).json()["code"] == "NoSecretError"
        assert (await put(client, "more")).status_code == 204
    async with api.client(BOB) as bob:
        assert (await put(bob, "more")).status_code == 204


async def test_a_submission_takes_the_values_of_its_own_user(api: ApiSite) -> None:
    async with api.client() as alice, api.client(BOB) as bob:
        for client, who in ((alice, "alice"), (bob, "bob")):
            for name in ("hf-token", "wandb.key", "registry"):
                await put(client, name, f"{who}-{name}-{VALUE}")
            await put(client, "own", f"not-{who}s")
        answers = [await submit(alice, "one"), await submit(bob, "one")]
        assert [answer.status_code for answer in answers] == [202, 202], answers[0].text
        answers.append(await alice.post("/api/v2/validate", content=V2))
        assert answers[-1].json()["valid"], answers[-1].text
        paths = ("", "/config", "/events", "/ssh")
        answers += [await alice.get(f"/api/v2/jobs/alice~one{path}") for path in paths]
        answers.append(await alice.get("/api/v2/secrets"))
        async with api.client(ROOT) as root:
            answers += [await root.get(f"/api/v2/jobs/alice~one{path}") for path in paths]
        used = {each["name"]: each["usedAt"] for each in answers[7].json()["data"]}
    assert not any(VALUE in answer.text for answer in answers)
    for who in ("alice", "bob"):
        assert await kept(api, "one", who) == {
            "own": "the document's own",
            **{name: f"{who}-{name}-{VALUE}" for name in ("hf-token", "wandb.key", "registry")},
        }
    row = await api.store.jobs.find("one", "alice")
    assert set(row.spec.secret_names) == {"own", "hf-token", "wandb.key", "registry"}
    assert row.spec.secret_env == {"WANDB_API_KEY": "wandb.key"}
    assert {name for name, at in used.items() if at is not None} == {"hf-token", "wandb.key", "registry"}


async def test_each_missing_one_is_a_fault_at_its_place_and_nothing_is_submitted(api: ApiSite) -> None:
    async with api.client() as client:
        await put(client, "hf-tokens")
        answers = [await submit(client, "x"), await client.post("/api/v2/validate", content=V2)]
        assert [answer.status_code for answer in answers] == [400, 200]
        for answer in answers:
            found = answer.json()["errors"]
            assert [(each["path"], each["line"], each["column"]) for each in found] == [
                ("$.prerequisites[0].auth.password", 6, 72),
                ("$.taskRoles.w.commands[0]", 11, 23),
                ("$.extras.jupyterPai.secretEnv.WANDB_API_KEY", 14, 32),
            ]
            assert [each["message"] for each in found] == [
                "you have no secret registry, and neither has the document",
                "you have no secret hf-token, and neither has the document",
                "you have no secret wandb.key",
            ]
            assert [each["hint"] for each in found] == [
                "`pai secret set registry` keeps one, or add it to secrets.",
                "Did you mean hf-tokens? Else `pai secret set hf-token` keeps one, or add it to secrets.",
                "`pai secret set wandb.key` keeps one.",
            ]
        trial = await client.post("/api/v2/trial", content=V2)
        assert trial.json()["outcome"] is None
    assert await api.store.jobs.counts() == {}


async def test_jobs_of_v1_have_them_as_variables(api: ApiSite) -> None:
    own = {"secretEnv": {"HF_TOKEN": "hf-token"}}
    text = scm_document("one", extras={"jupyterPai": own})
    async with api.client() as client:
        refused = await client.post("/api/v2/jobs", content=text)
        assert refused.json()["errors"][0]["path"] == "$.extras.jupyterPai.secretEnv.HF_TOKEN"
        await put(client, "hf-token")
        assert (await client.post("/api/v2/jobs", content=text)).status_code == 202
        twice = scm_document("two", jobEnvs={"HF_TOKEN": "x"}, extras={"jupyterPai": own})
        (fault,) = (await client.post("/api/v2/jobs", content=twice)).json()["errors"]
        assert fault["message"] == 'the variable "HF_TOKEN" is also in jobEnvs'
    assert await kept(api, "one") == {"hf-token": VALUE}


async def test_a_job_keeps_its_value_and_a_clone_takes_the_present_one(api: ApiSite) -> None:
    text = V2.replace("<% $secrets.registry %>", "''").replace("WANDB_API_KEY: wandb.key", "")
    async with api.client() as client:
        await put(client, "hf-token", "old-value")
        assert (await submit(client, "first", text)).status_code == 202
        await put(client, "hf-token", "new-value")
        config = (await client.get("/api/v2/jobs/first/config?masked=true")).text
        cloned = await submit(client, "second", config, name="second", secretsOf="first")
        assert cloned.status_code == 202, cloned.text
        assert await kept(api, "first") == {"own": "the document's own", "hf-token": "old-value"}
        assert await kept(api, "second") == {"own": "the document's own", "hf-token": "new-value"}
        assert (await client.delete("/api/v2/secrets/hf-token")).status_code == 204
        refused = await submit(client, "third", config, name="third", secretsOf="first")
        assert (refused.status_code, "hf-token" in refused.text) == (400, True), "a job's value is not the user's"
    assert (await kept(api, "first"))["hf-token"] == "old-value"


async def test_more_than_logs_can_be_searched_for_is_refused(api: ApiSite) -> None:
    one = "extras: {jupyterPai: {secretEnv: {A: large, B: large}}}"
    text = V2.partition("extras:")[0].replace("<% $secrets.registry %>", "''").replace("<% $secrets.hf-token %>", "x")
    async with api.client() as client:
        await put(client, "large", "s" * (LONGEST // 2 + 1))
        answer = await submit(client, "x", text + one)
        (fault,) = answer.json()["errors"]
        assert (fault["path"], fault["line"]) == ("$.extras.jupyterPai.secretEnv", 12)
        assert fault["message"] == "the variables of secretEnv have 65538 bytes together; at most 65536 are given"
        await put(client, "large", "s" * LONGEST)
        (fault,) = (await submit(client, "x", text + one.replace(", B: large", ""))).json()["errors"]
        assert "at most 65536 are kept out of logs" in fault["message"]


async def test_a_public_key_of_the_ssh_plugin_may_be_one_and_is_checked(api: ApiSite) -> None:
    plugin = """\
extras:
  com.microsoft.pai.runtimeplugin:
    - {plugin: ssh, parameters: {jobssh: true, userssh: {type: custom, value: <% $secrets.laptop %>}}}
"""
    text = V2.partition("extras:")[0].replace("<% $secrets.registry %>", "''").replace("<% $secrets.hf-token %>", "x")
    async with api.client() as client:
        await put(client, "laptop", VALUE)
        refused = await submit(client, "x", text + plugin)
        assert (refused.status_code, VALUE in refused.text) == (400, False)
        assert "userssh of the ssh plugin" in refused.text
        await put(client, "laptop", make_ed25519("laptop")[1])
        assert (await submit(client, "x", text + plugin)).status_code == 202


async def test_tokens_of_programs(api: ApiSite) -> None:
    """A token for jobs changes secrets; one that only reads lists them; one of a virtual cluster only submits."""
    text = V2.replace("<% $secrets.registry %>", "''").replace("WANDB_API_KEY: wandb.key", "")
    tokens = {scope: (await token_of(api, ALICE, scope))["token"] for scope in ("read", "jobs")}
    inside = (await token_of(api, ALICE, "jobs", virtualCluster="default"))["token"]
    async with api.client(tokens["jobs"]) as jobs, api.client(tokens["read"]) as reads, api.client(inside) as limited:
        assert (await put(jobs, "hf-token")).status_code == 204
        assert [(await client.get("/api/v2/secrets")).status_code for client in (jobs, reads, limited)] == [
            403,
            200,
            403,
        ]
        for client in (reads, limited):
            assert (await put(client, "hf-token", "another")).status_code == 403
            assert (await client.delete("/api/v2/secrets/hf-token")).status_code == 403
        assert (await submit(limited, "inside", text)).status_code == 202
    assert (await kept(api, "inside"))["hf-token"] == VALUE


async def test_they_end_with_their_user_and_go_to_no_heir(api: ApiSite) -> None:
    await asked(api, "POST", "users", ROOT, json={"username": "carol", "password": "long-enough-for-carol"})
    act = Act("carol", api.ctx.clock())
    await api.store.user_secrets.set("carol", "hf-token", VALUE, act)
    await api.store.user_secrets.set("alice", "hf-token", "alices", act)
    code, said = await asked(api, "DELETE", "users/carol", ROOT, params={"transferTo": "alice"})
    assert code == 204, said
    assert await api.store.user_secrets.list("carol") == []
    assert await api.store.user_secrets.values("alice", ["hf-token"]) == {"hf-token": "alices"}


async def test_a_cell_asks_for_the_value_though_its_kernel_has_a_stdin(
    api: ApiSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAI_URL", api.url)
    monkeypatch.setenv("PAI_TOKEN", ALICE)
    stdin(monkeypatch, b"not this")
    monkeypatch.setattr("getpass.getpass", lambda prompt: VALUE)
    out = MagicCell()
    await asyncio.to_thread(verbs.set_secret, argparse.Namespace(name="typed"), out)
    assert VALUE not in str(out.value)
    assert await api.store.user_secrets.values("alice", ["typed"]) == {"typed": VALUE}
