"""What the supervisor makes of what its children say."""

from pai_backend.supervisor import Supervisor

SETTINGS: dict[str, object] = {"processes": [["api"], ["gateway"]], "log_file_bytes": 1_000_000}


def test_a_child_that_says_why_it_never_will_be_ready_is_not_ready() -> None:
    supervisor = Supervisor(SETTINGS, settings_fd=0, processes_lock=0)
    api, gateway = supervisor._children
    api.ready = {"error": "api.port: 127.0.0.1:80 cannot be had"}
    gateway.ready = {"pid": 1}
    supervisor._announce(None)
    assert not supervisor._announced
    api.ready = {"pid": 2, "url": "http://127.0.0.1:80"}
    supervisor._announce(None)
    assert supervisor._announced
