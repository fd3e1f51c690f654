"""Who has which account: one user for good, over restarts and other orders of the pool."""

from __future__ import annotations

import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pai_backend.engine.base import EngineError
from pai_backend.engine.local.accounts import NoAccount, SystemAccounts, resolve
from pai_backend.engine.local.owners import close_but, take_over
from pai_backend.engine.local.retention import _remove_tree
from tests.support.other_accounts import FIRST_UID

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to other accounts")
POOL = tuple(str(FIRST_UID + number) for number in range(3))


def accounts(root: Path, pool: tuple[str, ...] = POOL, **named: str) -> SystemAccounts:
    root.mkdir(exist_ok=True)
    return SystemAccounts(root, named=named, pool=() if named else pool)


@root_only
def test_a_user_keeps_an_account_over_restarts_and_another_order(tmp_path: Path) -> None:
    first = accounts(tmp_path).of("ann").uid
    assert accounts(tmp_path).of("bob").uid != first
    assert accounts(tmp_path, POOL[::-1]).of("ann").uid == first


@root_only
def test_accounts_given_at_once_are_different_ones(tmp_path: Path) -> None:
    many = tuple(str(FIRST_UID + number) for number in range(40))
    processes = [accounts(tmp_path, many) for _ in range(4)]
    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(lambda n: (n // 4, processes[n % 4].of(f"user{n // 4}").uid), range(160)))
    assert len(set(told)) == 40
    assert len({uid for _, uid in told}) == 40


@root_only
def test_a_pool_that_is_used_up_is_told_with_the_remedy(tmp_path: Path) -> None:
    given = accounts(tmp_path, POOL[:1])
    given.of("ann")
    with pytest.raises(NoAccount, match=r"bob has no account .* all 1 of engine\.accounts belong to other users; add"):
        given.of("bob")
    assert accounts(tmp_path, POOL[:2]).of("bob").uid == int(POOL[1])


@root_only
def test_an_account_that_the_pool_no_longer_has_is_not_replaced(tmp_path: Path) -> None:
    accounts(tmp_path, POOL[:1]).of("ann")
    with pytest.raises(NoAccount, match=f"ann has the account with uid {POOL[0]}, which engine.accounts lacks"):
        accounts(tmp_path, POOL[1:]).of("ann")


def test_a_record_that_is_damaged_gives_nothing(tmp_path: Path) -> None:
    (tmp_path / "accounts.json").write_text("[]")
    with pytest.raises(EngineError, match=r"accounts\.json is damaged"):
        accounts(tmp_path).of("ann")


def test_roots_account_is_never_a_tasks(tmp_path: Path) -> None:
    for word in ("root", "0"):
        with pytest.raises(NoAccount, match="has the rights of root"):
            resolve(word)
    with pytest.raises(NoAccount, match="this machine has no account nobody-of-this-name; make it"):
        resolve("nobody-of-this-name")


def test_two_users_never_share_an_account(tmp_path: Path) -> None:
    nobody = str(resolve("nobody").uid)
    with pytest.raises(NoAccount, match="two users would share the account"):
        accounts(tmp_path, ann="nobody", bob=nobody).check()
    with pytest.raises(NoAccount, match=r"carl has no account .* add them to engine\.accounts\.map"):
        accounts(tmp_path, ann="nobody").of("carl")


@root_only
def test_a_map_that_names_an_account_again_gives_it_to_no_second_user(tmp_path: Path) -> None:
    accounts(tmp_path, ann="nobody").of("ann")
    assert accounts(tmp_path, ann="nobody").of("ann").name == "nobody"
    with pytest.raises(NoAccount, match="the account nobody has the files of ann and cannot be bob's; name another"):
        accounts(tmp_path, bob="nobody").of("bob")


@root_only
def test_a_uid_that_somebody_has_is_not_taken_from_a_range(tmp_path: Path) -> None:
    somebody = str(resolve("nobody").uid)
    assert accounts(tmp_path, (somebody, POOL[0])).of("ann").uid == int(POOL[0])


@root_only
def test_directories_of_earlier_tasks_become_the_accounts_but_for_links_and_second_names(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.touch(0o600)
    old = tmp_path / "old"
    (old / "below").mkdir(parents=True)
    (old / "below" / "file").touch()
    (old / "link").symlink_to(secret)
    os.link(secret, old / "second-name")
    take_over(old, FIRST_UID, FIRST_UID)
    assert secret.stat().st_uid == 0
    assert (old.stat().st_uid, stat.S_IMODE(old.stat().st_mode)) == (FIRST_UID, 0o700)
    assert (old / "below" / "file").stat().st_uid == (old / "link").lstat().st_uid == FIRST_UID
    with pytest.raises(PermissionError, match=f"belongs to the account with uid {FIRST_UID}"):
        take_over(old, FIRST_UID + 1, FIRST_UID + 1)


@root_only
def test_only_what_is_named_stays_open(tmp_path: Path) -> None:
    (tmp_path / "database").touch(0o644)
    (tmp_path / "runtime").mkdir(0o755)
    (tmp_path / "engine").mkdir(0o755)
    (tmp_path / "link").symlink_to("/etc/passwd")
    before = stat.S_IMODE(os.stat("/etc/passwd").st_mode)
    close_but(tmp_path, ("engine",))
    modes = {path.name: stat.S_IMODE(path.lstat().st_mode) for path in (tmp_path, *tmp_path.iterdir())}
    assert (modes["database"], modes["runtime"], modes["engine"], modes[tmp_path.name]) == (0o600, 0o700, 0o755, 0o711)
    assert stat.S_IMODE(os.stat("/etc/passwd").st_mode) == before


@root_only
def test_root_changes_no_mode_on_the_way_to_removing_a_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task may put a link in the place of a directory meanwhile, and root's chmod would follow it."""
    changed: list[object] = []
    (tmp_path / "work" / "below").mkdir(parents=True, mode=0o500)
    monkeypatch.setattr(os, "chmod", lambda *arguments, **_: changed.append(arguments))
    _remove_tree(tmp_path / "work")
    assert changed == []
    assert not (tmp_path / "work").exists()


@root_only
def test_a_home_that_is_anothers_is_not_used(tmp_path: Path) -> None:
    home = accounts(tmp_path).of("ann").home
    assert home == str(tmp_path / "homes" / POOL[0])
    assert os.stat(home).st_uid == int(POOL[0])
    assert json.loads((tmp_path / "accounts.json").read_text()) == {POOL[0]: "ann"}
