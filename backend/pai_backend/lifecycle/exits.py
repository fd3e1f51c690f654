"""Exit classes: what an exit means, who caused it, what to do, and what the platform does about it.

Rules of this file: one table, :data:`RULES`, read from top to bottom, and the first rule that matches counts. Only what
is known is said: a KILL of unknown origin has no known cause until something proves the contrary, so it costs a retry.
``docs/exits.md`` is made from the table.

Source: OpenPAI 1.8's exit specification (codes, behaviours, reactions), with these differences. There the signals
INT, QUIT, KILL and TERM are the platform's and retried without limit; here they are *unknown*. There the container's
log is searched for patterns; here nothing is guessed from what a program prints. Signal numbers are Linux's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from pai_backend.lifecycle.engine_words import engine_said
from pai_backend.model.job import Causer, ExitKind, TaskExit
from pai_backend.model.text import NO_TEXT, Text, completed


class Reaction(StrEnum):
    """What the platform does after an exit of a class."""

    NONE = "nothing"
    RETRY_FREE = "retried, not counted"
    RETRY_LATER = "retried after a pause, not counted"
    RETRY_TO_LIMIT = "retried up to the limit"
    NEVER = "never retried"


REACTIONS: Final = {
    ExitKind.SUCCESS: Reaction.NONE,
    ExitKind.TRANSIENT: Reaction.RETRY_FREE,
    ExitKind.TRANSIENT_CONFLICT: Reaction.RETRY_LATER,
    ExitKind.PERMANENT: Reaction.NEVER,
    ExitKind.UNKNOWN: Reaction.RETRY_TO_LIMIT,
}
"""OpenPAI's pairs of behaviour and reaction; a retry count of -2 overrides them all."""


@dataclass(frozen=True)
class ExitClass:
    """What is known of exits of one class."""

    phrase: str
    """A stable word for programs, in the style of OpenPAI's phrases."""
    causer: Causer
    """Whom a retry is counted under."""
    kind: ExitKind
    clause: Text
    """What it means to the user, as a clause."""
    remedy: Text = NO_TEXT
    """What the user can do, in a sentence; empty when there is nothing to do."""
    openpai: int | None = None
    """The number of the nearest class in OpenPAI's exit specification, when there is one."""

    @property
    def explanation(self) -> str:
        """One sentence for the user."""
        return f"{self.clause[0].upper()}{self.clause[1:]}."

    @property
    def reaction(self) -> Reaction:
        """What the platform does about it."""
        return REACTIONS[self.kind]


@dataclass(frozen=True)
class Rule:
    """Exits that belong to a class: those with this reason, or, where a command ended by itself, with this status."""

    of: ExitClass
    reason: str = ""
    statuses: tuple[int, ...] = ()
    causer_as_engine_says: bool = False

    def matches(self, exit_: TaskExit) -> bool:
        """Whether an exit is of this class."""
        if self.reason:
            return exit_.reason == self.reason
        return exit_.reason in BY_ITSELF and exit_.status in self.statuses


BY_ITSELF: Final = frozenset({"exited", "signalled"})
"""Reasons of a command that ended without the engine's doing: only then its status says something."""

_USER, _PLATFORM, _RESOURCE = Causer.USER, Causer.PLATFORM, Causer.RESOURCE
_TRANSIENT, _CONFLICT = ExitKind.TRANSIENT, ExitKind.TRANSIENT_CONFLICT
_PERMANENT, _UNKNOWN = ExitKind.PERMANENT, ExitKind.UNKNOWN
_LOG = Text("The end of its log says more.")
_ITS_OWN_DOING = Text(
    "See whether its command ends processes, or removes files, that are not its own. The end of its log says more."
)
_AGAIN = Text("Nothing to do: it is retried automatically and does not count as a retry.")

