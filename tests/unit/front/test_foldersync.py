"""Which changes go where between two folders, and that none is lost."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from jupyter_pai.errors import ClientError
from jupyter_pai.foldersync import LocalFolder, planned

OLD, NEW, OTHER = (1, 1), (2, 2), (3, 3)


def done(here: object, there: object, last: object, *, both: bool) -> dict[str, list[str]]:
    sides = [{"x": mark} if mark else {} for mark in (here, there, last)]
    return {name: paths for name, paths in planned(*sides, both=both).__dict__.items() if paths}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("here", "there", "last", "expected"),
    [
        (NEW, None, None, "push"),
        (NEW, OLD, OLD, "push"),
        (None, NEW, None, "pull"),
        (OLD, NEW, OLD, "pull"),
        (None, OLD, OLD, "remove_there"),
        (OLD, None, OLD, "remove_here"),
        (NEW, OTHER, OLD, "conflicts"),
        (NEW, OTHER, None, "conflicts"),
        (NEW, None, OLD, "push"),
        (None, NEW, OLD, "pull"),
    ],
)
def test_a_change_goes_to_the_side_that_has_not_changed(
    here: object, there: object, last: object, expected: str
) -> None:
    assert done(here, there, last, both=True) == {expected: ["x"]}


def test_nothing_that_only_one_side_has_is_ever_overwritten_or_removed() -> None:
    for here, there, last, both in itertools.product(
        (None, OLD, NEW, OTHER), (None, OLD, NEW, OTHER), (None, OLD), (0, 1)
    ):
        acts = done(here, there, last, both=bool(both))
        if there not in (None, last):  # changed there
            assert not acts.keys() & {"push", "remove_there"} or here == there
        if here not in (None, last):
            assert not acts.keys() & {"pull", "remove_here"} or here == there
        if not both:
            assert not acts.keys() & {"pull", "remove_here"}


def test_a_side_that_lost_everything_removes_nothing() -> None:
    many = {str(number): OLD for number in range(20)}
    for here, there in ((many, {}), ({}, many)):
        with pytest.raises(ClientError, match="All 20 files are gone"):
            planned(here, there, many, both=True)


@pytest.mark.parametrize(
    "path", ["../x", "a/../../x", "/etc/x", ".git/config", "a\nb", 'a"b', "a\\b", "out/x", "a.pyc"]
)
def test_paths_of_a_hostile_task_and_ignored_ones_are_not_taken(tmp_path: Path, path: str) -> None:
    (tmp_path / ".gitignore").write_text("*.pyc\n")
    (tmp_path / ".paiignore").write_text("out/\n")
    folder = LocalFolder(tmp_path)
    assert not folder.carries(path)
    assert not folder.carries("sub/.GIT/hooks/post-checkout"), "a file system may not tell them apart"
    assert folder.carries("a/b c.txt")


def test_nothing_from_a_task_goes_through_a_link(tmp_path: Path) -> None:
    folder = LocalFolder(tmp_path)
    (tmp_path / "away").symlink_to("/tmp")
    (tmp_path / "own").mkdir()
    assert [folder.admits(path) for path in ("away/x", "away", "own/x", "new/x")] == [False, False, True, True]
