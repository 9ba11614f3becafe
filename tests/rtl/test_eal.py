# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""hotline_eal: the smallest configuration, one with many conflicts, and 16 lanes over 32 banks."""

from __future__ import annotations

import pytest

from sim.runner import run_bench

# 32 banks are much code for the compiler, and few cycles are run: do not optimise it.
QUICK_BUILD = ["-CFLAGS", "-O0"]


@pytest.mark.parametrize(
    "shape",
    [
        {"Lanes": 2, "Sets": 16, "Ways": 16, "Banks": 2, "UserBits": 3},
        {"Lanes": 4, "Sets": 4, "Ways": 4, "Banks": 2, "UserBits": 1},
    ],
    ids=["tiny", "crowded"],
)
def test_eal(shape: dict[str, int]) -> None:
    run_bench("hotline_eal", "eal", "cocotb_eal", shape)


def test_eal_wide() -> None:
    run_bench(
        "hotline_eal",
        "eal",
        "cocotb_eal",
        {"Lanes": 16, "Sets": 256, "Ways": 4, "Banks": 32, "UserBits": 9},
        testcase=[
            "mixed_operations/idle=never/stall=never",
            "mixed_operations/idle=often/stall=in_bursts",
            "reset_at_any_time",
            "latency",
            "a_slice_per_cycle_without_conflicts",
            "criteo_shaped_rates",
            "dump_and_clear_rates",
        ],
        build_args=QUICK_BUILD,
        seeds="random",
    )


@pytest.mark.slow
def test_eal_alveo_rates() -> None:
    """The header's figures, with the parameters of the largest configuration."""
    run_bench(
        "hotline_eal",
        "eal",
        "cocotb_eal",
        {"Lanes": 16, "Sets": 32_768, "Ways": 16, "Banks": 32, "UserBits": 1},
        testcase="criteo_shaped_rates",
        build_args=QUICK_BUILD,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "shape",
    [
        {"Lanes": 1, "Sets": 1, "Ways": 1, "Banks": 1, "UserBits": 1},
        {"Lanes": 3, "Sets": 8, "Ways": 2, "Banks": 1, "UserBits": 5, "SlicesInFlight": 5},
        {"Lanes": 4, "Sets": 4, "Ways": 8, "Banks": 4, "UserBits": 1},
    ],
    ids=["one of each", "odd", "a set per bank"],
)
def test_eal_corners(shape: dict[str, int]) -> None:
    """Widths that vanish: one set, one way, one bank, one set per bank; a small credit."""
    run_bench(
        "hotline_eal",
        "eal",
        "cocotb_eal",
        shape,
        testcase=[
            "mixed_operations/idle=never/stall=never",
            "mixed_operations/idle=often/stall=in_bursts",
            "backpressure_loses_nothing",
            "clear_and_dump_wait_for_the_slices",
            "dump_and_clear_rates",
        ],
    )
