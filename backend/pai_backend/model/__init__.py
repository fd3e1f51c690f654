"""The words of the product as frozen pydantic models: job, task, placement, node, event, error.

May import pydantic and the standard library's pure parts only; no clock, no I/O, no other room.
Start with ``spec`` (what was asked for) and ``job`` (what became of it).
"""
