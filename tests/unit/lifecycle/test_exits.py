"""The table of exit classes: what each exit is, and that nothing is missing from it."""

import re

import pytest

from pai_backend.lifecycle.exits import REACTIONS, RULES, ExitClass, Reaction, explain, explained
from pai_backend.model.job import Causer, ExitKind, TaskExit
from pai_backend.testing.builders import T0

USER, PLATFORM, RESOURCE = Causer.USER, Causer.PLATFORM, Causer.RESOURCE
FREE, LATER = Reaction.RETRY_FREE, Reaction.RETRY_LATER
LIMIT, NEVER = Reaction.RETRY_TO_LIMIT, Reaction.NEVER


def exit_of(code: int | None, signal: int | None, reason: str, causer: Causer = USER, message: str = "") -> TaskExit:
    return TaskExit(code=code, signal=signal, reason=reason, causer=causer, message=message, at=T0)


@pytest.mark.parametrize(
    ("code", "signal", "reason", "phrase", "causer", "reaction"),
    [
        # OpenPAI's exit specification, as far as it holds here
        (0, None, "exited", "Succeeded", USER, Reaction.NONE),
        (1, None, "exited", "CommandFailed", USER, LIMIT),
        (255, None, "exited", "CommandFailed", USER, LIMIT),
        (127, None, "exited", "CommandNotFound", USER, NEVER),
        (126, None, "exited", "CommandNotExecutable", USER, NEVER),  # POSIX shell, exit status of commands
        (None, 4, "signalled", "IllegalInstruction", USER, NEVER),
        (None, 7, "signalled", "BusError", USER, NEVER),
        (None, 8, "signalled", "ArithmeticError", USER, NEVER),
        (None, 13, "signalled", "BrokenPipe", USER, NEVER),
        (None, None, "out-of-memory", "OutOfMemory", USER, NEVER),
        (None, None, "preempted", "Preempted", RESOURCE, FREE),
        (None, None, "lost", "TaskLost", PLATFORM, FREE),
        (None, None, "evicted", "Evicted", RESOURCE, LATER),
        (None, None, "port-conflict", "PortConflict", PLATFORM, FREE),
        (None, None, "ssh-barrier", "SshBarrierTimeout", USER, LIMIT),
        # where OpenPAI blames the platform without knowing
        (None, 9, "signalled", "Killed", USER, LIMIT),
        (None, 15, "signalled", "Interrupted", USER, LIMIT),
        (None, 2, "signalled", "Interrupted", USER, LIMIT),
        (None, 3, "signalled", "Interrupted", USER, LIMIT),
        # a shell's way of reporting a signal of a program it waited for (POSIX shell)
        (137, None, "exited", "Killed", USER, LIMIT),
        (143, None, "exited", "Interrupted", USER, LIMIT),
        (139, None, "exited", "SegmentationFault", USER, LIMIT),
        (None, 6, "signalled", "Aborted", USER, LIMIT),
        (None, 10, "signalled", "EndedBySignal", USER, LIMIT),
        # ours
        (None, None, "vanished", "TaskVanished", PLATFORM, FREE),
        (None, None, "disk-full", "DiskFull", RESOURCE, LIMIT),
        (137, None, "storage-exceeded", "StorageExceeded", USER, NEVER),
        (137, None, "deadline-exceeded", "DeadlineExceeded", USER, NEVER),
        (None, 15, "drained", "Drained", PLATFORM, FREE),
        (None, None, "refused", "NodeRefused", RESOURCE, LATER),
        (None, None, "input-failed", "InputFailed", USER, LIMIT),
        (None, None, "image-pull-failed", "ImagePullFailed", USER, LIMIT),
        (None, None, "start-failed", "StartFailed", USER, LIMIT),
        (None, None, "start-forbidden", "StartForbidden", USER, NEVER),
        (None, 15, "stopped", "Stopped", USER, NEVER),
        # what the engine knows beats what a number suggests
        (137, None, "out-of-memory", "OutOfMemory", USER, NEVER),
        (127, None, "lost", "TaskLost", PLATFORM, FREE),
        (0, None, "disk-full", "DiskFull", RESOURCE, LIMIT),
    ],
)
def test_an_exit_is_of_its_class(
    code: int | None, signal: int | None, reason: str, phrase: str, causer: Causer, reaction: Reaction
) -> None:
    found = explain(exit_of(code, signal, reason))
    assert (found.phrase, found.causer, found.reaction) == (phrase, causer, reaction)


@pytest.mark.parametrize("causer", list(Causer))
def test_who_keeps_a_task_from_starting_is_the_engines_word(causer: Causer) -> None:
    assert explain(exit_of(None, None, "start-failed", causer)).causer is causer


def test_every_reason_that_an_engine_may_give_is_in_the_table() -> None:
    described = TaskExit.model_fields["reason"].description or ""
    reasons = set(re.findall(r"[a-z-]+", described))
    assert reasons - {"exited", "signalled"} == {rule.reason for rule in RULES if rule.reason}


def test_every_status_and_signal_has_a_class_with_a_whole_sentence() -> None:
    for number in range(256):
        check(explain(exit_of(number, None, "exited")))
    for number in range(1, 65):
        check(explain(exit_of(None, number, "signalled")))


def check(found: ExitClass) -> None:
    assert re.fullmatch(r"[A-Z][^{}]+\.", found.explanation), found
    assert found.remedy == "" or found.remedy.endswith("."), found
    assert found.kind in REACTIONS


def test_no_two_rules_claim_the_same_exit_or_phrase() -> None:
    claims = [claim for rule in RULES for claim in (rule.reason, *rule.statuses) if claim != ""]
    assert len(claims) == len(set(claims))
    phrases = [rule.of.phrase for rule in RULES]
    assert len(phrases) == len(set(phrases))


def test_every_failure_that_is_not_retried_by_itself_comes_with_a_remedy() -> None:
    for rule in RULES:
        if rule.of.kind in (ExitKind.PERMANENT, ExitKind.UNKNOWN) and rule.of.phrase != "Stopped":
            assert rule.of.remedy, rule.of.phrase


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (exit_of(7, None, "exited"), "the command reports failure (exited with status 7)"),
        (
            exit_of(127, None, "exited", message="exited with status 127"),
            "a program that the command names was not found (exited with status 127)",
        ),
        (
            exit_of(None, 11, "signalled"),
            "it accessed invalid memory (ended by signal 11 (SEGV))",
        ),
        (
            exit_of(137, None, "exited"),
            "signal 9 (KILL) ended it or a program it waited for; the platform did not send it, and most often "
            "the machine was short of memory (exited with status 137)",
        ),
        (
            exit_of(None, None, "start-failed", message="bash is not on this machine"),
            "the engine could not start it (bash is not on this machine)",
        ),
        (exit_of(None, None, "stopped", message="stopped before it started"), "stopped before it started"),
        (exit_of(0, None, "exited", message="exited with status 0"), "exited with status 0"),
    ],
)
def test_a_user_reads_a_sentence_with_the_raw_fact_beside_it(given: TaskExit, message: str) -> None:
    assert explained(given).message == message


def test_explaining_sets_who_is_charged_and_keeps_the_facts() -> None:
    given = exit_of(None, None, "evicted")
    told = explained(given)
    assert told.causer is RESOURCE
    assert (told.code, told.signal, told.reason, told.at) == (given.code, given.signal, given.reason, given.at)
