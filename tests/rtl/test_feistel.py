# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""hotline_feistel, both directions in one build."""

from __future__ import annotations

from sim.runner import ROOT, run_bench


def test_feistel() -> None:
    pair = ROOT / "sim" / "hdl" / "hotline_feistel_pair.sv"
    run_bench("hotline_feistel_pair", "eal", "cocotb_feistel", extra_sources=[pair])
