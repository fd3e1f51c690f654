"""The gateway's adapter to what asyncssh does not document (ADR 0032): two connections of asyncssh that are one relay.

- ``relay``: both legs, joined so that the connection layer passes through. ``front``: what is the client's alone.
- ``packets``: their data in few steps. ``lean``: their memory. ``pipe``: a jump's stream.
- ``login``, ``entering``, ``upstream``, ``way``: the gateway's own classes on these legs.

``engine.asyncssh_private.required`` lists what is used and checks that it exists; only then is this package imported.
"""
