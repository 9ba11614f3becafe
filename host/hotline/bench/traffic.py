# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Streams of mini-batches for the benchmarks: Criteo-shaped ones, and adversarial ones.

All are made by the generator of ``hotline.data.synthetic`` with the Criteo Kaggle data's tables:

- ``criteo``: 26 features with one lookup, bounded Zipf 1.1, tables of up to 16,384 rows pinned;
- ``jagged``: the bag sizes of MLPerf's multi-hot data, 214 lookups a sample, some bags empty;
- ``all-popular``: as criteo, and every cold lookup replaced by a loaded row;
- ``unpinned``: as criteo, nothing pinned, so that every lookup goes to the EAL;
- ``hotspot``: as criteo, and one loaded row in every sample;
- ``one-id``: one loaded row in every lookup;
- ``cold``: an empty EAL and nothing pinned, rows uniform over all tables.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from hotline.data.synthetic import MLPERF_LOOKUPS, Synthetic
from hotline.errors import ConfigError
from hotline.ingest import ingest
from hotline.reference import permute
from hotline.tables import Group, RowBatch

U32 = npt.NDArray[np.uint32]

BATCHES = {
    "criteo": 4096,
    "jagged": 2048,
    "all-popular": 4096,
    "unpinned": 4096,
    "hotspot": 4096,
    "one-id": 4096,
    "cold": 1024,
}
"""Names, and samples of a mini-batch: jagged and cold ones keep within the tracker of ``alveo``."""
EMPTY_SHARE = 0.1
"""Share of the bags of ``jagged`` that are empty."""
DIM = 16
"""Elements of a row: with the default threshold, tables of up to 16,384 rows are pinned."""


@dataclass(frozen=True)
class Traffic:
    """An endless stream of mini-batches.

    Attributes:
        name: one of ``BATCHES``.
        total_rows, pinned_rows: of the row space.
        hot: [rows] what the EAL is to hold, most frequent rows first; may be empty.
        batches: the mini-batches.
    """

    name: str
    total_rows: int
    pinned_rows: int
    hot: U32
    batches: Iterator[RowBatch]


def traffic(
    name: str, sets: int, ways: int, *, samples: int | None = None, seed: int = 0
) -> Traffic:
    """Makes a stream.

    Args:
        name: one of ``BATCHES``.
        sets, ways: of the EAL; ``hot`` has the most frequent rows of other mini-batches, as many as
            it has entries, less those that find their set full.
        samples: samples of a mini-batch; None: as ``BATCHES`` says.
        seed: of the generator.
    """
    if name not in BATCHES:
        raise ConfigError(f"no traffic {name!r}; there are {', '.join(BATCHES)}")
    jagged = name == "jagged"
    data = Synthetic(
        lookups=MLPERF_LOOKUPS if jagged else 1,
        empty_share=EMPTY_SHARE if jagged else 0.0,
        seed=seed,
    )
    group = data.group(DIM)
    random = np.random.default_rng(seed)
    pinned = 0 if name in ("unpinned", "one-id", "cold") else group.pinned_rows
    batches = _stream(data, group, samples or BATCHES[name])
    hot = np.zeros(0, dtype=np.uint32)
    if name == "cold":
        batches = (
            _with_ids(b, random.integers(group.total_rows, size=b.ids.size, dtype=np.uint32))
            for b in batches
        )
    else:
        usual = BATCHES["criteo"] * len(group.features)
        hot = _that_fit(most_frequent(batches, sets * ways, pinned, usual), sets, ways)
    if name == "all-popular":
        batches = (_with_hot(b, hot, pinned, random) for b in batches)
    elif name == "hotspot":
        batches = (_with_one(b, hot[0]) for b in batches)
    elif name == "one-id":
        batches = (_with_ids(b, np.full_like(b.ids, hot[0])) for b in batches)
    return Traffic(name, group.total_rows, pinned, hot, batches)


def most_frequent(batches: Iterator[RowBatch], entries: int, pinned: int, usual: int) -> U32:
    """The rows that are most frequent in the next mini-batches, beyond the pinned ones.

    Args:
        batches: taken from here.
        entries: how many rows.
        pinned: rows below are left out.
        usual: lookups of a mini-batch of usual size; smaller ones count for less.
    """
    # Rarer rows of a larger hot set need a longer look to be told apart.
    look = min(256, max(32, entries // 2048)) * usual
    parts: list[U32] = []
    while sum(part.size for part in parts) < look:
        parts.append(next(batches).ids)
    return by_frequency(np.concatenate(parts), pinned)[:entries]


def by_frequency(lookups: U32, pinned: int) -> U32:
    """The distinct rows among the lookups beyond the pinned ones, most frequent first."""
    rows, counts = np.unique(lookups[lookups >= pinned], return_counts=True)
    return np.asarray(rows[np.argsort(-counts, kind="stable")])


def _that_fit(rows: U32, sets: int, ways: int) -> U32:
    """The rows, in their order, that a LOAD into an empty EAL would take."""
    home = permute(rows) & np.uint32(sets - 1)
    order = np.argsort(home, kind="stable")
    first = np.searchsorted(home[order], home[order], side="left")
    rank = np.empty(rows.size, dtype=np.int64)
    rank[order] = np.arange(rows.size) - first
    return rows[rank < ways]


def _stream(data: Synthetic, group: Group, samples: int) -> Iterator[RowBatch]:
    for first in itertools.count(0, samples):
        numbers = np.arange(first, first + samples)
        yield ingest(group, data.batch(numbers).features if data.empty_share else data.ids(numbers))


def _with_ids(batch: RowBatch, ids: U32) -> RowBatch:
    return replace(batch, ids=ids, pinned_lookups=None)


def _with_hot(batch: RowBatch, hot: U32, pinned: int, random: np.random.Generator) -> RowBatch:
    cold = (batch.ids >= pinned) & ~np.isin(batch.ids, hot)
    ids = batch.ids.copy()
    ids[cold] = hot[random.integers(hot.size, size=int(cold.sum()))]
    return _with_ids(batch, ids)


def _with_one(batch: RowBatch, row: np.uint32) -> RowBatch:
    ids = batch.ids.copy()
    ids[:: batch.lookups_per_sample] = row
    return _with_ids(batch, ids)
