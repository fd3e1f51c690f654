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
from pai_backend.engine.local.account import Account
from pai_backend.engine.local.builder import replace_file
from pai_backend.engine.local.locks import HANDOVER_S, take_lock
from pai_backend.engine.local.owners import take_over
from pai_backend.engine.local.records import sync_directory

Prepare = Callable[[str, int, int], None]
"""Makes places for files of a user's tasks, given user name, uid and gid of their account. Raises OSError."""


_NO_SHELLS = frozenset({"nologin", "false", "sync", ""})  # of accounts that nobody logs in to
_SHELL = "/bin/bash"


class NoAccount(StartRefused):
    """A user has no account of this machine, and gets none; the message has the remedy."""


class Accounts:
    """Which account each user has. Methods block on the disk; any thread and any process of a backend may call them."""

    def __init__(
        self, root: Path, *, named: Mapping[str, str], pool: Sequence[str], prepare: Prepare = lambda *_: None
    ) -> None:
        """``named`` maps users to accounts. Without it ``pool`` has accounts for whoever comes; a number is a uid.

        ``root`` is the engine's. ``prepare`` is called once for each user in a process.
        """
        self._root = root
        self._named = named
        self._pool = tuple(pool)
        self._prepare = prepare
        self._known: dict[str, Account] = {}
        self._turn = threading.Lock()

    def check(self) -> None:
        """Raises NoAccount when an account is missing, is root's or stands for two users."""
        owners: dict[int, str] = {}
        for word in self._pool or self._named.values():
            uid = resolve(word).uid
            if uid in owners:
                raise NoAccount(f"two users would share the account {word} (uid {uid}); name another one")
            owners[uid] = word

    def of(self, user: str) -> Account:
        """The account of a user, from now on for good; its home and directories are there on return.

        Raises NoAccount when there is none for them, EngineError when the disk refuses.
        """
        with self._turn:
            if user not in self._known:
                account = resolve(self._word(user))
                try:
                    self._known[user] = self._at_home(account)
                    self._prepare(user, account.uid, account.gid)
                except OSError as exc:
                    self._known.pop(user, None)
                    raise EngineError(f"directories of the account {account.name} cannot be made: {exc}") from exc
            return self._known[user]

    def _word(self, user: str) -> str:
        if not self._pool:
            if user not in self._named:
                raise NoAccount(f"{user} has no account for tasks on this machine; add them to engine.accounts.map")
            return self._named[user]
        try:
            return self._given(user)
        except OSError as exc:
            raise EngineError(f"{self._root / layout.ACCOUNTS} cannot be used: {exc.strerror or exc}") from exc

    def _given(self, user: str) -> str:
        """What the pool gave to the user, or gives now, durably. Raises NoAccount, EngineError, OSError."""
        path = self._root / layout.ACCOUNTS
        lock = take_lock(self._root / layout.ACCOUNTS_LOCK, HANDOVER_S)
        if lock is None:
            raise EngineError(f"{path} is being changed by another process")
        try:
            given = _read(path)
            if (word := given.get(user)) is not None:
                if word not in self._pool:
                    why = f"{user} has the account {word}, which engine.accounts no longer names; add it again"
                    raise NoAccount(why)
                return word
            free = next((word for word in self._pool if word not in given.values()), None)
            if free is None:
                raise NoAccount(
                    f"{user} has no account for tasks on this machine: all {len(self._pool)} of engine.accounts belong "
                    "to other users; add more"
                )
            replace_file(path, json.dumps({**given, user: free}).encode())
            sync_directory(str(self._root))
            return free
        finally:
            os.close(lock)

    def _at_home(self, account: Account) -> Account:
        """With a home that is its own: what the machine says may be no directory, or another's."""
        try:
            if os.path.isdir(account.home) and os.stat(account.home).st_uid == account.uid:
                return account
        except OSError:  # for nobody to look at: no home either
            pass
        home = self._root / layout.HOMES / str(account.uid)
        home.parent.mkdir(mode=0o711, exist_ok=True)
        home.parent.chmod(0o711)
        home.mkdir(mode=0o700, exist_ok=True)
        take_over(home, account.uid, account.gid)
        return replace(account, home=str(home))


def resolve(word: str) -> Account:
    """The account of that name, or with that uid. Raises NoAccount when there is none, or it is one with all rights."""
    try:
        found = pwd.getpwuid(int(word)) if word.isdecimal() else pwd.getpwnam(word)
    except KeyError:
        if not word.isdecimal():
            raise NoAccount(f"this machine has no account {word}; make it (useradd), or name another one") from None
        account = Account(f"pai-{word}", int(word), int(word), (), "", _SHELL)
    else:
        groups = tuple(os.getgrouplist(found.pw_name, found.pw_gid))
        shell = found.pw_shell if os.path.basename(found.pw_shell) not in _NO_SHELLS else _SHELL
        account = Account(found.pw_name, found.pw_uid, found.pw_gid, groups, found.pw_dir, shell)
    if account.uid == 0 or 0 in (account.gid, *account.groups):
        raise NoAccount(f"the account {word} has the rights of root; name another one")
    return account


def _read(path: Path) -> dict[str, str]:
    """What the pool has given. Raises EngineError when the file says no such thing, OSError."""
    try:
        given = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except ValueError:
        given = None
    if not isinstance(given, dict) or not all(isinstance(word, str) for word in given.values()):
        raise EngineError(f"{path} is damaged: it must map users to accounts; restore it from a copy")
    return given
