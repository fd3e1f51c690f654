"""The local engine: tasks are process groups on this machine, each kept by a small process of its own.

``engine`` is the interface, ``ledger`` what the directories say, ``shim`` the process that keeps one
task, ``agent`` the SSH servers of the tasks. Whatever must survive a crash is a file below the
engine's root; no fact lives only in memory. ``layout`` lists the files, start reading there.

``shim``, ``layout`` and ``processes`` run inside the shim, 500 times at once: they import
only small modules of the standard library, and this file imports nothing at all (a test holds that).
"""
