# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Gatherer core: a narrow bus, the widest one, and many seeds in the long run."""

from __future__ import annotations

import pytest

from sim.runner import run_bench

NARROW = {"BusBits": 64, "BurstBeats": 16, "ReadOutstanding": 64, "WriteOutstanding": 64}
WIDE = {"BusBits": 512, "BurstBeats": 16, "ReadOutstanding": 64, "WriteOutstanding": 64}


@pytest.mark.parametrize(
    ("parameters", "seeds"), [(NARROW, "zero"), (WIDE, "random")], ids=["narrow", "wide"]
)
def test_gatherer(parameters: dict[str, int], seeds: str) -> None:
    run_bench("hotline_gatherer", "gatherer", "cocotb_gatherer", parameters, seeds=seeds)


@pytest.mark.slow
@pytest.mark.parametrize("parameters", [NARROW, WIDE], ids=["narrow", "wide"])
def test_gatherer_many_seeds(parameters: dict[str, int]) -> None:
    run_bench(
        "hotline_gatherer", "gatherer", "cocotb_gatherer", parameters,
        extra_env={"HOTLINE_SEEDS": "20"}, seeds="random",
    )  # fmt: skip
