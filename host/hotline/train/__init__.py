# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Training with PyTorch: embedding modules, the pipeline, the trainer."""

from __future__ import annotations

from hotline.train.embedding import HotlineEmbedding, PlainEmbedding
from hotline.train.estimate import Estimate, estimate
from hotline.train.optim import SGD, Adagrad, RowOptimizer, row_optimizer
from hotline.train.pipeline import Batch, MiniBatch, Part, Pipeline, clip_gradients

__all__ = [
    "SGD",
    "Adagrad",
    "Batch",
    "Estimate",
    "HotlineEmbedding",
    "MiniBatch",
    "Part",
    "Pipeline",
    "PlainEmbedding",
    "RowOptimizer",
    "clip_gradients",
    "estimate",
    "row_optimizer",
]
