# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Both kernels at their Verilog tops, in the smallest configuration."""

from __future__ import annotations

import pytest

from hotline.config import kernel_config
from sim.runner import run_bench


@pytest.mark.parametrize("kernel", ["fragmenter", "gatherer"])
def test_top(kernel: str) -> None:
    parameters = kernel_config("tiny").verilog_parameters() | {"BuildId": 0xFEED_BEEF}
    testcase = f"{kernel}_runs_jobs"
    run_bench(f"hotline_{kernel}_top", "kernels", "cocotb_top", parameters, testcase=testcase)
