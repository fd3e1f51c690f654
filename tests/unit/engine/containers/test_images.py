"""Which images go, by what name Podman knows an image, and what the engine remembers of names."""

from __future__ import annotations

import fcntl
import itertools
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pai_backend.engine.containers.image_records import ImageRecord, ImageRecords
from pai_backend.engine.containers.image_words import layers_of, listed_images
from pai_backend.engine.images import (
    Image,
    ImageRule,
    KeptBecause,
    Layer,
    Wanted,
    exact_reference,
    expired_images,
    kept_because,
    total_bytes,
)

NOW = datetime(2026, 11, 29, tzinfo=UTC)
NAMES = [f"docker.io/library/image:{number}" for number in range(6)]


def image(number: int = 0, **more: object) -> Image:
    """An image that may be removed, used ``number`` hours ago, of 10 bytes."""
    made = Image(
        f"{number:064x}",
        (f"docker.io/library/made:{number}",),
        (),
        (Layer(f"own {number}", 10),),
        NOW - timedelta(days=100),
        NOW - timedelta(hours=number),
        is_fetched=True,
    )
    return replace(made, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given_name", "exact"),
    [
        ("python", "docker.io/library/python:latest"),
        ("python:3.12", "docker.io/library/python:3.12"),
        ("team/image", "docker.io/team/image:latest"),
        ("docker.io/python:1", "docker.io/library/python:1"),
        ("index.docker.io/team/image:1", "docker.io/team/image:1"),
        ("localhost/x", "localhost/x:latest"),
        ("registry:5000/x", "registry:5000/x:latest"),
        ("registry:5000/x:2@sha256:ab", "registry:5000/x@sha256:ab"),
    ],
)
def test_an_image_has_one_exact_name(given_name: str, exact: str) -> None:
    assert exact_reference(given_name) == exact
    assert exact_reference(exact) == exact


@pytest.mark.parametrize(
    ("kept", "why"),
    [
        (image(tasks=1), KeptBecause.IN_USE),
        (image(containers=1), KeptBecause.IN_USE),
        (image(is_runtime=True), KeptBecause.RUNTIME),
        (image(names=(NAMES[0],)), KeptBecause.WAITING),
        (image(names=(), digests=(NAMES[1],)), KeptBecause.OFFERED),
        (image(is_fetched=False), KeptBecause.NOT_FETCHED),
    ],
)
def test_each_reason_keeps_an_image_by_itself(kept: Image, why: KeptBecause) -> None:
    wanted = Wanted(frozenset({NAMES[0]}), frozenset({NAMES[1]}))
    assert kept_because(kept, wanted) == [why]
    rule = ImageRule(most_bytes=1, keep=timedelta(seconds=1))
    assert expired_images([kept], wanted, rule, NOW + timedelta(days=1)) == []
    assert expired_images([image()], wanted, rule, NOW + timedelta(days=1)) == [image()]


def test_images_that_people_put_here_go_only_if_told_so_and_once_used() -> None:
    own, unused = image(1, is_fetched=False), image(2, is_fetched=False, used_at=None)
    assert expired_images([own, unused], Wanted(), ImageRule(1, None, others=True), NOW) == [own]


def test_the_least_recently_used_go_until_the_rest_fits() -> None:
    images = [image(number) for number in (3, 1, 2)]
    assert expired_images(images, Wanted(), ImageRule(most_bytes=20), NOW) == [image(3)]
    assert expired_images(images, Wanted(), ImageRule(most_bytes=19), NOW) == [image(3), image(2)]
    assert expired_images(images, Wanted(), ImageRule(most_bytes=30), NOW) == []


def test_a_shared_layer_counts_once_and_is_free_when_its_last_image_is_gone() -> None:
    base = Layer("base", 1000)
    images = [replace(image(number), layers=(base, Layer(f"own {number}", 10))) for number in (1, 2)]
    assert total_bytes(images) == 1020
    assert expired_images(images, Wanted(), ImageRule(most_bytes=1020), NOW) == []
    assert expired_images(images, Wanted(), ImageRule(most_bytes=1010), NOW) == [images[1]]
    assert expired_images(images, Wanted(), ImageRule(most_bytes=1009), NOW) == [images[1], images[0]]


def test_an_image_goes_by_age_also_where_there_is_room() -> None:
    rule = ImageRule(keep=timedelta(hours=5))
    assert expired_images([image(5), image(6)], Wanted(), rule, NOW) == [image(6)]


def test_without_a_limit_every_image_stays() -> None:
    assert not ImageRule().is_set
    assert expired_images([image(10_000)], Wanted(), ImageRule(), NOW) == []


LAYERS = st.lists(st.integers(0, 5).map(lambda number: Layer(str(number), 10**number)), max_size=4)
IMAGES = st.lists(
    st.builds(
        Image,
        identity=st.integers(0, 10**6).map(str),
        names=st.lists(st.sampled_from(NAMES), max_size=2, unique=True).map(tuple),
        digests=st.just(()),
        layers=LAYERS.map(tuple),
        made_at=st.just(NOW - timedelta(days=9)),
        used_at=st.none() | st.integers(0, 200).map(lambda hours: NOW - timedelta(hours=hours)),
        is_fetched=st.booleans(),
        is_runtime=st.booleans(),
        tasks=st.integers(0, 1),
        containers=st.integers(0, 1),
    ),
    max_size=8,
    unique_by=lambda each: each.identity,
)
WANTED = st.builds(Wanted, st.frozensets(st.sampled_from(NAMES)), st.frozensets(st.sampled_from(NAMES)))
RULES = st.builds(
    ImageRule,
    st.none() | st.integers(0, 400_000),
    st.none() | st.integers(1, 200).map(lambda hours: timedelta(hours=hours)),
    st.booleans(),
)


