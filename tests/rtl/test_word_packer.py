# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Word packer: one build of a wrapper with seven shapes."""

from __future__ import annotations

from sim.runner import ROOT, run_bench


def test_word_packer() -> None:
    run_bench(
        "hotline_word_packer_wrap",
        "common",
        "cocotb_word_packer",
        extra_sources=[ROOT / "sim/hdl/hotline_word_packer_wrap.sv"],
    )
