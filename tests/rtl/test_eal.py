# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""hotline_eal: the smallest configuration, one with many conflicts, and 16 lanes over 32 banks."""

from __future__ import annotations

import pytest

from sim.runner import run_bench

SHAPES = {
    "tiny": {"Lanes": 2, "Sets": 16, "Ways": 16, "Banks": 2, "UserBits": 3},
    "crowded": {"Lanes": 4, "Sets": 4, "Ways": 4, "Banks": 2, "UserBits": 1},
    "wide": {"Lanes": 16, "Sets": 256, "Ways": 4, "Banks": 32, "UserBits": 9},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_eal(shape: str) -> None:
    # 32 banks are much code for the compiler, and few cycles are run: do not optimise it.
    build_args = ["-CFLAGS", "-O0"] if shape == "wide" else []
    run_bench("hotline_eal", "eal", "cocotb_eal", SHAPES[shape], build_args=build_args)
