"""``pai login`` and ``pai logout`` as processes of their own, and the backend that other commands use after them."""

from __future__ import annotations

import asyncio
import json
import os
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.integration.api.test_users import PASSWORD, added, asked
from tests.support.api_site import ApiSite, running_api
from tests.support.documents import scm_document
from tests.support.warm_start import run_pai

pytestmark = pytest.mark.asyncio

FILE = Path("config") / "jupyter-pai" / "client.toml"


class Shell:
    """``pai`` of a user who has a home directory and no environment variables of ours."""

    def __init__(self, home: Path) -> None:
        self.home = home
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("PAI_")}
        self.environment = {**inherited, "HOME": str(home), "XDG_CONFIG_HOME": str(home / "config")}

    async def __call__(self, *words: str, typed: str = "") -> tuple[int, str, str]:
        done = await asyncio.to_thread(run_pai, *words, env=self.environment, stdin=typed)
        assert PASSWORD not in done.stdout + done.stderr
        return done.returncode, done.stdout, done.stderr

    @property
    def file(self) -> Path:
        return self.home / FILE

    @property
    def sessions(self) -> dict[str, str]:
        """What is kept of each context."""
        return {path.stem: path.read_text() for path in (self.file.parent / "contexts").glob("*.toml")}

    async def login(self, api: ApiSite, *words: str) -> tuple[int, str, str]:
        return await self("login", api.url, "--user", "eve", "--password-stdin", *words, typed=f"{PASSWORD}\n")


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path / "home")


async def test_after_a_login_commands_use_that_backend_until_the_logout(api: ApiSite, shell: Shell) -> None:
    await added(api)
    code, said, _ = await shell("login", f"{api.url}/", "--user", "eve", "--password-stdin", typed=f"{PASSWORD}\n")
    name = api.url.removeprefix("http://").replace(":", "-")
    assert (code, said) == (0, f"Signed in to {api.url} as eve, context {name}.\n")
    kept = shell.file.parent / "contexts" / f"{name}.toml"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert PASSWORD not in kept.read_text()
    token = kept.read_text().split('"')[3]
    code, said, _ = await shell("user", "list", "--json")
    assert [each["username"] for each in json.loads(said)] == ["eve"]

    code, said, _ = await shell("logout")
    assert (code, said) == (0, f"Signed out of {api.url}.\n")
    assert (await asked(api, "GET", "users/me", token))[0] == 401
    assert (shell.file.exists(), kept.exists()) == (False, False)
    assert (await shell("logout"))[:2] == (0, "You are not signed in to a backend elsewhere.\n")


async def test_a_wrong_password_changes_nothing(api: ApiSite, shell: Shell) -> None:
    await added(api)
    code, said, error = await shell("login", api.url, "--user", "eve", "--password-stdin", typed="wrong horse\n")
    assert code != 0
    assert said == ""
    assert "The name or the password is wrong." in error
    assert not shell.file.exists()


async def test_an_address_in_the_client_file_is_replaced_only_when_that_is_agreed_to(
    api: ApiSite, shell: Shell
) -> None:
    await added(api)
    shell.file.parent.mkdir(parents=True)
    kept = 'url = "https://pai.example.org"\ntoken = "x"\n'
    shell.file.write_text(kept)
    code, _, error = await shell.login(api)
    assert (code, "forget https://pai.example.org" in error) == (2, True)
    code, _, error = await shell("context", "use", "local")
    assert (code, "would be lost" in error) == (2, True)
    assert (shell.file.read_text(), shell.sessions) == (kept, {})
    code, said, _ = await shell("context", "list")
    assert (code, said.splitlines()[2].split()) == (0, ["*", "client.toml", "https://pai.example.org"])
    assert (await shell.login(api, "--context", "lab", "--yes"))[0] == 0
    assert shell.file.read_text() == 'context = "lab"\n'
    assert api.url in shell.sessions["lab"]


async def test_a_session_that_has_ended_is_signed_out_of_all_the_same(api: ApiSite, shell: Shell) -> None:
    session = await added(api)
    shell.file.parent.mkdir(parents=True)
    shell.file.write_text(f'url = "{api.url}"\ntoken = "{session}"\n')
    assert (await asked(api, "DELETE", "users/eve"))[0] == 204
    assert (await shell("logout"))[0] == 0
    assert not shell.file.exists()


