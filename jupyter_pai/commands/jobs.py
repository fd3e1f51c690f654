"""Look at jobs and what they wrote, and change what they do: stop, restart, delete, release, move; open a service."""

from __future__ import annotations

import argparse

from jupyter_pai import announced, render
from jupyter_pai.addresses import address_of, require_path, service_named, service_path
from jupyter_pai.backend_words import said
from jupyter_pai.commands.arguments import (
    INDEX,
    JOB,
    ROLE,
    ended_job_names,
    gpu_types,
    job_names,
    role_names,
    service_labels,
    task_names,
)
from jupyter_pai.commands.output import Output
from jupyter_pai.commands.session import connected
from jupyter_pai.commands.waiting import wait
from jupyter_pai.errors import JOB_FAILED, OK, BackendAway, ClientError
from jupyter_pai.language import tr
from jupyter_pai.log_text import cut_bytes, incremental_decoder, whole_characters
from jupyter_pai.log_times import TimedLines
from jupyter_pai.share_text import listed
from jupyter_pai.verbs import argument, flag, one_of, verb
from jupyter_pai.wire import FINAL_STATES, LOG_PAGE_BYTES
from jupyter_pai.wire_types import Ticket
from pai_backend.model.text import Text

STREAMS = ("all", "stdout", "stderr")


@verb(
    "list",
    argument("--state", help="only these states, separated by commas"),
    argument("--keyword", help="only jobs with this in their name"),
    argument(
        "--gpu-type", metavar="TYPE", help="only jobs of these GPU types, separated by commas", completer=gpu_types
    ),
    argument("--limit", type=int, help="at most this many"),
    flag("--all-contexts", help="those of all your backends, whichever is used"),
)
def list_jobs(args: argparse.Namespace, out: Output) -> int:
    """List jobs, newest first.

    Unless some were chosen it says, too, what others share with you. ``--json`` has the jobs alone.
    """
    from jupyter_pai import broker

    if args.all_contexts:
        return _list_everywhere(args, out)
    with connected() as client:
        announced.tell(client, out.progress)
        jobs = client.jobs(state=args.state, keyword=args.keyword, gpu_type=args.gpu_type, limit=args.limit)
        shares = client.thread.run(broker.all_shares(client.api))
    out.result(jobs, listed(jobs, shares, chosen=bool(args.state or args.keyword or args.gpu_type)))
    return OK


def _list_everywhere(args: argparse.Namespace, out: Output) -> int:
    """The jobs of all contexts, and which of them did not answer."""
    from jupyter_pai.everywhere import jobs_everywhere

    found, failures = jobs_everywhere(state=args.state, keyword=args.keyword, gpu_type=args.gpu_type, limit=args.limit)
    for name, failure in failures.items():
        out.progress(f"{name}: {tr(failure.message)} {tr(failure.hint)}".rstrip())
    where = {job["uid"]: name for name, job in found}
    jobs = [job for _, job in found]
    out.result([{**job, "context": name} for name, job in found], render.job_list(jobs, contexts=where))
    return OK


@verb("show", JOB)
def show(args: argparse.Namespace, out: Output) -> int:
    """Everything about a job."""
    with connected() as client:
        out.job(client, client.job(args.job))
    return OK


@verb("status", JOB, flag("--watch", help="print each change until the job has ended"))
def status(args: argparse.Namespace, out: Output) -> int:
    """A job's state in a line; exit code 1 if it failed."""
    with connected() as client:
        if args.watch:
            return wait(client, args.job, out, show_log=False)
        job = client.job(args.job)
    out.result(job, render.status_text(job))
    return JOB_FAILED if job["state"] == "FAILED" else OK


@verb("why", JOB)
def why(args: argparse.Namespace, out: Output) -> int:
    """Why a job waits, and what would start it now."""
    with connected() as client:
        told = client.why(args.job)
    out.result(told, render.why_text(told))
    return OK


@verb(
    "logs",
    JOB,
    flag("-f", "--follow", help="follow it until the task has ended"),
    ROLE,
    INDEX,
    argument("--stream", choices=STREAMS, default="all", help="default: all"),
    argument("--offset", type=int, default=0, help="first byte; negative: from the end"),
    flag("-t", "--timestamps", help="begin each line with the time at which it came"),
)
def logs(args: argparse.Namespace, out: Output) -> int:
    """Print what a task has written.

    ``--json`` gives an object with the text; with ``--follow`` a line for each piece.
    """
    if args.timestamps and out.as_json:
        raise ClientError(
            "--timestamps is for text.", code="InvalidParametersError", hint="Leave out --json, or --timestamps."
        )
    lines = TimedLines() if args.timestamps else None
    with connected() as client:
        place = {"role": args.role, "index": args.index, "stream": args.stream, "lines": lines}
        if not args.follow:
            chunk = client.log(args.job, offset=args.offset, **place)
            if out.as_json:
                text, first, following = whole_characters(chunk.data, chunk.first)
                out.json_line({"data": text, "offset": first, "next": following})
                return OK
            out.raw(chunk.data, chunk.first)
            # What comes while this runs is for --follow.
            while chunk.next - chunk.first >= LOG_PAGE_BYTES and not out.in_cell:
                chunk = client.log(args.job, offset=chunk.next, **place)
                out.raw(chunk.data)
            return OK
        decoder, cut = incremental_decoder(), args.offset != 0
        for data in client.follow_log(args.job, offset=args.offset, **place):
            if out.as_json:
                if text := decoder.decode(data[cut_bytes(data) :] if cut else data):
                    out.json_line({"data": text})
                cut = False
            else:
                out.raw(data)
        if out.as_json and (rest := decoder.decode(b"", True)):
            out.json_line({"data": rest})
    return OK


