"""The SSH texts, character for character."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath, PureWindowsPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_pai.connect import ssh_config
from jupyter_pai.connect.ssh_config import ConfigFiles, HostEntry

PLACES = ConfigFiles(
    PurePosixPath("/home/me/.ssh/pai/local/id_ed25519"), PurePosixPath("/home/me/.ssh/pai/local/known_hosts")
)
CONFIG = PurePosixPath("/home/me/.ssh/pai/local/config")
INCLUDE = "# jupyter-pai: names of running tasks\nInclude /home/me/.ssh/pai/local/config\n"


def login(alias: str) -> HostEntry:
    return HostEntry(alias, "gateway.example.org", 2222, "pai-local")


def test_one_block() -> None:
    assert ssh_config.host_block(login("train--worker-0"), PLACES) == (
        "Host train--worker-0\n"
        "    HostName gateway.example.org\n"
        "    Port 2222\n"
        "    User train--worker-0\n"
        "    IdentityFile /home/me/.ssh/pai/local/id_ed25519\n"
        "    IdentitiesOnly yes\n"
        "    UserKnownHostsFile /home/me/.ssh/pai/local/known_hosts\n"
        "    StrictHostKeyChecking yes\n"
        "    HostKeyAlias pai-local\n"
        "    ServerAliveInterval 30\n"
        "    ServerAliveCountMax 4\n"
    )


def test_a_jump_ends_at_the_task_by_its_own_name() -> None:
    certificate = PurePosixPath("/home/me/.ssh/pai/local/jumps/train-cert.pub")
    text = ssh_config.config_text([replace(login("train--worker-0"), jump_certificate=certificate)], PLACES)
    assert text.partition("\n\n")[2] == (
        "Host train--worker-0.jump\n"
        "    HostName train--worker-0\n"
        "    Port 22\n"
        "    User root\n"
        "    ProxyJump train--worker-0@train--worker-0\n"
        "    IdentityFile /home/me/.ssh/pai/local/id_ed25519\n"
        "    CertificateFile /home/me/.ssh/pai/local/jumps/train-cert.pub\n"
        "    IdentitiesOnly yes\n"
        "    UserKnownHostsFile /home/me/.ssh/pai/local/known_hosts\n"
        "    StrictHostKeyChecking yes\n"
        "    HostKeyAlias train--worker-0\n"
        "    ServerAliveInterval 30\n"
        "    ServerAliveCountMax 4\n"
    )
    assert ssh_config.has_jumps(text)
    assert not ssh_config.has_jumps(ssh_config.config_text([login("train--worker-0")], PLACES))


def test_the_file_begins_with_a_block_and_has_each_name_once_in_order() -> None:
    text = ssh_config.config_text([login("b"), login("a"), login("b")], PLACES)
    assert [line for line in text.splitlines() if line.startswith("Host ")] == ["Host a", "Host b"]
    assert text.startswith("Host a\n")
    assert "*" not in text


def test_no_running_task_gives_an_empty_file() -> None:
    assert ssh_config.config_text([], PLACES) == ""


@pytest.mark.parametrize("alias", ["a b", "a\nProxyCommand evil", "*", "", "a*", "-a", "a" * 64])
def test_a_name_that_would_leave_its_line_is_refused(alias: str) -> None:
    with pytest.raises(ValueError, match="not a name"):
        ssh_config.host_block(login(alias), PLACES)


def test_a_host_that_would_leave_its_line_is_refused() -> None:
    with pytest.raises(ValueError, match="not a host"):
        ssh_config.host_block(HostEntry("a", "h\n  ProxyCommand evil", 22, "pai"), PLACES)


def test_paths_of_windows_and_with_spaces() -> None:
    assert ssh_config.path_word(PureWindowsPath(r"C:\Users\Li Lei\.ssh\id")) == '"C:/Users/Li Lei/.ssh/id"'
    assert ssh_config.path_word(PurePosixPath("/a/100%/b")) == "/a/100%%/b"
    with pytest.raises(ValueError, match="no spelling"):
        ssh_config.path_word(PurePosixPath('/a"b'))


def test_known_hosts_are_each_kept_once() -> None:
    assert ssh_config.known_hosts_text(["b k", "a k\n", "b k", " "]) == "a k\nb k\n"
    with pytest.raises(ValueError, match="line break"):
        ssh_config.known_hosts_text(["a\nb"])


def test_the_line_goes_above_everything_else_once() -> None:
    user = "Host *\n  ForwardAgent no\n"
    once = ssh_config.with_include(user, CONFIG)
    assert once == INCLUDE + "\n" + user
    assert ssh_config.with_include(once, CONFIG) == once
    assert ssh_config.with_include("", CONFIG) == INCLUDE


def test_a_line_below_a_block_is_moved_to_the_top_because_it_would_belong_to_the_block() -> None:
    user = "Host a\n  User b\nInclude /home/me/.ssh/pai/local/config\n"
    assert ssh_config.with_include(user, CONFIG) == INCLUDE + "\nHost a\n  User b\n"


def test_a_line_that_the_user_moved_among_others_at_the_top_stays_there() -> None:
    user = "Include other\nInclude /home/me/.ssh/pai/local/config\nHost a\n"
    assert ssh_config.with_include(user, CONFIG) == user


_LINES = st.lists(
    st.sampled_from(["Host a", "  User b", "", "Include other", "# note", "Match all", "\tPort 22", "Host *\r"]),
    max_size=8,
)


@given(_LINES, st.booleans())
def test_taking_the_line_out_again_gives_every_byte_back(lines: list[str], newline: bool) -> None:
    user = "\n".join(lines) + ("\n" if newline and lines else "")
    assert ssh_config.without_include(ssh_config.with_include(user, CONFIG), CONFIG) == user
    assert ssh_config.without_include(user, CONFIG) == user
