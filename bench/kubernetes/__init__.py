"""Benches of the Kubernetes engine.

``following`` needs no cluster; ``starting`` runs tasks on a real cluster of two nodes, ``scale`` on one of a thousand
simulated nodes. The latter two start their clusters by the programs of the tests, and say what a machine lacks.
"""
