"""The bench of the SSH gateway, beside Debian's sshd as a jump host.

``site`` starts both, ``clients`` runs OpenSSH, ``figures`` has the measurements in their order.
"""
