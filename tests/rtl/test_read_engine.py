# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Read engine: narrow bus with block RAM FIFOs, wide bus with small ones, the smallest."""

from __future__ import annotations

import pytest

from sim.runner import run_bench

NARROW = {
    "BusBits": 64, "Channels": 2, "BurstBeats": 16, "Outstanding": 128, "FifoBeats": 136,
    "CommandDepth": 4,
}  # fmt: skip
WIDE = {
    "BusBits": 512, "Channels": 3, "BurstBeats": 16, "Outstanding": 16, "FifoBeats": 40,
    "CommandDepth": 2,
}  # fmt: skip
SMALLEST = {
    "BusBits": 128, "Channels": 1, "BurstBeats": 1, "Outstanding": 1, "FifoBeats": 1,
    "CommandDepth": 1,
}  # fmt: skip


@pytest.mark.parametrize(
    ("parameters", "seeds"), [(NARROW, "zero"), (WIDE, "random")], ids=["narrow", "wide"]
)
def test_read_engine(parameters: dict[str, int], seeds: str) -> None:
    run_bench("hotline_read_engine", "common", "cocotb_read_engine", parameters, seeds=seeds)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("parameters", [NARROW, WIDE, SMALLEST], ids=["narrow", "wide", "smallest"])
def test_read_engine_long(parameters: dict[str, int]) -> None:
    run_bench(
        "hotline_read_engine",
        "common",
        "cocotb_read_engine",
        parameters,
        extra_env={"HOTLINE_EFFORT": "5"},
        seeds="random",
    )
