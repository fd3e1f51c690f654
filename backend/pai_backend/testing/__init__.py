"""Shipped test material: builders of values, and the contract that every engine must pass."""