@given(IMAGES, WANTED, RULES)
def test_no_image_that_is_kept_goes_and_what_stays_fits_or_is_kept(
    images: list[Image], wanted: Wanted, rule: ImageRule
) -> None:
    gone = expired_images(images, wanted, rule, NOW)
    stays = [each for each in images if each not in gone]
    for each in gone:
        in_use = each.tasks or each.containers or each.is_runtime
        assert not in_use, "an image in use was removed"
        assert each.every_name.isdisjoint(wanted.waiting | wanted.offered), "a wanted image was removed"
        assert each.is_fetched or (rule.others and each.used_at is not None), "an image of others was removed"
    free = [each for each in stays if not kept_because(each, wanted, others=rule.others)]
    if rule.most_bytes is not None and free:
        assert total_bytes(stays) <= rule.most_bytes, "an image that may go stays, and there is no room"
    for each in free:
        assert rule.keep is None or NOW - (each.used_at or each.made_at) <= rule.keep, "an old image stays"
    young = [each for each in gone if rule.keep is None or NOW - (each.used_at or each.made_at) <= rule.keep]
    if young:  # the last one to go for want of room was needed for it
        assert rule.most_bytes is not None
        kept_then = stays + gone[gone.index(young[-1]) :]
        assert total_bytes(kept_then) > rule.most_bytes, "an image was removed although there was room"


def test_sizes_of_layers_come_from_the_history_without_its_empty_steps() -> None:
    inspected = {
        "Id": "i",
        "RootFS": {"Layers": ["a", "b"]},
        "History": [{"created_by": "ADD"}, {"created_by": "ENV", "empty_layer": True}, {"created_by": "RUN"}],
    }
    layers = layers_of(inspected, [{"size": 5}, {"size": 0}, {"size": 100}], 105)
    assert [layer.size_bytes for layer in layers] == [100, 5]
    other = {**inspected, "RootFS": {"Layers": ["a", "c"]}}
    shared = layers_of(other, [{"size": 7}, {"size": 0}, {"size": 100}], 107)
    assert shared[0] == layers[0]
    assert shared[1].identity != layers[1].identity
    assert layers_of(inspected, [], 105) == (Layer("i", 105),)
    assert [each.size_bytes for each in layers_of({**inspected, "RootFS": {"Layers": ["a"]}}, [], 9)] == [9]


def test_an_image_that_podman_lists_for_each_name_is_one() -> None:
    entry = '{"Id": "i", "Names": ["b:1", "a:1"], "RepoDigests": null, "Size": 7, "Created": 0, "Containers": 2}'
    (found,) = listed_images(f"[{entry}, {entry}]")
    assert (found.names, found.digests, found.containers) == (("a:1", "b:1"), (), 2)


def test_a_fetch_is_the_engines_only_when_it_brought_something() -> None:
    nothing = ImageRecord("x:1", before="")
    assert nothing.fetched("") is nothing
    assert nothing.fetched("id").identities == ("id",)
    same = ImageRecord("x:1", before="id")
    assert same.fetched("id") is same
    assert same.fetched("newer").identities == ("newer",)
    assert ImageRecord("x:1").fetched("id").identities == ()


def test_records_outlive_the_backend_and_a_broken_one_is_left_out(tmp_path: Path) -> None:
    record = ImageRecord("x:1", ("ann",), 5.0, None, ("id",))
    ImageRecords(tmp_path).change("x:1", lambda _: record)
    ImageRecords(tmp_path).change("y:1", lambda _: ImageRecord("y:1"))
    again = ImageRecords(tmp_path)
    assert again.get("x:1") == record
    for file in (tmp_path / "images").glob("*.json"):
        if '"y:1"' in file.read_text():
            file.write_text("{")
    assert again.all() == {"x:1": record}
    again.change("x:1", lambda now: now.without("id"))
    assert again.all() == {}


def test_each_removal_is_another_one(tmp_path: Path) -> None:
    records, seen = ImageRecords(tmp_path), []
    for _ in range(3):
        seen.append(records.removals())
        records.note_removal()
    assert all(earlier < later for earlier, later in itertools.pairwise([*seen, records.removals()]))


def test_a_removal_waits_for_starts_of_the_image_and_starts_wait_for_it(tmp_path: Path) -> None:
    records, order = ImageRecords(tmp_path), []
    removing = threading.Event()

    def remove() -> None:
        removing.set()
        with records.held(["x:1"], alone=True):
            order.append("removed")

    with records.held(["x:1"]), records.held(["x:1"]):  # starts do not wait for each other
        thread = threading.Thread(target=remove)
        thread.start()
        removing.wait()
        thread.join(0.2)
        order.append("started")
    thread.join()
    assert order == ["started", "removed"]
    with records.held(["x:1"], alone=True):
        (lock,) = (tmp_path / "images").glob("[0-9]*.lock")
        with open(lock) as file, pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
