"""Benchmarks: each measures one promise of speed, asserts that it did the work, and is held to ``floors.toml``."""
