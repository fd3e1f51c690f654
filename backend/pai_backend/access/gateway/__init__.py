"""The SSH front door: ``ssh <alias>@gateway`` reaches the task, whatever node it runs on (architecture §8).

A login has two legs: client to gateway (``front``) and gateway to task (``back``). The gateway ends the
transport and authentication layers of both and passes the connection layer through (RFC 4254).

- ``names``: what a login name means, and why a target cannot be entered now. Pure.
- ``sessions``: which sessions a login has open, learnt from the messages that pass. No I/O.
- ``relay``: the two legs as asyncssh connections; the only module that touches asyncssh's internals.
- ``transport``: byte transports below the legs. ``upstream``: opening the back leg.
- ``login``: one client from its first byte to its last. ``watch``: ends logins whose right has ended.
- ``server``: ``serve_gateway``; start reading there.

May import asyncssh, ``model``, ``store.base``, ``engine.base`` and ``access.keys``; never an implementation of
store or engine. This package imports nothing by itself, so that its neighbours stay light.
"""
