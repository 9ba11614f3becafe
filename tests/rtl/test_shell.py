# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""hotline_shell with the parameters of the smallest fragmenter; widest bus, blind core."""

from __future__ import annotations

import pytest

from hotline.config import kernel_config
from hotline.reference import FRAGMENTER
from sim.runner import run_bench


@pytest.mark.parametrize(
    ("bus_bits", "sees_errors", "tests"),
    [
        (64, 1, None),
        (64, 0, "errors_of_the_core"),
        pytest.param(512, 0, None, marks=pytest.mark.slow),
    ],
    ids=["narrow", "blind core", "wide, blind core"],
)
def test_shell(bus_bits: int, sees_errors: int, tests: str | None) -> None:
    config = kernel_config("tiny")
    parameters = {
        "Operations": sum(1 << operation for operation in FRAGMENTER),
        "BusBits": bus_bits,
        "EalSets": config.eal_sets,
        "EalWays": config.eal_ways,
        "LookupsMax": config.lookups_max,
        "ColdRowsMax": config.cold_rows_max,
        "BurstBeats": config.burst_beats,
        "ReadOutstanding": config.read_outstanding,
        "WriteOutstanding": config.write_outstanding,
        "ClockKhz": config.clock_khz,
        "BuildId": 0x1234_ABCD,
        "CoreSeesErrors": sees_errors,
    }
    run_bench("hotline_shell", "shell", "cocotb_shell", parameters, test_filter=tests)
