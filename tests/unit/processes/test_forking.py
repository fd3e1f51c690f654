"""Children of the supervisor: what they have of it, and what they have not."""

from __future__ import annotations

import pytest

from pai_backend.processes.children import modules_of
from tests.support.interpreters import run_alone

SETTINGS = {"processes": [["api", "controller"], ["gateway"], ["agent"]]}
BEGIN = """
import os, signal, socket, sys, tempfile
from pai_backend.processes import forking
from pai_backend.processes.generations import ChildProcess

output = tempfile.TemporaryFile()

def fork(run, *kept):
    return ChildProcess(forking.fork(run, "a child", output.fileno(), kept)).wait(), output_of_child()

def output_of_child():
    return os.pread(output.fileno(), 10_000, 0).decode()
"""


def said(program: str) -> str:
    """What a program that forks has printed itself."""
    done = run_alone(BEGIN + program)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_all_roles_starts_no_thread() -> None:
    """A fork takes the thread that forks and no other."""
    assert said(f"forking.load({modules_of(SETTINGS)!r})\nprint(len(os.listdir('/proc/self/task')))") == "1\n"


@pytest.mark.parametrize("kind", ["local", "containers", "kubernetes"])
def test_what_children_import_exists(kind: str) -> None:
    modules = modules_of({**SETTINGS, "engine": {"kind": kind}})
    said(f"import importlib\nfor name in {modules!r}:\n    importlib.import_module(name)")


def test_what_cannot_be_imported_is_left_to_the_child_that_needs_it() -> None:
    program = "forking.load(['pai_backend.no_such_module', 'colorsys'])\nprint('colorsys' in sys.modules)"
    assert said(program) == "True\n"


def test_a_child_has_the_descriptors_that_are_named_for_it_and_no_other() -> None:
    program = """
named, other, (read, write) = socket.socket(), socket.socket(), os.pipe()

def run():
    there = {int(each) for each in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{each}")}
    print(there == {0, 1, 2, named.fileno(), write}, os.readlink("/proc/self/fd/0"))
    os.write(write, b"x")
    return 0

print(*fork(run, named.fileno(), write), os.read(read, 1), other.fileno() > 2)
"""
    assert said(program) == "0 True /dev/null\n b'x' True\n"


def test_signals_of_a_child_are_as_in_a_program_that_has_begun() -> None:
    program = """
for number in forking.HEARD:
    signal.signal(number, lambda _number, _frame: None)
signal.set_wakeup_fd(os.pipe2(os.O_NONBLOCK)[1])

def run():
    print([signal.getsignal(number).__name__ for number in forking.HEARD if number == signal.SIGINT])
    print({signal.getsignal(number) for number in forking.HEARD if number != signal.SIGINT} == {signal.SIG_DFL})
    print(signal.pthread_sigmask(signal.SIG_BLOCK, ()), signal.set_wakeup_fd(-1))
    return 7

print(*fork(run), signal.pthread_sigmask(signal.SIG_BLOCK, ()))
"""
    assert said(program) == "7 ['default_int_handler']\nTrue\nset() -1\n set()\n"


def test_a_child_that_fails_says_of_what_and_returns_to_no_frame_of_its_parent() -> None:
    program = """
def run():
    raise KeyError("of the child")

try:
    code, words = fork(run)
finally:
    print(os.getpid() == int(os.readlink("/proc/self")))
print(code, words.splitlines()[-1])
"""
    assert said(program) == "True\n1 KeyError: 'of the child'\n"


def test_a_child_is_known_by_its_name() -> None:
    program = """
def run():
    print(open("/proc/self/cmdline").read().rstrip(chr(0)))
    return 0

print(*fork(run))
"""
    assert said(program) == "0 a child\n\n"


def test_where_forks_are_not_safe_a_child_is_a_program_with_the_same_descriptors() -> None:
    program = """
named, other = socket.socket(), socket.socket()
told = "import os, sys; print([os.path.exists(f'/proc/self/fd/{each}') for each in sys.argv[1:]])"
words = [sys.executable, "-c", told, str(named.fileno()), str(other.fileno())]
child = ChildProcess(forking.spawn(words, output.fileno(), (named.fileno(),)))
print(child.wait(), output_of_child(), os.get_inheritable(named.fileno()))
"""
    assert said(program) == "0 [True, False]\n False\n"
