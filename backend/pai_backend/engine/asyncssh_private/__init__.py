"""Undocumented parts of asyncssh that engines use, and the check that the installed release has all of ours (ADR 0032).

- ``required``: lists every such part, those of ``access.gateway.joined`` too, and checks that it exists.
- ``guesses``: wrong guesses of clients in a key exchange. ``task_connection``: bounds on channels at a task's server.

May import asyncssh and ``engine.ssh_wire``. Apart from ``required``, its modules are imported only where
``required.are_there`` is true.
"""
