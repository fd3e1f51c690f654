"""Joining a login to its task: every message passes the login's rules, and is noted."""

from __future__ import annotations

from typing import cast

from pai_backend.access.broker.rights import Limits
from pai_backend.access.gateway.entering import Entering, reachable
from pai_backend.access.gateway.guard import Guard, Ruling
from pai_backend.access.gateway.joined.front import JoinedClient, join
from pai_backend.access.gateway.joined.relay import Back, Rule
from pai_backend.access.gateway.legs import TaskLeg
from pai_backend.access.gateway.names import EntryPoint
from pai_backend.access.gateway.terminal_lines import TerminalLines
from pai_backend.model.ids import JobUid


class JoinedEntering(Entering):
    """The tasks of one login, whose legs are joined message by message."""

    _lines: TerminalLines | None = None

    def _join(self, back: TaskLeg, entry: EntryPoint, limits: Limits) -> None:
        guard = Guard(limits, reachable(entry, limits), self._room.options.max_channels)
        rules: tuple[Rule, Rule] = (guard.from_client, guard.from_task)
        if entry.idle_timeout_s is not None:
            self._lines = lines = TerminalLines()
            rules = (_lending(guard.from_client, lines), guard.from_task)
        join(cast("JoinedClient", self._front), cast("Back", back), rules, (self._from_client, self._from_task))

    def _from_client(self, kind: int, payload: bytes) -> None:
        self.sessions.from_client(kind, payload)
        self.activity.from_client(kind, payload)

    def _from_task(self, kind: int, payload: bytes) -> None:
        self.sessions.from_task(kind, payload)
        if self._lines is not None:
            self._lines.from_task(kind, payload)
        self.activity.from_task(kind, payload)

    @property
    def terminal_job(self) -> tuple[JobUid, int | None] | None:
        """As :class:`Entering` has it."""
        if self._lines is None or self._main is None or not self.sessions.terminals:
            return None
        entry = self._main[0]
        return entry.job, entry.idle_timeout_s

    def say_on_terminals(self, text: str) -> bool:
        """As :class:`Entering` has it."""
        if self._lines is None or not self._front.alive:
            return False
        self._front.say(self._lines.say(text))
        return True


def _lending(rule: Rule, lines: TerminalLines) -> Rule:
    """The rule, with room withheld for what the gateway says itself."""

    def from_client(kind: int, payload: bytes) -> Ruling:
        allowed, answer = rule(kind, payload)
        return (None if allowed is None else lines.from_client(kind, allowed)), answer

    return from_client
