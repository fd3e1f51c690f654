"""The SSH front door: ``ssh <alias>@gateway`` reaches the task, whatever node it runs on (architecture §8).

A login has two legs: client to gateway and gateway to task. The gateway ends the
transport and authentication layers of both and passes the connection layer through (RFC 4254).

- ``names``: what a login name means, and why a target cannot be entered now. ``reasons``: the words for it. Pure.
- ``arrivals``: bounds on those who have not logged in. ``guard``, ``reading_only``: what of a limited login's
  messages may pass. ``folding``: few events for many logins. Pure.
- ``sessions``, ``activity``: which sessions a login has open and what it is used for, learnt from the messages
  that pass. No I/O.
- ``way``: how connections are made and passed on. ``joined``: message by message, by parts of asyncssh that it does not
  document. ``documented``: channel by channel, for releases that lack those (ADR 0032). ``legs``: what both share.
- ``transport``: byte transports below the legs. ``upstream``: opening the back leg. ``jump``: a jump's end in the task.
- ``login``: one client from its first byte to its last; ``proof`` and ``door`` say who it is and whether it may
  come in, ``entering`` joins it to its task. ``watch``: ends logins whose right has ended.
- ``reporting``, ``record``, ``counters``: log, events and figures of logins. ``noting``: which of them use
  jobs that have an idle timeout. ``warning``, ``terminal_lines``: warnings on the terminals of such jobs.
- ``turns``: looks at all logins that hold none of them up.
- ``server``: ``serve_gateway``; start reading there.

May import asyncssh, ``model``, ``lifecycle.idleness``, ``store.base``, ``engine.base``, ``engine.jumps``,
``engine.ssh_wire``, ``engine.splicing``, ``engine.asyncssh_private``, ``access.keys``, ``access.uses`` and
``access.broker``; never an implementation of store or engine. This package imports nothing by itself, so that its
neighbours stay light.
"""
