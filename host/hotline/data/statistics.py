# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""How skewed a data set is, and how many samples a hot set of a given size makes popular."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hotline.data.batch import Batch
from hotline.ingest import Jagged
from hotline.tables import Group


def row_ids(group: Group, batch: Batch) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Lookups of a batch as (row ids [lookups], sample of each [lookups]), feature after feature.

    For counting only: nothing is checked, and the order is not the one that the kernels read.
    """
    rows, owners = [], []
    everyone = np.arange(batch.samples)
    for feature in group.features:
        lookups = batch.features[feature.name]
        if isinstance(lookups, Jagged):
            values, owner = lookups.values, np.repeat(everyone, lookups.lengths)
        else:
            values = np.asarray(lookups).reshape(batch.samples, -1)
            owner = np.repeat(everyone, values.shape[1])
        rows.append(values.reshape(-1).astype(np.int64) + group.bases[feature.table])
        owners.append(owner)
    return np.concatenate(rows), np.concatenate(owners)


@dataclass(frozen=True)
class Popularity:
    """Access counts of a data set and the popular share that follows.

    The hot set of size h is the ideal one: the h rows (beyond the pinned ones) looked up most
    often. A real one, learned on a part of the data in sets of few ways, stays somewhat below.

    Attributes:
        samples: samples counted.
        lookups: lookups counted.
        total_rows, pinned_rows: of the group.
        counts: [distinct rows that are not pinned] lookups of each, falling.
        pinned_lookups: lookups of pinned rows.
        need: [samples] hot rows beyond the pinned ones that make the sample popular, ascending.
    """

    samples: int
    lookups: int
    total_rows: int
    pinned_rows: int
    counts: npt.NDArray[np.int64]
    pinned_lookups: int
    need: npt.NDArray[np.int64]

    def popular_share(self, hot_rows: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Share of samples all of whose lookups are hot, by rows beyond the pinned ones."""
        found = np.searchsorted(self.need, np.asarray(hot_rows), side="right")
        return np.asarray(found / max(self.samples, 1), dtype=np.float64)

    def lookup_share(self, hot_rows: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Share of lookups that are hot, by rows beyond the pinned ones."""
        hot = np.concatenate(([0], np.cumsum(self.counts)))
        rows = np.minimum(np.asarray(hot_rows), len(self.counts))
        return np.asarray((self.pinned_lookups + hot[rows]) / max(self.lookups, 1), np.float64)


def popularity(group: Group, batches: Iterable[Batch]) -> Popularity:
    """Counts one pass over ``batches``; memory grows with the lookups, not with the tables."""
    all_rows, all_owners, samples = [], [], 0
    for batch in batches:
        rows, owners = row_ids(group, batch)
        all_rows.append(rows)
        all_owners.append(owners + samples)
        samples += batch.samples
    empty = np.empty(0, dtype=np.int64)
    rows = np.concatenate([empty, *all_rows])
    owners = np.concatenate([empty, *all_owners])
    cold = rows >= group.pinned_rows
    distinct, number, counts = np.unique(rows[cold], return_inverse=True, return_counts=True)
    order = np.argsort(-counts, kind="stable")  # ties by row id, so that the curve is reproducible
    rank = np.empty(len(distinct), dtype=np.int64)
    rank[order] = np.arange(1, len(distinct) + 1)
    need = np.zeros(samples, dtype=np.int64)
    np.maximum.at(need, owners[cold], rank[number])
    return Popularity(
        samples=samples,
        lookups=len(rows),
        total_rows=group.total_rows,
        pinned_rows=group.pinned_rows,
        counts=counts[order],
        pinned_lookups=int(np.count_nonzero(~cold)),
        need=np.sort(need),
    )
