"""``list``, ``show``, ``status``, ``why``, ``logs``, ``stop``, ``delete``, ``release``, ``move`` and ``open``."""

from __future__ import annotations

import argparse

from jupyter_pai import access, render
from jupyter_pai.commands.output import Output
from jupyter_pai.commands.session import connected
from jupyter_pai.commands.waiting import INTERRUPTED, wait
from jupyter_pai.errors import JOB_FAILED, OK
from jupyter_pai.log_text import cut_bytes, incremental_decoder, whole_characters
from jupyter_pai.share_text import listed

STREAMS = ("all", "stdout", "stderr")
LOG_PAGE_BYTES = 1_048_576  # that the API gives of a log unless asked for more


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser], common: argparse.ArgumentParser) -> None:
    """Add the verbs of this group."""
    verb = verbs.add_parser("list", parents=[common], help="list jobs, newest first")
    verb.add_argument("--state", help="only these states, separated by commas")
    verb.add_argument("--keyword", help="only jobs with this in their name")
    verb.add_argument("--limit", type=int, help="at most this many")
    verb.set_defaults(run=list_jobs)
    verb = _job_verb(verbs, common, "show", "everything about a job", show)
    verb = _job_verb(verbs, common, "status", "a job's state in a line; exit code 1 if it failed", status)
    verb.add_argument("--watch", action="store_true", help="print each change until the job has ended")
    _job_verb(verbs, common, "why", "why a job waits, and what would start it now", why)
    verb = _job_verb(verbs, common, "logs", "print what a task has written", logs)
    verb.add_argument("-f", "--follow", action="store_true", help="follow it until the task has ended")
    verb.add_argument("--role", help="the task's role; default: the first")
    verb.add_argument("--index", type=int, help="the task's index; default: 0")
    verb.add_argument("--stream", choices=STREAMS, default="all")
    verb.add_argument("--offset", type=int, default=0, help="first byte; negative: from the end")
    _job_verb(verbs, common, "stop", "stop a job", stop)
    verb = verbs.add_parser("delete", parents=[common], help="permanently delete jobs that have ended")
    verb.add_argument("jobs", nargs="+", metavar="JOB", help="name or alias")
    verb.add_argument("--yes", action="store_true", help="do not ask")
    verb.set_defaults(run=delete)
    verb = _job_verb(verbs, common, "release", "release failed tasks that are kept for debugging", release)
    verb.add_argument("task", nargs="*", help="names of tasks, such as worker-0; default: all that are kept")
    verb = _job_verb(verbs, common, "move", "move a waiting job in its queue", move)
    place = verb.add_mutually_exclusive_group(required=True)
    place.add_argument("--before", metavar="OTHER", help="before this job of the same virtual cluster and priority")
    place.add_argument("--after", metavar="OTHER", help="after this job")
    place.add_argument("--first", action="store_const", dest="to", const="first", help="before your other jobs")
    place.add_argument("--last", action="store_const", dest="to", const="last", help="after your other jobs")
    verb = _job_verb(verbs, common, "open", "open a service in the browser", open_service)
    verb.add_argument("label", nargs="?", help="the service; default: the job's first")
    verb.add_argument("--role", help="the task's role")
    verb.add_argument("--index", type=int, help="the task's index")
    verb.add_argument("--print", action="store_true", dest="only_print", help="print the address, open nothing")


def _job_verb(
    verbs: argparse._SubParsersAction[argparse.ArgumentParser],
    common: argparse.ArgumentParser,
    name: str,
    text: str,
    run: object,
) -> argparse.ArgumentParser:
    verb = verbs.add_parser(name, parents=[common], help=text)
    verb.add_argument("job", help="name or alias")
    verb.set_defaults(run=run)
    return verb


def list_jobs(args: argparse.Namespace, out: Output) -> int:
    """A page of jobs, and unless some were chosen what others share. ``--json``: the jobs alone."""
    from jupyter_pai import broker

    with connected() as client:
        jobs = client.jobs(state=args.state, keyword=args.keyword, limit=args.limit)
        shares = client.thread.run(broker.all_shares(client.api))
    out.result(jobs, listed(jobs, shares, chosen=bool(args.state or args.keyword)))
    return OK


