"""Inputs that nobody would write, for as long as there is time. ``make fuzz`` runs this for five minutes."""
