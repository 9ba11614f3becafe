# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""hotline_axi_guard: block RAM for the reads' addresses, LUT RAM for the writes', and both ends."""

from __future__ import annotations

import pytest

from sim.runner import run_bench


def test_axi_guard() -> None:
    parameters = {"BusBits": 64, "ReadOutstanding": 256, "WriteOutstanding": 8}
    run_bench("hotline_axi_guard", "shell", "cocotb_axi_guard", parameters)


@pytest.mark.slow
@pytest.mark.parametrize(("bus_bits", "reads", "writes"), [(512, 16, 256), (128, 1, 1)])
def test_axi_guard_other_sizes(bus_bits: int, reads: int, writes: int) -> None:
    parameters = {"BusBits": bus_bits, "ReadOutstanding": reads, "WriteOutstanding": writes}
    run_bench("hotline_axi_guard", "shell", "cocotb_axi_guard", parameters)
