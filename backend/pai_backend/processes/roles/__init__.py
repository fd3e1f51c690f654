"""One module a role, each with ``run(parts, ready)``: wiring only, no decisions."""