@pytest.mark.parametrize("words", [(), ("--user", "eve"), ("--password-stdin",)])
async def test_without_a_terminal_name_and_password_have_to_be_given(
    api: ApiSite, shell: Shell, words: tuple[str, ...]
) -> None:
    code, _, error = await shell("login", api.url, *words)
    assert (code, "--password-stdin" in error) == (2, True)


async def test_when_the_session_has_ended_commands_say_how_to_sign_in(api: ApiSite, shell: Shell) -> None:
    shell.file.parent.mkdir(parents=True)
    shell.file.write_text(f'url = "{api.url}"\ntoken = "of-an-ended-session"\n')
    code, _, error = await shell("list")
    assert code != 0
    assert "pai login URL" in error
    assert "Authorization" not in error


@pytest_asyncio.fixture
async def far(tmp_path: Path) -> AsyncIterator[ApiSite]:
    (tmp_path / "far").mkdir()
    async with running_api(tmp_path / "far") as site:
        yield site


async def test_each_backend_keeps_its_session_and_one_is_used(api: ApiSite, far: ApiSite, shell: Shell) -> None:
    for site, name in ((api, "near"), (far, "far")):
        await added(site)
        assert (await shell.login(site, "--context", name))[0] == 0
    code, said, _ = await shell("context", "list", "--json")
    assert (code, [(each["name"], each["current"]) for each in json.loads(said)]) == (
        0,
        [("local", False), ("far", True), ("near", False)],
    )
    document = scm_document("here").decode()
    assert (await shell("submit", "-", typed=document))[0] == 0
    assert (await shell("submit", "-", "--name", "there", "--context", "near", typed=document))[0] == 0
    code, said, _ = await shell("list", "--json")
    assert [each["name"] for each in json.loads(said)] == ["here"]
    code, said, error = await shell("list", "--all-contexts", "--json")
    assert (code, error) == (0, "")
    assert [(each["context"], each["name"]) for each in json.loads(said)] == [("near", "there"), ("far", "here")]
    code, said, _ = await shell("list", "--all-contexts", "--limit", "1")
    assert [line.split()[:2] for line in said.splitlines()] == [["CONTEXT", "NAME"], ["near", "there"]]

    assert (await shell("context", "use", "near"))[:2] == (0, "From now on near is used.\n")
    code, said, _ = await shell("list", "--json")
    assert [each["name"] for each in json.loads(said)] == ["there"]
    assert (await shell("logout", "--context", "far"))[0] == 0
    assert (list(shell.sessions), shell.file.read_text()) == (["near"], 'context = "near"\n')
    code, said, error = await shell("list", "--context", "far")
    assert (code, "There is no context 'far'." in error) == (2, True)


async def test_a_backend_that_is_away_hides_no_jobs_of_the_others(api: ApiSite, shell: Shell) -> None:
    await added(api)
    assert (await shell.login(api, "--context", "near"))[0] == 0
    contexts = shell.file.parent / "contexts"
    (contexts / "away.toml").write_text('url = "http://127.0.0.1:9"\ntoken = "t"\n')
    assert (await shell("submit", "-", typed=scm_document("here").decode()))[0] == 0
    code, said, error = await shell("list", "--all-contexts")
    assert (code, [line.split()[0] for line in said.splitlines()]) == (0, ["CONTEXT", "near"])
    assert error.startswith("away: The backend at http://127.0.0.1:9 does not answer")
    (contexts / "near.toml").unlink()
    assert (await shell("list", "--all-contexts"))[0] == 3


async def test_a_context_is_never_taken_over_by_another_backend(api: ApiSite, far: ApiSite, shell: Shell) -> None:
    for site in (api, far):
        await added(site)
    assert (await shell.login(api, "--context", "lab"))[0] == 0
    before = shell.sessions
    code, _, error = await shell.login(far, "--context", "lab")
    assert (code, f"The context lab is {api.url}." in error) == (2, True)
    for name in ("local", "../lab", "Lab", ""):
        assert (await shell.login(far, "--context", name))[0] == (2 if name else 0)
    assert shell.sessions["lab"] == before["lab"]
    for name in ("none", "../contexts/lab"):
        assert (await shell("context", "use", name))[0] == 2
