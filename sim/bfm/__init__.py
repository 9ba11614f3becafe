# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Bus models and checkers for cocotb benches."""

from __future__ import annotations

from sim.bfm.axi import AxiChecker, AxiMemory, AxiPort, AxiViolationError, Response, Timing

__all__ = ["AxiChecker", "AxiMemory", "AxiPort", "AxiViolationError", "Response", "Timing"]