def show(args: argparse.Namespace, out: Output) -> int:
    """Everything about a job."""
    with connected() as client:
        job = client.job(args.job)
    out.result(job, render.job_page(job))
    return OK


def status(args: argparse.Namespace, out: Output) -> int:
    """The state now, or every change until the end."""
    with connected() as client:
        if args.watch:
            return wait(client, args.job, out, show_log=False)
        job = client.job(args.job)
    out.result(job, render.status_text(job))
    return JOB_FAILED if job["state"] == "FAILED" else OK


def why(args: argparse.Namespace, out: Output) -> int:
    """Why it waits; fine when it does not."""
    with connected() as client:
        told = client.why(args.job)
    out.result(told, render.why_text(told))
    return OK


def logs(args: argparse.Namespace, out: Output) -> int:
    """What a task has written, followed on demand. ``--json``: one object with the text, a line each piece."""
    with connected() as client:
        if not args.follow:
            chunk = client.log(args.job, role=args.role, index=args.index, stream=args.stream, offset=args.offset)
            if out.as_json:
                text, first, following = whole_characters(chunk.data, chunk.first)
                out.json_line({"data": text, "offset": first, "next": following})
                return OK
            out.raw(chunk.data)
            while len(chunk.data) >= LOG_PAGE_BYTES:  # what comes while this runs is for --follow
                chunk = client.log(args.job, role=args.role, index=args.index, stream=args.stream, offset=chunk.next)
                out.raw(chunk.data)
            return OK
        decoder, cut = incremental_decoder(), args.offset != 0
        try:
            for data in client.follow_log(
                args.job, role=args.role, index=args.index, stream=args.stream, offset=args.offset
            ):
                if out.as_json:
                    if text := decoder.decode(data[cut_bytes(data) :] if cut else data):
                        out.json_line({"data": text})
                    cut = False
                else:
                    out.raw(data)
        except KeyboardInterrupt:
            return INTERRUPTED
        if out.as_json and (rest := decoder.decode(b"", True)):
            out.json_line({"data": rest})
    return OK


def stop(args: argparse.Namespace, out: Output) -> int:
    """Ask a job to stop; fine when it has ended already."""
    with connected() as client:
        client.stop(args.job)
        job = client.job(args.job)
    out.result(job, render.stop_line(job))
    return OK


def delete(args: argparse.Namespace, out: Output) -> int:
    """Delete jobs with their documents, histories, logs and files. All have to exist, or none is deleted."""
    with connected() as client:
        found = [client.job(name) for name in args.jobs]
        named = ", ".join(job["id"] for job in found)
        if not args.yes and not out.agreed(f"Delete {named}, with logs and files?"):
            out.progress("Nothing was deleted.")
            return JOB_FAILED
        said = [client.delete(job["uid"]) for job in found]
    out.result(said, "\n".join(each["message"] for each in said))
    return OK


def release(args: argparse.Namespace, out: Output) -> int:
    """Let go of kept tasks; fine when none is kept."""
    with connected() as client:
        released = client.release(args.job, args.task)
    out.result(released, released["message"])
    return OK


def move(args: argparse.Namespace, out: Output) -> int:
    """Change places in the queue; fine when the job stands there already."""
    with connected() as client:
        moved = client.move(args.job, before=args.before, after=args.after, to=args.to)
    out.result(moved, moved["message"])
    return OK


def open_service(args: argparse.Namespace, out: Output) -> int:
    """A one-time sign-in to a service, opened in the browser unless it is only printed."""
    with connected() as client:
        job = client.job(args.job)
        label = access.service_label(job, args.label)
        ticket = client.ticket(job["uid"], label, role=args.role, index=args.index)
    out.result(ticket, ticket["url"])
    if not (args.only_print or out.as_json):
        import webbrowser

        if not webbrowser.open(ticket["url"]):
            out.progress("No browser could be started; open the address above within a minute.")
    return OK
