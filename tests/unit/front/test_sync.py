"""The plain client: its calls look like those of the asynchronous one."""

from __future__ import annotations

import asyncio
import inspect
import sys
import threading
from collections.abc import AsyncIterator, Callable
from types import FrameType

import pytest

from jupyter_pai import sync
from jupyter_pai.client import AsyncClient
from jupyter_pai.sync import Blocking, Client, LoopThread

ANSWER_S = 2.0


@pytest.mark.parametrize("call", ["submit", "jobs", "follow_log"])
def test_help_shows_the_parameters_and_the_words_of_the_asynchronous_call(call: str) -> None:
    plain, asynchronous = getattr(Client, call), getattr(AsyncClient, call)
    assert inspect.signature(plain) == inspect.signature(asynchronous)
    assert plain.__doc__ == asynchronous.__doc__


def interrupted_at(step: int, action: Callable[[], None]) -> bool:
    """Do ``action`` with Ctrl-C at the given step of what sync.py, and the locks of Python it uses, do for it.

    Says whether there were so many steps. Raises whatever but KeyboardInterrupt comes out.
    """
    left = step

    def count(frame: FrameType, event: str, _: object) -> object:
        nonlocal left
        if frame.f_code.co_filename not in (sync.__file__, threading.__file__):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            left -= 1
            if left < 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return count

    before = sys.gettrace()
    sys.settrace(count)  # type: ignore[arg-type]  # the stubs cannot say that a trace function gives itself
    try:
        action()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


async def numbers() -> AsyncIterator[int]:
    for number in range(3):
        await asyncio.sleep(0)
        yield number


# An interrupt before the work has begun leaves a coroutine that is thrown away.
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
def test_ctrl_c_at_any_moment_comes_out_as_itself_and_leaves_a_loop_that_answers() -> None:
    thread = LoopThread()
    step = 0

    def follow() -> None:
        for _ in Blocking(thread, None).iterate(numbers()):
            pass

    while interrupted_at(step, follow):
        assert thread.start(asyncio.sleep(0, step)).result(ANSWER_S) == step
        step += 1
    assert step > 100, "the steps were not seen"
    thread.close()
