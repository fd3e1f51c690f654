"""VS Code's server in a task: the scripts that start it, and what they say."""

from __future__ import annotations

import shlex

from typing_extensions import TypedDict  # pydantic reads no other on Python 3.11

from jupyter_pai.access import Reached
from jupyter_pai.doctor.running import OpenSshRoute
from jupyter_pai.errors import ClientError
from jupyter_pai.task_ports import HOST, NOT_FOUND, held, quoted
from pai_backend.model.text import Text

SERVERS = ("code-server", "openvscode-server")
LABEL = "http"
"""The port that every task has, and that a job's page does not list. Source: OpenPAI v1, portList."""

_SECRET = "k=$(od -An -tx1 -N24 /dev/urandom | tr -d ' \\n')"
# A password of the user's own configuration of code-server would go before it.
_CLEAN = "env -u PASSWORD -u HASHED_PASSWORD -u PORT"
_CONFIG = r"'bind-addr: %s:%s\nauth: password\npassword: %s\ncert: false\n'"
_OPTIONS = '--config "$d/config.yaml" --disable-telemetry --disable-update-check "$PWD"'
_RUN = f'{_CLEAN} "$p" "$@" >"$d/log" 2>&1'


class CodeServer(TypedDict):
    """A server that runs in a task: the label of its port, and the password that it asks for once."""

    label: str
    password: str


def held_script(program: str | None, directory: str | None, url: str, there: int) -> str:
    """Runs the server at a port of the task until its session ends, and prints what lets a browser in.

    The secret is in a file of the user's alone: neither in the list of processes nor in an environment.
    """
    programs = " ".join(map(shlex.quote, [program] if program else SERVERS))
    prepare = f"""\
cd {quoted(directory, ".")} || exit 1
p=; for c in {programs}; do if command -v "$c" >/dev/null; then p=$c; break; fi; done
[ -n "$p" ] || exit 127
umask 077; d=$(mktemp -d) || exit 1; {_SECRET}
case ${{p##*/}} in
openvscode*) printf %s "$k" >"$d/token"; set -- --host {HOST} --port {there} --connection-token-file "$d/token" \
--default-folder "$PWD"; echo "{url}?tkn=$k";;
*) printf {_CONFIG} {HOST} {there} "$k" >"$d/config.yaml"; set -- {_OPTIONS}; echo "Password: $k";;
esac"""
    # What the server said is shown when it fails: else its lines would stand around the password.
    after = '[ $s = 0 ] || [ $s = 143 ] || tail -n 20 "$d/log" >&2; rm -rf "$d"'
    return held(_RUN, before=prepare, after=after)


def kept_script(program: str | None, directory: str | None) -> str:
    """Starts code-server behind the task's port :data:`LABEL`, unless it runs, and prints its password.

    It runs until the task ends. openvscode-server is not for this: it takes its token from the address alone. In a pod
    the service proxy comes by the network, elsewhere from the same machine. A process number may be another program's
    by now: the server is known by it and by the time it started, field 22 of ``/proc/PID/stat`` (proc(5)), where there
    is one. A zombie, whose parent has not waited for it yet, does not count. The shell opens the new log in the child:
    the old one, which says that a server listens, has to go before.
    """
    return f"""\
p={shlex.quote(program or SERVERS[0])}; command -v "$p" >/dev/null || exit 127
umask 077; d=${{TMPDIR:-/tmp}}/pai-code-${{PAI_TASK_UID:?}}
mkdir -p "$d" && [ -O "$d" ] && [ ! -L "$d" ] || exit 1
started() {{ f=$(sed 's/.*) //' "/proc/$1/stat"); [ "${{f%% *}}" != Z ] && echo "$f" | cut -d' ' -f20; }} 2>/dev/null
running() {{ read -r i t <"$d/pid" && kill -0 "$i" && n=$(started "$i") && [ "$n" = "$t" ]; }} 2>/dev/null
if ! running; then
cd {quoted(directory, ".")} || exit 1
{_SECRET}; case ${{PAI_POD_IP-}} in "") h={HOST};; *:*) h='[::]';; *) h=0.0.0.0;; esac
printf {_CONFIG} "$h" "${{PAI_CONTAINER_HOST_PORT:?}}" "$k" >"$d/config.yaml"
rm -f "$d/log"; {_CLEAN} setsid "$p" {_OPTIONS} </dev/null >"$d/log" 2>&1 &
echo "$! $(started $!)" >"$d/pid"
fi
until grep -qs 'server listening on' "$d/log"; do
running || {{ tail -n 5 "$d/log" >&2; rm -rf "$d"; exit 1; }}; sleep 0.1
done
sed -n 's/^password: //p' "$d/config.yaml\""""


def kept_in(reached: Reached, program: str | None = None, directory: str | None = None) -> CodeServer:
    """Have code-server run in a task until that ends; see :func:`kept_script`. Blocks. Raises ClientError."""
    way = OpenSshRoute(reached.files.config, reached.login.alias)
    ran = way.execute(kept_script(program, directory))
    password = ran.out.decode(errors="replace").strip()
    if ran.code == 0 and password:
        return CodeServer(label=LABEL, password=password)
    if ran.code in NOT_FOUND:
        raise lacking(program or SERVERS[0], reached.job)
    raise ClientError(
        Text("code-server does not start in the task: {complaint}", complaint=ran.complaint),
        code="UnavailableError",
        hint=Text("It needs the task's port {label}, which no other program may use.", label=LABEL),
    )


def lacking(program: str | None, job: str) -> ClientError:
    """What is said of a task without a server."""
    return ClientError(
        Text("The task has no {program}.", program=program or " or ".join(SERVERS)),
        code="InvalidParametersError",
        hint=Text(
            "Install code-server in the task or choose an image that has it; or use VS Code on this machine: "
            "`pai connect {job}`.",
            job=job,
        ),
    )
