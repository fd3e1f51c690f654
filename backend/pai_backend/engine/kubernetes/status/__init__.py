"""From what a cluster says of a pod to the state of its task: pure functions from the API's JSON to values.

``task.read_task`` is where to start reading: it takes a pod, what is known of its node and the time, and says what the
task is doing or how it ended, and when to look again where only time can tell. ``view`` reads the JSON, ``record`` what
the launcher left, ``exits`` judges ends, ``waits`` what keeps a task from running, ``refusals`` what the API server
says when a pod is made. Nothing here does I/O, reads a clock or imports the client.
"""
