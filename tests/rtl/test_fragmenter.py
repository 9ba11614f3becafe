# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""The fragmenter core: the tiny configuration, and a small one on a 512-bit bus."""

from __future__ import annotations

import pytest

from hotline.config import kernel_config
from sim.runner import run_bench


def _tiny() -> dict[str, int]:
    parameters = kernel_config("tiny").verilog_parameters()
    del parameters["ClockKhz"]
    # Small, so that the generation of the tracker's entries wraps.
    return {**parameters, "GenerationBits": 3}


def _wide() -> dict[str, int]:
    return {
        **_tiny(), "BusBits": 512, "EalSets": 8, "EalWays": 4, "EalBanks": 4, "ColdRowsMax": 64,
        "LookupsMax": 48, "ColdLanes": 4, "BurstBeats": 4, "ReadOutstanding": 4,
        "WriteOutstanding": 3,
    }  # fmt: skip


# Python is the slow part of these runs, so compiling the model well does not pay.
FAST_BUILD = ("-CFLAGS", "-O0")


@pytest.mark.parametrize(
    ("parameters", "seeds"), [(_tiny(), "zero"), (_wide(), "random")], ids=["tiny", "wide"]
)
def test_fragmenter(parameters: dict[str, int], seeds: str) -> None:
    run_bench(
        "hotline_fragmenter", "fragmenter", "cocotb_fragmenter", parameters, seeds=seeds,
        build_args=FAST_BUILD,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("parameters", [_tiny(), _wide()], ids=["tiny", "wide"])
@pytest.mark.parametrize("seed", range(4))
def test_fragmenter_long(parameters: dict[str, int], seed: int) -> None:
    run_bench(
        "hotline_fragmenter", "fragmenter", "cocotb_fragmenter", parameters, seed=seed,
        extra_env={"HOTLINE_LONG": "5"}, build_args=FAST_BUILD,
    )  # fmt: skip
