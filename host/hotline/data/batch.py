# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""The mini-batch that every data set yields, and what a data set offers to the trainer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from hotline.ingest import Jagged
from hotline.tables import PIN_THRESHOLD_BYTES, Group

SPLITS = ("train", "test")
"""Names of the parts of a data set."""


Lookups: TypeAlias = "npt.NDArray[np.int64] | Jagged"
"""Lookups of one feature: ids [samples] or [samples, lookups] where fixed, else
``Jagged`` of int64 values and lengths."""


@dataclass(frozen=True)
class Batch:
    """One mini-batch, in categorical ids of the tables (not row ids; see ``Group``).

    Attributes:
        dense: [samples, dense_width] float32.
        features: lookups by the name of the feature; all features of the group are there.
        labels: [samples] float32, 0 or 1.
    """

    dense: npt.NDArray[np.float32]
    features: dict[str, Lookups]
    labels: npt.NDArray[np.float32]

    @property
    def samples(self) -> int:
        """Number of samples."""
        return int(self.labels.shape[0])


@runtime_checkable
class Dataset(Protocol):
    """What the trainer asks of a data set."""

    @property
    def name(self) -> str:
        """Name for messages and reports."""

    @property
    def dense_width(self) -> int:
        """Columns of ``Batch.dense``."""

    def samples(self, split: str) -> int:
        """Samples of ``train`` or ``test``."""

    def group(self, dim: int, pin_bytes: int = PIN_THRESHOLD_BYTES) -> Group:
        """Tables and features with ``dim`` elements a row; ``pin_bytes`` as in ``Group``."""

    def batches(
        self, split: str, batch_size: int, *, seed: int = 0, epoch: int = 0
    ) -> Iterator[Batch]:
        """Yields the mini-batches of one pass; the last one may be smaller.

        ``train`` is shuffled by (seed, epoch), ``test`` keeps its order.
        """
