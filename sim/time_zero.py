# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Holds clock and reset low before the first evaluation of a simulation.

Verilator starts with random values of all inputs too, and a clock that starts high is an edge with
whatever reset holds then: assertions would fail on the random registers. `sim.runner` lists this
module before the bench, so that cocotb imports it before time begins.
"""

from __future__ import annotations

from typing import Any

import cocotb
from cocotb.handle import Immediate

CLOCKS_AND_RESETS = ("clk_i", "rst_ni", "ap_clk", "ap_rst_n", "clk", "rst_n")
"""Names of clocks and active-low resets of our modules."""


def hold(dut: Any) -> None:
    """Drives the clock and the reset of ``dut`` to 0, those that it has, at once."""
    for name in CLOCKS_AND_RESETS:
        handle = getattr(dut, name, None)
        if handle is not None:
            handle.set(Immediate(0))


if cocotb.is_simulation:
    hold(cocotb.top)
