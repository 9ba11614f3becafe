# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Power-up of a module under test whose start values are random."""

from __future__ import annotations

from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.handle import Immediate


def power_up(clock: Any, reset_n: Any, period_ns: int = 4) -> None:
    """Puts clock and reset low before the first evaluation, then starts the clock.

    Inputs start at random values, too. A clock that starts high is an edge at time 0, with whatever
    value the reset started at: assertions then fail on random state that no reset has cleared yet.
    Call it first in a test; the reset stays low.
    """
    for signal in (clock, reset_n):
        if cocotb.SIM_NAME.startswith("Icarus"):
            # Starts unknown, so that there is no edge; a net that is written at once stays dead.
            signal.value = 0
        else:
            signal.set(Immediate(0))
    Clock(clock, period_ns, unit="ns").start(start_high=False)
