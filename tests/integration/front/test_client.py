"""The client over real sockets: calls, errors, and streams that survive."""

from __future__ import annotations

import json
import socket
import threading

import pytest

from jupyter_pai.endpoint import Endpoint
from jupyter_pai.errors import BackendAway, Denied, InvalidDocument, NameTaken, NotFound
from jupyter_pai.following import Observer, follow, observe
from jupyter_pai.submitting import submit
from jupyter_pai.sync import Client
from tests.support.running_fake import RunningFake

DOCUMENT = json.dumps({"jobName": "train"}, indent=1).encode()


def test_a_job_goes_through_all_calls(client: Client) -> None:
    job = client.submit(DOCUMENT, filename="train.json")
    assert [row["name"] for row in client.jobs()] == ["train"]
    assert client.job("tester~train")["uid"] == job["uid"]
    assert client.source("train").data == DOCUMENT
    assert client.active_count() == 1
    assert client.events("train")[0]["seq"] == 1
    assert client.ticket("train", "web")["pathUrl"].startswith("/s/")
    client.stop("train")
    assert client.job("train")["state"] == "STOPPED"
    assert client.active_count() == 0


def test_errors_come_typed(client: Client, fake: RunningFake) -> None:
    with pytest.raises(NotFound, match=r"There is no job a/b\."):
        client.job("a/b")
    client.submit(DOCUMENT)
    with pytest.raises(NameTaken):
        client.submit(DOCUMENT)
    with pytest.raises(InvalidDocument) as caught:
        client.submit(b'{"jobName": ')
    assert (caught.value.faults[0].line, caught.value.faults[0].column) == (1, 13)
    with Client(Endpoint(fake.endpoint.url, "wrong")) as stranger, pytest.raises(Denied):
        stranger.jobs()


def test_nobody_at_the_address_is_said_with_a_remedy() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: refuses for certain
        with Client(Endpoint(f"http://127.0.0.1:{taken.getsockname()[1]}", "t")) as nobody:
            with pytest.raises(BackendAway, match="does not answer: Connection refused") as caught:
                nobody.jobs()
            assert "pai backend start" in caught.value.hint


def test_a_taken_name_gets_the_next_free_number_only_on_demand(client: Client) -> None:
    for expected in ("train", "train_2", "train_3"):
        work = submit(client.api, DOCUMENT, name=None, filename=None, fresh_name=True)
        assert client.thread.run(work)["name"] == expected


def test_events_come_once_each_although_the_connection_breaks(client: Client, fake: RunningFake) -> None:
    uid = fake.add_job("train")
    fake.backend.drop_streams_after = 2
    seen = []
    for event in client.follow_events(uid):
        seen.append((event["seq"], event["type"]))
        if len(seen) == 1:
            fake.advance(uid, "RUNNING")
        elif len(seen) == 2:
            fake.advance(uid, "SUCCEEDED")
    assert [seq for seq, _ in seen] == [1, 2, 3]


@pytest.mark.parametrize("by_ping", [False, True])
def test_a_log_comes_whole_although_the_connection_breaks(client: Client, fake: RunningFake, by_ping: bool) -> None:
    uid = fake.add_job("train")
    fake.backend.drop_by_ping = by_ping
    fake.advance(uid, "RUNNING")
    fake.write_log(uid, b"one ")
    fake.backend.drop_streams_after = 1
    pieces = client.follow_log(uid)
    text = next(pieces)
    fake.write_log(uid, b"two ")
    text += next(pieces)
    fake.write_log(uid, b"three")
    fake.advance(uid, "SUCCEEDED")
    assert text + b"".join(pieces) == b"one two three"


def test_a_log_can_begin_at_its_end(client: Client, fake: RunningFake) -> None:
    uid = fake.add_job("train")
    fake.write_log(uid, b"0123456789")
    fake.advance(uid, "SUCCEEDED")
    assert b"".join(client.follow_log(uid, offset=-3)) == b"789"
    assert client.log(uid, offset=-3).first == 7


def test_a_stream_waits_for_a_backend_that_is_restarted(client: Client, fake: RunningFake) -> None:
    uid = fake.add_job("train")
    events = client.follow_events(uid)
    assert next(events)["seq"] == 1
    fake.stop()
    threading.Timer(0.3, fake.start_again).start()
    threading.Timer(0.6, fake.advance, (uid, "SUCCEEDED")).start()
    assert [event["seq"] for event in events] == [2]


def test_a_job_is_followed_to_its_end_although_the_backend_is_away_for_a_moment(
    client: Client, fake: RunningFake
) -> None:
    uid = fake.add_job("train")
    states: list[str] = []
    for item in client.iterate(observe(client.api, uid, log=False)):
        assert isinstance(item, dict)
        states.append(item["state"])
        if item["state"] == "WAITING":
            fake.backend.away_for = 3
            fake.advance(uid, "SUCCEEDED")
    assert states == ["WAITING", "SUCCEEDED"]
    assert fake.backend.away_for == 0


def test_a_stream_of_a_job_that_is_not_there_is_an_error(client: Client) -> None:
    with pytest.raises(NotFound):
        next(client.follow_events("nobody"))


def test_leaving_a_stream_early_closes_it(client: Client, fake: RunningFake) -> None:
    uid = fake.add_job("train")
    events = client.follow_events(uid)
    next(events)
    events.close()  # type: ignore[attr-defined]
    client.close()
    assert not client.thread.loop.is_running()


def test_following_reports_every_state_and_the_whole_log_before_the_end(client: Client, fake: RunningFake) -> None:
    uid = fake.add_job("train")
    said: list[str] = []
    arrived = threading.Condition()

    def note(text: str) -> None:
        with arrived:
            said.append(text)
            arrived.notify_all()

    def wait_for(text: str) -> None:
        with arrived:
            assert arrived.wait_for(lambda: text in said, 60), said

    observer = Observer(lambda job: note(job["state"]), lambda data: note(data.decode()))
    running = client.thread.start(follow(client.api, uid, observer))
    wait_for("WAITING")
    fake.advance(uid, "RUNNING")
    wait_for("RUNNING")
    fake.write_log(uid, b"hello")
    wait_for("hello")
    fake.write_log(uid, b"last words")
    fake.advance(uid, "FAILED")
    assert running.result(10)["state"] == "FAILED"
    assert list(dict.fromkeys(said)) == ["WAITING", "RUNNING", "hello", "last words", "FAILED"]


def test_a_job_that_has_ended_is_followed_to_its_log_and_no_further(client: Client, fake: RunningFake) -> None:
    uid = fake.add_job("train")
    fake.write_log(uid, b"all of it")
    fake.advance(uid, "SUCCEEDED")
    items = list(client.iterate(observe(client.api, uid, log=True)))
    assert items[0] == b"all of it"
    assert [item["state"] for item in items if not isinstance(item, bytes)] == ["SUCCEEDED"]


def test_a_registered_key_is_listed(client: Client) -> None:
    client.add_key("ssh-ed25519 AAAA me", comment="laptop")
    registered = client.keys()
    assert [key["comment"] for key in registered] == ["laptop"]
