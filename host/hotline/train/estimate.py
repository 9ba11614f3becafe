# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""How much memory a training run takes, before anything is allocated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch

from hotline.tables import Group
from hotline.train.optim import SGD, RowOptimizer
from hotline.train.staging import numpy_dtype
from hotline.train.store import RecordLayout


class Sizes(Protocol):
    """What counts of a device: ``Capabilities`` and ``KernelConfig`` have it."""

    @property
    def eal_entries(self) -> int:
        """Rows that the EAL holds."""

    @property
    def cold_rows_max(self) -> int:
        """Distinct cold rows of a job."""


@dataclass(frozen=True)
class Estimate:
    """Memory in bytes.

    Attributes:
        working_set: hot rows and cold tails, on the model's device.
        cold_store: all records, in memory that the gatherer reaches.
        staging: of gathers and write-backs at most, in the same memory.
        record_bytes: of one row.
        hot_rows: rows that can be hot, pinned ones included.
        cold_rows: rows of a cold tail.
    """

    working_set: int
    cold_store: int
    staging: int
    record_bytes: int
    hot_rows: int
    cold_rows: int

    @property
    def host_bytes(self) -> int:
        """Bytes in memory that the gatherer reaches."""
        return self.cold_store + self.staging


def tail_rows(group: Group, sizes: Sizes, cold_rows: int | None) -> int:
    """Rows of a cold tail: what is asked for, or what can be needed, within the tracker."""
    if cold_rows is not None:
        return min(cold_rows, sizes.cold_rows_max)
    return min(sizes.cold_rows_max, max(group.total_rows - group.pinned_rows, 1))


def estimate(
    group: Group,
    sizes: Sizes,
    *,
    optimizer: RowOptimizer | None = None,
    dtype: torch.dtype = torch.float32,
    lookahead: int = 1,
    cold_rows: int | None = None,
) -> Estimate:
    """Memory of a ``HotlineEmbedding`` with these arguments.

    Mini-batches with more cold rows than a tail holds make the working set and the staging grow.
    """
    state = (SGD() if optimizer is None else optimizer).state
    layout = RecordLayout.build(group.dim, numpy_dtype(dtype), state)
    cold = tail_rows(group, sizes, cold_rows)
    hot = group.pinned_rows + sizes.eal_entries
    row_bytes = sum(field.nbytes for field in layout.fields)
    staged = (lookahead + 1) * 2 * cold
    return Estimate(
        working_set=(hot + (lookahead + 1) * cold) * row_bytes,
        cold_store=group.total_rows * layout.record_bytes,
        staging=staged * (layout.record_bytes + 4),
        record_bytes=layout.record_bytes,
        hot_rows=hot,
        cold_rows=cold,
    )
