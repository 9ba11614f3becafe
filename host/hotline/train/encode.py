# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Where rows are, and which lookups belong to which bag.

``HotSet`` is the host's mirror of the hot-set directory. ``Bags`` is the geometry of a mini-batch:
sample-major lookups, split into samples and bags. ``Features`` is what the embedding module reads.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from hotline.device.base import ENTRY
from hotline.errors import DataError
from hotline.tables import Group, RowBatch

I64 = npt.NDArray[np.int64]
U32 = npt.NDArray[np.uint32]

_SLOT_MASK = np.uint32((1 << 30) - 1)


class HotSet:
    """Slots of the hot rows: pinned rows at their row id, the others as the directory placed them.

    Args:
        pinned_rows: row ids below are hot and lie at their row id.
        entries: directory entries as DUMP writes them (``ENTRY``), or None: none.
    """

    def __init__(self, pinned_rows: int, entries: npt.NDArray[Any] | None = None) -> None:
        self.pinned_rows = pinned_rows
        if entries is None:
            entries = np.zeros(0, dtype=ENTRY)
        order = np.argsort(entries["row"], kind="stable")
        self.rows: U32 = entries["row"][order].astype(np.uint32)
        self.slots: I64 = (entries["slot_counter"][order] & _SLOT_MASK).astype(np.int64)

    def __len__(self) -> int:
        return len(self.rows)

    def slots_of(self, rows: npt.NDArray[np.integer]) -> I64:
        """Slot of each row [n], -1 where the row is cold."""
        ids = np.asarray(rows).astype(np.int64)
        slots = np.where(ids < self.pinned_rows, ids, -1)
        if len(self.rows):
            place = np.minimum(np.searchsorted(self.rows, ids), len(self.rows) - 1)
            found = (slots < 0) & (self.rows[place] == ids)
            slots[found] = self.slots[place[found]]
        return slots


def ranges(starts: npt.NDArray[np.integer], lengths: npt.NDArray[np.integer]) -> I64:
    """Concatenates ``arange(start, start + length)`` for each pair."""
    lengths = np.asarray(lengths, dtype=np.int64)
    total = int(lengths.sum())
    if total == 0:
        return np.zeros(0, dtype=np.int64)
    ends = np.cumsum(lengths)
    shifts = np.asarray(starts, dtype=np.int64) - ends + lengths
    out: I64 = np.arange(total) + np.repeat(shifts, lengths)
    return out


@dataclass(frozen=True)
class Bags:
    """Geometry of sample-major lookups.

    Attributes:
        samples, bags: samples, and bags of a sample.
        lengths: [samples * bags] int64 lookups of each bag.
        uniform: every bag has exactly one lookup.
    """

    samples: int
    bags: int
    lengths: I64
    uniform: bool = False

    @classmethod
    def of(cls, group: Group, rows: RowBatch) -> Bags:
        """Geometry of a mini-batch; checks that it fits the group.

        Raises:
            DataError: sizes or offsets contradict each other.
        """
        bags = len(group.features)
        if rows.bags != bags:
            raise DataError(f"a sample has {rows.bags} bags, the group has {bags} features")
        if rows.offsets is None:
            counts = [f.lookups for f in group.features if f.lookups is not None]
            if len(counts) != bags:
                raise DataError("jagged features need offsets")
            result = _fixed(tuple(counts), rows.samples)
            if rows.lookups_per_sample != sum(counts):
                raise DataError(
                    f"a sample has {rows.lookups_per_sample} lookups, the features {sum(counts)}"
                )
        else:
            offsets = np.asarray(rows.offsets, dtype=np.int64)
            lengths = np.diff(offsets)
            if len(offsets) != rows.samples * bags + 1 or offsets[0] or (lengths < 0).any():
                raise DataError(
                    f"offsets must be {rows.samples * bags + 1} entries, 0 first, never decreasing"
                )
            result = cls(rows.samples, bags, lengths)
        if result.lookups != len(rows.ids):
            raise DataError(
                f"the bags have {result.lookups} lookups, there are {len(rows.ids)} ids"
            )
        return result

    @property
    def lookups(self) -> int:
        """Lookups of all bags."""
        return int(self.offsets[-1])

    @cached_property
    def offsets(self) -> I64:
        """[samples * bags + 1] first lookup of each bag, and the end."""
        return np.concatenate(([0], np.cumsum(self.lengths)))

    @cached_property
    def sample_offsets(self) -> I64:
        """[samples + 1] first lookup of each sample, and the end."""
        return self.offsets[:: self.bags] if self.bags else np.zeros(self.samples + 1, np.int64)

    def select(self, samples: I64) -> tuple[Bags, I64]:
        """Keeps some samples, in the order given; also returns the positions of their lookups."""
        lengths = self.lengths.reshape(self.samples, self.bags)[samples].ravel()
        starts = self.sample_offsets
        lookups = ranges(starts[samples], starts[samples + 1] - starts[samples])
        return Bags(len(samples), self.bags, lengths, self.uniform), lookups


