"""Where a job's tasks run: a pure library, no clock, no I/O, no asyncio.

``base`` is the interface the controller uses; ``first_fit`` serves it over plain nodes and GPUs.
Same input, same output: nothing here iterates over a set or depends on hash order.
"""
