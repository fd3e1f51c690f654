"""What runs beside a kernel in a task, and the link that both ends speak.

These modules are sent into the task as text and run by the task's own Python, 3.7 or later. They import the standard
library and each other only.
"""
