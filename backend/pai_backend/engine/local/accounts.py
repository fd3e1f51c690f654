"""The accounts of this machine that tasks of different users run as.

An account belongs to one user for good: files that a task left are its account's. So what a pool gave out is written
down beside the tasks, not in the database, of which an older copy may be restored.
"""

from __future__ import annotations

import json
import os
import pwd
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pai_backend.engine.base import EngineError, StartRefused
from pai_backend.engine.local import layout
from pai_backend.engine.local.account import SystemAccount
from pai_backend.engine.local.builder import replace_file
from pai_backend.engine.local.layout import HANDOVER_S, sync_directory, take_lock
from pai_backend.engine.local.owners import take_over

Prepare = Callable[[str, int, int], None]
"""Makes places for files of a user's tasks, given user name, uid and gid of their account. Raises OSError."""


_NO_SHELLS = frozenset({"nologin", "false", "sync", ""})  # of accounts without logins
_SHELL = "/bin/bash"


class NoAccount(StartRefused):
    """A user has no account of this machine, and gets none; the message has the remedy."""


class SystemAccounts:
    """Which account each user has. Methods block on the disk; any thread and any process of a backend may call them."""

    def __init__(
        self, root: Path, *, named: Mapping[str, str], pool: Sequence[str], prepare: Prepare = lambda *_: None
    ) -> None:
        """``named`` maps users to accounts. Without it ``pool`` has accounts for users as they come; a number is a uid.

        ``root`` is the engine's. ``prepare`` is called once for each user in a process.
        """
        self._root = root
        self._named = named
        self._pool = tuple(pool)
        self._prepare = prepare
        self._known: dict[str, SystemAccount] = {}
        self._turn = threading.Lock()

    def check(self) -> None:
        """Raises NoAccount when an account is missing, is root's or stands for two users."""
        uids: set[int] = set()
        for word in self._pool or self._named.values():
            uid = _uid(word)
            if uid in uids:
                raise NoAccount(f"two users would share the account {word} (uid {uid}); name another one")
            uids.add(uid)

    def of(self, user: str) -> SystemAccount:
        """The account of a user, from now on for good; its home and directories are there on return.

        Raises NoAccount when there is none for them, EngineError when the disk refuses.
        """
        with self._turn:
            if user not in self._known:
                try:
                    account = self._at_home(self._given(user))
                    self._prepare(user, account.uid, account.gid)
                except OSError as exc:
                    raise EngineError(f"the account of {user} cannot be used: {exc}") from exc
                self._known[user] = account
            return self._known[user]

    def _given(self, user: str) -> SystemAccount:
        """What the user has, or is given now, durably. Raises NoAccount, EngineError, OSError."""
        if not self._pool and user not in self._named:
            raise NoAccount(f"{user} has no account for tasks on this machine; add them to engine.accounts.map")
        path, words = self._root / layout.ACCOUNTS, self._pool or (self._named[user],)
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = take_lock(self._root / layout.ACCOUNTS_LOCK, HANDOVER_S)
        if lock is None:
            raise EngineError(f"{path} is being changed by another process")
        try:
            owners = _read(path)
            for word in words:
                if owners.get(str(_uid(word))) == user:
                    return resolve(word)
            free = self._free(user, words, owners)
            replace_file(path, json.dumps({**owners, str(free.uid): user}).encode())
            sync_directory(str(self._root))
            return free
        finally:
            os.close(lock)

    def _free(self, user: str, words: Sequence[str], owners: Mapping[str, str]) -> SystemAccount:
        """An account that no user ever had. Raises NoAccount with the remedy."""
        before = next((uid for uid, owner in owners.items() if owner == user), "")
        if before and self._pool:
            raise NoAccount(f"{user} has the account with uid {before}, which engine.accounts lacks; add it again")
        for word in words:
            if str(_uid(word)) not in owners and not _is_named(word):
                return resolve(word)
        if self._pool:
            raise NoAccount(
                f"{user} has no account for tasks on this machine: all {len(words)} of engine.accounts belong to other "
                "users; add more"
            )
        owner = owners[str(_uid(words[0]))]
        raise NoAccount(
            f"the account {words[0]} has the files of {owner} and cannot be {user}'s; name another one, or move these "
            f"files and take it out of {self._root / layout.ACCOUNTS}"
        )

    def _at_home(self, account: SystemAccount) -> SystemAccount:
        """With a home that is its own: what the machine says may be no directory, or another's."""
        try:
            if os.path.isdir(account.home) and os.stat(account.home).st_uid == account.uid:
                return account
        except OSError:  # not readable: no home either
            pass
        home = self._root / layout.HOMES / str(account.uid)
        home.parent.mkdir(mode=0o711, exist_ok=True)
        home.parent.chmod(0o711)
        home.mkdir(mode=0o700, exist_ok=True)
        take_over(home, account.uid, account.gid)
        return replace(account, home=str(home))


def _uid(word: str) -> int:
    return int(word) if word.isdecimal() else resolve(word).uid


def _is_named(word: str) -> bool:
    """Whether a uid that was to have no name has one: it is another account."""
    try:
        return word.isdecimal() and bool(pwd.getpwuid(int(word)))
    except KeyError:
        return False


def resolve(word: str) -> SystemAccount:
    """The account of that name, or with that uid. Raises NoAccount when there is none, or it is one with all rights."""
    try:
        found = pwd.getpwuid(int(word)) if word.isdecimal() else pwd.getpwnam(word)
    except KeyError:
        if not word.isdecimal():
            raise NoAccount(f"this machine has no account {word}; make it (useradd), or name another one") from None
        account = SystemAccount(f"pai-{word}", int(word), int(word), (), "", _SHELL)
    else:
        groups = tuple(os.getgrouplist(found.pw_name, found.pw_gid))
        shell = found.pw_shell if os.path.basename(found.pw_shell) not in _NO_SHELLS else _SHELL
        account = SystemAccount(found.pw_name, found.pw_uid, found.pw_gid, groups, found.pw_dir, shell)
    if account.uid == 0 or 0 in (account.gid, *account.groups):
        raise NoAccount(f"the account {word} has the rights of root; name another one")
    return account


def _read(path: Path) -> dict[str, str]:
    """Whose the accounts are, by uid. Raises EngineError when the file says no such thing, OSError."""
    try:
        given = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except ValueError:
        given = None
    if not isinstance(given, dict) or not all(isinstance(word, str) for word in given.values()):
        raise EngineError(f"{path} is damaged: it must map uids to users; restore it from a copy")
    return given
