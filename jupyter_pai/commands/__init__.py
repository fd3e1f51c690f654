"""The verbs: one module a group, each verb a function under :func:`jupyter_pai.verbs.verb`.

Importing this package fills the table of verbs, in the order of ``pai --help``. What few verbs need they import when
they run. None may import IPython, jupyter_server or pydantic at once: ``pai list`` must answer within 400 ms.
"""

# isort: off

from jupyter_pai.commands import documents as documents
from jupyter_pai.commands import running as running
from jupyter_pai.commands import sweeps as sweeps
from jupyter_pai.commands import templates as templates
from jupyter_pai.commands import notebooks as notebooks
from jupyter_pai.commands import jobs as jobs
from jupyter_pai.commands import use as use
from jupyter_pai.commands import images as images
from jupyter_pai.commands import usage as usage
from jupyter_pai.commands import prices as prices
from jupyter_pai.commands import budgets as budgets
from jupyter_pai.commands import audit as audit
from jupyter_pai.commands import files as files
from jupyter_pai.commands import ssh as ssh
from jupyter_pai.commands import forward as forward
from jupyter_pai.commands import sync as sync
from jupyter_pai.commands import terminal as terminal
from jupyter_pai.commands import connect as connect
from jupyter_pai.commands import kernels as kernels
from jupyter_pai.commands import debug as debug
from jupyter_pai.commands import tensorboard as tensorboard
from jupyter_pai.commands import code as code
from jupyter_pai.commands import keys as keys
from jupyter_pai.commands import share as share
from jupyter_pai.commands import addresses as addresses
from jupyter_pai.commands import login as login
from jupyter_pai.commands import users as users
from jupyter_pai.commands import user_import as user_import
from jupyter_pai.commands import groups as groups
from jupyter_pai.commands import virtual_clusters as virtual_clusters
from jupyter_pai.commands import reservations as reservations
from jupyter_pai.commands import tokens as tokens
from jupyter_pai.commands import secrets as secrets
from jupyter_pai.commands import cluster as cluster
from jupyter_pai.commands import mcp as mcp
from jupyter_pai.commands import announce as announce
from jupyter_pai.commands import notify as notify
from jupyter_pai.commands import simulate as simulate
from jupyter_pai.commands import backend as backend
from jupyter_pai.commands import completion as completion
from jupyter_pai.verbs import VERBS as VERBS
