# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Sums gradients by row, so that a row gets one update a step however often it occurs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from hotline import native

INDEX_LIMIT = 1 << 32
"""Indices are below: row ids are uint32, places are below 2**31."""


@dataclass(frozen=True)
class LookupGradient:
    """What one backward pass leaves behind.

    Attributes:
        indices: [lookups] integer: the place (or row id) that each lookup read.
        bags: [lookups] int64: the bag of each lookup; None: lookup n is bag n.
        gradient: [bags, dim]: gradient of each bag's sum.
        weights: [lookups]: factor of each lookup, or None.
    """

    indices: Tensor
    bags: Tensor | None
    gradient: Tensor
    weights: Tensor | None


def coalesce(records: list[LookupGradient], dim: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Returns (distinct indices [n] int64 ascending, summed gradients [n, dim]).

    On the CPU each sum runs in order of occurrence, as in the backward of ``nn.EmbeddingBag``.
    """
    if not records:
        return torch.empty(0, dtype=torch.int64), torch.empty(0, dim, dtype=dtype)
    if all(r.gradient.device.type == "cpu" for r in records) and native.library_path().exists():
        return _coalesce_native(records, dtype)
    indices = torch.cat([record.indices for record in records]).long()
    values = []
    for record in records:
        value = record.gradient.to(dtype)
        if record.bags is not None:
            value = value.index_select(0, record.bags)
        if record.weights is not None:
            value = value * record.weights.to(dtype)[:, None]
        values.append(value)
    rows, inverse = torch.unique(indices, return_inverse=True)
    gradient = torch.zeros(rows.numel(), dim, dtype=dtype, device=rows.device)
    gradient.index_add_(0, inverse, values[0] if len(values) == 1 else torch.cat(values))
    return rows, gradient


def _coalesce_native(records: list[LookupGradient], dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    def numpy(tensor: Tensor | None, kind: torch.dtype | None = None) -> Any:
        if tensor is None:
            return None
        return tensor.detach().to(kind or tensor.dtype).contiguous().numpy()

    rows, gradient = native.coalesce(
        [
            native.Record(
                indices=numpy(record.indices),
                gradient=numpy(record.gradient, dtype),
                bags=numpy(record.bags),
                weights=numpy(record.weights, dtype),
            )
            for record in records
        ],
        INDEX_LIMIT,
    )
    return torch.from_numpy(rows), torch.from_numpy(gradient)
