# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Hotline: train recommenders whose embedding tables do not fit the GPU, with an accelerator that
fragments mini-batches into popular and non-popular micro-batches and gathers the cold rows."""

from __future__ import annotations

from hotline.device import open
from hotline.errors import HotlineError

__all__ = ["HotlineError", "open"]
__version__ = "0.1.0"
