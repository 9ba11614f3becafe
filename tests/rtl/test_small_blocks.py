# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Spill register, FIFOs, RAMs and arbiter: one build of their wrapper."""

from __future__ import annotations

from sim.runner import ROOT, run_bench


def test_small_blocks() -> None:
    run_bench(
        "hotline_small_blocks_wrap",
        "common",
        "cocotb_small_blocks",
        extra_sources=[ROOT / "sim/hdl/hotline_small_blocks_wrap.sv"],
    )
