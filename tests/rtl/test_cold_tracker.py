# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Cold tracker: one row per cycle, and four rows over eight banks."""

from __future__ import annotations

import pytest

from sim.runner import run_bench

ONE = {"ColdRowsMax": 32, "ColdLanes": 1, "GenerationBits": 2}
FOUR = {"ColdRowsMax": 64, "ColdLanes": 4, "GenerationBits": 3}
TWO = {"ColdRowsMax": 16, "ColdLanes": 2, "GenerationBits": 1}


@pytest.mark.parametrize("parameters", [ONE, FOUR], ids=["one", "four"])
def test_cold_tracker(parameters: dict[str, int]) -> None:
    run_bench("hotline_cold_tracker", "fragmenter", "cocotb_cold_tracker", parameters)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_cold_tracker_long(seed: int) -> None:
    for parameters in (ONE, TWO, FOUR):
        run_bench(
            "hotline_cold_tracker", "fragmenter", "cocotb_cold_tracker", parameters, seed=seed
        )
