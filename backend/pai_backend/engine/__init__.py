"""What runs tasks. ``base`` is the interface; ``local`` runs processes on this machine. ``guesses`` fixes a fault of
asyncssh's server, for the gateway as well.

An engine never sees a store, a job or a user: plans in, events out. The definition of the interface
is the contract suite in ``pai_backend.testing.engine_contract``.
"""
