"""Logins passed on channel by channel, by what asyncssh documents: for releases that do not fit ``joined`` (ADR 0032).

- ``copying``: one channel of the client's that is one of the task's. ``permits``: what limited logins may open.
- ``login``: the client's end. ``entering``, ``upstream``, ``way``: the gateway's own classes on these.

Slower than ``joined``, and with less: no certificates, X11 or forwarded agents, no waiting within a login, no warnings
on terminals, and it can be found out whether a public key is registered (ADR 0019).
"""
