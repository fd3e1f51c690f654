"""What the supervisor makes of what its children say."""

import pytest

from pai_backend.config.gateway import GatewaySettings
from pai_backend.config.settings import ProcessRole, Settings
from pai_backend.processes.app import DEADLINE_S, deadline_s
from pai_backend.processes.children import children_of
from pai_backend.processes.supervisor import DRAIN_S, Supervisor

SETTINGS: dict[str, object] = {"processes": [["api"], ["gateway"]], "log_file_bytes": 1_000_000}


def test_a_child_that_says_why_it_never_will_be_ready_is_not_ready() -> None:
    supervisor = Supervisor(SETTINGS, settings_fd=0, processes_lock=0)
    api, gateway = supervisor._children
    api.ready = {"error": "api.port: cannot listen on 127.0.0.1:80"}
    gateway.ready = {"pid": 1}
    supervisor._announce(None)
    assert not supervisor._announced
    api.ready = {"pid": 2, "url": "http://127.0.0.1:80"}
    supervisor._announce(None)
    assert supervisor._announced


def test_a_gateway_has_as_many_processes_as_it_is_to_have() -> None:
    children = children_of({**SETTINGS, "gateway": {"processes": 3}})
    assert [child.name for child in children] == ["core", "gateway", "gateway-2", "gateway-3"]
    assert [child.copy for child in children] == [1, 1, 2, 3]


def test_the_supervisor_waits_for_the_drain_of_those_with_logins_and_of_nobody_else() -> None:
    settings = {**SETTINGS, "processes": [["api"], ["gateway"], ["agent"]], "gateway": {"drain_s": 3600.0}}
    assert [child.drain_s for child in children_of(settings)] == [0.0, 3600.0, 3600.0]


def test_processes_that_share_a_port_must_know_it_and_have_no_other_role() -> None:
    with pytest.raises(ValueError, match=r"gateway\.port"):
        GatewaySettings(processes=2)
    with pytest.raises(ValueError, match="processes of its own"):
        Settings(gateway=GatewaySettings(processes=2, port=2222), processes=((ProcessRole.API, ProcessRole.GATEWAY),))
    assert Settings(gateway=GatewaySettings(processes=2, port=2222)).gateway.processes == 2


def test_a_process_with_a_gateway_has_its_drain_to_end_in() -> None:
    settings = Settings(gateway=GatewaySettings(drain_s=3599.5))
    for role in (ProcessRole.GATEWAY, ProcessRole.AGENT):
        assert deadline_s(settings, (role,)) == 3600 + DEADLINE_S
    assert deadline_s(settings, (ProcessRole.API,)) == DEADLINE_S
    assert DEADLINE_S < DRAIN_S, "whoever waits for it is more patient"
