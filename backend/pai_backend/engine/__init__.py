"""What runs tasks. ``base`` is the interface; ``local`` runs processes on this machine. ``asyncssh_private`` holds what
the tasks' SSH servers and the gateway use of asyncssh beyond its documentation.

An engine never sees a store, a job or a user: plans in, events out. The definition of the interface
is the contract suite in ``pai_backend.testing.engine_contract``.
"""