@verb("stop", JOB)
def stop(args: argparse.Namespace, out: Output) -> int:
    """Stop a job.

    It is asked to stop, and may take a while; asking a job that has ended is fine.
    """
    with connected() as client:
        client.stop(args.job)
        job = client.job(args.job)
    out.result(job, render.stop_line(job))
    return OK


@verb("restart", argument("job", metavar="JOB", help="name or alias", completer=ended_job_names))
def restart(args: argparse.Namespace, out: Output) -> int:
    """Run a job that has ended again, under its own name.

    Its history stays, and so do its alias, the names of its services and its host keys: editors and addresses that led
    to it lead to its next attempt. Its retries are counted from zero again. Its shares and its
    own key pair ended with it.
    """
    with connected() as client:
        job = client.job(args.job)
        if job["state"] not in FINAL_STATES:
            raise ClientError(
                Text("The job {id} has not ended, so it is not restarted.", id=job["id"]),
                code="NotFinishedJobError",
                hint=Text("Stop it first (`pai stop {id}`), and wait until it has ended.", id=job["id"]),
            )
        answer = client.start(job["uid"])
    out.result(answer, said(answer))
    return OK


@verb(
    "delete",
    argument("jobs", nargs="+", metavar="JOB", help="name or alias", completer=ended_job_names),
    flag("--yes", help="do not ask"),
)
def delete(args: argparse.Namespace, out: Output) -> int:
    """Permanently delete jobs that have ended.

    Their documents, histories, logs and files go with them. All have to exist, or none is deleted.
    """
    with connected() as client:
        found = [client.job(name) for name in args.jobs]
        named = ", ".join(job["id"] for job in found)
        if not args.yes and not out.agreed(
            tr("delete {named}, with logs and files", named=named), tr("Nothing was deleted.")
        ):
            return JOB_FAILED
        answers = [client.delete(job["uid"]) for job in found]
    out.result(answers, "\n".join(map(said, answers)))
    return OK


@verb(
    "release",
    JOB,
    argument(
        "task",
        nargs="*",
        help="names of tasks, such as worker-0; default: all that are kept",
        completer=task_names,
    ),
)
def release(args: argparse.Namespace, out: Output) -> int:
    """Release failed tasks that are kept for debugging."""
    with connected() as client:
        released = client.release(args.job, args.task)
    out.result(released, said(released))
    return OK


@verb(
    "move",
    JOB,
    one_of(
        argument(
            "--before",
            metavar="OTHER",
            help="before this job of the same virtual cluster and priority",
            completer=job_names,
        ),
        argument("--after", metavar="OTHER", help="after this job", completer=job_names),
        flag("--first", action="store_const", dest="to", const="first", help="before your other jobs"),
        flag("--last", action="store_const", dest="to", const="last", help="after your other jobs"),
        required=True,
    ),
)
def move(args: argparse.Namespace, out: Output) -> int:
    """Move a waiting job in its queue."""
    with connected() as client:
        moved = client.move(args.job, before=args.before, after=args.after, to=args.to)
    out.result(moved, said(moved))
    return OK


@verb(
    "open",
    JOB,
    argument("label", nargs="?", help="the service; default: the job's first", completer=service_labels),
    argument("--role", help="the task's role", completer=role_names),
    argument("--index", type=int, help="the task's index"),
    flag("--print", dest="only_print", help="print the address, open nothing"),
    flag("--local", help="lead a port of this machine to the service, until Ctrl-C"),
)
def open_service(args: argparse.Namespace, out: Output) -> int:
    """Open a service in the browser.

    The address signs in once, within a minute. It is the service's own where that leads to the backend from here,
    else the path below the backend's. Where an application works at neither, it says what is missing. ``--local`` needs
    neither: a port of this machine leads to the service over the connection that the other verbs use.
    """
    if args.local and out.in_cell:
        raise ClientError(
            "--local runs until Ctrl-C.", code="InvalidParametersError", hint="Run `pai open --local` in a shell."
        )
    with connected() as client:
        uid, label = service_named(client, args.job, args.label)
        ticket = client.ticket(uid, label, role=args.role, index=args.index)
    if args.local:
        require_path(ticket)
        return _open_local(ticket, args, out)
    try:
        address = address_of(ticket, client.api.endpoint)
    except BackendAway as error:
        if not out.in_cell:
            raise
        address = ticket["url"]  # a notebook's browser may reach it where the kernel does not
        out.progress(f"{tr(error.message)} {tr(error.hint)}")
    out.ticket(client, ticket, address)
    if not out.in_cell:
        _show(address, args, out)
    return OK


def _show(address: str, args: argparse.Namespace, out: Output) -> None:
    if not (args.only_print or out.as_json):
        import webbrowser

        if not webbrowser.open(address):
            out.progress(tr("No browser could be started; open the address above within a minute."))


def _open_local(ticket: Ticket, args: argparse.Namespace, out: Output) -> int:
    import asyncio
    from functools import partial

    from jupyter_pai.endpoint import resolve
    from jupyter_pai.local_service import LocalService

    async def serve() -> None:
        service = LocalService(partial(resolve, start=True), service_path(ticket))
        address = service.listen(0)
        out.result({"url": address}, address)
        out.progress(tr("Ctrl-C ends it."))
        _show(address, args, out)
        try:
            await asyncio.Event().wait()
        finally:
            await service.close()

    asyncio.run(serve())
    return OK
