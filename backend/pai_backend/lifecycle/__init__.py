"""How a job lives: ``step(job, event, now) -> (job, effects)``, pure.

Must never hold a clock, randomness, I/O, logging or asyncio (import-linter checks). ``table`` is the
one place that says which task phase follows which; nothing else assigns a phase. Start with ``step``.
"""
