"""The whole product under faults of a real cluster: real backend processes, a real control plane, real nodes."""
