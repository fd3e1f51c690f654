"""Ways in: ports, keys, the SSH gateway and the service proxy."""
