"""Who may enter which job, and what they may do there: the decision, case by case."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from pai_backend.access.broker.rights import Credential, CredentialKind, Limits, Sftp, may_enter
from pai_backend.model.errors import InvalidParameters
from pai_backend.model.rights import EVERYTHING, NOTHING, limits_of
from pai_backend.store.grants import Share
from pai_backend.testing.builders import make_job, make_uid

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
LATER, EARLIER = NOW + timedelta(hours=1), NOW - timedelta(seconds=1)
JOB = make_job("train", uid=make_uid(1), user="alice", alias="train")
SFTP = limits_of(["sftp"])
SFTP_AND_WEB = limits_of(["sftp", "port:web"])


def credential(user: str = "alice", **changes: object) -> Credential:
    return Credential(user, "SHA256:x", CredentialKind.KEY, **changes)  # type: ignore[arg-type]


def share(user: str = "bob", limits: Limits = EVERYTHING, end: datetime | None = None, job: int = 1) -> Share:
    return Share(make_uid(job), user, limits, EARLIER, "alice", end)


def group(*members: str, limits: Limits = EVERYTHING, end: datetime | None = None, link: str = "") -> Share:
    return Share(make_uid(1), "group:vision", limits, EARLIER, "alice", end, link=link, members=frozenset(members))


@pytest.mark.parametrize(
    ("who", "shares", "expected"),
    [
        (credential(), (), EVERYTHING),
        (credential(limits=SFTP), (), SFTP),
        (credential(expires_at=LATER), (), EVERYTHING),
        (credential(expires_at=NOW), (), None),
        (credential(job=make_uid(1)), (), EVERYTHING),
        (credential(job=make_uid(2)), (), None),
        (credential(within=JOB.virtual_cluster), (), EVERYTHING),
        (credential(within="another"), (), None),
        (credential("bob", within="another"), (share(),), None),
        (credential("bob"), (), None),
        (credential("bob"), (share(),), EVERYTHING),
        (credential("bob"), (share(end=LATER),), EVERYTHING),
        (credential("bob"), (share(end=NOW),), None),
        (credential("bob"), (share(job=2),), None),
        (credential("carol"), (share(),), None),
        (credential("bob"), (share(limits=SFTP),), SFTP),
        (credential("bob", limits=limits_of(["sftp-read"])), (share(limits=SFTP),), limits_of(["sftp-read"])),
        (credential("bob", limits=limits_of(["port:web"])), (share(limits=limits_of(["port:tb"])),), NOTHING),
        (credential("bob", job=make_uid(2)), (share(),), None),
        (credential("bob"), (group("bob", "carol"),), EVERYTHING),
        (credential("carol", limits=SFTP), (group("bob", "carol"),), SFTP),
        (credential("dave"), (group("bob", "carol"),), None),
        (credential("vision"), (group(),), None),
        (credential("bob"), (group("bob", end=NOW),), None),
        (credential("bob"), (group("bob", link="x"),), None),
        (credential("bob"), (share(limits=SFTP), group("bob", limits=limits_of(["port:web"]))), SFTP_AND_WEB),
        (credential("bob"), (group("bob", limits=SFTP), share(end=NOW)), SFTP),
    ],
)
def test_who_enters_what_and_how(who: Credential, shares: tuple[Share, ...], expected: Limits | None) -> None:
    assert may_enter(JOB, who, shares, NOW) == expected


@pytest.mark.parametrize(
    ("principals", "task", "enters"),
    [
        ({"train"}, "", True),
        ({"train"}, "train--worker-0", True),
        ({"train--worker-0"}, "train--worker-0", True),
        ({"train--worker-0"}, "train--worker-1", False),
        ({"train--worker-0"}, "", True),
        ({"other"}, "train--worker-0", False),
        ({"training--worker-0"}, "", False),
        (set(), "", False),
    ],
)
def test_a_certificate_is_good_for_the_aliases_it_names(principals: set[str], task: str, enters: bool) -> None:
    who = credential(principals=frozenset(principals))
    assert (may_enter(JOB, who, (), NOW, task) is not None) is enters


@pytest.mark.parametrize(
    ("words", "limits"),
    [
        ([], EVERYTHING),
        (["shell"], Limits(True, True, Sftp.WRITE, (), False, False, False)),
        (["exec"], Limits(False, True, Sftp.WRITE, (), False, False, False)),
        (["sftp-read"], Limits(False, False, Sftp.READ, (), False, False, False)),
        (["sftp", "sftp-read"], Limits(False, False, Sftp.WRITE, (), False, False, False)),
        (["port:web", "port:tb", "port:web"], Limits(False, False, Sftp.NONE, ("tb", "web"), False, False, False)),
    ],
)
def test_words_mean_limits(words: list[str], limits: Limits) -> None:
    assert limits_of(words) == limits


@pytest.mark.parametrize("word", ["", "root", "port:", "sftp-write", "Shell"])
def test_other_words_are_refused_with_those_there_are(word: str) -> None:
    with pytest.raises(InvalidParameters, match="not a permission") as refused:
        limits_of(["sftp", word])
    assert "port:LABEL" in refused.value.hint


def test_nobody_is_limited_to_the_port_of_the_tasks_ssh_server() -> None:
    with pytest.raises(InvalidParameters, match="allows everything") as refused:
        limits_of(["sftp-read", "port:ssh"])
    assert "sftp-read" in refused.value.hint
