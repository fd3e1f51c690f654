"""What a connection keeps once somebody is logged in, and that nothing of asyncssh is lost by it."""

from __future__ import annotations

import asyncio
import gc
import inspect

import asyncssh
import pytest
from asyncssh.connection import SSHClientConnection, SSHConnection, SSHServerConnection

from pai_backend.access.gateway.joined.front import JoinedClient
from pai_backend.access.gateway.joined.lean import Lean, fields_of
from pai_backend.access.gateway.joined.relay import Back, Leg

pytestmark = pytest.mark.asyncio


async def front() -> JoinedClient:
    """A client's leg that has no client yet."""
    key = asyncssh.generate_private_key("ssh-ed25519")
    settings = asyncssh.SSHServerConnectionOptions(config=None, server_host_keys=[key], login_timeout=0)
    return JoinedClient(asyncio.get_running_loop(), settings)


async def back() -> Back:
    """A task's leg that is not connected yet."""
    settings = asyncssh.SSHClientConnectionOptions(
        host="task", config=None, known_hosts=([], [], []), client_keys=None, agent_path=None, login_timeout=0
    )
    settings.waiter = None
    return Back(asyncio.get_running_loop(), settings, asyncssh.SSHClient())


@pytest.mark.parametrize(("make", "base"), [(front, SSHServerConnection), (back, SSHClientConnection)])
async def test_what_asyncssh_sets_has_its_slot_and_its_value(make: object, base: type) -> None:
    leg = await (front() if make is front else back())
    names = {*fields_of(SSHConnection), *fields_of(base)}
    assert len(names) > 100
    assert names.isdisjoint(vars(leg))
    assert len(vars(leg)) < 12, "attributes whose names each connection would keep for itself"
    for name in names:
        getattr(leg, name)


async def test_a_value_of_a_class_is_not_hidden_by_a_slot() -> None:
    class Counting:
        _count = 1

        def __init__(self) -> None:
            self._count, self._name = 2, "a"

    class Named(Counting):
        __slots__ = fields_of(Counting)

    class Both(Named):
        __slots__ = fields_of(Counting, Named)

    assert (Named.__slots__, Both.__slots__) == (("_name",), ())
    assert Both._count == 1
    assert (Both()._count, Both()._name) == (2, "a")


async def test_what_only_the_login_needed_is_let_go() -> None:
    leg = await front()
    leg._client_kexinit = leg._server_kexinit = b"methods"
    leg._extensions_to_send[b"server-sig-algs"] = b"all"
    leg.set_extra_info(username="job", recv_cipher="aes")
    leg.let_go()
    assert (leg._client_kexinit, leg._server_kexinit) == (b"methods", b"methods"), "keys are being exchanged"
    leg._kex_complete = True
    leg.let_go()
    assert (leg._client_kexinit, leg._server_kexinit) == (b"", b"")
    assert not leg._extensions_to_send
    assert leg.get_extra_info("username") is None
    with pytest.raises(AttributeError):
        leg._trusted_host_keys.add(1)  # type: ignore[union-attr, arg-type]  # shared by all: nothing may be added


async def test_a_connection_that_is_gone_leaves_nothing() -> None:
    legs = [await front(), await back()]
    kinds = {type(leg) for leg in legs}
    before = sum(type(each) in kinds for each in gc.get_objects())
    assert before >= 2
    legs.clear()
    gc.collect()
    assert sum(type(each) in kinds for each in gc.get_objects()) <= before - 2


async def test_the_undocumented_parts_of_asyncssh_are_as_they_are_made_lean() -> None:
    """One place that fails when a new asyncssh keeps its state in another way."""
    source = inspect.getsource(inspect.getmodule(SSHConnection))  # type: ignore[arg-type]  # it has a module
    assert source.count("self._server_sig_algs") == 4, "it is asked when keys are chosen only"
    assert source.count("_x509_revoked_certs") == 3
    assert "await cast(SSHServerConnection, self).reload_config()" in inspect.getsource(SSHConnection._finish_userauth)
    assert list(inspect.signature(SSHServerConnection.reload_config).parameters) == ["self"]
    assert issubclass(Leg, Lean)