@functools.lru_cache(maxsize=8)
def _fixed(counts: tuple[int, ...], samples: int) -> Bags:
    """Geometry of bags with fixed numbers of lookups: the same for every mini-batch of a size."""
    lengths = np.tile(np.array(counts, dtype=np.int64), samples)
    bags = Bags(samples, len(counts), lengths, uniform=all(count == 1 for count in counts))
    for shared in (lengths, bags.offsets):
        shared.setflags(write=False)
    return bags


@dataclass(frozen=True, eq=False)
class Features:
    """Lookups of some samples, ready for an embedding module.

    Attributes:
        indices: [lookups] integer on the model's device: encoded indices, or row ids if ``raw``.
        bags: their geometry.
        weights: [lookups] factor of each lookup, or None.
        raw: whether the indices are row ids.
        ticket: of the mini-batch in training that encoded indices belong to; 0: none.
    """

    indices: Tensor
    bags: Bags
    weights: Tensor | None = None
    raw: bool = False
    ticket: int = 0

    @property
    def samples(self) -> int:
        """Number of samples."""
        return self.bags.samples

    @cached_property
    def offsets(self) -> Tensor:
        """[samples * bags + 1] as ``indices``, on the same device."""
        dtype = np.int32 if self.indices.dtype == torch.int32 else np.int64
        return to_device(self.bags.offsets.astype(dtype), self.indices.device)

    def lookup_bags(self) -> Tensor | None:
        """[lookups] int64 bag of each lookup; None where lookup n is bag n."""
        if self.bags.uniform:
            return None
        lengths = to_device(self.bags.lengths.copy(), self.indices.device)
        return torch.repeat_interleave(lengths, output_size=self.indices.numel())


def to_device(array: npt.NDArray[Any], device: torch.device) -> Tensor:
    """Copies a NumPy array to the model's device, through pinned memory where it has a GPU.

    The caching allocator of pinned memory waits for the copy before it reuses the memory.
    """
    tensor = torch.from_numpy(np.ascontiguousarray(array))
    if device.type == "cuda":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.clone() if tensor.data_ptr() == array.ctypes.data else tensor


def first_occurrences(rows: U32) -> tuple[U32, I64]:
    """Returns (distinct rows in order of first occurrence, rank of each of ``rows``)."""
    distinct, first, inverse = np.unique(rows, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return distinct[order], rank[inverse.reshape(-1)]


def encode_on_host(
    hot: HotSet, rows: RowBatch, bags: Bags, cold_base: int
) -> tuple[U32, npt.NDArray[np.bool_], U32, tuple[int, int, int]]:
    """What FRAGMENT computes, on the host, for the hot set installed in the working set.

    Returns:
        encoded indices [lookups]; popular [samples]; cold rows by position; and the numbers of
        pinned, other hot, and cold lookups.
    """
    slots = hot.slots_of(rows.ids)
    cold = slots < 0
    cold_rows, ranks = first_occurrences(rows.ids[cold])
    slots[cold] = cold_base + ranks
    counts = np.concatenate(([0], np.cumsum(cold)))[bags.sample_offsets]
    popular = np.diff(counts) == 0
    pinned = int((rows.ids < hot.pinned_rows).sum())
    cold_lookups = int(cold.sum())
    hits = len(rows.ids) - pinned - cold_lookups
    return slots.astype(np.uint32), popular, cold_rows, (pinned, hits, cold_lookups)
