"""The HTTP face: tornado handlers over a service layer over the store.

``routes`` lists every path, ``handlers`` parse and serialise, ``services`` know the rules, ``present`` shapes the
answers (``wire``), ``errors`` is the one place where an error becomes a status. Nothing here talks to an engine
except to read logs and to let the service proxy dial; nothing decides what becomes of a job.
"""
