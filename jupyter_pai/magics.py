"""``%pai`` and ``%%pai``: the verbs of the command line in a notebook.

A failure ends the cell with a short text and no traceback, and marks the document's place; cells
behind it do not run on. A job outlives its cell: interrupting ``--wait`` leaves it running.
"""

from __future__ import annotations

import json
import shlex
import sys
from argparse import Namespace
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_cell_magic, magics_class, no_var_expand

from jupyter_pai import access, broker, cluster, magic_commands, render
from jupyter_pai.cluster_text import faults_of, history_text, plan_text, shown_text
from jupyter_pai.commands.session import Document, read_document
from jupyter_pai.connect.files import ssh_dir
from jupyter_pai.endpoint import resolve
from jupyter_pai.errors import ClientError
from jupyter_pai.following import observe
from jupyter_pai.log_text import incremental_decoder, whole_characters
from jupyter_pai.magic_words import argument, parse, verb
from jupyter_pai.share_text import listed
from jupyter_pai.shown import JobFailed, Link, Shown, Trouble
from jupyter_pai.submitting import submit
from jupyter_pai.sync import Client
from jupyter_pai.widgets.job_view import JobView
from jupyter_pai.wire_types import JobDetail

VERBS = (
    "submit",
    "list",
    "show",
    "status",
    "why",
    "logs",
    "stop",
    "delete",
    "release",
    "move",
    "ssh",
    "connect",
    "doctor",
    "open",
    "config",
    "cluster",
    "upload",
    *magic_commands.COMMANDS,
)


def _say(text: str) -> None:
    """Text below the cell, at once."""
    sys.stdout.write(text)
    sys.stdout.flush()


