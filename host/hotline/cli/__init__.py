# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""The command ``hotline`` (see ``hotline --help``)."""

from __future__ import annotations

from hotline.cli.app import main

__all__ = ["main"]