RULES: Final = (
    Rule(
        ExitClass("Stopped", _USER, _PERMANENT, Text("the task was asked to end"), NO_TEXT, -210),
        reason="stopped",
    ),
    Rule(
        ExitClass(
            "TaskLost",
            _PLATFORM,
            _TRANSIENT,
            Text("the node, or the process that kept the task there, was lost"),
            _AGAIN,
            -1001,
        ),
        reason="lost",
    ),
    Rule(
        ExitClass(
            "TaskVanished",
            _PLATFORM,
            _TRANSIENT,
            Text("the platform's files or pod of the task were removed while it ran"),
            Text(
                "It is retried automatically; if this happens again, find out what removes the backend's files or pods."
            ),
            -101,
        ),
        reason="vanished",
    ),
    Rule(
        ExitClass(
            "Preempted",
            _RESOURCE,
            _TRANSIENT,
            Text("it was preempted by a job that comes first"),
            Text(
                "Nothing: it is run again by itself, free of charge, when there is room. "
                "A higher priority class is preempted less."
            ),
            -101,
        ),
        reason="preempted",
    ),
    Rule(
        ExitClass(
            "Evicted",
            _RESOURCE,
            _CONFLICT,
            Text("its node ran short of memory or disk and evicted it"),
            Text("It is retried after a pause; ask for as much memory as it uses."),
            -1000,
        ),
        reason="evicted",
    ),
    Rule(
        ExitClass(
            "Drained",
            _PLATFORM,
            _TRANSIENT,
            Text("an administrator drained its node"),
            _AGAIN,
            -101,
        ),
        reason="drained",
    ),
    Rule(
        ExitClass(
            "NodeRefused",
            _RESOURCE,
            _CONFLICT,
            Text("its node rejected it, most often because other pods had taken the space"),
            Text("It is retried on another node; if all refuse it, ask the administrator what else runs there."),
        ),
        reason="refused",
    ),
    Rule(
        ExitClass(
            "PortConflict",
            _PLATFORM,
            _TRANSIENT,
            Text("another program took one of its ports before it could"),
            Text("Nothing to do: it is retried automatically on other ports and does not count as a retry."),
            253,
        ),
        reason="port-conflict",
    ),
    Rule(
        ExitClass(
            "OutOfMemory",
            _USER,
            _PERMANENT,
            Text("it used more memory than it may, and the kernel ended it"),
            Text("Ask for more with memoryMB, or use less."),
            -1200,
        ),
        reason="out-of-memory",
    ),
    Rule(
        ExitClass(
            "DiskFull",
            _RESOURCE,
            _UNKNOWN,
            Text("the disk of its node was full"),
            Text("Free disk space there, or write less; then submit it again."),
        ),
        reason="disk-full",
    ),
    Rule(
        ExitClass(
            "StorageExceeded",
            _USER,
            _PERMANENT,
            Text("it filled more disk than a task may, and its node ended it"),
            Text("Write less, or to a storage of the team."),
        ),
        reason="storage-exceeded",
    ),
    Rule(
        ExitClass(
            "DeadlineExceeded",
            _USER,
            _PERMANENT,
            Text("it ran for longer than the cluster lets tasks run"),
            Text(
                "Save its state on the way and go on from there in another job, or ask the administrator for more time."
            ),
        ),
        reason="deadline-exceeded",
    ),
    Rule(
        ExitClass(
            "InputFailed",
            _USER,
            _UNKNOWN,
            Text("its input could not be put in place, so its command was not run"),
            Text("Check codeDir, outputDir and what may be read there; the end of its log says more."),
        ),
        reason="input-failed",
    ),
    Rule(
        ExitClass(
            "ImagePullFailed",
            _USER,
            _UNKNOWN,
            Text("its image could not be fetched"),
            Text("Check the name of the image, and the credentials of its registry."),
        ),
        reason="image-pull-failed",
    ),
    Rule(
        ExitClass(
            "SshBarrierTimeout",
            _USER,
            _UNKNOWN,
            Text("the other tasks did not all answer by SSH in the time of sshbarrierTimeout"),
            Text("See what the other tasks did; raise sshbarrierTimeout if they start slowly."),
            249,
        ),
        reason="ssh-barrier",
    ),
    Rule(
        ExitClass(
            "StartFailed",
            _PLATFORM,
            _UNKNOWN,
            Text("the engine could not start it"),
            Text("Correct what the message names, or ask the administrator."),
        ),
        reason="start-failed",
        causer_as_engine_says=True,
    ),
    Rule(
        ExitClass(
            "StartForbidden",
            _USER,
            _PERMANENT,
            Text("the cluster does not allow it to start as its document asks"),
            Text("Change what the message names, or ask the administrator to allow it."),
        ),
        reason="start-forbidden",
    ),
    Rule(
        ExitClass("Succeeded", _USER, ExitKind.SUCCESS, Text("the command succeeded"), NO_TEXT, 0),
        statuses=(0,),
    ),
    Rule(
        ExitClass(
            "CommandNotExecutable",
            _USER,
            _PERMANENT,
            Text("a file that the command names was found but may not be executed"),
            Text("Make it executable with chmod +x, or name its interpreter, as in python FILE."),
        ),
        statuses=(126,),
    ),
    Rule(
        ExitClass(
            "CommandNotFound",
            _USER,
            _PERMANENT,
            Text("a program that the command names was not found"),
            Text("Check its spelling and PATH, and that the image or machine has it."),
            220,
        ),
        statuses=(127,),
    ),
    Rule(
        ExitClass(
            "Interrupted",
            _USER,
            _UNKNOWN,
            Text("signal {signal} ended it or a program it waited for; the platform did not send it"),
            Text("See in the command who sends signals, such as timeout or kill. The end of its log says more."),
            143,
        ),
        statuses=(129, 130, 131, 143),
    ),
    Rule(
        ExitClass(
            "Killed",
            _USER,
            _UNKNOWN,
            Text(
                "signal {signal} ended it or a program it waited for; the platform did not send it, "
                "and most often the machine was short of memory"
            ),
            Text("Watch its memory, ask for more with memoryMB, or use less."),
            137,
        ),
        statuses=(137,),
    ),
    Rule(
        ExitClass(
            "IllegalInstruction",
            _USER,
            _PERMANENT,
            Text("it ran an instruction that this CPU does not have"),
            Text("Use a build of the program for the CPU of the node."),
            132,
        ),
        statuses=(132,),
    ),
    Rule(
        ExitClass(
            "BusError",
            _USER,
            _PERMANENT,
            Text("it accessed memory that does not exist, most often because /dev/shm is full"),
            Text("Ask for more with shmMB, or use fewer data-loading processes."),
            135,
        ),
        statuses=(135,),
    ),
    Rule(
        ExitClass(
            "ArithmeticError",
            _USER,
            _PERMANENT,
            Text("it made an arithmetic error, such as a division by zero"),
            Text("Correct the program. The end of its log says more."),
            136,
        ),
        statuses=(136,),
    ),
    Rule(
        ExitClass(
            "BrokenPipe",
            _USER,
            _PERMANENT,
            Text("it wrote to a pipe or connection that was closed"),
            Text("See which program of the command ended early."),
            141,
        ),
        statuses=(141,),
    ),
    Rule(
        ExitClass(
            "Aborted",
            _USER,
            _UNKNOWN,
            Text("it aborted, as programs do after a failed check"),
            _LOG,
            134,
        ),
        statuses=(134,),
    ),
    Rule(
        ExitClass(
            "SegmentationFault",
            _USER,
            _UNKNOWN,
            Text("it accessed invalid memory"),
            Text(
                "Most often libraries do not go together, or there is a bug in native code. "
                "The end of its log says more."
            ),
            139,
        ),
        statuses=(139,),
    ),
)
"""The table. Reasons come first: what the engine knows beats what a number suggests."""

