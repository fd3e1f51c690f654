"""Persistent terminals of tasks, as their clients see them: ``pai terminal`` and the terminals of JupyterLab.

The shell and its scrollback live in the task. A client logs in with the user's own OpenSSH, as ``pai ssh`` does, asks
for the subsystem ``pai-terminal`` and speaks its frames (docs/runtime.md). So the gateway decides who may enter, and
ends the login of a user who no longer may.
"""
