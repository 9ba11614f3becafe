# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""hotline_job_check with the parameters of the smallest configuration."""

from __future__ import annotations

from hotline.config import kernel_config
from sim.runner import run_bench


def test_job_check() -> None:
    config = kernel_config("tiny")
    parameters = {
        "EalEntries": config.eal_entries,
        "LookupsMax": config.lookups_max,
        "ColdRowsMax": config.cold_rows_max,
    }
    run_bench("hotline_job_check", "shell", "cocotb_job_check", parameters)
