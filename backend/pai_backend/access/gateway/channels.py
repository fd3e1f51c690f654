"""What one login has open: its channels, their two numbers, who has closed them, what each session runs; and what it
listens with in the task. No I/O.

This is the only place that says which channels are open. A number names one channel from its opening until both ends
have closed it (RFC 4254 §5.3), so nothing that is known of a channel outlives it or is given to another one.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from pai_backend.access.gateway.reading_only import ReadingOnly
from pai_backend.engine.ssh_wire import PacketDecodeError


@dataclass(slots=True)
class SshChannel:
    """One channel. ``client`` and ``task`` are the numbers that the ends gave it; None before an end has confirmed."""

    client: int | None
    task: int | None
    is_session: bool
    closed_by_client: bool = False
    closed_by_task: bool = False
    files: ReadingOnly | None = None
    """What the client's SFTP requests pass through, from the first byte that a server can read to the channel's end."""
    is_started: bool = False
    """Whether a shell, exec or subsystem request was passed on and has not failed."""
    _asked: int = 0
    _answered: int = 0
    _start: int = -1
    """Which of the replies is that to the request that starts the session; -1 when none is due."""

    def note_request(self, *, wants_reply: bool, starts: bool) -> None:
        """A request is passed on to the task."""
        if starts:
            self.is_started = True
            self._start = self._asked if wants_reply else -1
        self._asked += wants_reply

    def note_reply(self, *, success: bool) -> None:
        """The task has answered the oldest request that wants a reply. A start that failed can be tried again.

        PuTTY does so: where the SFTP subsystem fails, it asks for a command on the same channel.
        """
        if self._answered == self._start and not success:
            self.is_started = False
        self._answered += 1


_LISTENS = {b"tcpip-forward": 1, b"streamlocal-forward@openssh.com": 1}
_LISTENS |= {b"cancel-" + name: -1 for name in _LISTENS}


class Listening:
    """What a login listens with in the task (``ssh -R``), by its global requests and their answers (RFC 4254 §4, §7.1).

    Answers have no number: they come in the order of the requests that want one.
    """

    __slots__ = ("_due", "count")

    def __init__(self) -> None:
        self.count = 0
        """Ports and sockets, those that are asked for among them."""
        self._due: deque[int] = deque()

    @staticmethod
    def change(name: bytes) -> int:
        """1 for a request to listen, -1 for one to end that, 0 for others, in any spelling that servers take."""
        plain = name.replace(b"_", b"-").replace(b"-at-", b"@").replace(b"-dot-", b".")
        return _LISTENS.get(plain, 0)

    def asked(self, change: int, *, wants_reply: bool) -> None:
        """A request is passed on. One to listen counts from here on, until its answer says otherwise."""
        if change > 0 or not wants_reply:
            self.count = max(0, self.count + change)
        if wants_reply:
            self._due.append(change)

    def answered(self, *, success: bool) -> None:
        """The task has answered the oldest request that wants a reply."""
        change = self._due.popleft() if self._due else 0
        if (change > 0 and not success) or (change < 0 and success):
            self.count = max(0, self.count - 1)


class Channels:
    """All channels and listeners of one login, at most ``most`` at a time, opened by the client or by the task."""

    __slots__ = ("_by_client", "_by_task", "_offered", "listening", "most")

    def __init__(self, most: int) -> None:
        self.most = most
        self.listening = Listening()
        self._by_client: dict[int, SshChannel] = {}
        self._by_task: dict[int, SshChannel] = {}
        self._offered = 0
        """Channels that the task has opened and the client has not answered."""

    @property
    def is_full(self) -> bool:
        """Whether no further channel or listener may be opened."""
        return len(self._by_client) + self._offered + self.listening.count >= self.most

    def by_client(self, number: int) -> SshChannel | None:
        """The channel with the client's number."""
        return self._by_client.get(number)

    def by_task(self, number: int) -> SshChannel | None:
        """The channel with the task's number."""
        return self._by_task.get(number)

    def opened_by_client(self, number: int, *, is_session: bool) -> None:
        """The client opens a channel. Raises PacketDecodeError for a number that another open channel of it has."""
        self._add_client(number, SshChannel(number, None, is_session))

    def opened_by_task(self, number: int) -> None:
        """The task opens a channel. Raises PacketDecodeError for a number that another open channel of it has."""
        self._add_task(number, SshChannel(None, number, is_session=False))
        self._offered += 1

    def confirmed_by_task(self, client: int, task: int) -> None:
        """The task takes a channel. Raises PacketDecodeError where it cannot."""
        channel = self._by_client.get(client)
        if channel is None or channel.task is not None:
            raise PacketDecodeError("a confirmation of a channel that was not asked for")
        channel.task = task
        self._add_task(task, channel)

    def confirmed_by_client(self, task: int, client: int) -> None:
        """The client takes a channel. Raises PacketDecodeError where it cannot."""
        channel = self._by_task.get(task)
        if channel is None or channel.client is not None:
            raise PacketDecodeError("a confirmation of a channel that was not asked for")
        channel.client = client
        self._add_client(client, channel)
        self._offered -= 1

    def refused_by_task(self, client: int) -> None:
        """The task does not take a channel."""
        channel = self._by_client.get(client)
        if channel is not None and channel.task is None:
            del self._by_client[client]

    def refused_by_client(self, task: int) -> None:
        """The client does not take a channel."""
        channel = self._by_task.get(task)
        if channel is not None and channel.client is None:
            del self._by_task[task]
            self._offered -= 1

    def closed_by_client(self, task: int) -> None:
        """The client has closed its side of a channel."""
        channel = self._by_task.get(task)
        if channel is not None:
            channel.closed_by_client = True
            self._forget_closed(channel)

    def closed_by_task(self, client: int) -> None:
        """The task has closed its side of a channel."""
        channel = self._by_client.get(client)
        if channel is not None:
            channel.closed_by_task = True
            self._forget_closed(channel)

    def _forget_closed(self, channel: SshChannel) -> None:
        if channel.closed_by_client and channel.closed_by_task:
            assert channel.client is not None
            assert channel.task is not None
            del self._by_client[channel.client]
            del self._by_task[channel.task]

    def _add_client(self, number: int, channel: SshChannel) -> None:
        if number in self._by_client:
            raise PacketDecodeError("a channel number that is in use")
        self._by_client[number] = channel

    def _add_task(self, number: int, channel: SshChannel) -> None:
        if number in self._by_task:
            raise PacketDecodeError("a channel number that is in use")
        self._by_task[number] = channel
