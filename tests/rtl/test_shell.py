# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""hotline_shell with the parameters of the smallest fragmenter."""

from __future__ import annotations

from hotline.config import kernel_config
from hotline.reference import FRAGMENTER

from sim.runner import run_bench


def test_shell() -> None:
    config = kernel_config("tiny")
    parameters = {
        "Operations": sum(1 << operation for operation in FRAGMENTER),
        "BusBits": config.bus_bits,
        "EalSets": config.eal_sets,
        "EalWays": config.eal_ways,
        "LookupsMax": config.lookups_max,
        "ColdRowsMax": config.cold_rows_max,
        "BurstBeats": config.burst_beats,
        "ReadOutstanding": config.read_outstanding,
        "WriteOutstanding": config.write_outstanding,
        "ClockKhz": config.clock_khz,
        "BuildId": 0x1234_ABCD,
    }
    run_bench("hotline_shell", "shell", "cocotb_shell", parameters)
