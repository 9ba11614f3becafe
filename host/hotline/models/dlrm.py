# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""DLRM (arXiv 1906.00091): bottom MLP, pairwise dot interaction, top MLP.

dense [n, d] --bottom--> [n, dim] --+
                                    +--interaction--> [n, dim + pairs] --top--> logit [n]
features ----embedding--> [n, f, dim]
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from hotline.errors import ConfigError


def _linear(width: int, out: int, dtype: torch.dtype) -> nn.Linear:
    """A layer without values: unlike ``nn.Linear`` it draws nothing from the global generator."""
    layer: nn.Linear = nn.utils.skip_init(  # type: ignore[no-untyped-call]
        nn.Linear, width, out, dtype=dtype
    )
    return layer


def mlp(
    sizes: Sequence[int], *, last_relu: bool, generator: torch.Generator, dtype: torch.dtype
) -> nn.Sequential:
    """Linear layers with ReLU between; weights N(0, 2 / (in + out)), biases N(0, 1 / out)."""
    layers: list[nn.Module] = []
    for n, (width, out) in enumerate(itertools.pairwise(sizes)):
        layer = _linear(width, out, dtype)
        with torch.no_grad():
            layer.weight.normal_(0.0, (2.0 / (width + out)) ** 0.5, generator=generator)
            layer.bias.normal_(0.0, (1.0 / out) ** 0.5, generator=generator)
        layers.append(layer)
        if last_relu or n < len(sizes) - 2:
            layers.append(nn.ReLU())
    return nn.Sequential(*layers)


class Interaction(nn.Module):
    """Dot products of all pairs of vectors of a sample, appended to the dense vector."""

    def __init__(self, vectors: int) -> None:
        super().__init__()
        rows, columns = torch.tril_indices(vectors, vectors, offset=-1).unbind()
        self.register_buffer("_pairs", rows * vectors + columns, persistent=False)

    def forward(self, dense: Tensor, sparse: Tensor) -> Tensor:
        """``dense`` [n, dim] and ``sparse`` [n, f, dim] give [n, dim + (f + 1) * f / 2]."""
        vectors = torch.cat((dense[:, None], sparse), dim=1)
        products = torch.bmm(vectors, vectors.transpose(1, 2)).flatten(1)
        pairs: Tensor = self._pairs  # type: ignore[assignment]
        return torch.cat((dense, products.index_select(1, pairs)), dim=1)


class DLRM(nn.Module):
    """The model.

    Args:
        embedding: gives [n, features, dim]; has attributes ``features`` and ``dim``.
        dense_width: columns of the dense input; 0: there is none.
        bottom: widths of the hidden layers of the bottom MLP.
        top: widths of the hidden layers of the top MLP.
        seed: of the MLPs' weights; the global generator is not touched.
        dtype: of the MLPs.
    """

    def __init__(
        self,
        embedding: nn.Module,
        dense_width: int,
        *,
        bottom: Sequence[int] = (512, 256, 64),
        top: Sequence[int] = (512, 256),
        seed: int = 0,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        features, dim = getattr(embedding, "features", None), getattr(embedding, "dim", None)
        if not isinstance(features, int) or not isinstance(dim, int):
            raise ConfigError("the embedding module must tell its `features` and `dim`")
        if dense_width < 0 or features + (dense_width > 0) < 1:
            raise ConfigError(f"dense_width={dense_width} with {features} features is no input")
        generator = torch.Generator().manual_seed(seed)
        self.embedding = embedding
        self.dense_width = dense_width
        self.bottom = mlp(
            (max(dense_width, 1), *bottom, dim), last_relu=True, generator=generator, dtype=dtype
        )
        self.interaction = Interaction(features + 1)
        width = dim + (features + 1) * features // 2
        self.top = mlp((width, *top, 1), last_relu=False, generator=generator, dtype=dtype)

    def dense_parameters(self) -> list[nn.Parameter]:
        """Parameters of the MLPs, without those of the embedding module."""
        return [*self.bottom.parameters(), *self.top.parameters()]

    def forward(self, dense: Tensor | None, features: Any) -> Tensor:
        """Logits [n] of ``dense`` [n, dense_width] and what the embedding module takes."""
        sparse = self.embedding(features)
        if self.dense_width == 0:
            dense = sparse.new_ones(sparse.shape[0], 1)
        elif dense is None or dense.shape[1] != self.dense_width:
            got = None if dense is None else [*dense.shape]
            raise ConfigError(f"dense input must be [n, {self.dense_width}], not {got}")
        hidden = self.bottom(dense.to(sparse.dtype))
        logits: Tensor = self.top(self.interaction(hidden, sparse)).squeeze(1)
        return logits
