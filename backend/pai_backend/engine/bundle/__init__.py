"""What engines whose tasks are containers share: the contract with the launcher of the runtime bundle.

``backend/runtime/`` is the bundle itself. Here is where its files lie in a task, what they say, and how the record that
it leaves is read. Pure.
"""
