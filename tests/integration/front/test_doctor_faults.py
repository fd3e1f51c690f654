"""Each fault that keeps a user out is planted, met by real OpenSSH, and named by the doctor with its own remedy."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import pytest_asyncio

from jupyter_pai.connect.ssh_config import ConfigFiles, HostEntry, config_text, include_line
from jupyter_pai.doctor.diagnosing import AccountFacts, Meant, cause, effective
from jupyter_pai.doctor.findings import WORDS, Finding
from jupyter_pai.doctor.running import OpenSshRoute
from pai_backend.access.keys import gateway_host_public_key, known_hosts_alias_line, make_ed25519
from pai_backend.testing.builders import make_uid
from pai_backend.testing.free_ports import free_port
from tests.support.ssh_world import World, make_world

pytestmark = pytest.mark.asyncio


GOOD = AccountFacts()


@dataclass
class User:
    """A user's SSH directory, as `pai ssh-config` leaves it, before a real gateway."""

    world: World
    meant: Meant
    known_hosts: Path

    @property
    def way(self) -> OpenSshRoute:
        return OpenSshRoute(self.meant.user_config, self.meant.login.alias)

    def write(self, *, above: str = "", included: bool = True, **login: object) -> None:
        """Write our file, and the user's that includes it below ``above``."""
        self.meant = replace(self.meant, login=replace(self.meant.login, **login))  # type: ignore[arg-type]
        text = config_text([self.meant.login], ConfigFiles(self.meant.identity, self.known_hosts))
        self.meant.config.write_text(text)
        ours = f"{include_line(self.meant.config)}\n" if included else ""
        self.meant.user_config.write_text(f"{above}\n{ours}")

    async def found(self, account: AccountFacts = GOOD) -> Finding | None:
        """What the doctor finds; None when the login works."""
        ran = await asyncio.to_thread(self.way.execute, "true")
        if ran.code == 0:
            return None
        options = await asyncio.to_thread(effective, self.way)
        return await asyncio.to_thread(cause, self.meant, options, ran, account)


@pytest_asyncio.fixture
async def user(tmp_path: Path) -> AsyncIterator[User]:
    async with make_world(tmp_path, "agent") as world:
        login = HostEntry("demo", "127.0.0.1", world.port, "pai-test")
        meant = Meant(login, world.key, tmp_path / "ours", tmp_path / "config")
        made = User(world, meant, tmp_path / "known")
        line = known_hosts_alias_line("pai-test", await gateway_host_public_key(world.store.as_store()))
        made.known_hosts.write_text(line + "\n")
        made.write()
        yield made


@contextmanager
def dropping() -> Iterator[int]:
    """A port whose kernel drops who connects: its backlog is full, and nobody is accepted."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port = listener.getsockname()[1]
        waiting = [socket.socket() for _ in range(4)]
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(("127.0.0.1", port))
        try:
            yield port
        finally:
            for each in waiting:
                each.close()


async def test_nothing_is_found_while_the_login_works(user: User) -> None:
    assert await user.found() is None


def key_that_others_read(user: User) -> None:
    user.meant.identity.chmod(0o644)


def other_host(user: User) -> None:
    user.known_hosts.write_text(known_hosts_alias_line("pai-test", make_ed25519("")[1]) + "\n")


def locked_out(user: User) -> None:
    user.world.store.grants.locked.add("alice")


def key_unknown(user: User) -> None:
    user.world.store.unregister(next(iter(user.world.store.registered)))


def key_of_another_job(user: User) -> None:
    kept = user.world.store.registered
    kept.update({each: replace(key, job=make_uid(9)) for each, key in kept.items()})


def key_over(user: User) -> None:
    kept = user.world.store.registered
    kept.update({each: replace(key, expires_at=datetime.now(UTC)) for each, key in kept.items()})


PLANTED: dict[str, tuple[str, Callable[[User], None], AccountFacts]] = {
    "the Include is missing": ("no-include", lambda user: user.write(included=False), GOOD),
    "a Host * above has a ProxyCommand": (
        "foreign-option",
        lambda user: user.write(above="Host *\n    ProxyCommand false\n"),
        GOOD,
    ),
    "a Host * above has another port": (
        "foreign-option",
        lambda user: user.write(above=f"Host *\n    Port {free_port()}\n"),
        GOOD,
    ),
    "others read the key": ("key-mode", key_that_others_read, GOOD),
    "the key is gone": ("no-key-file", lambda user: user.meant.identity.unlink(), GOOD),
    "nothing listens": ("port-refused", lambda user: user.write(port=free_port()), GOOD),
    "another host answers": ("other-host", other_host, GOOD),
    "the user is locked out": ("locked-out", locked_out, AccountFacts(is_locked_out=True)),
    "the key is for another job": ("key-limited", key_of_another_job, GOOD),
    "the key's time is over": ("key-over", key_over, AccountFacts(is_key_over=True)),
    "the key is not registered": ("key-unregistered", key_unknown, AccountFacts(is_registered=False)),
    "the certificate is over": ("certificate-over", key_unknown, AccountFacts(is_registered=False, is_over=True)),
}


@pytest.mark.parametrize("planted", PLANTED)
async def test_a_planted_fault_is_named(user: User, planted: str) -> None:
    code, plant, account = PLANTED[planted]
    plant(user)
    found = await user.found(account)
    assert found is not None
    assert found.code == code
    remedies = [texts["en"][1] for texts in WORDS.values()]
    assert remedies.count(WORDS[code]["en"][1]) == 1, "its remedy is its own"
    assert "{" not in found.texts["en"]["what"] + found.texts["zh_CN"]["remedy"]


async def test_a_foreign_option_is_told_with_its_value(user: User) -> None:
    user.write(above="Host *\n    ProxyCommand false\n")
    found = await user.found()
    assert found is not None
    assert (found.values["option"], found.values["value"]) == ("proxycommand", "false")


async def test_a_port_that_is_dropped_is_told_from_one_that_refuses(user: User) -> None:
    with dropping() as port:
        user.write(port=port)
        found = await user.found()
    assert found is not None
    assert found.code == "port-dropped"


async def test_what_does_not_speak_ssh_is_another_host(user: User) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1024)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    async with server:
        user.write(port=server.sockets[0].getsockname()[1])
        found = await asyncio.wait_for(user.found(), 60)
    assert found is not None
    assert found.code == "other-host"


async def test_a_gateway_that_drains_is_told_from_one_that_is_not_there(user: User) -> None:
    """It closes who has come before a login, as ``Doors.admit`` does."""
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    async with server:
        user.write(port=server.sockets[0].getsockname()[1])
        found = await user.found()
    assert found is not None
    assert found.code == "gateway-draining"
