# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Embedding tables, features, and the row space that a group of tables shares."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from hotline.errors import ConfigError

ROWS_MAX = 2**32 - 2
"""Most rows of a group; use several groups beyond that."""
PIN_THRESHOLD_BYTES = 1 << 20
"""Tables of at most this many bytes are pinned as a whole, unless told otherwise."""


@dataclass(frozen=True)
class TableConfig:
    """One embedding table: ``rows`` (capacity) vectors of ``dim`` elements."""

    name: str
    rows: int
    dim: int

    def __post_init__(self) -> None:
        if not 0 < self.rows <= ROWS_MAX or self.dim <= 0:
            raise ConfigError(f"table {self.name!r}: rows={self.rows}, dim={self.dim} is no table")


@dataclass(frozen=True)
class FeatureConfig:
    """An ordered list of lookups of a sample into one table.

    Attributes:
        name: name of the feature.
        table: name of its table; several features may share one.
        lookups: fixed number of lookups of a sample, or None for a jagged feature.
        pooling: ``sum`` or ``mean``.
    """

    name: str
    table: str
    lookups: int | None = 1
    pooling: str = "sum"

    def __post_init__(self) -> None:
        if self.pooling not in ("sum", "mean"):
            raise ConfigError(f"feature {self.name!r}: pooling {self.pooling!r} is not sum or mean")


@dataclass(frozen=True)
class Group:
    """Tables of one dimension, their features, and their common row space.

    Tables lie in the row space by (rows, declaration order), small ones first, so that the pinned
    tables, those of at most ``pin_bytes`` bytes, take the row ids below ``pinned_rows``.

    Attributes:
        tables: the tables, in declaration order.
        features: the features; their order is the order of a sample's bags.
        pin_bytes: threshold in bytes (float32 weights) up to which a table is pinned.
    """

    tables: tuple[TableConfig, ...]
    features: tuple[FeatureConfig, ...]
    pin_bytes: int = PIN_THRESHOLD_BYTES

    def __post_init__(self) -> None:
        names = [table.name for table in self.tables]
        if len(set(names)) != len(names) or not names:
            raise ConfigError(f"a group needs tables with distinct names, not {names}")
        dims = {table.dim for table in self.tables}
        if len(dims) != 1:
            raise ConfigError(f"tables of a group have one dimension, not {sorted(dims)}")
        for feature in self.features:
            if feature.table not in names:
                raise ConfigError(f"feature {feature.name!r}: there is no table {feature.table!r}")
        if self.total_rows > ROWS_MAX:
            raise ConfigError(f"{self.total_rows} rows exceed {ROWS_MAX}; make several groups")

    @property
    def dim(self) -> int:
        """Elements of a vector."""
        return self.tables[0].dim

    @cached_property
    def order(self) -> tuple[TableConfig, ...]:
        """The tables as they lie in the row space."""
        return tuple(sorted(self.tables, key=lambda table: table.rows))

    @cached_property
    def bases(self) -> dict[str, int]:
        """First row id of each table."""
        bases, base = {}, 0
        for table in self.order:
            bases[table.name] = base
            base += table.rows
        return bases

    @cached_property
    def total_rows(self) -> int:
        """Rows of all tables."""
        return sum(table.rows for table in self.tables)

    @cached_property
    def pinned_rows(self) -> int:
        """Row ids below this are pinned."""
        return sum(t.rows for t in self.tables if t.rows * t.dim * 4 <= self.pin_bytes)

    @cached_property
    def lookups_per_sample(self) -> int | None:
        """Lookups of every sample, or None if a feature is jagged."""
        counts = [feature.lookups for feature in self.features]
        return None if None in counts else sum(c for c in counts if c is not None)

    def locate(self, rows: npt.NDArray[np.integer]) -> tuple[npt.NDArray[np.int64], ...]:
        """Splits row ids [n] into (index of the table in ``order`` [n], row in the table [n])."""
        bases = np.array([self.bases[table.name] for table in self.order], dtype=np.int64)
        ids = np.asarray(rows, dtype=np.int64)
        table = np.searchsorted(bases, ids, side="right") - 1
        return table, ids - bases[table]


@dataclass(frozen=True)
class RowBatch:
    """A mini-batch as row ids, sample-major: what ingest makes and the kernels read.

    Attributes:
        ids: [lookups] uint32.
        samples: number of samples.
        bags: bags (features) of a sample.
        lookups_per_sample: where fixed, else None.
        offsets: [samples * bags + 1] uint32 where jagged, else None.
        pinned_lookups: lookups of pinned tables among them, where known.
    """

    ids: npt.NDArray[np.uint32]
    samples: int
    bags: int
    lookups_per_sample: int | None = None
    offsets: npt.NDArray[np.uint32] | None = None
    pinned_lookups: int | None = None
