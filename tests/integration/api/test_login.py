"""``pai login`` and ``pai logout`` as processes of their own, and the backend that other commands use after them."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.api.test_users import PASSWORD, added, asked
from tests.support.api_site import ApiSite

pytestmark = pytest.mark.asyncio

FILE = Path("config") / "jupyter-pai" / "client.toml"


class Shell:
    """``pai`` of a user who has a home directory and no environment variables of ours."""

    def __init__(self, home: Path) -> None:
        self.home = home
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("PAI_")}
        self.environment = {**inherited, "HOME": str(home), "XDG_CONFIG_HOME": str(home / "config")}

    async def __call__(self, *words: str, typed: str = "") -> tuple[int, str, str]:
        command = [sys.executable, "-P", "-m", "jupyter_pai.cli", *words]

        def run() -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                command, env=self.environment, input=typed, capture_output=True, text=True, timeout=120, check=False
            )

        done = await asyncio.to_thread(run)
        assert PASSWORD not in done.stdout + done.stderr
        return done.returncode, done.stdout, done.stderr

    @property
    def file(self) -> Path:
        return self.home / FILE


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path / "home")


async def test_after_a_login_commands_use_that_backend_until_the_logout(api: ApiSite, shell: Shell) -> None:
    await added(api)
    code, said, _ = await shell("login", f"{api.url}/", "--user", "eve", "--password-stdin", typed=f"{PASSWORD}\n")
    assert (code, said) == (0, f"Signed in to {api.url} as eve.\n")
    assert stat.S_IMODE(shell.file.stat().st_mode) == 0o600
    assert PASSWORD not in shell.file.read_text()
    token = shell.file.read_text().split('"')[3]
    code, said, _ = await shell("user", "list", "--json")
    assert [each["username"] for each in json.loads(said)] == ["eve"]

    code, said, _ = await shell("logout")
    assert (code, said) == (0, f"Signed out of {api.url}.\n")
    assert (await asked(api, "GET", "users/me", token))[0] == 401
    assert not shell.file.exists()
    assert (await shell("logout"))[:2] == (0, "You are not signed in to a backend elsewhere.\n")


async def test_a_wrong_password_changes_nothing(api: ApiSite, shell: Shell) -> None:
    await added(api)
    code, said, error = await shell("login", api.url, "--user", "eve", "--password-stdin", typed="wrong horse\n")
    assert code != 0
    assert said == ""
    assert "The name or the password is wrong." in error
    assert not shell.file.exists()


async def test_another_backend_is_replaced_only_when_that_is_agreed_to(api: ApiSite, shell: Shell) -> None:
    await added(api)
    shell.file.parent.mkdir(parents=True)
    kept = 'url = "https://pai.example.org"\ntoken = "x"\n'
    shell.file.write_text(kept)
    words = ("login", api.url, "--user", "eve", "--password-stdin")
    code, _, error = await shell(*words, typed=f"{PASSWORD}\n")
    assert (code, "no longer https://pai.example.org" in error) == (2, True)
    assert shell.file.read_text() == kept
    assert (await shell(*words, "--yes", typed=f"{PASSWORD}\n"))[0] == 0
    assert api.url in shell.file.read_text()


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
