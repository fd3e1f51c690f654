"""What attackers tried on a backend of several users, tried again from outside.

Each test is one row of ``docs/security.md``. It knows the backend as a stranger, a user or an administrator does: by
HTTP, by SSH, and by what the machine shows to anybody. So it can be run on any revision: ``PAI_ATTACK_PYTHON`` names
the Python in whose environment that one is installed. `make attack` runs all and prints a table.
"""
