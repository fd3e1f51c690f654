"""What a cell shows of a log and of the job's states, which come at any moment."""

from __future__ import annotations

from jupyter_pai.cell import LineKeeper


def test_a_line_of_ours_never_stands_within_one_of_the_log() -> None:
    said: list[str] = []
    log = LineKeeper(said.append)
    log.between("train: RUNNING\n")
    log.write("GPUs ")
    log.between("train: STOPPING\n")
    log.write("1")
    log.write("\nnext")
    log.between("train: STOPPED\n")
    log.close()
    assert "".join(said) == "train: RUNNING\nGPUs 1\ntrain: STOPPING\nnext\ntrain: STOPPED\n"
