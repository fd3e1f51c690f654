"""What engines say of tasks, with its template: programs of a task write it, in English, and a backend reads it.

The shims of the local engines, the launcher in containers and pods, and the staging program are other programs, maybe
of another release. So their sentences are recognised here, once, when they are first heard of. One that is not known
stays as it is, as do the words of a kubelet, a registry or a storage within such a sentence. Pure.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from pai_backend.model.text import Text, in_clauses, recognised

ENDS: Final = (
    Text("exited with status {code}"),
    Text("ended by signal {signal}"),
    Text("its exit status is not known"),
    Text("stopped before it started"),
    Text("stopped before it was started"),
    Text("stopped on request"),
    Text("stopped while its inputs were fetched"),
    Text("stopped while its image was fetched"),
    Text("{how} while the kernel killed processes here for lack of memory"),
    Text("another program listens on its {port}"),
    Text("port {port} ({label})"),
    Text("{number} of its processes could not be killed"),
    Text("some of its processes could not be killed"),
    Text("the kernel killed a process of it for lack of memory"),
    Text("the disk became full while its output was written"),
    Text("make room and retry"),
    Text("the task's directory was removed while it ran"),
    Text("its output could not be written: {why}"),
    Text("the task's directory could not be written: {why}"),
    Text("the command could not be executed: {why}"),
    Text("the program that fetches the image could not be executed: {why}"),
    Text("the program that fetches the inputs could not be executed: {why}"),
    Text("the program that fetches the image {how}"),
    Text("the program that fetches the inputs {how}"),
    Text("what kept the task was killed"),
    Text("the process that kept the task was killed"),
    Text("the machine restarted"),
    Text("the process that keeps the task ended before the command began: {why}"),
    Text("it printed nothing"),
)
"""Of the local engines, and of the launcher."""
IN_CONTAINERS: Final = (
    Text("this system gives orphans no new parent, which containers of tasks need"),
    Text("podman could not start the container: {why}"),
    Text("it ended with status {code}"),
    Text("its container was stopped by another client"),
    Text("its container was killed after the grace"),
    Text("the process that keeps its container was killed"),
    Text("its container ended with status {code}: what runs the command in it was killed, perhaps for lack of memory"),
    Text("its container ended with status {code}, and what runs the command in it left no word"),
    Text("what the task is to run could not be read: {why}"),
    Text("the output directory {path} could not be made: {why}"),
)
IN_PODS: Final = (
    Text("the cluster ended it ({why})"),
    Text("the cluster ended it"),
    Text("its node was lost ({why})"),
    Text("its node was lost"),
    Text("the cluster preempted it for another pod ({why})"),
    Text("the cluster preempted it for another pod"),
    Text("its node is no longer part of the cluster ({why})"),
    Text("its node is no longer part of the cluster"),
    Text("its node was drained ({why})"),
    Text("its node was drained"),
    Text("its node lost track of it ({why})"),
    Text("its node lost track of it"),
    Text("its node evicted it ({why})"),
    Text("its node evicted it"),
    Text("it filled more disk than it may ({why})"),
    Text("it filled more disk than it may"),
    Text("its pod was deleted by another client"),
    Text("its pod was removed by another client"),
    Text("the node chosen for it did not take it ({why})"),
    Text("the node chosen for it did not take it"),
    Text("the node {node} did not take it ({why})"),
    Text("the node {node} did not take it"),
    Text("it exited with status {code}"),
    Text("fetching its inputs took more memory than it may use"),
    Text("the runtime could not be put into its pod: {why}"),
    Text("its container could not be started ({why})"),
    Text("its container could not be started"),
    Text("it was asked to end, and the cluster gives no reason"),
    Text("its node {node} was unavailable for {seconds} s ({why})"),
    Text("its node is unavailable ({why})"),
    Text("its command has ended"),
    Text("its node has not said why yet"),
    Text("the cluster reports nothing further now"),
)
"""Of tasks in pods that have ended, or whose node is away."""
STARTS: Final = (
    Text("pulling {image}"),
    Text("pulling image {image}"),
    Text("fetching {names}"),
    Text("making its output directory"),
    Text("waiting for the cluster's scheduler"),
    Text("the cluster's scheduler makes room for it: pods of lower priority end"),
    Text("the cluster's scheduler does not put it on its node ({why})"),
    Text("its image cannot be fetched ({why})"),
    Text("the image of the {container} container, which is the platform's, cannot be fetched ({why})"),
    Text("its container cannot be made ({why})"),
    Text("its pod cannot be prepared ({why})"),
    Text("its container is being made"),
    Text("its pod's network and volumes are being made ({why})"),
    Text("its pod's network and volumes are being made"),
    Text("waits until the pods of all {number} tasks that start with it are made"),
    Text("the cluster does not take its scheduling gate off ({why})"),
    Text("waits for the tasks that start with it"),
)
"""Of tasks that have not begun."""
REFUSALS: Final = (
    Text("the namespace of its task is not there"),
    Text("the administrator must make it ({why})"),
    Text("an object with the name of its task exists or is being deleted ({why})"),
    Text("the cluster rejects its pod ({why})"),
    Text("a webhook that the cluster asks about pods does not answer"),
    Text("it starts when the administrator has repaired or removed that webhook ({why})"),
    Text("the cluster cannot start it now ({why})"),
    Text("the quota of its namespace is used up"),
    Text("it starts when there is room ({why})"),
    Text("a quota of its namespace counts something that pods do not state"),
    Text("it starts when the administrator has given them a default by a LimitRange, or changed the quota ({why})"),
    Text("the namespace does not allow what the administrator has set for pods"),
    Text(
        "it starts when the administrator has changed kubernetes.pods, or the namespace's Pod Security Standard ({why})"
    ),
    Text("the cluster does not have what the administrator has set for pods"),
    Text("it starts when the administrator has made it, or changed kubernetes.pods ({why})"),
    Text("it asks for more or less than its namespace allows one task ({why})"),
    Text("a rule of the cluster forbids its pod ({why})"),
    Text("its namespace is being removed ({why})"),
    Text("the backend may not make pods"),
    Text("the administrator must allow it ({why})"),
)
"""Why a cluster does not make a task's pod."""
STORAGES: Final = (
    Text("{place} cannot be used: the package for {scheme} is not installed"),
    Text("install it where this runs: {command}"),
    Text("no permission for {place}"),
    Text("ask its owner for access, or name another place"),
    Text("{place} does not exist"),
    Text("upload it (`pai upload PATH URI`) or correct the document"),
    Text("{place} is a file, or is below one"),
    Text("name a directory"),
    Text("no room is left at {place}"),
    Text("remove what is not needed"),
    Text("{place} does not answer: {why}"),
    Text("check host and port, and that it runs"),
    Text("{place} cannot be used: {why}"),
    Text("check the path"),
    Text("connection refused"),
    Text("the connection failed"),
    Text("the host name is not known"),
    Text("the DataNodes that have it are away"),
    Text("no DataNode takes the data"),
)
"""Of the program that fetches inputs, and of file systems."""


@lru_cache(maxsize=2_048)
def engine_said(text: str) -> str:
    """The same text with its template, where that is known: of the whole, or of each clause between semicolons."""
    if isinstance(text, Text):
        return text
    clauses = [recognised(clause, _ALL) for clause in text.split("; ")]
    if all(isinstance(each, Text) for each in clauses):
        return in_clauses(clauses)
    whole = recognised(text, _ALL)
    known = isinstance(whole, Text) or not any(isinstance(each, Text) for each in clauses)
    return whole if known else in_clauses(clauses)


_ALL: Final = (*ENDS, *IN_CONTAINERS, *IN_PODS, *STARTS, *REFUSALS, *STORAGES)