BY_SIGNAL: Final = ExitClass(
    "EndedBySignal", _USER, _UNKNOWN, Text("signal {signal} ended it; the platform did not send it"), _LOG, 255
)
"""A signal that no rule names."""

FAILED: Final = ExitClass("CommandFailed", _USER, _UNKNOWN, Text("the command reports failure"), _LOG, 255)
"""Any other exit, such as status 1: only the program knows what it means."""

SIGNALS: Final = {
    1: "HUP",
    2: "INT",
    3: "QUIT",
    4: "ILL",
    6: "ABRT",
    7: "BUS",
    8: "FPE",
    9: "KILL",
    11: "SEGV",
    13: "PIPE",
    15: "TERM",
}
"""Names of the signals of the table, by their number on Linux."""


def explain(exit_: TaskExit) -> ExitClass:
    """The class of an exit, its texts filled in. Every exit has one.

    What may be the task's own doing costs a retry, or a task could have itself run again for ever.
    """
    rule = next((rule for rule in RULES if rule.matches(exit_)), None)
    if rule is None:
        found = BY_SIGNAL if exit_.signal is not None else FAILED
    else:
        found = replace(rule.of, causer=exit_.causer) if rule.causer_as_engine_says else rule.of
    if exit_.unexplained and found.kind.free:
        found = replace(found, kind=ExitKind.UNKNOWN, remedy=_ITS_OWN_DOING)
    return replace(found, clause=completed(found.clause, signal=_signal(exit_)))


def explained(exit_: TaskExit) -> TaskExit:
    """The exit with its causer and a sentence for the user: what it means, and the engine's words beside it.

    To be done once, when the exit is first heard of.
    """
    meaning = explain(exit_)
    said = engine_said(exit_.message) if exit_.message else _raw(exit_)
    if exit_.reason == "stopped" or meaning.kind is ExitKind.SUCCESS:
        message = said
    else:
        message = Text("{clause} ({fact})", clause=meaning.clause, fact=said)
    return exit_.model_copy(update={"causer": meaning.causer, "message": message})


def _raw(exit_: TaskExit) -> str:
    """The bare fact, for engines that say only that."""
    if exit_.code is None and exit_.signal is None:
        return Text("{reason}, exit status not known", reason=exit_.reason)
    if exit_.signal is None:
        return Text("exited with status {code}", code=exit_.code)
    return Text("ended by signal {signal}", signal=_signal(exit_))


def _signal(exit_: TaskExit) -> str:
    """Number and name of the signal, also when a shell reports it as a status above 128."""
    number = exit_.signal if exit_.signal is not None else exit_.status - 128
    return f"{number} ({SIGNALS[number]})" if number in SIGNALS else str(number)
