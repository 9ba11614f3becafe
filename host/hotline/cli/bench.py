# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""``hotline bench``: measurements."""

from __future__ import annotations

import typer

bench = typer.Typer(no_args_is_help=True, help="Measure something, and say how it was measured.")
