"""``python -m pai_backend serve``: read the configuration, then become the supervisor or run roles. And ``rotate-key``.

Settings travel to the supervisor's children in a nameless file that only inherited descriptors reach: no secret is in
an argument or a variable, and all processes see the same values.
"""

from __future__ import annotations

import gc
import getpass
import os
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, version

EXIT_CONFIG = 2
_USAGE = """\
usage: python -m pai_backend serve [--config FILE] [--KEY VALUE ...]   (serve --help lists every key)
       python -m pai_backend rotate-key [--config FILE] [--KEY VALUE ...]   (encrypt the database with a new key)
       python -m pai_backend backup DIRECTORY [--logs] [...]  (copy the database while the backend runs)
       python -m pai_backend restore DIRECTORY [--logs] [...] (put the copy in its place; the backend is stopped)
       python -m pai_backend adopt [--force] [...]            (take over the tasks of another database)
       python -m pai_backend cluster init [--config FILE] [--output FILE] [...]   (make a cluster configuration from
                                                              the nodes; cluster init --help)
       python -m pai_backend cluster remove [--config FILE] [...]                 (take all tasks out of Kubernetes)
       python -m pai_backend cluster compare OLD NEW          (what `pai cluster plan OLD NEW` runs)
       python -m pai_backend simulate CONFIG TRACE [--compare CONFIG] [...]   (what `pai simulate` runs)
       python -m pai_backend setup [...]                      (write the configuration and systemd unit of a server)
       python -m pai_backend doctor [--config FILE] [...]     (check a server; what `pai doctor --server` runs)
       python -m pai_backend hash-password                    (for api.users; asks for it, or reads a line)"""
SHORTEST_PASSWORD = 6  # characters, as in OpenPAI


def package_version() -> str:
    """Version of the installed distribution; ``0+unknown`` when run from bare sources."""
    try:
        return version("jupyter-pai")
    except PackageNotFoundError:
        return "0+unknown"


def main(arguments: list[str]) -> int:
    """Run the command line; returns the exit code."""
    if arguments[:1] == ["--version"]:
        sys.stdout.write(package_version() + "\n")
        return 0
    if arguments[:1] == ["rotate-key"]:
        from pai_backend.commands.rotate_key import main as rotate_key

        return rotate_key(arguments[1:])
    if arguments[:1] in (["backup"], ["restore"]):
        from pai_backend.commands.backup import main as backup

        return backup(arguments)
    if arguments[:1] == ["adopt"]:
        from pai_backend.commands.adopt import main as adopt

        return adopt(arguments[1:])
    if arguments[:2] == ["cluster", "init"]:
        from pai_backend.commands.cluster_init import main as cluster_init

        return cluster_init(arguments[2:])
    if arguments[:2] == ["cluster", "remove"]:
        from pai_backend.commands.cluster_remove import main as cluster_remove

        return cluster_remove(arguments[2:])
    if arguments[:2] == ["cluster", "compare"]:
        from pai_backend.commands.cluster_compare import main as cluster_compare

        return cluster_compare(arguments[2:])
    if arguments[:1] == ["setup"]:
        from pai_backend.commands.setup import main as setup

        return setup(arguments[1:])
    if arguments[:1] == ["doctor"]:
        from pai_backend.commands.server_check import main as doctor

        return doctor(arguments[1:])
    if arguments[:1] == ["simulate"]:
        from pai_backend.simulation.command import main as simulate

        return simulate(arguments[1:])
    if arguments == ["hash-password"]:
        return _hash_password()
    if arguments[:1] != ["serve"]:
        asked_for_help = arguments[:1] in (["-h"], ["--help"])
        (sys.stdout if asked_for_help else sys.stderr).write(_USAGE + "\n")
        return 0 if asked_for_help else EXIT_CONFIG
    gc.disable()  # imports make no garbage, and searching them for it takes an eighth of a start; app.py enables it
    if arguments[1:2] == ["--check-inherited"]:
        from pai_backend.processes.app import check_inherited

        return check_inherited(int(arguments[2]), package_version())
    if "--inherited" in arguments:
        from pai_backend.processes.app import run_inherited

        return run_inherited(arguments[1:], package_version())
    return _serve(arguments[1:])


def _hash_password() -> int:
    """Print the hash of a password that is typed in or piped in; never given as an argument, which others can see."""
    from pai_backend.auth.accounts import hash_password

    password = getpass.getpass("Password: ") if sys.stdin.isatty() else sys.stdin.readline().rstrip("\n")
    if len(password) < SHORTEST_PASSWORD:
        sys.stderr.write(f"pai_backend: a password has at least {SHORTEST_PASSWORD} characters\n")
        return EXIT_CONFIG
    sys.stdout.write(hash_password(password) + "\n")
    return 0


def be_supervisor(settings: bytes, ready_fd: int | None) -> int:
    """Run these settings; returns the exit code.

    Other processes of this user can read our variables. So where any has a secret, this process's program is replaced
    by the supervisor's, without them; and where children are not forked, because that program is smaller than this one.
    """
    from pai_backend.config.keys import without_secrets
    from pai_backend.processes.forking import FORKS

    with tempfile.TemporaryFile() as file:
        file.write(settings)
        file.flush()
        if FORKS and without_secrets(os.environ) == dict(os.environ):
            from pai_backend.processes.supervisor import supervise

            return supervise(file.fileno(), ready_fd)
        os.set_inheritable(file.fileno(), True)
        command = [sys.executable, "-P", "-m", "pai_backend.processes.supervisor", "--settings-fd", str(file.fileno())]
        if ready_fd is not None:
            os.set_inheritable(ready_fd, True)
            command += ["--ready-fd", str(ready_fd)]
        os.execve(sys.executable, command, without_secrets(os.environ))


def _serve(arguments: list[str]) -> int:
    from pai_backend.platform.packages import INSTALL, missing_packages

    if missing := missing_packages():
        sys.stderr.write(f"pai_backend: {', '.join(missing)} not installed; run {INSTALL}\n")
        return EXIT_CONFIG
    from pai_backend.config.files import ConfigError
    from pai_backend.config.load import load

    try:
        invocation = load(arguments)
    except ConfigError as error:
        for line in error.lines:
            sys.stderr.write(f"pai_backend: {line}\n")
        return EXIT_CONFIG
    for warning in invocation.warnings:
        sys.stderr.write(f"pai_backend: warning: {warning}\n")
    if invocation.roles:
        from pai_backend.processes.app import run_alone

        return run_alone(invocation.settings, invocation.roles, package_version(), invocation.ready_fd)
    return be_supervisor(invocation.settings.reveal(package_version()), invocation.ready_fd)


def run(arguments: list[str]) -> int:
    """:func:`main`, with a remedy where only the client's packages are installed."""
    try:
        return main(arguments)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing in {"", "pai_backend"}:
            raise
        from pai_backend.platform.packages import INSTALL

        sys.stderr.write(f"pai_backend: {missing} not installed; run {INSTALL}\n")
        return EXIT_CONFIG


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
