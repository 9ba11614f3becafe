# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Recommendation models whose embedding module is exchangeable."""

from __future__ import annotations

from hotline.models.dlrm import DLRM

__all__ = ["DLRM"]