@magics_class
class PaiMagics(Magics):
    """The magics; one client for all cells, made anew when its backend has gone."""

    _client: Client | None = None

    @no_var_expand
    @line_cell_magic
    def pai(self, line: str, cell: str | None = None) -> object:
        """Submit and watch jobs: ``%pai VERB …``; ``%pai VERB --help`` tells more.

        Verbs: submit, list, show, status, why, logs, stop, delete, release, move, ssh,
        connect, doctor, open, config, cluster, upload, keys, share, shares, unshare.
        ``$name`` stands for a variable. ``%%pai submit`` takes the cell as the document.
        """
        name, _, rest = line.strip().partition(" ")
        if name not in VERBS:
            raise UsageError(f"%pai {name}: no such verb; known: {', '.join(VERBS)}")
        if cell is not None and name != "submit":
            raise UsageError("%%pai takes a document: use %%pai submit")
        try:
            if name in magic_commands.COMMANDS:
                return magic_commands.run(name, rest, self._name)
            run: Callable[..., object] = getattr(self, f"_{name}")
            args = parse(run, rest)
            return run(args, cell) if name == "submit" else run(args)
        except ClientError as error:
            raise Trouble(render.error_text(error)) from None

    def _connected(self) -> Client:
        """The client of the backend as it is now; a moved or restarted one is found again."""
        endpoint = resolve(start=True)
        if self._client is None or self._client.api.endpoint != endpoint:
            if self._client is not None:
                self._client.close()
            self._client = Client(endpoint)
        return self._client

    def _name(self, word: str) -> str:
        """A job's name; ``$name`` stands for a variable with the name, or with a view."""
        value = self._variable(word) if word.startswith("$") else word
        return value.job["uid"] if isinstance(value, JobView) else str(value)

    def _variable(self, word: str) -> Any:
        assert self.shell is not None
        try:
            return self.shell.user_ns[word[1:]]
        except KeyError:
            raise UsageError(f"there is no variable {word[1:]!r}") from None

    def _document(self, args: Namespace, cell: str | None) -> Document:
        if cell is not None:
            return Document(cell.encode(), "cell", None)
        if args.file is None:
            raise UsageError("%pai submit: name a file or a $variable, or write the document below %%pai submit")
        if not args.file.startswith("$"):
            return read_document(str(Path(args.file).expanduser()))
        value = self._variable(args.file)
        if isinstance(value, dict):
            return Document(json.dumps(value, ensure_ascii=False, indent=2).encode(), args.file, None)
        if isinstance(value, bytes):
            return Document(value, args.file, None)
        text = str(value)
        if isinstance(value, Path) or not ("\n" in text or text.lstrip().startswith("{")):
            return read_document(str(Path(text).expanduser()))
        return Document(text.encode(), args.file, None)

    @verb("pai submit")
    @argument("file", nargs="?", help="the document's file, or $variable with its path, text or dict")
    @argument("--name", help="name of the job, instead of the document's")
    @argument("--fresh-name", action="store_true", help="if the name is taken, append a number")
    @argument("--wait", action="store_true", help="show state and log until the end; the cell fails when the job does")
    def _submit(self, args: Namespace, cell: str | None) -> JobView:
        document = self._document(args, cell)
        client = self._connected()
        work = submit(client.api, document.data, name=args.name, filename=document.filename, fresh_name=args.fresh_name)
        try:
            job = client.thread.run(work)
        except ClientError as error:
            raise Trouble(render.error_text(error, source=document.text, name=document.name)) from None
        if not args.wait:
            return JobView(client.api.endpoint, job)
        view = JobView(client.api.endpoint, job, show_log=False)
        view.show_once()
        self._wait(client, job["uid"], show_log=True)
        view.wait()
        return view

    def _wait(self, client: Client, job: str, *, show_log: bool) -> JobDetail:
        """Print changes and the log until the end. Raises JobFailed when the job did not succeed."""
        said, decoder = "", incremental_decoder()
        final: JobDetail | None = None
        try:
            # Printed from this thread: a kernel sends what other threads print to the cell that made them.
            for item in client.iterate(observe(client.api, job, log=show_log)):
                if isinstance(item, bytes):
                    _say(decoder.decode(item))
                    continue
                line = render.state_line(item)
                _say("" if line == said else f"{line}\n")
                said, final = line, item
        except KeyboardInterrupt:
            raise Trouble(f"No longer waiting; the job keeps running. Stop it with %pai stop {job}") from None
        if final is None or final["state"] != "SUCCEEDED":
            raise JobFailed(render.verdict(final) if final else f"{job}: it is not known how it ended")
        return final

    @verb("pai list")
    @argument("--state", help="only these states, separated by commas")
    @argument("--limit", type=int, help="at most this many")
    def _list(self, args: Namespace) -> Shown:
        client = self._connected()
        jobs = client.jobs(state=args.state, limit=args.limit)
        return Shown(listed(jobs, client.thread.run(broker.all_shares(client.api)), chosen=bool(args.state)))

    @verb("pai show")
    @argument("job", help="name, alias or $variable")
    def _show(self, args: Namespace) -> JobView:
        client = self._connected()
        return JobView(client.api.endpoint, client.job(self._name(args.job)))

    @verb("pai status")
    @argument("job", help="name, alias or $variable")
    @argument("--watch", action="store_true", help="print each change until the end")
    def _status(self, args: Namespace) -> Shown | None:
        client = self._connected()
        if args.watch:
            self._wait(client, self._name(args.job), show_log=False)
            return None
        return Shown(render.status_text(client.job(self._name(args.job))))

    @verb("pai why")
    @argument("job", help="name, alias or $variable")
    def _why(self, args: Namespace) -> Shown:
        return Shown(render.why_text(self._connected().why(self._name(args.job))))

    @verb("pai logs")
    @argument("job", help="name, alias or $variable")
    @argument("-f", "--follow", action="store_true", help="follow it until the task has ended")
    @argument("--role", help="the task's role; default: the first")
    @argument("--index", type=int, help="the task's index; default: 0")
    @argument("--stream", choices=("all", "stdout", "stderr"), default="all", help="which output")
    def _logs(self, args: Namespace) -> None:
        client, job = self._connected(), self._name(args.job)
        place = {"role": args.role, "index": args.index, "stream": args.stream}
        if not args.follow:
            chunk = client.log(job, **place)
            _say(whole_characters(chunk.data, chunk.first)[0])
            return
        try:
            decoder = incremental_decoder()
            for data in client.follow_log(job, **place):
                _say(decoder.decode(data))
        except KeyboardInterrupt:
            raise Trouble("No longer following; the job keeps running.") from None

    @verb("pai stop")
    @argument("job", help="name, alias or $variable")
    def _stop(self, args: Namespace) -> Shown:
        client, job = self._connected(), self._name(args.job)
        client.stop(job)
        return Shown(render.stop_line(client.job(job)))

    @verb("pai delete")
    @argument("jobs", nargs="+", metavar="JOB", help="name, alias or $variable")
    @argument("--yes", action="store_true", help="delete: needed, since a cell cannot ask for confirmation")
    def _delete(self, args: Namespace) -> Shown:
        client = self._connected()
        found = [client.job(self._name(name)) for name in args.jobs]
        if not args.yes:
            named = ", ".join(job["id"] for job in found)
            raise Trouble(f"Delete {named}, with logs and files?\n\nNothing was deleted. Give --yes to delete.")
        return Shown("\n".join(client.delete(job["uid"])["message"] for job in found))

    @verb("pai release")
    @argument("job", help="name, alias or $variable")
    @argument("task", nargs="*", help="names of tasks, such as worker-0; default: all that are kept")
    def _release(self, args: Namespace) -> Shown:
        return Shown(self._connected().release(self._name(args.job), args.task)["message"])

    @verb("pai move")
    @argument("job", help="name, alias or $variable")
    @argument("--before", metavar="OTHER", help="before this job of the same virtual cluster and priority")
    @argument("--after", metavar="OTHER", help="after this job")
    @argument("--first", action="store_const", dest="to", const="first", help="before your other jobs")
    @argument("--last", action="store_const", dest="to", const="last", help="after your other jobs")
    def _move(self, args: Namespace) -> Shown:
        if sum(place is not None for place in (args.before, args.after, args.to)) != 1:
            raise UsageError("%pai move: name one place: --before OTHER, --after OTHER, --first or --last")
        before, after = (None if other is None else self._name(other) for other in (args.before, args.after))
        moved = self._connected().move(self._name(args.job), before=before, after=after, to=args.to)
        return Shown(moved["message"])

    @verb("pai ssh")
    @argument("job", help="name, alias or $variable")
    @argument("--role", help="the task's role; default: the first")
    @argument("--index", type=int, help="the task's index; default: 0")
    def _ssh(self, args: Namespace) -> Shown:
        job = self._name(args.job)
        # By a registered key: nobody would renew a certificate while the command that is shown here runs elsewhere.
        reached = access.reach(self._connected(), job, ssh_dir(), role=args.role, index=args.index)
        return Shown(shlex.join(reached.command))

    @verb("pai connect")
    @argument("job", help="name, alias or $variable")
    @argument("--role", help="the task's role; default: the first")
    @argument("--index", type=int, help="the task's index; default: 0")
    def _connect(self, args: Namespace) -> Shown:
        from jupyter_pai.connect.guide import guide_text

        return Shown(guide_text(access.guide_to(self._reached(args))))

    @verb("pai doctor")
    @argument("job", help="name, alias or $variable")
    @argument("--role", help="the task's role; default: the first")
    @argument("--index", type=int, help="the task's index; default: 0")
    @argument("--client", action="append", default=[], help="only this program, such as vscode; repeatable")
    def _doctor(self, args: Namespace) -> Shown:
        from jupyter_pai.doctor.clients import CLIENTS
        from jupyter_pai.doctor.examining import report_text

        if unknown := set(args.client) - set(CLIENTS):
            raise UsageError(f"%pai doctor: no such program: {', '.join(unknown)}; there are {', '.join(CLIENTS)}")
        return Shown(report_text(access.examined(self._reached(args), args.client)))

    def _reached(self, args: Namespace) -> access.Reached:
        job = self._name(args.job)
        return access.reach(self._connected(), job, ssh_dir(), role=args.role, index=args.index)

    @verb("pai open")
    @argument("job", help="name, alias or $variable")
    @argument("label", nargs="?", help="the service; default: the job's first")
    @argument("--role", help="the task's role")
    @argument("--index", type=int, help="the task's index")
    def _open(self, args: Namespace) -> Link:
        client = self._connected()
        job = client.job(self._name(args.job))
        label = access.service_label(job, args.label)
        ticket = client.ticket(job["uid"], label, role=args.role, index=args.index)
        return Link(ticket, client.api.endpoint.url)

    @verb("pai config")
    @argument("job", help="name, alias or $variable")
    def _config(self, args: Namespace) -> Shown:
        source = self._connected().source(self._name(args.job))
        return Shown(source.data.decode(errors="replace"))

    @verb("pai cluster")
    @argument("action", choices=("show", "plan", "apply", "history"), help="what to do; for administrators")
    @argument("file", nargs="?", help="plan, apply: the configuration's file, or $variable with its path or text")
    @argument("--yes", action="store_true", help="apply: needed, since a cell cannot ask for confirmation")
    def _cluster(self, args: Namespace) -> Shown:
        client = self._connected()
        if args.action == "show":
            return Shown(shown_text(client.thread.run(cluster.show(client.api))))
        if args.action == "history":
            return Shown(history_text(client.thread.run(cluster.history(client.api))))
        if args.file is None:
            raise UsageError(f"%pai cluster {args.action}: name a file or a $variable with the configuration")
        document = self._document(args, None)
        planned = client.thread.run(cluster.plan(client.api, document.data))
        if not planned["valid"]:
            error = faults_of(planned["errors"])
            raise Trouble(render.error_text(error, source=document.text, name=document.name))
        text = plan_text(planned)
        if args.action == "plan":
            return Shown(text)
        if not args.yes:
            raise Trouble(f"{text}\n\nNothing was changed. Give --yes to apply it.")
        done = client.thread.run(cluster.apply(client.api, document.data, planned["newestVersion"]))
        return Shown(f"{text}\n\nVersion {done['appliedVersion']} is in force.")

    @verb("pai upload")
    @argument("path", help="file, or directory whose content is uploaded; or $variable with one")
    @argument("uri", help="pai://USER/…, $PAI_DEFAULT_FS_URI/…, or a URI of another storage")
    @argument("--exclude", action="append", default=[], help="skip these too, not only .git; repeatable")
    def _upload(self, args: Namespace) -> Shown:
        from jupyter_pai.fs import moving
        from jupyter_pai.fs.bar import ProgressBar
        from jupyter_pai.fs.places import place
        from jupyter_pai.fs.words import moved_line

        path = self._variable(args.path) if args.path.startswith("$") else args.path
        with closing(ProgressBar(shown=True, notebook=True)) as bar:
            moved = moving.upload(Path(path).expanduser(), place(args.uri), args.exclude, self._connected, bar)
        return Shown(moved_line(moved))
