"""Who has which processors while a bench gives a part of a cluster its own."""

from __future__ import annotations

import os

import pytest

from tests.support.interpreters import run_alone

PROGRAM = """
import os, subprocess, sys, threading
from bench.kubernetes.processors import apart

def of_child():
    words = [sys.executable, "-c", "import os; print(sorted(os.sched_getaffinity(0)))"]
    return eval(subprocess.run(words, check=True, capture_output=True, text=True).stdout)

before, told, ask, stop = sorted(os.sched_getaffinity(0)), [], threading.Event(), threading.Event()
other = threading.Thread(target=lambda: (ask.wait(), told.append(sorted(os.sched_getaffinity(0)))))
other.start()
with apart() as others:
    with others():
        theirs = of_child()
    ours = of_child()
    ask.set()
    other.join()
assert of_child() == before, "not given back"
assert theirs and ours and sorted(theirs + ours) == before, (theirs, ours, before)
assert told == [ours], "a thread that was there already stayed where it was"
"""


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="only Linux binds processes to processors")
@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="there is one processor")
def test_a_part_of_a_cluster_and_its_clients_have_half_of_the_processors_each_and_all_again_afterwards() -> None:
    ended = run_alone(PROGRAM)
    assert (ended.returncode, ended.stderr) == (0, "")
