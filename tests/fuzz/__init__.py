"""Inputs that nobody would write: the same ones in every ``make test``, new ones for minutes in ``make fuzz``."""
