"""One module a role, each with ``run(components, ready)``: wiring only, no decisions."""
