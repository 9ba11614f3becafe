# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Exact counts of how often each row is looked up, and the most frequent rows.

A first pass over the data with this gives a better hot set than LEARN, which sees each lookup once
and keeps two bits of it (docs/hotset.md). It is what FAE calls profiling (arXiv 2103.00686).

    counter = RowCounter(group)
    for batch in data:
        counter.add(batch)
    embedding.working.load(counter.top(entries).rows)
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hotline.errors import ConfigError, DataError, HotlineError
from hotline.ingest import ingest
from hotline.native import library, pointer
from hotline.tables import Group

U32 = npt.NDArray[np.uint32]
U64 = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Frequent:
    """Rows by falling count; equal counts by row id.

    Attributes:
        rows: [n] row ids.
        counts: [n] lookups of each.
    """

    rows: U32
    counts: U64


class RowCounter:
    """Counts the lookups of all rows that are not pinned.

    It needs one byte for each row (300 MB for 300 million rows), and some 50 bytes for each row of
    256 lookups and more, of which there are at most ``lookups / 256``.

    Args:
        group: tables and features.

    Raises:
        HotlineError: there is no memory for it.
    """

    def __init__(self, group: Group) -> None:
        self.group = group
        self.lookups = 0
        """Lookups counted, those of pinned rows included."""
        self._lib = library()
        self._handle = self._lib.hotline_counter_new(group.pinned_rows, group.total_rows)
        if not self._handle:
            raise HotlineError(
                f"no memory to count {group.total_rows - group.pinned_rows:,} rows, one byte each"
            )
        weakref.finalize(self, self._lib.hotline_counter_free, self._handle)

    def add(self, features: Any) -> None:
        """Counts a mini-batch of raw ids; arguments and errors as of ``hotline.ingest.ingest``."""
        self.add_rows(ingest(self.group, features).ids)

    def add_rows(self, ids: U32) -> None:
        """Counts row ids [n]; raises DataError, and counts none, if one is not of the group."""
        ids = np.ascontiguousarray(ids, dtype=np.uint32).reshape(-1)
        status = self._lib.hotline_counter_add(self._handle, pointer(ids), ids.size)
        if status > 0:
            raise DataError(f"row id {ids.max()} is not below {self.group.total_rows}")
        if status < 0:
            raise HotlineError("no memory left for the counts of frequent rows")
        self.lookups += ids.size

    def counts(self, rows: npt.NDArray[np.integer]) -> U64:
        """Lookups of the rows [n]; 0 for pinned ones, which are not counted."""
        ids = np.ascontiguousarray(rows, dtype=np.uint32)
        out = np.zeros(ids.shape, np.uint64)
        self._lib.hotline_counter_counts(self._handle, pointer(ids), ids.size, pointer(out))
        return out

    def top(self, count: int) -> Frequent:
        """The most frequent rows.

        Args:
            count: how many, at most; rows that were never looked up are not among them.

        Raises:
            ConfigError: ``count`` is negative.
        """
        if count < 0:
            raise ConfigError(f"count={count}: at least 0")
        count = min(count, self.group.total_rows - self.group.pinned_rows)
        rows, counts = np.zeros(count, np.uint32), np.zeros(count, np.uint64)
        found = self._lib.hotline_counter_top(self._handle, count, pointer(rows), pointer(counts))
        if found < 0:
            raise HotlineError(f"no memory left to sort {count:,} rows")
        return Frequent(rows[:found], counts[:found])
