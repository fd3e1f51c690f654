"""Programs that people log in to tasks with, each told to trust one key of the gateway and nothing else."""
