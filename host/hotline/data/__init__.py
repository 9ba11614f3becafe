# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Data sets: everything that yields ``Batch`` objects over the tables of one group."""

from __future__ import annotations

from hotline.data.batch import SPLITS, Batch, Dataset, Lookups
from hotline.ingest import Jagged

__all__ = ["SPLITS", "Batch", "Dataset", "Jagged", "Lookups"]
