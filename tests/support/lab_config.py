"""The seeds' lab as cluster configurations: two machines with a GPU each, named as the scripted engine names them."""

from __future__ import annotations

from pai_backend.scheduling.config.model import ClusterConfig
from pai_backend.scheduling.config.read import read_config

TWO_VCS = """
physicalCluster:
  skuTypes:
    GPU-C: {gpu: 1, cpu: 2, memory: 4096Mi}
    GPU-D: {gpu: 1, cpu: 2, memory: 4096Mi}
  cellTypes:
    GPU-C-NODE: {childCellType: GPU-C, childCellNumber: 1, isNodeLevel: true}
    GPU-D-NODE: {childCellType: GPU-D, childCellNumber: 1, isNodeLevel: true}
  physicalCells:
    - {cellType: GPU-C-NODE, cellAddress: carol}
    - {cellType: GPU-D-NODE, cellAddress: dan}
virtualClusters:
  default:
    virtualCells: [{cellType: GPU-C-NODE, cellNumber: 1}]
  vc1:
    virtualCells: [{cellType: GPU-D-NODE, cellNumber: 1}]
"""

ONE_VC = """
physicalCluster:
  skuTypes:
    GPU: {gpu: 1, cpu: 2, memory: 4096Mi}
  cellTypes:
    GPU-NODE: {childCellType: GPU, childCellNumber: 1, isNodeLevel: true}
  physicalCells:
    - {cellType: GPU-NODE, cellAddress: carol}
    - {cellType: GPU-NODE, cellAddress: dan}
virtualClusters:
  default:
    virtualCells: [{cellType: GPU-NODE, cellNumber: 2}]
"""


def two_vcs() -> ClusterConfig:
    """Carol's GPU belongs to ``default``, Dan's to ``vc1``."""
    return read_config(TWO_VCS)


def one_vc() -> ClusterConfig:
    """Both GPUs belong to ``default``."""
    return read_config(ONE_VC)


def shared_chain() -> ClusterConfig:
    """One GPU for each of two virtual clusters, of one kind."""
    both = "virtualCells: [{cellType: GPU-NODE, cellNumber: 1}]"
    return read_config(
        ONE_VC.partition("virtualClusters")[0] + f"virtualClusters:\n  default: {{{both}}}\n  vc1: {{{both}}}\n"
    )


def both_types() -> ClusterConfig:
    """Both GPUs, which are of two types, belong to ``default``."""
    cells = ", ".join(f"{{cellType: GPU-{letter}-NODE, cellNumber: 1}}" for letter in "CD")
    head = TWO_VCS.partition("virtualClusters")[0]
    return read_config(f"{head}virtualClusters:\n  default: {{virtualCells: [{cells}]}}\n")
