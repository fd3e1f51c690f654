"""What a change of the cluster configuration does: the one form in which API, command line and magics tell it."""

from __future__ import annotations

from pydantic import Field

from pai_backend.model.base import Model


class JobEffect(Model):
    """A job that a change concerns."""

    job: str = Field(description="`user~name`.")
    vc: str
    gpus: int = Field(description="Leaf cells that it has or asks for; of `missing`, those that are not described.")
    groups: tuple[str, ...] = Field(
        default=(), description="Its groups that are meant; empty for all of a waiting job."
    )
    message: str = Field(default="", description="What is to be known besides, in a sentence.")
    already: bool = Field(default=False, description="So it is without the change, too.")


class CellsOwned(Model):
    """How many cells of one kind a virtual cluster owns; of a pinned cell 0 or 1."""

    cell: str = Field(description="Path of types, `POOL.NODE`, or `pinned NAME`.")
    before: int
    after: int


class VcChange(Model):
    """What a virtual cluster owns before and after."""

    vc: str
    exists_before: bool
    exists_after: bool
    gpus_before: int = Field(description="Leaf cells, pinned ones included.")
    gpus_after: int
    cells: tuple[CellsOwned, ...] = ()

    @property
    def differs(self) -> bool:
        """Whether it changes at all."""
        return self.exists_before != self.exists_after or any(each.before != each.after for each in self.cells)


class ClusterChange(Model):
    """All effects of a change. Nothing that runs is ended by it."""

    lost: tuple[JobEffect, ...] = Field(default=(), description="They run on, and others may take their cells.")
    regained: tuple[JobEffect, ...] = Field(default=(), description="They count on their quota again.")
    dropped: tuple[JobEffect, ...] = Field(default=(), description="They lose a reservation and are scheduled again.")
    missing: tuple[JobEffect, ...] = Field(default=(), description="They run on cells that are no longer configured.")
    impossible: tuple[JobEffect, ...] = Field(default=(), description="They wait, and could never start.")
    starts: tuple[JobEffect, ...] = Field(default=(), description="They wait, and would start at once.")
    virtual_clusters: tuple[VcChange, ...] = ()
    added_nodes: tuple[str, ...] = ()
    removed_nodes: tuple[str, ...] = ()

    @property
    def concerns(self) -> bool:
        """Whether any job is affected."""
        told = (*self.lost, *self.regained, *self.dropped, *self.missing, *self.impossible, *self.starts)
        return any(not each.already for each in told)

    @property
    def differs(self) -> bool:
        """Whether machines or quotas change."""
        return bool(self.added_nodes or self.removed_nodes) or any(each.differs for each in self.virtual_clusters)
