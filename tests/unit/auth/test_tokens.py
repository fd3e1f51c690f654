"""Who a token stands for, and the file it is kept in."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pai_backend.auth.policy import may_change, may_see
from pai_backend.auth.tokens import TokenFileError, TokenTable, read_or_make
from pai_backend.auth.users import User
from pai_backend.testing.builders import make_job

ALICE, ADMIN = User("alice"), User("root", admin=True)


def test_each_token_finds_its_user() -> None:
    table = TokenTable([("token-of-alice", ALICE), ("token-of-root", ADMIN)])
    assert table.user("token-of-alice") == ALICE
    assert table.user("token-of-root") == ADMIN
    assert table.users() == [ALICE, ADMIN]


@pytest.mark.parametrize("token", ["", "token-of-alic", "token-of-alice ", "x"])
def test_everything_else_finds_nobody(token: str) -> None:
    assert TokenTable([("token-of-alice", ALICE)]).user(token) is None


def test_tokens_are_not_kept() -> None:
    table = TokenTable([("token-of-alice", ALICE)])
    assert "token-of-alice" not in repr(vars(table))


def test_every_digest_is_compared_whichever_matches(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[bytes] = []

    def compare(one: bytes, other: bytes) -> bool:
        compared.append(other)
        return one == other

    table = TokenTable([(f"token-{number}", User(str(number))) for number in range(5)])
    monkeypatch.setattr("hmac.compare_digest", compare)
    for token in ("token-0", "token-4", "nobody"):
        compared.clear()
        table.user(token)
        assert len(compared) == 5


def test_the_token_file_is_made_once_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "token"
    token = read_or_make(path)
    assert len(token) >= 43
    assert path.stat().st_mode & 0o777 == 0o600
    assert read_or_make(path) == token
    assert [entry.name for entry in path.parent.iterdir()] == ["token"]


def test_processes_that_start_at_once_agree_on_the_token(tmp_path: Path) -> None:
    code = "import sys, pathlib\nfrom pai_backend.auth.tokens import read_or_make\n"
    code += "sys.stdin.read()\nprint(read_or_make(pathlib.Path(sys.argv[1])))"
    command = [sys.executable, "-c", code, str(tmp_path / "token")]
    racers = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.flush()
    tokens = set()
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.close()
    for racer in racers:
        assert racer.stdout is not None
        tokens.add(racer.stdout.read())
        assert racer.wait(60) == 0
    assert len(tokens) == 1


def test_a_token_file_that_others_can_read_is_closed_to_them(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "token"
    path.write_text("0123456789abcdef\n")
    path.chmod(0o644)
    assert read_or_make(path) == "0123456789abcdef"
    assert path.stat().st_mode & 0o777 == 0o600
    assert "could be read by others" in caplog.text
    assert "0123456789abcdef" not in caplog.text


def test_an_empty_token_file_is_refused_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "token").touch(mode=0o600)
    with pytest.raises(TokenFileError, match="is empty; delete it"):
        read_or_make(tmp_path / "token")


def test_owners_and_admins_may_see_and_change_a_job_and_nobody_else() -> None:
    job = make_job(user="alice")
    for policy in (may_see, may_change):
        assert policy(ALICE, job)
        assert policy(ADMIN, job)
        assert not policy(User("bob"), job)
